//! Where the characters of a line are on a terminal.

mod ranges;

use std::cmp::Ordering;

use self::ranges::{TWO, ZERO};

/// How far a tab stop is from the next.
const TAB: usize = 8;

/// What a line is drawn on.
pub(super) struct Screen {
    pub(super) prompt: String,
    /// The width of the window; [`usize::MAX`] if it is not known, and lines do not wrap.
    pub(super) columns: usize,
}

/// The place behind a text that began in the first column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The rows that ended with a line feed.
    lines: usize,
    /// The columns since, of all rows.
    offset: usize,
}

impl Place {
    /// Returns the place behind a prompt, whose sequences for colors are not seen.
    pub(super) fn behind(screen: &Screen) -> Self {
        let mut place = Self::default();
        let mut rest = screen.prompt.chars();
        while let Some(character) = rest.next() {
            if character != '\x1b' {
                place.pass(character, screen.columns);
                continue;
            }
            match rest.next() {
                Some('[') => drop(rest.find(|one| ('@'..='~').contains(one))),
                Some(']') => drop(rest.find(|one| matches!(one, '\x07' | '\\'))),
                _ => {}
            }
        }
        place
    }

    /// Goes on behind a character.
    pub(super) fn pass(&mut self, character: char, columns: usize) {
        match character {
            '\n' => {
                self.lines += self.offset.div_ceil(columns).max(1);
                self.offset = 0;
            }
            '\t' => self.offset += TAB - self.offset % TAB,
            _ => {
                let width = width_of(character);
                // A wide character that does not fit begins the next row.
                let is_last = width == 2 && (self.offset + 1) % columns == 0;
                self.offset += width + usize::from(is_last);
            }
        }
    }

    pub(super) fn row(self, columns: usize) -> usize {
        self.lines + self.offset / columns
    }

    pub(super) fn column(self, columns: usize) -> usize {
        self.offset % columns
    }
}

/// Returns how many columns a text takes.
pub(super) fn width_of_text(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

fn width_of(character: char) -> usize {
    if character.is_ascii() {
        return usize::from(!character.is_ascii_control());
    }
    let code = u32::from(character);
    let compare = |range: &(u32, u32)| match range {
        (_, last) if *last < code => Ordering::Less,
        (first, _) if *first > code => Ordering::Greater,
        _ => Ordering::Equal,
    };
    if ZERO.binary_search_by(compare).is_ok() || ('\u{80}'..'\u{a0}').contains(&character) {
        0
    } else if TWO.binary_search_by(compare).is_ok() {
        2
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, Screen, width_of_text};

    #[test]
    fn n163_marks_ideographs_and_colors_are_measured() {
        assert_eq!(width_of_text("a\u{301}"), 1);
        assert_eq!(width_of_text("漢字"), 4);
        assert_eq!(width_of_text("😀é"), 3);
        let screen = Screen {
            prompt: "\x1b[31mred\x1b[0m\x1b]0;title\x07> ".to_owned(),
            columns: 4,
        };
        let mut place = Place::behind(&screen);
        assert_eq!((place.row(4), place.column(4)), (1, 1));
        place.pass('x', 4);
        place.pass('y', 4);
        place.pass('漢', 4);
        assert_eq!((place.row(4), place.column(4)), (2, 2));
        place.pass('\n', 4);
        assert_eq!((place.row(4), place.column(4)), (3, 0));
    }
}
