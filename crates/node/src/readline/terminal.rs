//! The line editor of a terminal: keys change a line, which is drawn on the output.

use std::collections::VecDeque;
use std::time::Duration;

use super::cursor::{by, to};
use super::keys::{Decoder, Key};
use super::{Inner, Interface};
use crate::events::Event;
use crate::string_decoder::{Encoding, StringDecoder};
use phaseloop::time::{Instant, now};

/// Ctrl+C was pressed in a [terminal](Interface::terminal). Without a listener the interface is
/// closed. JavaScript: `'SIGINT'`.
pub const SIGINT: Event<()> = Event::new("SIGINT");

/// A line was added to the history of a [terminal](Interface::terminal); the newest line is the
/// first. JavaScript: `'history'`.
pub const HISTORY: Event<Vec<String>> = Event::new("history");

/// Returns what may follow a beginning, and the part of it that is completed.
type Completer = Box<dyn Fn(&str) -> (Vec<String>, String)>;

/// How long after `\r` a `\n` belongs to it.
const CRLF_DELAY: Duration = Duration::from_millis(100);

/// The state of a line editor.
pub(super) struct Terminal {
    bytes: StringDecoder,
    decoder: Decoder,
    line: Vec<char>,
    cursor: usize,
    /// The newest line is the first.
    history: VecDeque<String>,
    history_size: usize,
    /// The line of the history that is shown.
    place: Option<usize>,
    /// The beginning that lines of the history must have, while one is looked for.
    search: Option<String>,
    completer: Option<Completer>,
    returned_at: Option<Instant>,
}

/// What a key asks of the interface.
enum Action {
    Line(String),
    Interrupt,
    Close,
}

impl Interface {
    /// Reads keys in place of lines, and draws the line on the [output](Self::output): for a
    /// terminal whose own line editor is off. JavaScript: `{ terminal: true }`.
    ///
    /// Keys: letters, Enter, Backspace, Delete, the arrows, Home, End, and Ctrl with A, B, C, D, E,
    /// F, H, K, L, N, P, U, W; Alt with B, D, F and Backspace. Up and Down show lines of the
    /// history that begin as the line does. Tab asks the [completer](Self::completer). Ctrl+C is
    /// [`SIGINT`], and Ctrl+D in an empty line closes the interface.
    ///
    /// In Node the interface sets the raw mode of the terminal; here the program does, with
    /// `phaseloop::tty`. Each character is one column wide, and a line does not wrap. Candidates of
    /// a completion are not listed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Emitter, Exit, readline, run, stream::{Readable, Writable}};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         // A word, two Backspaces and Enter.
    ///         let input = Readable::from_iter([b"helpXX\x7f\x7f\r".to_vec()]);
    ///         let output = Writable::bytes(|_: Vec<u8>, done| done.ok()).build();
    ///         let rl = readline::create_interface(&input).output(&output).terminal();
    ///         rl.on(readline::LINE, |line| assert_eq!(line, "help"));
    ///     })
    /// }
    /// ```
    #[must_use = "a handle to the same interface is returned"]
    pub fn terminal(self) -> Self {
        let terminal = Terminal {
            bytes: StringDecoder::new(Encoding::Utf8),
            decoder: Decoder::default(),
            line: Vec::new(),
            cursor: 0,
            history: VecDeque::new(),
            history_size: 30,
            place: None,
            search: None,
            completer: None,
            returned_at: None,
        };
        let before = self.inner.terminal.replace(Some(terminal));
        drop(before);
        self
    }

    /// Sets the history of a [terminal](Self::terminal), the newest line first, and how many lines
    /// it keeps; 30 by default. JavaScript: `{ history, historySize }`.
    #[must_use = "a handle to the same interface is returned"]
    pub fn history<L: Into<String>>(self, lines: impl IntoIterator<Item = L>, size: usize) -> Self {
        if let Some(terminal) = &mut *self.inner.terminal.borrow_mut() {
            terminal.history = lines.into_iter().map(Into::into).take(size).collect();
            terminal.history_size = size;
        }
        self
    }

    /// Sets what completes the line of a [terminal](Self::terminal) when Tab is pressed. The
    /// function gets the line up to the cursor; it returns the candidates, and the part of the line
    /// that they replace. What all candidates have in common is inserted. JavaScript: `{ completer
    /// }`.
    #[must_use = "a handle to the same interface is returned"]
    pub fn completer(self, completer: impl Fn(&str) -> (Vec<String>, String) + 'static) -> Self {
        if let Some(terminal) = &mut *self.inner.terminal.borrow_mut() {
            terminal.completer = Some(Box::new(completer));
        }
        self
    }

