//! Converts host names to ASCII, label by label, in Punycode (RFC 3492).
//!
//! It follows libuv: characters are encoded unchanged, without case folding or normalisation.

use std::borrow::Cow;

/// The most bytes of a host name.
pub(super) const LONGEST_HOST: usize = 255;

/// Returns the name in ASCII; `None` if it is too long.
#[inline]
pub(super) fn to_ascii(host: &str) -> Option<Cow<'_, str>> {
    if host.is_ascii() {
        return (host.len() <= LONGEST_HOST).then_some(Cow::Borrowed(host));
    }
    // The bound keeps the arithmetic below from overflowing, since a character takes at least a
    // byte.
    if host.chars().count() > LONGEST_HOST {
        return None;
    }
    let mut ascii = String::new();
    for (index, label) in host.split(is_dot).enumerate() {
        if index > 0 {
            ascii.push('.');
        }
        push_label(&mut ascii, label);
    }
    (ascii.len() <= LONGEST_HOST).then_some(Cow::Owned(ascii))
}

/// The full stop and its ideographic, full-width and half-width forms.
fn is_dot(character: char) -> bool {
    matches!(character, '.' | '\u{3002}' | '\u{FF0E}' | '\u{FF61}')
}

#[inline]
fn push_label(ascii: &mut String, label: &str) {
    if label.is_ascii() {
        return ascii.push_str(label);
    }
    ascii.push_str("xn--");
    push_punycode(ascii, label);
}

/// Writes the ASCII characters, then one number for each other character in the order of code
/// points. The number counts the positions, over all code points in between, up to the next
/// insertion.
#[inline]
fn push_punycode(ascii: &mut String, label: &str) {
    let points = || label.chars().map(u32::from);
    ascii.extend(label.chars().filter(char::is_ascii));
    let basic = label.chars().filter(char::is_ascii).count() as u32;
    if basic > 0 {
        ascii.push('-');
    }
    let mut bias = 72;
    let mut skipped = 0;
    // The number of characters inserted, and the code point below which all are inserted.
    let (mut present, mut done) = (basic, 0x80);
    while let Some(next) = points().filter(|&point| point >= done).min() {
        skipped += (next - done) * (present + 1);
        for point in points() {
            if point < next {
                skipped += 1;
            }
            if point == next {
                push_number(ascii, skipped, bias);
                present += 1;
                bias = adapt(skipped, present, present == basic + 1);
                skipped = 0;
            }
        }
        skipped += 1;
        done = next + 1;
    }
}

const BASE: u32 = 36;
const LEAST_THRESHOLD: u32 = 1;
const GREATEST_THRESHOLD: u32 = 26;

/// Writes a variable-length number: its last digit is below the threshold of its place.
fn push_number(ascii: &mut String, mut number: u32, bias: u32) {
    let mut place = BASE;
    loop {
        let threshold = place
            .saturating_sub(bias)
            .clamp(LEAST_THRESHOLD, GREATEST_THRESHOLD);
        if number < threshold {
            return ascii.push(digit(number));
        }
        let rest = number - threshold;
        ascii.push(digit(threshold + rest % (BASE - threshold)));
        number = rest / (BASE - threshold);
        place += BASE;
    }
}

fn digit(value: u32) -> char {
    char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[value as usize])
}

