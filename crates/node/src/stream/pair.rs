//! Two duplex streams that are connected with each other.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::END;
use super::base::Done;
use super::chunk::ByteChunk;
use super::duplex::Duplex;
use super::links::{Link, References};
use super::readable::Readable;
use super::writable::Writable;
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
    let node = Node::current();
    let pair = Rc::new_cyclic(|me: &Weak<Pair<T>>| Pair {
        place: node.links.add(me.clone()),
        node,
        ends: [End::new(), End::new()],
    });
    let streams = [0, 1].map(|this| {
        let stream = side(&pair, this);
        pair.ends[this].stream.replace(Some(stream.clone()));
        stream
    });
    streams.into()
}

/// The two streams. Their functions hold it until they are closed.
struct Pair<T: 'static> {
    node: Rc<Node>,
    place: usize,
    ends: [End<T>; 2],
}

/// One of the two streams, as the other one sees it.
struct End<T: 'static> {
    /// `None` if the link was abandoned.
    stream: RefCell<Option<Duplex<T, T>>>,
    /// The write of the other stream that waits until this one wants data.
    write: RefCell<Option<Done>>,
    /// The end of the other stream, which waits until this one is read to its end.
    end: RefCell<Option<Done>>,
}

impl<T: 'static> End<T> {
    fn new() -> Self {
        Self {
            stream: RefCell::default(),
            write: RefCell::default(),
            end: RefCell::default(),
        }
    }

    fn stream(&self) -> Option<Duplex<T, T>> {
        self.stream.borrow().clone()
    }
}

fn side<T: ByteChunk>(pair: &Rc<Pair<T>>, this: usize) -> Duplex<T, T> {
    let other = 1 - this;
    let [reads, writes, ends] = [(); 3].map(|()| pair.clone());
    let readable = Readable::bytes().read(move |_, _| report(&reads.ends[this].write));
    let writable = Writable::bytes(move |chunk: T, done| {
        if chunk.size() == 0 {
            return next_tick(move || done.ok());
        }
        let to = &writes.ends[other];
        if let Some(stream) = to.stream() {
            stream.readable().push(chunk);
        }
        to.write.replace(Some(done));
    })
    .end(move |done| match ends.ends[other].stream() {
        Some(stream) => {
            ends.ends[other].end.replace(Some(done));
            let stream = stream.readable();
            stream.once(END, move |()| report(&ends.ends[other].end));
            stream.push_end();
        }
        None => done.ok(),
    });
    Duplex::new(readable, writable)
}

/// Reports that what has waited is done.
fn report(waiting: &RefCell<Option<Done>>) {
    let done = waiting.take();
    if let Some(done) = done {
        done.ok();
    }
}

impl<T: 'static> Link for Pair<T> {
    fn references(&self, found: &mut References) {
        for end in &self.ends {
            if let Some(stream) = &*end.stream.borrow() {
                found.duplex(stream);
            }
            found.done(&end.write);
            found.done(&end.end);
        }
    }

    fn abandon(&self) {
        for end in &self.ends {
            let stream = end.stream.take();
            if let Some(stream) = stream {
                stream.emitter().clear();
            }
            let waiting = (end.write.take(), end.end.take());
            drop(waiting);
        }
    }
}

impl<T: 'static> Drop for Pair<T> {
    fn drop(&mut self) {
        self.node.links.remove(self.place);
    }
}
