//! The encoding of certificates: elements of a tag, a length and a content.

/// One element: its tag and its content.
pub(super) type Element<'a> = (u8, &'a [u8]);

/// Takes one element.
pub(super) fn element<'a>(bytes: &mut &'a [u8]) -> Option<Element<'a>> {
    let (&[tag, short], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match short {
        ..=0x7f => (usize::from(short), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(short - 0x80))?;
            let length = digits
                .iter()
                .fold(0, |all, &byte| all << 8 | usize::from(byte));
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some((tag, content))
}

/// Returns the elements of a content, up to the first that is broken.
pub(super) fn elements(mut bytes: &[u8]) -> impl Iterator<Item = Element<'_>> {
    std::iter::from_fn(move || element(&mut bytes))
}

#[cfg(test)]
mod tests {
    use super::element;

    #[test]
    fn long_lengths_are_read_and_impossible_ones_refused() {
        let long = [&[4, 0x82, 1, 0][..], &[9; 256]].concat();
        assert_eq!(element(&mut &*long), Some((4, &[9; 256][..])));
        assert_eq!(
            element(&mut &[4, 0x84, 0xff, 0xff, 0xff, 0xff, 1][..]),
            None
        );
        assert_eq!(element(&mut &[4, 0x80, 0, 0][..]), None);
        assert_eq!(element(&mut &[4, 0x89, 0, 0][..]), None);
    }
}
