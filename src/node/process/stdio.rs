//! `process.stdin`, `process.stdout`, `process.stderr`.

use std::cell::OnceCell;
use std::io::{self, Write};

use crate::node::context::Node;
use crate::node::error::Error;
use crate::node::stream::{Readable, Writable};

/// The standard streams of one loop, each created by its first use.
#[derive(Default)]
pub(in crate::node) struct StandardStreams {
    stdin: OnceCell<Readable<Vec<u8>>>,
    stdout: OnceCell<Writable<Vec<u8>>>,
    stderr: OnceCell<Writable<Vec<u8>>>,
}

/// Returns standard input; each call returns the same stream. Reading starts when the stream is
/// first read. JavaScript: `process.stdin`.
///
/// While it is read, it keeps the loop alive, until EOF or [`destroy`](Readable::destroy).
///
/// The counterpart in plain Rust is [`crate::io::stdin`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```no_run
/// use phaseloop::node::{process, run};
///
/// run(async {
///     process::stdin().on_data(|bytes| {
///         process::stdout().write(bytes.to_ascii_uppercase());
///     });
/// });
/// ```
#[must_use]
#[track_caller]
pub fn stdin() -> Readable<Vec<u8>> {
    let node = Node::current();
    let known = &node.process.standard.stdin;
    if let Some(stdin) = known.get() {
        return stdin.clone();
    }
    let stdin = match crate::io::stdin() {
        Ok(stdin) => Readable::from_reader(stdin),
        // The descriptor is closed, so the stream is empty.
        Err(_) => Readable::bytes().read(|empty, _| empty.push_end()).build(),
    };
    known.get_or_init(|| stdin).clone()
}

/// Returns standard output; each call returns the same stream. JavaScript: `process.stdout`.
///
/// As in Node on Unix, a write has completed when the call returns, its callback is called on a
/// tick, and a slow reader blocks the loop. Writes go through [`std::io::stdout`], so they keep
/// their order with [`print!`].
///
/// The counterpart in plain Rust is [`crate::io::stdout`], which does not block.
///
/// # Panics
///
/// When no loop runs on this thread.
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

impl StandardStreams {
    /// Drops the listeners, which may hold the streams themselves.
    pub(super) fn shut_down(&self) {
        if let Some(stdin) = self.stdin.get() {
            stdin.destroy(None);
        }
    }
}
