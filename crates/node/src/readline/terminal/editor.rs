//! What keys do to the line of a terminal.

use std::time::Duration;

use super::{Action, Terminal};
use crate::readline::cursor::{by, to};
use crate::readline::keys::Key;
use crate::readline::undo::Text;
use crate::readline::width::{Place, Screen, width_of_text};
use phaseloop::time::now;

/// How long after `\r` a `\n` belongs to it.
const CRLF_DELAY: Duration = Duration::from_millis(100);

/// Returns what all texts begin with.
fn common<'a>(texts: &[&'a String]) -> &'a str {
    let Some((first, rest)) = texts.split_first() else {
        return "";
    };
    let mut size = first.len();
    for text in rest {
        let same = first.char_indices().zip(text.chars());
        let end = same.take_while(|((_, one), other)| one == other).last();
        size = size.min(end.map_or(0, |((at, one), _)| at + one.len_utf8()));
    }
    &first[..size]
}

impl Terminal {
    pub(super) fn text(&self) -> String {
        self.line.iter().collect()
    }

    /// Returns the place behind some characters of the line.
    fn place(&self, screen: &Screen, cursor: usize) -> Place {
        let mut place = Place::behind(screen);
        for character in &self.line[..cursor] {
            place.pass(*character, screen.columns);
        }
        place
    }

    pub(super) fn redraw(&mut self, screen: &Screen, drawn: &mut String) {
        let columns = screen.columns;
        let (cursor, end) = (
            self.place(screen, self.cursor),
            self.place(screen, self.line.len()),
        );
        let line: String = self.line.iter().collect();
        let up = |rows: usize| by(0, -isize::try_from(rows).unwrap_or(0));
        drawn.push_str(&up(self.drawn_row));
        drawn.push_str(&format!("{}\x1b[0J{}{line}", to(0, None), screen.prompt));
        if end.column(columns) == 0 {
            // A terminal begins the next row with its first character.
            drawn.push(' ');
        }
        drawn.push_str(&to(cursor.column(columns), None));
        drawn.push_str(&up(end.row(columns) - cursor.row(columns)));
        self.drawn_row = cursor.row(columns);
    }

    /// Inserts text. As in Node, what is pasted is drawn without looking where it goes, but for its
    /// last character.
    pub(super) fn insert(&mut self, text: &str, screen: &Screen, drawn: &mut String) {
        self.undo.keep(&self.line, self.cursor);
        let (from, columns) = (self.cursor, screen.columns);
        let is_inside = from < self.line.len();
        self.line.splice(from..from, text.chars());
        self.cursor += text.chars().count();
        let wraps = || {
            let before = self.place(screen, from).row(columns);
            before < self.place(screen, self.cursor).row(columns)
        };
        if self.is_last && (is_inside || wraps()) {
            return self.redraw(screen, drawn);
        }
        drawn.push_str(text);
    }

    fn move_to(&mut self, cursor: usize, screen: &Screen, drawn: &mut String) {
        let columns = screen.columns;
        let (from, to) = (self.place(screen, self.cursor), self.place(screen, cursor));
        self.cursor = cursor;
        if from.row(columns) != to.row(columns) {
            return self.redraw(screen, drawn);
        }
        let signed = |place: Place| isize::try_from(place.column(columns)).unwrap_or(0);
        drawn.push_str(&by(signed(to) - signed(from), 0));
    }

    /// Deletes a part of the line. Nothing is drawn if it is empty.
    fn delete(&mut self, from: usize, end: usize, screen: &Screen, drawn: &mut String) {
        if from < end {
            self.undo.keep(&self.line, self.cursor);
            self.line.drain(from..end);
            self.cursor = from;
            self.redraw(screen, drawn);
        }
    }

    fn show(&mut self, text: Text, screen: &Screen, drawn: &mut String) {
        (self.line, self.cursor) = text;
        self.redraw(screen, drawn);
    }

    fn show_line(&mut self, line: &str, screen: &Screen, drawn: &mut String) {
        let line: Vec<_> = line.chars().collect();
        let end = line.len();
        self.show((line, end), screen, drawn);
    }

