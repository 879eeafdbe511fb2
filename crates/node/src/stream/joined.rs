//! One duplex stream in front of others: two halves, or the ends of a chain.
//!
//! ```text
//!   from_halves:  write ──> writable          readable ──> read
//!   compose:      write ──> first ──> … ──> last ──> read
//! ```

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

use super::base::{Base, Done};
use super::duplex::Duplex;
use super::finished::sealed::Sealed as _;
use super::finished::{EndOfStream, Sides};
use super::links::{Link, References};
use super::pipeline::{AsDuplex, Row};
use super::readable::{Readable, ReadableBuilder};
use super::writable::{Writable, WritableBuilder};
use super::{DRAIN, END, FINISH, READABLE};
use crate::context::Node;
use crate::error::Error;
use crate::events::Emitter as _;

impl<W: 'static, R: 'static> Duplex<W, R> {
    /// Creates a duplex stream of two streams: it reads from one and writes to the other. It fails
    /// with either, and destroying it destroys both. JavaScript: `Duplex.from({ readable, writable
    /// })`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, run, stream::{Duplex, Readable, Writable}};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let answers = Readable::from_iter(["yes", "no"]);
    ///         let questions = Writable::objects(|_: &str, done| done.ok()).build();
    ///         let duplex = Duplex::from_halves(&answers, &questions);
    ///         duplex.writable().end("really?");
    ///         assert_eq!(duplex.readable().to_array().await.unwrap(), ["yes", "no"]);
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn from_halves(readable: &Readable<R>, writable: &Writable<W>) -> Self {
        let front = Front::new(writable, readable);
        let (ends, destroys) = (front.clone(), front.clone());
        let duplex = front.duplex(
            move |error, done| {
                if let Some(done) = destroys.keep_until_closed(done) {
                    return done.pass(error);
                }
                let (writable, readable) = (&destroys.writable, &destroys.readable);
                writable.destroy(error.clone());
                readable.destroy(error);
            },
            move |done| {
                ends.writable.end(());
                ends.end.replace(Some(done));
            },
        );
        front.end_with(writable.base(), readable.base());
        front.listen_to_writable();
        let finished = front.clone();
        writable.on(FINISH, move |()| finished.report_end());
        front.end_with(readable.base(), writable.base());
        front.listen_to_readable();
        duplex
    }
}

/// Starts a chain of duplex streams that is used as one: what is written goes to the first stream,
/// and what is read comes from the last. JavaScript: `stream.compose(..)`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{Transform, compose}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let upper = Transform::objects(|text: String, out| out.ok_with(text.to_uppercase()));
///         let length = Transform::objects(|text: String, out| out.ok_with(text.len()));
///         let both = compose(&upper.build()).through(&length.build()).build();
///         both.writable().end("hello");
///         assert_eq!(both.readable().to_array().await.unwrap(), [5]);
///     })
/// }
/// ```
pub fn compose<W: 'static, R: 'static>(first: &impl AsDuplex<W, R>) -> Composition<W, R> {
    let first = first.as_duplex().clone();
    let base = first.base().clone();
    Composition {
        first: first.writable().clone(),
        last: first.readable().clone(),
        stages: vec![Box::new(move |row, is_last| {
            let sides = Sides {
                readable: !is_last,
                writable: false,
            };
            row.add(&base, sides);
        })],
    }
}

/// Adds a stream to a chain; the flag says whether it is the last one.
type Stage = Box<dyn FnOnce(&Rc<Row>, bool)>;

/// A chain of duplex streams to be used as one; returned by [`compose`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{Composition, Transform, compose}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let chain: Composition<u8, u8> = compose(&Transform::pass_through());
///         let duplex = chain.through(&Transform::pass_through()).build();
///         duplex.writable().end(7);
///         assert_eq!(duplex.readable().to_array().await.unwrap(), [7]);
///     })
/// }
/// ```
#[must_use = "a composition does nothing until `build`"]
pub struct Composition<W: 'static, R: 'static> {
    first: Writable<W>,
    last: Readable<R>,
    stages: Vec<Stage>,
}

