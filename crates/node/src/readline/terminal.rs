//! The line editor of a terminal: keys change a line, which is drawn on the output.

mod editor;

use std::collections::VecDeque;
use std::rc::Rc;

#[cfg(all(unix, feature = "tty"))]
use super::device::Device;
use super::keys::{Decoder, Key};
use super::undo::Undo;
use super::width::Screen;
use super::{Inner, Interface};
use crate::events::Event;
#[cfg(all(unix, feature = "tty"))]
use crate::process::stdout_columns;
use crate::string_decoder::{Encoding, StringDecoder};
#[cfg(all(unix, feature = "tty"))]
use phaseloop::signal::SignalKind;
use phaseloop::time::Instant;

/// Ctrl+C was pressed in a [terminal](Interface::terminal). Without a listener the interface is
/// closed. JavaScript: `'SIGINT'`.
pub const SIGINT: Event<()> = Event::new("SIGINT");

/// Ctrl+Z was pressed in a [terminal](Interface::terminal). Without a listener the process is
/// stopped, if the terminal is its own. JavaScript: `'SIGTSTP'`.
pub const SIGTSTP: Event<()> = Event::new("SIGTSTP");

/// The process goes on after Ctrl+Z. The input is paused; [`Interface::prompt`] resumes it.
/// JavaScript: `'SIGCONT'`.
pub const SIGCONT: Event<()> = Event::new("SIGCONT");

/// A line was added to the history of a [terminal](Interface::terminal); the newest line is the
/// first. JavaScript: `'history'`.
pub const HISTORY: Event<Vec<String>> = Event::new("history");

/// Returns what may follow a beginning, and the part of it that is completed.
type Completer = Box<dyn Fn(&str) -> (Vec<String>, String)>;

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
    undo: Undo,
    /// The width of the window, if the program has set it.
    columns: Option<usize>,
    /// The row of the cursor when the line was drawn.
    drawn_row: usize,
    /// Whether the key is the last one of what the input has brought.
    is_last: bool,
    /// Whether the last key was a Tab.
    was_tab: bool,
    /// Whether this key is the second Tab of two.
    is_tab_again: bool,
    #[cfg(all(unix, feature = "tty"))]
    device: Option<Device>,
}

/// What a key asks of the interface.
enum Action {
    Line(String),
    Interrupt,
    Suspend,
    Close,
}

