//! Node's `readline`: a stream of bytes, read line by line.
//!
//! ```
//! use phaseloop_node::{Emitter, Exit, readline::{self, CLOSE, LINE}, run, stream::Readable};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let input = Readable::from_iter([b"one\ntw".to_vec(), b"o\n".to_vec()]);
//!         let rl = readline::create_interface(&input);
//!         rl.on(LINE, |line| println!("line {line:?}"));
//!         rl.on(CLOSE, |()| println!("the input has ended"));
//!     })
//! }
//! ```
//!
//! ```text
//!   'data' of the input ──> decoded ──┬── a question is open ──> its callback
//!                                     └── otherwise ──> LINE, one after the other
//!   'end' of the input ──> LINE for the rest ──> PAUSE ──> CLOSE
//! ```
//!
//! | Node | here |
//! |---|---|
//! | `readline.createInterface({ input })` | [`create_interface(&input)`](create_interface) |
//! | `{ output }`, `{ signal }` | [`output`](Interface::output), [`signal`](Interface::signal) |
//! | `{ prompt }` | [`set_prompt`](Interface::set_prompt) |
//! | `{ crlfDelay }` | [`crlf_delay`](Interface::crlf_delay) |
//! | `rl.on('line', ..)` | [`on`](super::Emitter::on)`(`[`LINE`]`, ..)` |
//! | `'close'`, `'pause'`, `'resume'` | [`CLOSE`], [`PAUSE`], [`RESUME`] |
//! | `for await (const line of rl)` | [`lines`](Interface::lines) |
//! | `rl.question(query, callback)` | [`question`](Interface::question) |
//! | `await rl.question(query)` of `readline/promises` | [`promises::question`] |
//! | `{ terminal: true, history, completer }` | [`terminal`](Interface::terminal), … |
//! | `readline.cursorTo(..)`, `clearLine`, … | [`cursor_to`], [`clear_line`], … |
//! | `rl.prompt()`, `rl.write(text)` | [`prompt`](Interface::prompt), [`write`](Interface::write) |
//! | `rl.pause()`, `rl.resume()`, `rl.close()` | [`pause`](Interface::pause), … |
//!
//! # Terminals
//!
//! By default the line editor of the operating system is used: it echoes the keys, and a line
//! arrives when the user presses Enter. Ctrl+C is the signal SIGINT;
//! [`process::on_signal`](super::process::on_signal) catches it. Ctrl+D is EOF.
//! [`Interface::terminal`] edits the line itself, with history, completion and [`SIGINT`].
//!
//! # Memory
//!
//! As in Node, a line has no maximum length: a peer that never sends a line end fills the memory.
//! Where that matters, count the bytes on [`Readable::on_data`] and [destroy](Readable::destroy)
//! the input. [`lines`](Interface::lines) pauses the input while more than 1024 lines wait for
//! their reader.
//!
//! The counterpart in plain Rust is `AsyncBufReadExt::lines` of the crate `futures`.

mod cursor;
#[cfg(all(unix, feature = "tty"))]
mod device;
mod keys;
mod lines;
pub mod promises;
mod split;
mod terminal;
mod undo;
mod width;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};
use std::time::Duration;

pub use self::cursor::{Direction, clear_line, clear_screen_down, cursor_to, move_cursor};
pub use self::lines::Lines;
use self::split::LineSplitter;
use self::terminal::Terminal;
pub use self::terminal::{HISTORY, SIGCONT, SIGINT, SIGTSTP};
use super::abort::{AbortListener, AbortSignal};
use super::context::Node;
use super::error::Error;
use super::events::{ERROR, Emitter, Event, EventEmitter, EventQueue, ListenerId, Mark};
use super::reason::throw;
pub use super::stream::{CLOSE, PAUSE, RESUME};
use super::stream::{END, Readable, Writable};
use phaseloop::task::next_tick;

/// A line was read; the text is without its line end. JavaScript: `'line'`.
pub const LINE: Event<str> = Event::new("line");

/// Reads `input` line by line. JavaScript: `readline.createInterface({ input })`.
///
/// The input flows from the next tick on. [`LINE`] is emitted inside its `data` event, for one line
/// after the other; the lanes are not drained between them. A line ends with `\n`, `\r\n` or `\r`.
/// The text is UTF-8; a character may be split between chunks. At EOF, text without a line end is
/// the last line; then [`PAUSE`] and [`CLOSE`] are emitted. An error of the input is emitted as
/// [`ERROR`].
///
/// The input keeps the interface alive; the returned handle may be dropped.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, readline, run, stream::Readable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let input = Readable::from_iter([b"one\ntw".to_vec(), b"o\n".to_vec()]);
///         let rl = readline::create_interface(&input);
///         rl.on(readline::LINE, |line| println!("{line}"));
///         rl.on(readline::CLOSE, |()| println!("done"));
///     })
/// }
/// ```
// H110, H111.
#[track_caller]
pub fn create_interface(input: &Readable<Vec<u8>>) -> Interface {
    interface_of(input)
}

