//! Two duplex streams that are connected with each other.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::base::Done;
use super::chunk::ByteChunk;
use super::duplex::Duplex;
use super::readable::{self, Readable};
use super::writable::Writable;
use super::{CLOSE, END};
use crate::context::Node;
use crate::events::Emitter as _;
use phaseloop::task::next_tick;

/// Creates two duplex streams of bytes: what is written to one is read from the other. A write
/// completes when the other side wants more data. JavaScript: `stream.duplexPair()`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{consumers, duplex_pair}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let (client, server) = duplex_pair::<Vec<u8>>();
///         client.writable().end("hello");
///         assert_eq!(consumers::text(server.readable()).await.unwrap(), "hello");
///     })
/// }
/// ```
#[must_use]
pub fn duplex_pair<T: ByteChunk>() -> (Duplex<T, T>, Duplex<T, T>) {
    let (left, right) = (Rc::new(End::new()), Rc::new(End::new()));
    let first = side(&left, &right);
    let second = side(&right, &left);
    left.stream.replace(Rc::downgrade(first.readable().state()));
    right
        .stream
        .replace(Rc::downgrade(second.readable().state()));
    keep_alive(&first, &second);
    keep_alive(&second, &first);
    (first, second)
}

/// Lets `this` keep `other` alive until it is closed, or its loop ends.
fn keep_alive<T: 'static>(this: &Duplex<T, T>, other: &Duplex<T, T>) {
    let kept = other.clone();
    this.once(CLOSE, move |()| drop(kept));
    Node::current().emitters.insert(this.emitter());
}

/// One of the two streams, as the other one sees it.
struct End<T: 'static> {
    stream: RefCell<Weak<readable::State<T>>>,
    /// The write of the other stream that waits until this one wants data.
    write: RefCell<Option<Done>>,
}

impl<T: 'static> End<T> {
    fn new() -> Self {
        Self {
            stream: RefCell::new(Weak::new()),
            write: RefCell::new(None),
        }
    }

    fn stream(&self) -> Option<Readable<T>> {
        let state = self.stream.borrow().upgrade()?;
        Some(state.handle())
    }
}

fn side<T: ByteChunk>(this: &Rc<End<T>>, other: &Rc<End<T>>) -> Duplex<T, T> {
    let (reads, writes, ends) = (this.clone(), other.clone(), other.clone());
    let readable = Readable::bytes().read(move |_, _| {
        let write = reads.write.take();
        if let Some(done) = write {
            done.ok();
        }
    });
    let writable = Writable::bytes(move |chunk: T, done| {
        if chunk.size() == 0 {
            return next_tick(move || done.ok());
        }
        if let Some(stream) = writes.stream() {
            stream.push(chunk);
        }
        writes.write.replace(Some(done));
    })
    .end(move |done| match ends.stream() {
        Some(stream) => {
            stream.once(END, move |()| done.ok());
            stream.push_end();
        }
        None => done.ok(),
    });
    Duplex::new(readable, writable)
}