    /// Inserts what the candidates of a completion have in common, or lists them.
    pub(super) fn offer(
        &mut self,
        candidates: &[String],
        replaced: &str,
        screen: &Screen,
        drawn: &mut String,
    ) {
        let known: Vec<_> = candidates.iter().filter(|one| !one.is_empty()).collect();
        let common = common(&known);
        if let Some(rest) = common
            .strip_prefix(replaced)
            .filter(|rest| !rest.is_empty())
        {
            return self.insert(rest, screen, drawn);
        }
        if !replaced.starts_with(common) {
            let from = self.cursor.saturating_sub(replaced.chars().count());
            self.line.splice(from..self.cursor, common.chars());
            self.cursor = from + common.chars().count();
            return self.redraw(screen, drawn);
        }
        if known.is_empty() || !self.is_tab_again {
            return;
        }
        self.undo.keep(&self.line, self.cursor);
        let width = known
            .iter()
            .map(|one| width_of_text(one))
            .max()
            .unwrap_or(0)
            + 2;
        let fits = match screen.columns {
            usize::MAX => 1,
            columns => (columns / width).max(1),
        };
        drawn.push_str("\r\n");
        let (mut count, mut blanks) = (0, 0);
        for candidate in candidates {
            if candidate.is_empty() || count == fits {
                drawn.push_str("\r\n");
                (count, blanks) = (0, 0);
            } else {
                drawn.push_str(&" ".repeat(blanks));
            }
            if candidate.is_empty() {
                drawn.push_str("\r\n");
            } else {
                drawn.push_str(candidate);
                blanks = width - width_of_text(candidate);
                count += 1;
            }
        }
        if count > 0 {
            drawn.push_str("\r\n\r\n");
        }
        self.redraw(screen, drawn);
    }

    pub(super) fn press(
        &mut self,
        key: Key,
        screen: &Screen,
        drawn: &mut String,
        added: &mut Option<Vec<String>>,
    ) -> Option<Action> {
        let (cursor, end) = (self.cursor, self.line.len());
        let returned_at = self.returned_at.take();
        if !matches!(key, Key::Up | Key::Down) && self.search.take().is_some() {
            self.place = self.place.filter(|place| *place < self.history.len());
        }
        self.is_tab_again = self.was_tab && key == Key::Tab;
        self.was_tab = key == Key::Tab;
        match key {
            Key::Insert(character) => {
                self.insert(character.encode_utf8(&mut [0; 4]), screen, drawn);
            }
            Key::Return => {
                self.returned_at = Some(now());
                return Some(self.enter(screen, drawn, added));
            }
            Key::Enter => {
                let is_half = |at| now().duration_since(at) <= CRLF_DELAY;
                if !returned_at.is_some_and(is_half) {
                    return Some(self.enter(screen, drawn, added));
                }
            }
            Key::Backspace => self.delete(cursor.saturating_sub(1), cursor, screen, drawn),
            Key::Delete => self.delete(cursor, end.min(cursor + 1), screen, drawn),
            Key::Left => self.move_to(cursor.saturating_sub(1), screen, drawn),
            Key::Right => self.move_to(end.min(cursor + 1), screen, drawn),
            Key::WordLeft => self.move_to(self.word_left(), screen, drawn),
            Key::WordRight => self.move_to(self.word_right(), screen, drawn),
            Key::Home => self.move_to(0, screen, drawn),
            Key::End => self.move_to(end, screen, drawn),
            Key::Up => self.older(screen, drawn),
            Key::Down => self.newer(screen, drawn),
            Key::DeleteToStart => {
                self.undo.keep(&self.line, cursor);
                self.line.drain(..cursor);
                self.cursor = 0;
                self.redraw(screen, drawn);
            }
            Key::DeleteToEnd => {
                self.undo.keep(&self.line, cursor);
                self.line.truncate(cursor);
                self.redraw(screen, drawn);
            }
            Key::DeleteWordLeft => self.delete(self.word_left(), cursor, screen, drawn),
            Key::DeleteWordRight => self.delete(cursor, self.word_right(), screen, drawn),
            Key::ClearScreen => {
                drawn.push_str(&format!("{}\x1b[0J", to(0, Some(0))));
                self.redraw(screen, drawn);
            }
            Key::Undo => {
                let text = self.undo.undo(|| (self.line.clone(), cursor));
                text.into_iter()
                    .for_each(|text| self.show(text, screen, drawn));
            }
            Key::Redo => {
                let text = self.undo.redo(|| (self.line.clone(), cursor));
                text.into_iter()
                    .for_each(|text| self.show(text, screen, drawn));
            }
            Key::Interrupt => return Some(Action::Interrupt),
            Key::Suspend => return Some(Action::Suspend),
            Key::EndOfInput if end == 0 => return Some(Action::Close),
            Key::EndOfInput => self.delete(cursor, end.min(cursor + 1), screen, drawn),
            Key::Tab if !self.is_last => self.insert("\t", screen, drawn),
            Key::Tab | Key::Unknown => {}
        }
        None
    }

