//! The characters of a terminal as keys.

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Insert(char),
    Return,
    Enter,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    DeleteToStart,
    DeleteToEnd,
    DeleteWordLeft,
    DeleteWordRight,
    ClearScreen,
    Interrupt,
    EndOfInput,
    Tab,
    Undo,
    Redo,
    Suspend,
    Unknown,
}

/// The longest sequence that is waited for. A longer one is no key.
const LONGEST: usize = 16;

/// Splits characters into keys.
#[derive(Default)]
pub(super) struct Decoder {
    /// A sequence that has begun.
    begun: String,
}

impl Decoder {
    /// Adds a character. Returns the key that it completes.
    pub(super) fn add(&mut self, character: char) -> Option<Key> {
        const ESCAPE: char = '\x1b';
        if self.begun.is_empty() && character != ESCAPE {
            return Some(plain(character));
        }
        if character == ESCAPE {
            self.begun.clear();
        }
        self.begun.push(character);
        let is_complete = match self.begun.as_bytes() {
            [_] | [_, b'[' | b'O'] => false,
            [_, b'[' | b'O', .., last] => (0x40..=0x7e).contains(last),
            _ => true,
        };
        if is_complete {
            return Some(sequence(&std::mem::take(&mut self.begun)));
        }
        if self.begun.len() > LONGEST {
            self.begun.clear();
            return Some(Key::Unknown);
        }
        None
    }
}

fn plain(character: char) -> Key {
    match character {
        '\r' => Key::Return,
        '\n' => Key::Enter,
        '\t' => Key::Tab,
        '\x08' | '\x7f' => Key::Backspace,
        '\x01' => Key::Home,
        '\x02' => Key::Left,
        '\x03' => Key::Interrupt,
        '\x04' => Key::EndOfInput,
        '\x05' => Key::End,
        '\x06' => Key::Right,
        '\x0b' => Key::DeleteToEnd,
        '\x0c' => Key::ClearScreen,
        '\x0e' => Key::Down,
        '\x10' => Key::Up,
        '\x15' => Key::DeleteToStart,
        '\x17' => Key::DeleteWordLeft,
        '\x1a' => Key::Suspend,
        '\x1e' => Key::Redo,
        '\x1f' => Key::Undo,
        control if control < ' ' => Key::Unknown,
        other => Key::Insert(other),
    }
}

fn sequence(text: &str) -> Key {
    match text.get(1..).unwrap_or_default() {
        "b" | "[1;5D" | "[1;3D" => Key::WordLeft,
        "f" | "[1;5C" | "[1;3C" => Key::WordRight,
        "d" => Key::DeleteWordRight,
        "\x7f" | "\x08" => Key::DeleteWordLeft,
        "[A" | "OA" => Key::Up,
        "[B" | "OB" => Key::Down,
        "[C" | "OC" => Key::Right,
        "[D" | "OD" => Key::Left,
        "[H" | "OH" | "[1~" | "[7~" => Key::Home,
        "[F" | "OF" | "[4~" | "[8~" => Key::End,
        "[3~" => Key::Delete,
        _ => Key::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::{Decoder, Key};

    #[test]
    fn n163_sequences_are_joined_and_endless_ones_dropped() {
        let mut decoder = Decoder::default();
        let mut keys =
            |text: &str| -> Vec<_> { text.chars().filter_map(|one| decoder.add(one)).collect() };
        assert_eq!(keys("\x1b["), []);
        assert_eq!(keys("Da"), [Key::Left, Key::Insert('a')]);
        assert_eq!(keys("\x1b\x1b[3~"), [Key::Delete]);
        let endless = format!("\x1b[{}", "1;".repeat(1000));
        assert!(keys(&endless).contains(&Key::Unknown));
        assert_eq!(decoder.begun.len(), 0);
    }
}
