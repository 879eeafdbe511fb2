//! Source lines in reports.

/// Returns `text` with `#` and the line in place of each line and column of `file`.
pub(crate) fn without_columns(text: &str, file: &str) -> String {
    let start = format!("{file}:");
    let mut parts = text.split(&start);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (line, rest) = part.split_once(':').unwrap();
        out += "#";
        out += line;
        out += rest.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out
}