impl<W: 'static, R: Clone + 'static> Composition<W, R> {
    /// Appends a stream.
    pub fn through<N: 'static>(mut self, next: &impl AsDuplex<R, N>) -> Composition<W, N> {
        let next = next.as_duplex().clone();
        let (source, after) = (self.last, next.readable().clone());
        self.stages.push(Box::new(move |row, is_last| {
            let sides = Sides {
                readable: !is_last,
                writable: true,
            };
            row.add(next.base(), sides);
            row.pipe(&source, next.writable(), true);
        }));
        Composition {
            first: self.first,
            last: after,
            stages: self.stages,
        }
    }
}

impl<W: 'static, R: 'static> Composition<W, R> {
    /// Connects the streams and returns the one in front of them.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    pub fn build(self) -> Duplex<W, R> {
        let row = Rc::new(Row::default());
        let count = self.stages.len();
        for (index, stage) in self.stages.into_iter().enumerate() {
            stage(&row, index + 1 == count);
        }
        let front = Front::new(&self.first, &self.last);
        let (ends, destroys, finished) = (front.clone(), front.clone(), front.clone());
        let duplex = front.duplex(
            move |error, done| {
                let done = destroys.keep_until_closed(done);
                destroys.readable.destroy(error.clone());
                if let Some(done) = done {
                    done.pass(error);
                }
            },
            move |done| {
                ends.writable.end(());
                ends.end.replace(Some(done));
            },
        );
        front.listen_to_writable();
        let last = self.last.base();
        let over = move |_: Result<(), Error>| finished.report_end();
        EndOfStream::new(last, Sides::of(last), true, Box::new(over)).keep();
        front.listen_to_readable();
        row.outcome
            .then(Box::new(move |result| front.closed(result)));
        duplex
    }
}

impl<W: 'static, R: 'static> fmt::Debug for Composition<W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Composition")
            .field("streams", &self.stages.len())
            .finish_non_exhaustive()
    }
}

/// What a duplex stream in front of other streams waits for.
struct Front<W: 'static, R: 'static> {
    writable: Writable<W>,
    readable: Readable<R>,
    /// The stream in front.
    duplex: RefCell<Option<Duplex<W, R>>>,
    place: usize,
    node: Rc<Node>,
    /// A write that waits for room.
    write: RefCell<Option<Done>>,
    /// The end, which waits for the streams behind.
    end: RefCell<Option<Done>>,
    /// Whether a read waits for 'readable'.
    reads: Cell<bool>,
    close: RefCell<Close>,
}

enum Close {
    /// The streams behind are open.
    Open,
    /// The stream in front is destroyed and waits for the others.
    Waiting(Done),
    /// The streams behind have ended or failed.
    Over,
}

impl<W: 'static, R: 'static> Front<W, R> {
    fn new(writable: &Writable<W>, readable: &Readable<R>) -> Rc<Self> {
        let node = Node::current();
        Rc::new_cyclic(|me: &Weak<Self>| Self {
            place: node.links.add(me.clone()),
            node,
            writable: writable.clone(),
            readable: readable.clone(),
            duplex: RefCell::default(),
            write: RefCell::default(),
            end: RefCell::default(),
            reads: Cell::new(false),
            close: RefCell::new(Close::Open),
        })
    }

    /// Creates the stream in front, with the functions that differ.
    fn duplex(
        self: &Rc<Self>,
        destroy: impl FnOnce(Option<Error>, Done) + 'static,
        end: impl FnOnce(Done) + 'static,
    ) -> Duplex<W, R> {
        let (writes, reads) = (self.clone(), self.clone());
        let write = move |chunk, done: Done| match writes.writable.write(chunk) {
            true => done.ok(),
            false => drop(writes.write.replace(Some(done))),
        };
        let mode = self.writable.state().mode;
        let writable = WritableBuilder::new(mode, Box::new(write)).end(end);
        let mode = self.readable.state().mode.get();
        let readable = ReadableBuilder::new(mode).read(move |stream, _| reads.read(stream));
        let this = self.clone();
        let destroy = move |error: Option<Error>, done| {
            let is_over = matches!(*this.close.borrow(), Close::Over);
            let error = error.or_else(|| (!is_over).then(Error::left));
            this.forget();
            destroy(error, done);
        };
        let duplex = Duplex::new(readable, writable.destroy(destroy));
        self.duplex.replace(Some(duplex.clone()));
        duplex
    }

