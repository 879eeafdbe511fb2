//! Streams that hold each other: pipes, pairs, and streams in front of others.
//!
//! In JavaScript such streams are garbage when the program has dropped all of them. Here they would
//! live until they are closed, so the links are searched now and then for streams that nothing else
//! holds.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use slab::Slab;

use super::base::Done;
use super::duplex::Duplex;
use super::readable::Readable;
use super::writable::Writable;

/// The number of links from which on they are searched.
const FEW: usize = 32;

/// What connects streams: it holds them, and their listeners hold it.
pub(super) trait Link {
    /// Reports every reference to a stream that this link holds.
    fn references(&self, found: &mut References);
    /// Drops the listeners of the streams and what this value holds.
    fn abandon(&self);
}

/// The references of one link.
#[derive(Default)]
pub(super) struct References {
    /// The address of the state of one side, and the number of all references to it.
    sides: Vec<(*const (), usize)>,
    /// Whether the streams live without a reference that is counted.
    is_rooted: bool,
}

impl References {
    pub(super) fn add<T: ?Sized>(&mut self, side: &Rc<T>) {
        let address = Rc::as_ptr(side).cast::<()>();
        self.sides.push((address, Rc::strong_count(side)));
    }

    pub(super) fn readable<T: 'static>(&mut self, stream: &Readable<T>) {
        self.add(stream.state());
        self.is_rooted |= stream.is_of_device();
        if let Some(other) = &stream.other_side {
            self.add(other);
        }
    }

    pub(super) fn writable<T: 'static>(&mut self, stream: &Writable<T>) {
        self.add(stream.state());
        self.is_rooted |= stream.is_of_device();
        if let Some(other) = &stream.other_side {
            self.add(other);
        }
    }

    pub(super) fn duplex<W: 'static, R: 'static>(&mut self, stream: &Duplex<W, R>) {
        self.readable(stream.readable());
        self.writable(stream.writable());
    }

    pub(super) fn done(&mut self, done: &RefCell<Option<Done>>) {
        if let Some(done) = &*done.borrow() {
            done.references(self);
        }
    }
}

/// The links of one loop.
#[derive(Default)]
pub(crate) struct Links {
    list: RefCell<Slab<Weak<dyn Link>>>,
    /// The number of links that the last search has left.
    left: Cell<usize>,
}

impl Links {
    /// Adds a link and returns its place. Links that only hold each other are dropped if there are
    /// many.
    pub(super) fn add(&self, link: Weak<dyn Link>) -> usize {
        let count = self.list.borrow().len();
        if count >= FEW && count >= self.left.get() * 2 {
            self.drop_unreachable();
            self.left.set(self.list.borrow().len());
        }
        self.list.borrow_mut().insert(link)
    }

    pub(super) fn remove(&self, place: usize) {
        self.list.borrow_mut().try_remove(place);
    }

    pub(crate) fn shut_down(&self) {
        let list = self.list.take();
        for (_, link) in list {
            if let Some(link) = link.upgrade() {
                link.abandon();
            }
        }
    }

    /// Drops the links whose streams are held by links alone.
    fn drop_unreachable(&self) {
        let links: Vec<_> = {
            let list = self.list.borrow();
            list.iter().filter_map(|(_, link)| link.upgrade()).collect()
        };
        let reachable = reachable(&links);
        for (link, is_reachable) in links.iter().zip(reachable) {
            if !is_reachable {
                link.abandon();
            }
        }
    }
}

/// Returns for each link whether something besides links holds one of its streams, or one that is
/// linked with them.
fn reachable(links: &[Rc<dyn Link>]) -> Vec<bool> {
    /// One side of a stream.
    #[derive(Default)]
    struct Side {
        /// References that no link holds.
        others: usize,
        links: Vec<usize>,
    }
    let mut sides: HashMap<*const (), Side> = HashMap::new();
    let (mut reachable, mut waiting) = (vec![false; links.len()], Vec::new());
    let mut of_links = Vec::new();
    for (number, link) in links.iter().enumerate() {
        let mut found = References::default();
        link.references(&mut found);
        if found.is_rooted {
            reachable[number] = true;
            waiting.push(number);
        }
        for &(address, count) in &found.sides {
            let new = || Side {
                others: count,
                links: Vec::new(),
            };
            let side = sides.entry(address).or_insert_with(new);
            side.others -= 1;
            side.links.push(number);
        }
        of_links.push(found.sides);
    }
    for side in sides.values().filter(|side| side.others > 0) {
        waiting.extend(&side.links);
    }
    while let Some(number) = waiting.pop() {
        reachable[number] = true;
        for (address, _) in std::mem::take(&mut of_links[number]) {
            if let Some(side) = sides.remove(&address) {
                waiting.extend(side.links);
            }
        }
    }
    reachable
}