impl Interface {
    /// Reads keys in place of lines, and draws the line on the [output](Self::output): for a
    /// terminal whose own line editor is off. JavaScript: `{ terminal: true }`.
    ///
    /// Keys: letters, Enter, Backspace, Delete, the arrows, Home, End, and Ctrl with A, B, C, D, E,
    /// F, H, K, L, N, P, U, W, Z; Alt with B, D, F and Backspace. Up and Down show lines of the
    /// history that begin as the line does. Tab asks the [completer](Self::completer). Ctrl+-
    /// undoes a change of a line of up to 1024 characters, and Ctrl+6 redoes it. Ctrl+C is
    /// [`SIGINT`], Ctrl+Z is [`SIGTSTP`], and Ctrl+D in an empty line closes the interface.
    ///
    /// With the feature `tty`, on Unix, an interface of
    /// [`process::stdin`](crate::process::stdin) sets the raw mode of its terminal, and restores
    /// the mode when it is closed; lines wrap at the width of the window of
    /// [`process::stdout`](crate::process::stdout). Otherwise the program sets the mode, and the
    /// [columns](Self::columns).
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
            undo: Undo::default(),
            columns: None,
            drawn_row: 0,
            is_last: true,
            was_tab: false,
            is_tab_again: false,
            #[cfg(all(unix, feature = "tty"))]
            device: self.inner.open_device(),
        };
        let before = self.inner.terminal.replace(Some(terminal));
        drop(before);
        self
    }

    /// Sets the width of the window of a [terminal](Self::terminal), at which lines wrap.
    /// JavaScript: `output.columns`.
    #[must_use = "a handle to the same interface is returned"]
    pub fn columns(self, columns: usize) -> Self {
        if let Some(terminal) = &mut *self.inner.terminal.borrow_mut() {
            terminal.columns = Some(columns.max(1));
        }
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
    /// that they replace. What all candidates have in common is inserted; a second Tab lists them.
    /// JavaScript: `{ completer }`.
    #[must_use = "a handle to the same interface is returned"]
    pub fn completer(self, completer: impl Fn(&str) -> (Vec<String>, String) + 'static) -> Self {
        if let Some(terminal) = &mut *self.inner.terminal.borrow_mut() {
            terminal.completer = Some(Box::new(completer));
        }
        self
    }

    /// Writes the [prompt](Self::set_prompt) to the [output](Self::output), and resumes the input
    /// if it is paused. A [terminal](Self::terminal) draws its line, too, with the cursor at the
    /// start. JavaScript: `rl.prompt()`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_USE_AFTER_CLOSE` if the interface is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Emitter, Exit, process, readline, run, stream::Readable};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let input = Readable::from_iter([b"help\n".to_vec()]);
    ///         let rl = readline::create_interface(&input).output(&process::stdout());
    ///         rl.set_prompt("calc> ");
    ///         rl.prompt();
    ///         rl.on_this(readline::LINE, |rl, line| {
    ///             println!("you said {line}");
    ///             rl.prompt();
    ///         });
    ///     })
    /// }
    /// ```
    pub fn prompt(&self) {
        self.inner.refuse_if_closed();
        self.inner.rewind();
        self.inner.write_prompt();
    }

    /// Writes the prompt as [`prompt`](Self::prompt) does, and leaves the cursor of a terminal at
    /// its place. JavaScript: `rl.prompt(true)`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_USE_AFTER_CLOSE` if the interface is closed.
    pub fn prompt_preserving_cursor(&self) {
        self.inner.refuse_if_closed();
        self.inner.write_prompt();
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
    pub(super) fn press(self: &Rc<Self>, text: &str) {
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            if self.is_closed.get() {
                return;
            }
            let screen = self.screen();
            let (mut drawn, mut added) = (String::new(), None);
            let (key, is_last, action) = {
                let mut terminal = self.terminal.borrow_mut();
                let Some(terminal) = &mut *terminal else {
                    return;
                };
                let Some(key) = terminal.decoder.add(character) else {
                    continue;
                };
                terminal.is_last = rest.as_str().is_empty();
                let action = terminal.press(key, &screen, &mut drawn, &mut added);
                (key, terminal.is_last, action)
            };
            // A Tab that is pasted is a character.
            if key == Key::Tab && is_last {
                drawn = self.complete(&screen);
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
                Some(Action::Suspend) if self.emitter.listener_count(SIGTSTP) > 0 => {
                    self.emitter.emit(SIGTSTP, ());
                }
                Some(Action::Suspend) => self.suspend(),
                None => {}
            }
        }
    }

    fn screen(&self) -> Screen {
        let set = self
            .terminal
            .borrow()
            .as_ref()
            .and_then(|terminal| terminal.columns);
        #[cfg(all(unix, feature = "tty"))]
        let set = set.or_else(|| self.is_stdout.get().then(stdout_columns)?);
        Screen {
            prompt: self.prompt.borrow().clone(),
            columns: set.unwrap_or(usize::MAX),
        }
    }

    /// Asks the completer, and returns what is drawn. The completer may use the interface.
    fn complete(&self, screen: &Screen) -> String {
        let asked = {
            let mut terminal = self.terminal.borrow_mut();
            terminal.as_mut().and_then(|terminal| {
                let before = terminal.line[..terminal.cursor].iter().collect::<String>();
                Some((terminal.completer.take()?, before))
            })
        };
        let found = asked.map(|(completer, before)| {
            let found = completer(&before);
            (completer, found)
        });
        let mut drawn = String::new();
        if let Some(terminal) = &mut *self.terminal.borrow_mut() {
            match found {
                Some((completer, (candidates, replaced))) => {
                    terminal.completer.get_or_insert(completer);
                    terminal.offer(&candidates, &replaced, screen, &mut drawn);
                }
                None => terminal.insert("\t", screen, &mut drawn),
            }
        }
        drawn
    }

    /// Moves the cursor of a terminal to the start of the line.
    pub(super) fn rewind(&self) {
        if let Some(terminal) = &mut *self.terminal.borrow_mut() {
            terminal.cursor = 0;
        }
    }

    /// Returns what draws the prompt and the line of a terminal.
    pub(super) fn redrawn(&self) -> Option<String> {
        let screen = self.screen();
        let mut drawn = String::new();
        self.terminal
            .borrow_mut()
            .as_mut()?
            .redraw(&screen, &mut drawn);
        Some(drawn)
    }

    /// Stops the process, if the terminal is its own.
    #[cfg(all(unix, feature = "tty"))]
    fn suspend(self: &Rc<Self>) {
        let set_raw = |inner: &Self, is_raw| {
            let terminal = inner.terminal.borrow();
            let device = terminal
                .as_ref()
                .and_then(|terminal| terminal.device.as_ref());
            device.map(|device| device.set_raw(is_raw)).is_some()
        };
        if !set_raw(self, false) {
            return;
        }
        let this = self.clone();
        let goes_on = crate::process::once_signal(SignalKind::CONT, move |_| {
            if !this.is_paused.get() {
                this.pause();
                this.emitter.emit(SIGCONT, ());
            }
            if !this.is_closed.get() && set_raw(&this, true) {
                this.redraw();
            }
        });
        if goes_on.is_ok() {
            Device::stop_process();
        }
    }

    /// Another program's terminal does not stop this process.
    #[cfg(not(all(unix, feature = "tty")))]
    fn suspend(self: &Rc<Self>) {}

    #[cfg(all(unix, feature = "tty"))]
    fn open_device(self: &Rc<Self>) -> Option<Device> {
        let this = Rc::downgrade(self);
        Device::open(&self.input, move || {
            if let Some(this) = this.upgrade() {
                this.redraw();
            }
        })
    }

    #[cfg(all(unix, feature = "tty"))]
    fn redraw(&self) {
        if let Some(drawn) = self.redrawn() {
            self.write_out(&drawn);
        }
    }

    /// Gives the terminal back.
    #[cfg(all(unix, feature = "tty"))]
    pub(super) fn close_device(&self) {
        let device = self
            .terminal
            .borrow_mut()
            .as_mut()
            .and_then(|terminal| terminal.device.take());
        drop(device);
    }
}