/// Adapts the bias to the expected size of the next number.
fn adapt(last: u32, present: u32, is_first: bool) -> u32 {
    let mut number = last / if is_first { 700 } else { 2 };
    number += number / present;
    let mut bias = 0;
    while number > (BASE - LEAST_THRESHOLD) * GREATEST_THRESHOLD / 2 {
        number /= BASE - LEAST_THRESHOLD;
        bias += BASE;
    }
    bias + BASE * number / (number + 38)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_HOST, adapt, push_punycode, to_ascii};

    #[track_caller]
    fn assert_ascii(host: &str, expected: &str) {
        assert_eq!(to_ascii(host).as_deref(), Some(expected), "{host}");
        assert_eq!(
            to_ascii(expected).as_deref(),
            Some(expected),
            "once is enough"
        );
    }

    /// Labels and dots; what is ASCII stays as it is.
    #[test]
    fn r286_libuv_idna_toascii() {
        for same in [
            "",
            ".",
            ".com",
            "example",
            "example-",
            "foo.bar.",
            "-> $1.00 <-",
        ] {
            assert_ascii(same, same);
        }
        for (host, expected) in [
            ("ü", "xn--tda"),
            (".ü", ".xn--tda"),
            ("ü.ü.", "xn--tda.xn--tda."),
            ("bücher.example", "xn--bcher-kva.example"),
            ("straße.example", "xn--strae-oqa.example"),
            // Not as "σίσυφος": the case stays.
            ("ΣΊΣΥΦΟΣ.example", "xn--iwa6bkbbkh.example"),
            ("Bücher.example", "xn--Bcher-kva.example"),
            ("💩.example", "xn--ls8h.example"),
            ("☃-⌘.example", "xn----dqo34k.example"),
            ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
            ("例え．テスト", "xn--r8jz45g.xn--zckzah"),
            ("例え｡テスト", "xn--r8jz45g.xn--zckzah"),
            ("example。com", "example.com"),
        ] {
            assert_ascii(host, expected);
        }
    }
    /// What Python's codec of that name says.
    #[test]
    fn labels_of_many_scripts() {
        for (label, expected) in [
            ("größenwahn", "grenwahn-rya3u"),
            ("žluťoučkýkůň", "luoukk-fza0k2w9i6dqh"),
            ("γαζέεςκαὶμυρτιὲς", "ixahbfmeygt4chfym2937hxba"),
            ("съешьжеещёэтихмягких", "c1adaadobpq8bp1be5ask0bw6b8a"),
            ("春眠不覺曉處處聞啼鳥", "ihq04ps3o1sar76dxvmn0ja239efz5c"),
            ("いろはにほへとちりぬるを", "n8jycualho8dxa2lln3e"),
            ("ทดสอบภาษาไทย", "l3cfbl4an1cf1a6cb0t"),
            ("Ωmega-3-ß-Ω", "mega-3---wya642eja"),
            ("áé", "ae-8tbb"),
            ("\u{10FFFF}\u{80}", "a97093t"),
            ("zażółćgęśląjaźń", "zaglja-cxa0mpa5p6q5a80a6ota"),
        ] {
            let mut ascii = String::new();
            push_punycode(&mut ascii, label);
            assert_eq!(ascii, expected, "{label}");
            assert_eq!(decode(&ascii), label);
        }
    }

    #[test]
    fn any_label_can_be_read_back() {
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for _ in 0..2000 {
            // Of one script, of all planes, or of both and ASCII.
            let ranges = [(0x61, 26), (0x400, 256), (0x80, 0x10_FF80)];
            let range = random(4) as usize;
            let label: String = (0..random(60))
                .filter_map(|_| {
                    let (start, length) = ranges[if range == 3 {
                        random(3) as usize
                    } else {
                        range
                    }];
                    char::from_u32((start + random(length)) as u32)
                })
                .collect();
            let mut ascii = String::new();
            push_punycode(&mut ascii, &label);
            assert!(ascii.is_ascii());
            assert_eq!(decode(&ascii), label);
        }
    }

    /// What RFC 3492 says of reading, in section 6.2.
    fn decode(ascii: &str) -> String {
        let (basic, numbers) = ascii.rsplit_once('-').unwrap_or(("", ascii));
        let mut label: Vec<char> = basic.chars().collect();
        let (mut point, mut position, mut bias) = (0x80, 0_u32, 72);
        let mut digits = numbers.chars().peekable();
        while digits.peek().is_some() {
            let (before, mut weight, mut place) = (position, 1, 36);
            loop {
                let value = match digits.next().unwrap() {
                    letter @ 'a'..='z' => u32::from(letter) - u32::from('a'),
                    number @ '0'..='9' => u32::from(number) - u32::from('0') + 26,
                    other => panic!("{other}"),
                };
                position += value * weight;
                let threshold = if place <= bias {
                    1
                } else {
                    (place - bias).min(26)
                };
                if value < threshold {
                    break;
                }
                weight *= 36 - threshold;
                place += 36;
            }
            let count = label.len() as u32 + 1;
            bias = adapt(position - before, count, before == 0);
            point += position / count;
            position %= count;
            label.insert(position as usize, char::from_u32(point).unwrap());
            position += 1;
        }
        label.into_iter().collect()
    }

    #[test]
    fn r286_the_ascii_form_has_a_greatest_length() {
        let fits = "a".repeat(LONGEST_HOST);
        assert_ascii(&fits, &fits);
        assert_eq!(to_ascii(&"a".repeat(LONGEST_HOST + 1)), None);
        // More bytes in one form, fewer in the other.
        let shorter = "語".repeat(100);
        assert!(shorter.len() > LONGEST_HOST && to_ascii(&shorter).is_some());
        let longer = "ü.".repeat(50);
        assert!(longer.len() < LONGEST_HOST && to_ascii(&longer).is_none());
        assert_eq!(to_ascii(&"語".repeat(100_000)), None);
    }
}
