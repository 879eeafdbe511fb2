//! Messages of the domain name system: a question is written, an answer is read. No input or
//! output. An answer is not trusted: each length is checked, and a name refers to bytes before it
//! only, so that its parts come to an end.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The class of the internet.
const INTERNET: u16 = 1;

/// The size of the first part of a message.
const HEAD: usize = 12;

/// The longest name, in the form of a message.
const LONGEST_NAME: usize = 255;

/// Returns a question for the records of a type. `None` if `name` is none.
pub(super) fn question(id: u16, name: &str, kind: u16) -> Option<Vec<u8>> {
    const RECURSE: u16 = 0x0100;
    let mut message = Vec::with_capacity(HEAD + name.len() + 6);
    for part in [id, RECURSE, 1, 0, 0, 0] {
        message.extend(part.to_be_bytes());
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    for label in name.split('.').filter(|_| !name.is_empty()) {
        let size = u8::try_from(label.len()).ok();
        let size = size.filter(|size| (1..=63).contains(size) && label.is_ascii())?;
        message.push(size);
        message.extend(label.as_bytes());
    }
    message.push(0);
    if message.len() - HEAD > LONGEST_NAME {
        return None;
    }
    message.extend(kind.to_be_bytes());
    message.extend(INTERNET.to_be_bytes());
    Some(message)
}

/// What a message is to a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    /// It is no answer to this question.
    Foreign,
    /// It is not well-formed.
    Broken,
    /// It was cut; the whole of it can be had by TCP.
    Cut,
    /// An answer with its code.
    Answer(u8, Answer<'a>),
}

/// Reads a message that may be the answer to `question`.
pub(super) fn reply<'a>(question: &[u8], message: &'a [u8]) -> Reply<'a> {
    const RESPONSE: u8 = 0x80;
    const TRUNCATED: u8 = 0x02;
    if message.get(..2) != question.get(..2) {
        return Reply::Foreign;
    }
    let Some(head) = message.get(..HEAD) else {
        return Reply::Broken;
    };
    if head[2] & RESPONSE == 0 {
        return Reply::Foreign;
    }
    let (questions, answers) = (two(&head[4..]), two(&head[6..]));
    let asked = &question[HEAD..];
    let repeated = message.get(HEAD..HEAD + asked.len());
    let is_same = questions == 1 && repeated.is_some_and(|same| same.eq_ignore_ascii_case(asked));
    if !is_same {
        return Reply::Foreign;
    }
    if head[2] & TRUNCATED != 0 {
        return Reply::Cut;
    }
    let answer = Answer {
        message,
        at: HEAD + asked.len(),
        count: answers,
    };
    Reply::Answer(head[3] & 0x0f, answer)
}

/// The records of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    message: &'a [u8],
    at: usize,
    count: u16,
}

impl<'a> Answer<'a> {
    /// Returns the data of the records of a type. `None` if the answer is not well-formed.
    pub(super) fn records(self, kind: u16) -> Option<Vec<Data<'a>>> {
        let (mut found, mut at) = (Vec::new(), self.at);
        for _ in 0..self.count {
            at = skip_name(self.message, at)?;
            let fixed = self.message.get(at..at + 10)?;
            let (its_kind, class, size) = (two(fixed), two(&fixed[2..]), two(&fixed[8..]));
            let (begin, end) = (at + 10, at + 10 + usize::from(size));
            self.message.get(begin..end)?;
            if (its_kind, class) == (kind, INTERNET) {
                found.push(Data {
                    message: self.message,
                    at: begin,
                    end,
                });
            }
            at = end;
        }
        Some(found)
    }
}

/// The data of a record, which is read from the front.
#[derive(Debug)]
pub(super) struct Data<'a> {
    message: &'a [u8],
    at: usize,
    end: usize,
}

impl Data<'_> {
    fn take(&mut self, size: usize) -> Option<&[u8]> {
        let end = self.at.checked_add(size).filter(|end| *end <= self.end)?;
        let taken = self.message.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.end
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(super) fn short(&mut self) -> Option<u16> {
        self.take(2).map(two)
    }

    pub(super) fn long(&mut self) -> Option<u32> {
        let [high, low] = [self.short()?, self.short()?];
        Some(u32::from(high) << 16 | u32::from(low))
    }

    pub(super) fn ipv4(&mut self) -> Option<Ipv4Addr> {
        let octets: [u8; 4] = self.take(4)?.try_into().ok()?;
        self.is_empty().then(|| octets.into())
    }

    pub(super) fn ipv6(&mut self) -> Option<Ipv6Addr> {
        let octets: [u8; 16] = self.take(16)?.try_into().ok()?;
        self.is_empty().then(|| octets.into())
    }

    /// Takes a text with its length before it.
    pub(super) fn text(&mut self) -> Option<String> {
        let size = self.byte()?;
        let bytes = self.take(usize::from(size))?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Takes a text up to the end of the record.
    pub(super) fn rest(&mut self) -> Option<String> {
        let bytes = self.take(self.end - self.at)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Takes a name that must not refer to others, as in the newer types.
    pub(super) fn plain_name(&mut self) -> Option<String> {
        let mut at = self.at;
        while let size @ 1..=63 = *self.message.get(at)? {
            at += 1 + usize::from(size);
        }
        match self.message.get(at) {
            Some(0) => self.name(),
            _ => None,
        }
    }

    pub(super) fn name(&mut self) -> Option<String> {
        let name = name(self.message, self.at)?;
        self.at = skip_name(self.message, self.at).filter(|end| *end <= self.end)?;
        Some(name)
    }
}

fn two(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

/// Returns where the name at `at` ends: behind its parts, or behind a reference to others.
fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            size @ 1..=63 => at += 1 + usize::from(size),
            0xc0.. => return message.get(at + 1).map(|_| at + 2),
            _ => return None,
        }
    }
}