    fn listen_to_writable(self: &Rc<Self>) {
        let drained = self.clone();
        self.writable.on(DRAIN, move |()| {
            let write = drained.write.take();
            if let Some(done) = write {
                done.ok();
            }
        });
    }

    /// Returns the stream in front, unless the link was abandoned.
    fn stream(&self) -> Option<Duplex<W, R>> {
        self.duplex.borrow().clone()
    }

    fn listen_to_readable(self: &Rc<Self>) {
        let more = self.clone();
        self.readable.on(READABLE, move |()| {
            if let Some(stream) = more.stream().filter(|_| more.reads.replace(false)) {
                more.read(stream.readable());
            }
        });
        let ended = self.clone();
        self.readable.on(END, move |()| {
            if let Some(stream) = ended.stream() {
                stream.readable().push_end();
            }
        });
    }

    fn read(&self, stream: &Readable<R>) {
        while let Some(chunk) = self.readable.read() {
            if !stream.push(chunk) {
                return;
            }
        }
        self.reads.set(true);
    }

    fn report_end(&self) {
        let end = self.end.take();
        if let Some(done) = end {
            done.ok();
        }
    }

    /// Drops what waits: the stream in front is destroyed.
    fn forget(&self) {
        self.reads.set(false);
        drop((self.write.take(), self.end.take()));
    }

    /// Keeps the result of a destroy until the streams behind have ended. Returns it if they have.
    fn keep_until_closed(&self, done: Done) -> Option<Done> {
        let mut close = self.close.borrow_mut();
        if matches!(*close, Close::Over) {
            return Some(done);
        }
        *close = Close::Waiting(done);
        None
    }

    /// Closes the stream in front with one of its halves, whose error destroys the other one.
    fn end_with(self: &Rc<Self>, half: &Rc<Base>, other: &Rc<Base>) {
        let (other, front) = (Rc::downgrade(other), self.clone());
        let over = move |result: Result<(), Error>| {
            if let (Err(error), Some(other)) = (&result, other.upgrade()) {
                other.leave(Some(error.clone()));
            }
            front.closed(result);
        };
        EndOfStream::new(half, Sides::of(half), true, Box::new(over)).keep();
    }

    /// The streams behind have ended or failed.
    fn closed(&self, result: Result<(), Error>) {
        let close = self.close.replace(Close::Over);
        match close {
            Close::Waiting(done) => done.call(result),
            Close::Open | Close::Over => {
                if let (Err(error), Some(duplex)) = (result, self.stream()) {
                    duplex.destroy(Some(error));
                }
            }
        }
    }
}

impl<W: 'static, R: 'static> Link for Front<W, R> {
    fn references(&self, found: &mut References) {
        found.writable(&self.writable);
        found.readable(&self.readable);
        if let Some(duplex) = &*self.duplex.borrow() {
            found.duplex(duplex);
        }
        found.done(&self.write);
        found.done(&self.end);
    }

    fn abandon(&self) {
        let duplex = self.duplex.take();
        self.writable.emitter().clear();
        self.readable.emitter().clear();
        if let Some(duplex) = duplex {
            duplex.emitter().clear();
        }
        self.forget();
        let close = self.close.replace(Close::Over);
        drop(close);
    }
}

impl<W: 'static, R: 'static> Drop for Front<W, R> {
    fn drop(&mut self) {
        self.node.links.remove(self.place);
    }
}