    /// Ends the line.
    fn enter(
        &mut self,
        screen: &Screen,
        drawn: &mut String,
        added: &mut Option<Vec<String>>,
    ) -> Action {
        self.move_to(self.line.len(), screen, drawn);
        drawn.push_str("\r\n");
        let line = std::mem::take(&mut self.line)
            .into_iter()
            .collect::<String>();
        (self.cursor, self.drawn_row) = (0, 0);
        self.place = None;
        self.undo.clear();
        if !line.trim().is_empty() && self.history_size > 0 {
            if self.history.front() != Some(&line) {
                self.history.push_front(line.clone());
                self.history.truncate(self.history_size);
            }
            *added = Some(self.history.iter().cloned().collect());
        }
        Action::Line(line)
    }

    /// Shows an older line that begins as the search does.
    fn older(&mut self, screen: &Screen, drawn: &mut String) {
        let search = self.begin_search();
        let size = self.history.len();
        if self.place.is_some_and(|place| place >= size) || size == 0 {
            return;
        }
        self.undo.keep(&self.line, self.cursor);
        let from = self.place.map_or(0, |place| place + 1);
        let line = self.text();
        let fits = |at: &usize| self.history[*at].starts_with(&search) && self.history[*at] != line;
        let found = (from..size).find(fits);
        self.place = Some(found.unwrap_or(size));
        let shown = found.map_or(search, |at| self.history[at].clone());
        self.show_line(&shown, screen, drawn);
    }

    /// Shows a newer line that begins as the search does, or the search.
    fn newer(&mut self, screen: &Screen, drawn: &mut String) {
        let search = self.begin_search();
        let Some(place) = self.place else {
            return;
        };
        self.undo.keep(&self.line, self.cursor);
        let line = self.text();
        let fits = |at: &usize| self.history[*at].starts_with(&search) && self.history[*at] != line;
        self.place = (0..place.min(self.history.len())).rev().find(fits);
        let shown = self.place.map_or(search, |at| self.history[at].clone());
        self.show_line(&shown, screen, drawn);
    }

    fn begin_search(&mut self) -> String {
        let before = || self.line[..self.cursor].iter().collect();
        self.search.get_or_insert_with(before).clone()
    }

    /// Returns where the word before the cursor begins.
    fn word_left(&self) -> usize {
        let before = &self.line[..self.cursor];
        let blank = before.iter().rev().take_while(|one| one.is_whitespace());
        let end = self.cursor - blank.count();
        let Some(kind) = end.checked_sub(1).map(|at| is_word(self.line[at])) else {
            return 0;
        };
        let of_kind = |one: &&char| !one.is_whitespace() && is_word(**one) == kind;
        end - self.line[..end].iter().rev().take_while(of_kind).count()
    }

    /// Returns where the word after the cursor ends, with the blanks behind it.
    fn word_right(&self) -> usize {
        let Some(&first) = self.line.get(self.cursor) else {
            return self.cursor;
        };
        let kind = |one: char| (one.is_whitespace(), is_word(one));
        let rest = &self.line[self.cursor..];
        let word = rest
            .iter()
            .take_while(|one| kind(**one) == kind(first))
            .count();
        let blanks = rest[word..].iter().take_while(|one| one.is_whitespace());
        self.cursor + word + blanks.count()
    }
}

/// Whether a character is of a word, in the sense of JavaScript's patterns.
fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}