/// Reads a stream whose chunks convert to bytes.
#[track_caller]
pub(super) fn interface_of<T>(input: &Readable<T>) -> Interface
where
    T: Clone + Into<Vec<u8>> + 'static,
{
    let stream = input.clone();
    let inner = Rc::new(Inner {
        emitter: EventEmitter::of_class("Interface"),
        input: input.emitter().clone(),
        flow: Box::new(move |flows| match flows {
            true => stream.resume(),
            false => stream.pause(),
        }),
        output: RefCell::default(),
        #[cfg(all(unix, feature = "tty"))]
        is_stdout: Cell::new(false),
        splitter: RefCell::default(),
        terminal: RefCell::default(),
        prompt: RefCell::new("> ".to_owned()),
        question: Rc::default(),
        is_paused: Cell::new(false),
        is_closed: Cell::new(false),
        on_input: RefCell::default(),
        abort: RefCell::default(),
        lines: RefCell::default(),
    });
    // Cycles: the input holds the interface, which holds the input, and listeners hold the
    // interface. A close ends them, or the end of the loop.
    let node = Node::current();
    node.emitters.insert(input.emitter());
    node.emitters.insert(&inner.emitter);
    let [errors, data, end] = [(); 3].map(|()| inner.clone());
    let listeners = vec![
        input.on(ERROR, move |error| {
            errors.emitter.emit(ERROR, error);
        }),
        input.on_data(move |chunk: &T| data.read(&chunk.clone().into())),
        input.on(END, move |()| end.input_ended()),
    ];
    inner.on_input.replace(listeners);
    input.resume();
    Interface { inner }
}

/// Reads a stream line by line; returned by [`create_interface`]. A clone is a handle to the same
/// interface. JavaScript: `readline.Interface`.
///
/// A closed interface drops its listeners on the next tick, since they may hold the interface
/// itself.
///
/// # Examples
///
/// A program that asks on standard output and reads standard input:
///
/// ```no_run
/// use phaseloop_node::{Exit, process, readline, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let rl = readline::create_interface(&process::stdin()).output(&process::stdout());
///         let name = readline::promises::question(&rl, "What is your name? ").await.unwrap();
///         println!("Hello, {name}!");
///         rl.close();
///     })
/// }
/// ```
#[derive(Clone)]
pub struct Interface {
    inner: Rc<Inner>,
}

/// Writes prompts and questions.
type Output = dyn Fn(&str);

struct Inner {
    emitter: EventEmitter,
    input: EventEmitter,
    /// Resumes or pauses the input.
    flow: Box<dyn Fn(bool)>,
    /// Writes to the output.
    output: RefCell<Option<Rc<Output>>>,
    #[cfg(all(unix, feature = "tty"))]
    is_stdout: Cell<bool>,
    splitter: RefCell<LineSplitter>,
    /// The line editor, if the interface has one.
    terminal: RefCell<Option<Terminal>>,
    prompt: RefCell<String>,
    question: Rc<RefCell<Option<Question>>>,
    is_paused: Cell<bool>,
    is_closed: Cell<bool>,
    /// The listeners on the input, until the close.
    on_input: RefCell<Vec<ListenerId>>,
    /// The signal that closes the interface.
    abort: RefCell<Option<(AbortSignal, AbortListener)>>,
    /// The queue of [`Interface::lines`]: all its handles share one, as Node's iterators do.
    lines: RefCell<Option<Rc<EventQueue<String>>>>,
}

/// An open question: the next line is its answer.
struct Question {
    callback: Box<dyn FnOnce(String)>,
    /// The prompt before the question.
    prompt: String,
    /// The signal that cancels the question.
    abort: Option<Abort>,
}

/// What cancels a question.
struct Abort {
    signal: AbortSignal,
    listener: AbortListener,
    /// Returns whether the abort has an effect also when the interface is closed: it rejects the
    /// promise of the answer.
    is_awaited: Box<dyn Fn() -> bool>,
}

impl Abort {
    fn off(self) {
        self.signal.off(self.listener);
    }
}

impl Interface {
    /// Sets the stream that prompts and questions are written to. JavaScript: `{ output }`.
    #[must_use = "a handle to the same interface is returned"]
    pub fn output(self, output: &Writable<Vec<u8>>) -> Self {
        #[cfg(all(unix, feature = "tty"))]
        self.inner.is_stdout.set(super::process::is_stdout(output));
        let output = output.clone();
        self.output_with(move |text| {
            output.write(text);
        })
    }

