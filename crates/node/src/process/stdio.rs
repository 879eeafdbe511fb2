//! `process.stdin`, `process.stdout`, `process.stderr`.

use std::cell::OnceCell;
use std::io::{self, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::io::AsyncRead;

use crate::context::Node;
use crate::error::Error;
#[cfg(all(unix, feature = "tty"))]
use crate::events::EventEmitter;
use crate::events::{Emitter as _, NEW_LISTENER};
use crate::stream::{PAUSE, READABLE, RESUME, Readable, Writable};
use phaseloop::Handle as _;
use phaseloop::io::Stdin;
use phaseloop::task::next_tick;
#[cfg(all(unix, feature = "tty"))]
use phaseloop::tty::{Size, Tty};

/// The standard streams of one loop, each created by its first use.
#[derive(Default)]
pub(crate) struct StandardStreams {
    stdin: OnceCell<Readable<Vec<u8>>>,
    stdout: OnceCell<Writable<Vec<u8>>>,
    stderr: OnceCell<Writable<Vec<u8>>>,
}

/// Returns standard input; each call returns the same stream. Reading starts when the stream is
/// first read. JavaScript: `process.stdin`.
///
/// While it is read, it keeps the loop alive, until EOF, [`pause`](Readable::pause) or
/// [`destroy`](Readable::destroy). So a program that closes its
/// [`readline`](crate::readline) interface can end although standard input is open.
///
/// The counterpart in plain Rust is [`phaseloop::io::stdin`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{Exit, process, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         process::stdin().on_data(|bytes| {
///             process::stdout().write(bytes.to_ascii_uppercase());
///         });
///     })
/// }
/// ```
#[must_use]
#[track_caller]
pub fn stdin() -> Readable<Vec<u8>> {
    let node = Node::current();
    let known = &node.process.standard.stdin;
    if let Some(stdin) = known.get() {
        return stdin.clone();
    }
    let stdin = match phaseloop::io::stdin() {
        Ok(stdin) => readable(Rc::new(stdin)),
        // The descriptor is closed, so the stream is empty.
        Err(_) => Readable::bytes().read(|empty, _| empty.push_end()).build(),
    };
    known.get_or_init(|| stdin).clone()
}

/// Creates the stream of standard input, which does not keep the loop alive while it is paused.
///
/// Node stops the read a tick after the pause. Here the read goes on, unref'd: its bytes wait in
/// the buffer of the stream.
fn readable(stdin: Rc<Stdin>) -> Readable<Vec<u8>> {
    let readable = Readable::from_reader(SharedStdin(stdin.clone()));
    let paused = Rc::downgrade(&stdin);
    readable.on(PAUSE, move |()| {
        let paused = paused.clone();
        next_tick(move || {
            if let Some(stdin) = paused.upgrade().filter(|_| is_paused()) {
                stdin.unref();
            }
        });
    });
    let resumed = Rc::downgrade(&stdin);
    readable.on(RESUME, move |()| {
        if let Some(stdin) = resumed.upgrade() {
            stdin.ref_();
        }
    });
    // A reader of the paused stream waits for 'readable'.
    let awaited = Rc::downgrade(&stdin);
    readable.on(NEW_LISTENER, move |name| {
        if let Some(stdin) = awaited.upgrade().filter(|_| name == READABLE.name()) {
            stdin.ref_();
        }
    });
    readable
}

/// Returns whether standard input is paused and is not read in another way.
fn is_paused() -> bool {
    let node = Node::current();
    let stdin = node.process.standard.stdin.get();
    stdin.is_some_and(|stdin| stdin.flowing() != Some(true) && stdin.listener_count(READABLE) == 0)
}

/// Standard input as a reader, next to a handle that can unref it.
struct SharedStdin(Rc<Stdin>);

impl AsyncRead for SharedStdin {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.0).poll_read(cx, buffer)
    }
}

/// Returns standard output; each call returns the same stream. JavaScript: `process.stdout`.
///
/// As in Node on Unix, a write has completed when the call returns, its callback is called on a
/// tick, and a slow reader blocks the loop. Writes go through [`std::io::stdout`], so they keep
/// their order with [`print!`].
///
/// The counterpart in plain Rust is [`phaseloop::io::stdout`], which does not block.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, process, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         process::stdout().write("hello\n");
///     })
/// }
/// ```
#[must_use]
pub fn stdout() -> Writable<Vec<u8>> {
    let node = Node::current();
    let make = || sink(|bytes| write_out(io::stdout().lock(), bytes));
    node.process.standard.stdout.get_or_init(make).clone()
}

/// Returns standard error; each call returns the same stream; see [`stdout`]. JavaScript:
/// `process.stderr`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn stderr() -> Writable<Vec<u8>> {
    let node = Node::current();
    let make = || sink(|bytes| write_out(io::stderr().lock(), bytes));
    node.process.standard.stderr.get_or_init(make).clone()
}

fn sink(write: impl Fn(&[u8]) -> io::Result<()> + 'static) -> Writable<Vec<u8>> {
    Writable::bytes(move |bytes: Vec<u8>, done| {
        done.call(write(&bytes).map_err(|error| Error::of_call(error, "write")));
    })
    .build()
}

fn write_out(mut output: impl Write, bytes: &[u8]) -> io::Result<()> {
    output.write_all(bytes)?;
    output.flush()
}

/// Returns the terminal behind standard input, if that is the stream with this emitter.
#[cfg(all(unix, feature = "tty"))]
pub(crate) fn stdin_tty(stream: &EventEmitter) -> Option<Tty> {
    let node = Node::current();
    let stdin = node.process.standard.stdin.get()?;
    let is_it = stdin.emitter().is_same(stream);
    is_it.then(|| Tty::from_fd(io::stdin()).ok())?
}

/// Returns whether a stream is standard output.
#[cfg(all(unix, feature = "tty"))]
pub(crate) fn is_stdout(stream: &Writable<Vec<u8>>) -> bool {
    let node = Node::current();
    let stdout = node.process.standard.stdout.get();
    stdout.is_some_and(|stdout| stdout.id() == stream.id())
}

/// Returns the width of the window behind standard output.
#[cfg(all(unix, feature = "tty"))]
pub(crate) fn stdout_columns() -> Option<usize> {
    let columns = Size::of(io::stdout()).ok()?.columns;
    Some(usize::from(columns)).filter(|columns| *columns > 0)
}

impl StandardStreams {
    /// Drops the listeners, which may hold the streams themselves.
    pub(super) fn shut_down(&self) {
        if let Some(stdin) = self.stdin.get() {
            stdin.destroy(None);
        }
    }
}