/// Reads a name. Signs that a host has not are escaped, as c-ares does it.
fn name(message: &[u8], mut at: usize) -> Option<String> {
    let (mut text, mut size, mut before) = (String::new(), 0, at);
    loop {
        let first = *message.get(at)?;
        match first {
            0 => return Some(text),
            1..=63 => {
                size += 1 + usize::from(first);
                if size > LONGEST_NAME {
                    return None;
                }
                let label = message.get(at + 1..at + 1 + usize::from(first))?;
                if !text.is_empty() {
                    text.push('.');
                }
                for &byte in label {
                    match byte {
                        b'.' | b'\\' | b';' | b'"' | b'(' | b')' | b'@' | b'$' => {
                            text.extend(['\\', char::from(byte)]);
                        }
                        b'!'..=b'~' => text.push(char::from(byte)),
                        _ => text.push_str(&format!("\\{byte:03}")),
                    }
                }
                at += 1 + usize::from(first);
            }
            0xc0.. => {
                let low = *message.get(at + 1)?;
                let to = usize::from(first & 0x3f) << 8 | usize::from(low);
                // Each reference is to bytes before the last one, so that they end.
                if to >= before {
                    return None;
                }
                (at, before) = (to, to);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reply, question, reply};

    /// Returns an answer with one MX record whose name has a reference to the question.
    fn answer(question: &[u8]) -> Vec<u8> {
        let mut message = question.to_vec();
        message[2..4].copy_from_slice(&[0x81, 0x80]);
        message[7] = 1;
        message.extend([0xc0, 12, 0, 15, 0, 1, 0, 0, 0, 9, 0, 7]);
        message.extend([0, 10, 2, b'm', b'x', 0xc0, 12]);
        message
    }

    fn exchange(question: &[u8], message: &[u8]) -> Option<String> {
        match reply(question, message) {
            Reply::Answer(0, answer) => {
                let mut data = answer.records(15)?.pop()?;
                data.short()?;
                data.name()
            }
            _ => None,
        }
    }

    #[test]
    fn n162_an_answer_is_read_and_names_are_joined() {
        let question = question(7, "a.test", 15).unwrap();
        assert_eq!(
            exchange(&question, &answer(&question)).unwrap(),
            "mx.a.test"
        );
    }

    #[test]
    fn n162_answers_to_other_questions_are_foreign() {
        let asked = question(7, "a.test", 15).unwrap();
        for other in [(8, "a.test", 15), (7, "b.test", 15), (7, "a.test", 1)] {
            let other = question(other.0, other.1, other.2).unwrap();
            assert_eq!(reply(&asked, &answer(&other)), Reply::Foreign);
        }
        assert_eq!(reply(&asked, &asked), Reply::Foreign, "it is a question");
    }

    #[test]
    fn n162_no_bytes_of_a_server_panic_or_loop() {
        let question = question(7, "a.test", 15).unwrap();
        let whole = answer(&question);
        for at in 0..whole.len() {
            assert_eq!(exchange(&question, &whole[..at]), None, "cut at {at}");
            for byte in [0, 0x3f, 0x40, 0xc0, 0xff, whole[at] ^ 1] {
                let mut changed = whole.clone();
                changed[at] = byte;
                exchange(&question, &changed);
            }
        }
        // A name that refers to itself, and two that refer to each other.
        let size = whole.len();
        for reference in [size - 2, size - 5] {
            let mut looped = whole.clone();
            looped[size - 1] = u8::try_from(reference).unwrap();
            assert_eq!(exchange(&question, &looped), None);
        }
    }

    #[test]
    fn n162_names_that_are_none_are_refused() {
        let long = "x".repeat(64);
        let many = "abcdefg.".repeat(40);
        for name in ["a..b", ".a", &long, &many, "ä.test"] {
            assert_eq!(question(1, name, 1), None, "{name}");
        }
        assert!(question(1, "", 1).is_some());
        assert_eq!(question(1, "a.test.", 1), question(1, "a.test", 1));
    }
}