    /// Sets what writes prompts and questions.
    pub(super) fn output_with(self, write: impl Fn(&str) + 'static) -> Self {
        let before = self.inner.output.replace(Some(Rc::new(write)));
        drop(before);
        self
    }

    /// Sets how long after a chunk that ends with `\r` a chunk that starts with `\n` belongs to the
    /// same line end; later, the `\n` ends a line of its own. At least 100 milliseconds, which is
    /// the default. [`Duration::MAX`] is JavaScript's `Infinity`. JavaScript: `{ crlfDelay }`.
    #[must_use = "a handle to the same interface is returned"]
    pub fn crlf_delay(self, delay: Duration) -> Self {
        self.inner.splitter.borrow_mut().set_crlf_delay(delay);
        self
    }

    /// Closes the interface when `signal` is aborted; on the next tick if it was aborted before.
    /// JavaScript: `{ signal }`.
    #[must_use = "a handle to the same interface is returned"]
    pub fn signal(self, signal: &AbortSignal) -> Self {
        let weak = Rc::downgrade(&self.inner);
        let close = move || {
            if let Some(inner) = weak.upgrade() {
                inner.close();
            }
        };
        if signal.aborted() {
            next_tick(close);
        } else {
            let listener = signal.on_abort(close);
            let abort = Some((signal.clone(), listener));
            self.inner.abort.replace(abort);
        }
        self
    }

    /// Asks a question: writes `query` to the [output](Self::output), and passes the next line to
    /// `callback` in place of [`LINE`]. JavaScript: `rl.question(query, callback)`.
    ///
    /// While another question is open, that one is written again, and `callback` is dropped. Text
    /// without a line end before EOF is no answer, but a line. A line that was read before the call
    /// is no answer either: input that is piped into the program may have brought it together with
    /// earlier lines, and [`lines`](Self::lines) or a listener has it.
    ///
    /// # Errors
    ///
    /// `ERR_USE_AFTER_CLOSE` if the interface is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, readline, run, stream::Readable};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let rl = readline::create_interface(&Readable::from_iter([b"Ada\n".to_vec()]));
    ///         rl.question("name? ", |name| assert_eq!(name, "Ada")).unwrap();
    ///     })
    /// }
    /// ```
    // H114.
    pub fn question(
        &self,
        query: &str,
        callback: impl FnOnce(String) + 'static,
    ) -> Result<(), Error> {
        self.inner.ask(query, Box::new(callback), None).map(drop)
    }

    /// Asks a question that `signal` cancels: the next line is then emitted as usual, and a line
    /// end is written. Nothing is asked if the signal was aborted before. JavaScript:
    /// `rl.question(query, { signal }, callback)`.
    ///
    /// # Errors
    ///
    /// See [`question`](Self::question).
    pub fn question_with_signal(
        &self,
        query: &str,
        signal: &AbortSignal,
        callback: impl FnOnce(String) + 'static,
    ) -> Result<(), Error> {
        if signal.aborted() {
            return Ok(());
        }
        let weak = Rc::downgrade(&self.inner);
        let listener = signal.on_abort(move || cancel(&weak));
        let abort = Abort {
            signal: signal.clone(),
            listener,
            is_awaited: Box::new(|| false),
        };
        let asked = self.inner.ask(query, Box::new(callback), Some(abort));
        asked.map(drop)
    }

    /// Sets the text that [`prompt`](Self::prompt) writes; `"> "` by default. JavaScript:
    /// `rl.setPrompt(prompt)`, `{ prompt }`.
    pub fn set_prompt(&self, prompt: impl Into<String>) {
        let before = self.inner.prompt.replace(prompt.into());
        drop(before);
    }

    /// Returns the text that [`prompt`](Self::prompt) writes: the query while a question is open.
    /// JavaScript: `rl.getPrompt()`.
    #[must_use]
    pub fn get_prompt(&self) -> String {
        self.inner.prompt.borrow().clone()
    }

    /// Handles `text` as if the input had brought it, and resumes the input if it is paused.
    /// JavaScript: `rl.write(text)`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_USE_AFTER_CLOSE` if the interface is closed.
    pub fn write(&self, text: &str) {
        self.inner.refuse_if_closed();
        self.inner.resume();
        if self.inner.terminal.borrow().is_some() {
            return self.inner.press(text);
        }
        let lines = self.inner.splitter.borrow_mut().add_text(text);
        self.inner.emit_lines(lines);
    }

    /// Pauses the input and emits [`PAUSE`]; no effect if it is paused. Lines of the chunk that is
    /// being read are still emitted. JavaScript: `rl.pause()`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_USE_AFTER_CLOSE` if the interface is closed.
    pub fn pause(&self) {
        self.inner.refuse_if_closed();
        self.inner.pause();
    }