    /// Returns the line that is edited; empty without a [terminal](Self::terminal). JavaScript:
    /// `rl.line`.
    #[must_use]
    pub fn line(&self) -> String {
        let terminal = self.inner.terminal.borrow();
        terminal.as_ref().map_or(String::new(), Terminal::text)
    }

    /// Returns the place of the cursor in the line, in characters. JavaScript: `rl.cursor`.
    #[must_use]
    pub fn cursor(&self) -> usize {
        let terminal = self.inner.terminal.borrow();
        terminal.as_ref().map_or(0, |terminal| terminal.cursor)
    }
}

impl Inner {
    /// Returns the bytes of the input as text.
    pub(super) fn decoded(&self, chunk: &[u8]) -> Option<String> {
        let mut terminal = self.terminal.borrow_mut();
        terminal
            .as_mut()
            .map(|terminal| terminal.bytes.write(chunk))
    }

    /// Handles the keys of a terminal.
    pub(super) fn press(&self, text: &str) {
        for character in text.chars() {
            if self.is_closed.get() {
                return;
            }
            let prompt = self.prompt.borrow().clone();
            let (mut drawn, mut added) = (String::new(), None);
            let action = {
                let mut terminal = self.terminal.borrow_mut();
                let Some(terminal) = &mut *terminal else {
                    return;
                };
                match terminal.decoder.add(character) {
                    Some(Key::Tab) => None,
                    Some(key) => terminal.press(key, &prompt, &mut drawn, &mut added),
                    None => continue,
                }
            };
            if character == '\t' {
                drawn = self.complete(&prompt);
            }
            if !drawn.is_empty() {
                self.write_out(&drawn);
            }
            if let Some(history) = added {
                self.emitter.emit(HISTORY, history);
            }
            match action {
                Some(Action::Line(line)) => self.emit_lines(vec![line]),
                Some(Action::Interrupt) if self.emitter.listener_count(SIGINT) > 0 => {
                    self.emitter.emit(SIGINT, ());
                }
                Some(Action::Interrupt | Action::Close) => self.close(),
                None => {}
            }
        }
    }

    /// Asks the completer, and returns what is drawn. The completer may use the interface.
    fn complete(&self, prompt: &str) -> String {
        let asked = {
            let mut terminal = self.terminal.borrow_mut();
            terminal.as_mut().and_then(|terminal| {
                let before = terminal.line[..terminal.cursor].iter().collect::<String>();
                Some((terminal.completer.take()?, before))
            })
        };
        let Some((completer, before)) = asked else {
            let mut drawn = String::new();
            if let Some(terminal) = &mut *self.terminal.borrow_mut() {
                terminal.insert('\t', prompt, &mut drawn);
            }
            return drawn;
        };
        let (candidates, replaced) = completer(&before);
        let mut drawn = String::new();
        if let Some(terminal) = &mut *self.terminal.borrow_mut() {
            terminal.completer.get_or_insert(completer);
            let common = common(&candidates);
            for character in common.strip_prefix(&replaced).unwrap_or_default().chars() {
                terminal.insert(character, prompt, &mut drawn);
            }
        }
        drawn
    }

    /// Returns what draws the prompt and the line of a terminal.
    pub(super) fn redrawn(&self) -> Option<String> {
        let terminal = self.terminal.borrow();
        let mut drawn = String::new();
        terminal.as_ref()?.redraw(&self.prompt.borrow(), &mut drawn);
        Some(drawn)
    }
}

