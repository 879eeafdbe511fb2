//! Durations as text.

/// Returns the nanoseconds of a text such as `500ms`, `5s` or `2m`; `None` if it is no duration, or
/// is zero or too long.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        _ => return None,
    };
    let nanoseconds = number.parse::<u64>().ok()?.checked_mul(unit)?;
    (nanoseconds > 0).then_some(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_duration_is_a_whole_number_with_a_unit() {
        assert_eq!(parse("500ms"), Some(500_000_000));
        assert_eq!(parse("5s"), Some(5_000_000_000));
        assert_eq!(parse("2m"), Some(120_000_000_000));
        for wrong in [
            "",
            "5",
            "s",
            "-5s",
            "5 s",
            "1.5s",
            "0s",
            "5h",
            "99999999999999999999s",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