    /// Resumes a paused input and emits [`RESUME`]. JavaScript: `rl.resume()`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_USE_AFTER_CLOSE` if the interface is closed.
    pub fn resume(&self) {
        self.inner.refuse_if_closed();
        self.inner.resume();
    }

    /// Pauses the input, gives it up, and emits [`CLOSE`] inside this call. Lines of the chunk that
    /// is being read are still emitted. The input is not destroyed. An open question stays
    /// unanswered. JavaScript: `rl.close()`.
    // H112.
    pub fn close(&self) {
        self.inner.close();
    }

    /// Returns whether the interface is closed. JavaScript: `rl.closed`.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed.get()
    }

    /// Returns whether the input was paused by [`pause`](Self::pause) or [`close`](Self::close).
    /// JavaScript: `rl.paused`.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.inner.is_paused.get()
    }
}

/// Cancels the open question of an interface, whichever it is.
fn cancel(interface: &Weak<Inner>) {
    let Some(inner) = interface.upgrade() else {
        return;
    };
    if let Some(question) = inner.question.take() {
        inner.prompt.replace(question.prompt);
        inner.write_out("\r\n");
    }
}

impl Inner {
    fn read(self: &Rc<Self>, chunk: &[u8]) {
        if let Some(text) = self.decoded(chunk) {
            return self.press(&text);
        }
        let lines = self.splitter.borrow_mut().add(chunk);
        self.emit_lines(lines);
    }

    fn emit_lines(&self, lines: Vec<String>) {
        for line in lines {
            let question = self.question.take();
            let Some(question) = question else {
                self.emitter.emit(LINE, line);
                continue;
            };
            self.prompt.replace(question.prompt);
            if let Some(abort) = question.abort {
                abort.off();
            }
            (question.callback)(line);
        }
    }

    fn input_ended(&self) {
        let rest = self.splitter.borrow_mut().take_rest();
        if !rest.is_empty() {
            // Also while a question is open, as in Node.
            self.emitter.emit(LINE, rest);
        }
        self.close();
    }

    /// Throws if the interface is closed.
    fn refuse_if_closed(&self) {
        if self.is_closed.get() {
            throw(closed());
        }
    }

    /// Opens a question. Returns `false` if another one is open.
    fn ask(
        &self,
        query: &str,
        callback: Box<dyn FnOnce(String)>,
        abort: Option<Abort>,
    ) -> Result<bool, Error> {
        if self.is_closed.get() {
            if let Some(abort) = abort {
                abort.off();
            }
            return Err(closed());
        }
        let is_free = self.question.borrow().is_none();
        if is_free {
            let prompt = self.prompt.replace(query.to_owned());
            self.question.replace(Some(Question {
                callback,
                prompt,
                abort,
            }));
        }
        self.rewind();
        self.write_prompt();
        Ok(is_free)
    }

    fn write_prompt(&self) {
        self.resume();
        let drawn = self.redrawn();
        let drawn = drawn.unwrap_or_else(|| self.prompt.borrow().clone());
        self.write_out(&drawn);
    }

    fn write_out(&self, text: &str) {
        let output = self.output.borrow().clone();
        if let Some(output) = output {
            output(text);
        }
    }

    fn pause(&self) {
        if !self.is_paused.get() {
            (self.flow)(false);
            self.is_paused.set(true);
            self.emitter.emit(PAUSE, ());
        }
    }

    fn resume(&self) {
        if self.is_paused.get() {
            (self.flow)(true);
            self.is_paused.set(false);
            self.emitter.emit(RESUME, ());
        }
    }

    fn close(&self) {
        if self.is_closed.get() {
            return;
        }
        self.pause();
        #[cfg(all(unix, feature = "tty"))]
        self.close_device();
        self.is_closed.set(true);
        for listener in self.on_input.take() {
            self.input.off(listener);
        }
        let abort = self.abort.take();
        if let Some((signal, listener)) = abort {
            signal.off(listener);
        }
        // The listeners are needed until the lines of this chunk are emitted, and so is an open
        // question. Then it has no answer, and may hold the interface.
        let (emitter, mark) = (self.emitter.clone(), Mark::now());
        let question = self.question.clone();
        next_tick(move || {
            emitter.drop_before(mark, &[]);
            let question = question.take();
            let Some(question) = question else { return };
            drop(question.callback);
            if let Some(abort) = question.abort.filter(|abort| !(abort.is_awaited)()) {
                abort.off();
            }
        });
        self.emitter.emit(CLOSE, ());
    }
}

impl Emitter for Interface {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
    }
}

crate::weak_this!(Interface { inner });

impl fmt::Debug for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interface")
            .field("paused", &self.is_paused())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// The error of the use of a closed interface.
fn closed() -> Error {
    Error::with_code("ERR_USE_AFTER_CLOSE", "readline was closed")
}