/// Returns what all texts begin with.
fn common(texts: &[String]) -> &str {
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
    fn text(&self) -> String {
        self.line.iter().collect()
    }

    fn redraw(&self, prompt: &str, drawn: &mut String) {
        let column = prompt.chars().count() + self.cursor;
        let line = self.text();
        drawn.push_str(&format!("{}\x1b[0J{prompt}{line}", to(0, None)));
        if prompt.is_empty() && line.is_empty() {
            drawn.push(' ');
        }
        drawn.push_str(&to(column, None));
    }

    fn insert(&mut self, character: char, prompt: &str, drawn: &mut String) {
        self.line.insert(self.cursor, character);
        self.cursor += 1;
        match self.cursor < self.line.len() {
            true => self.redraw(prompt, drawn),
            false => drawn.push(character),
        }
    }

    fn move_to(&mut self, cursor: usize, drawn: &mut String) {
        let steps = match cursor.checked_sub(self.cursor) {
            Some(steps) => isize::try_from(steps).unwrap_or(0),
            None => -isize::try_from(self.cursor - cursor).unwrap_or(0),
        };
        drawn.push_str(&by(steps, 0));
        self.cursor = cursor;
    }

    /// Deletes a part of the line. Nothing is drawn if it is empty.
    fn delete(&mut self, from: usize, end: usize, prompt: &str, drawn: &mut String) {
        if from < end {
            self.line.drain(from..end);
            self.cursor = from;
            self.redraw(prompt, drawn);
        }
    }

    fn show(&mut self, line: &str, prompt: &str, drawn: &mut String) {
        self.line = line.chars().collect();
        self.cursor = self.line.len();
        self.redraw(prompt, drawn);
    }

    fn press(
        &mut self,
        key: Key,
        prompt: &str,
        drawn: &mut String,
        added: &mut Option<Vec<String>>,
    ) -> Option<Action> {
        let (cursor, end) = (self.cursor, self.line.len());
        let returned_at = self.returned_at.take();
        if !matches!(key, Key::Up | Key::Down) && self.search.take().is_some() {
            self.place = self.place.filter(|place| *place < self.history.len());
        }
        match key {
            Key::Insert(character) => self.insert(character, prompt, drawn),
            Key::Return => {
                self.returned_at = Some(now());
                return Some(self.enter(drawn, added));
            }
            Key::Enter => {
                let is_half = |at| now().duration_since(at) <= CRLF_DELAY;
                if !returned_at.is_some_and(is_half) {
                    return Some(self.enter(drawn, added));
                }
            }
            Key::Backspace => self.delete(cursor.saturating_sub(1), cursor, prompt, drawn),
            Key::Delete => self.delete(cursor, end.min(cursor + 1), prompt, drawn),
            Key::Left => self.move_to(cursor.saturating_sub(1), drawn),
            Key::Right => self.move_to(end.min(cursor + 1), drawn),
            Key::WordLeft => self.move_to(self.word_left(), drawn),
            Key::WordRight => self.move_to(self.word_right(), drawn),
            Key::Home => self.move_to(0, drawn),
            Key::End => self.move_to(end, drawn),
            Key::Up => self.older(prompt, drawn),
            Key::Down => self.newer(prompt, drawn),
            Key::DeleteToStart => {
                self.line.drain(..cursor);
                self.cursor = 0;
                self.redraw(prompt, drawn);
            }
            Key::DeleteToEnd => {
                self.line.truncate(cursor);
                self.redraw(prompt, drawn);
            }
            Key::DeleteWordLeft => self.delete(self.word_left(), cursor, prompt, drawn),
            Key::DeleteWordRight => self.delete(cursor, self.word_right(), prompt, drawn),
            Key::ClearScreen => {
                drawn.push_str(&format!("{}\x1b[0J", to(0, Some(0))));
                self.redraw(prompt, drawn);
            }
            Key::Interrupt => return Some(Action::Interrupt),
            Key::EndOfInput if end == 0 => return Some(Action::Close),
            Key::EndOfInput => self.delete(cursor, end.min(cursor + 1), prompt, drawn),
            Key::Tab | Key::Unknown => {}
        }
        None
    }

    /// Ends the line.
    fn enter(&mut self, drawn: &mut String, added: &mut Option<Vec<String>>) -> Action {
        self.move_to(self.line.len(), drawn);
        drawn.push_str("\r\n");
        let line = self.text();
        self.line.clear();
        self.cursor = 0;
        self.place = None;
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
    fn older(&mut self, prompt: &str, drawn: &mut String) {
        let search = self.begin_search();
        let size = self.history.len();
        if self.place.is_some_and(|place| place >= size) || size == 0 {
            return;
        }
        let from = self.place.map_or(0, |place| place + 1);
        let line = self.text();
        let fits = |at: &usize| self.history[*at].starts_with(&search) && self.history[*at] != line;
        let found = (from..size).find(fits);
        self.place = Some(found.unwrap_or(size));
        let shown = found.map_or(search, |at| self.history[at].clone());
        self.show(&shown, prompt, drawn);
    }

    /// Shows a newer line that begins as the search does, or the search.
    fn newer(&mut self, prompt: &str, drawn: &mut String) {
        let search = self.begin_search();
        let Some(place) = self.place else {
            return;
        };
        let line = self.text();
        let fits = |at: &usize| self.history[*at].starts_with(&search) && self.history[*at] != line;
        self.place = (0..place.min(self.history.len())).rev().find(fits);
        let shown = self.place.map_or(search, |at| self.history[at].clone());
        self.show(&shown, prompt, drawn);
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
