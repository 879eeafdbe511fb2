//! Streams with a readable and a writable side.

use std::fmt;
use std::mem::take;
use std::rc::{Rc, Weak};

use super::readable::{self, Readable, ReadableBuilder};
use super::writable::{self, Writable, WritableBuilder};
use crate::error::Error;
use crate::events::{Emitter, EventEmitter};

/// A stream with a writable side for `W` and a readable side for `R`, such as a socket. A clone is
/// a handle to the same stream. JavaScript: `stream.Duplex`.
///
/// Both sides share one emitter. The stream closes when both sides have ended, or when either side
/// is destroyed.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{Duplex, Readable, Writable}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let answers = Readable::objects();
///         let questions = Writable::objects(|question: String, done| {
///             println!("{question}");
///             done.ok();
///         });
///         let duplex = Duplex::new(answers, questions);
///         duplex.readable().on_data(|n: &u32| assert_eq!(*n, 42));
///         duplex.writable().write("how many?".to_owned());
///         duplex.readable().push(42);
///         duplex.readable().push_end();
///         duplex.writable().end(());
///     })
/// }
/// ```
pub struct Duplex<W: 'static, R: 'static> {
    readable: Readable<R>,
    writable: Writable<W>,
}

impl<W: 'static, R: 'static> Duplex<W, R> {
    /// Creates a stream of two sides. The end of one side leaves the other side open.
    ///
    /// Of the `construct` and `destroy` functions, those of the writable side are used; a function
    /// that it lacks is taken from the readable side.
    #[must_use]
    pub fn new(readable: ReadableBuilder<R>, writable: WritableBuilder<W>) -> Self {
        Self::build(readable, writable, true)
    }

    /// Creates a stream whose writable side ends when its readable side has ended, which is the
    /// default of a socket. JavaScript: `new Duplex({ allowHalfOpen: false })`.
    #[must_use]
    pub fn new_not_half_open(readable: ReadableBuilder<R>, writable: WritableBuilder<W>) -> Self {
        Self::build(readable, writable, false)
    }

    fn build(
        mut readable: ReadableBuilder<R>,
        mut writable: WritableBuilder<W>,
        allow_half_open: bool,
    ) -> Self {
        let options = take(&mut writable.options).joined(take(&mut readable.options));
        options.build("Duplex", |base| {
            base.allow_half_open.set(allow_half_open);
            let (readable, writable) = (readable.build_side(base), writable.build_side(base));
            Self {
                readable: Readable::of(readable),
                writable: Writable::of(writable),
            }
        })
    }

    /// Returns the stream of two handles, if they are the sides of one.
    pub(crate) fn of_sides(readable: &Readable<R>, writable: &Writable<W>) -> Option<Self> {
        (readable.id() == writable.id()).then(|| Self {
            readable: readable.clone(),
            writable: writable.clone(),
        })
    }

    pub(crate) fn downgrade(&self) -> WeakDuplex<W, R> {
        WeakDuplex {
            readable: Rc::downgrade(self.readable.state()),
            writable: Rc::downgrade(self.writable.state()),
        }
    }

    /// Lets the caller emit 'close' with [`emit_close`](Self::emit_close), in place of a tick. A
    /// stream with a handle emits it when the handle is closed.
    pub(crate) fn closes_by_hand(&self) {
        self.readable.state().base.emits_close.set(false);
    }

    pub(crate) fn emit_close(&self) {
        self.readable.state().base.emit_close();
    }

    /// Makes a destroyed stream usable again. It keeps its listeners and how it flows. JavaScript:
    /// `stream._undestroy()`.
    pub(crate) fn undestroy(&self) {
        if self.readable.destroyed() {
            self.readable.state().base.undestroy();
        }
    }

    /// Sets whether the close keeps the listeners. `false` drops those of a closed stream.
    pub(crate) fn keep_listeners(&self, keeps: bool) {
        self.readable.state().base.keep_listeners(keeps);
    }

    /// Returns whether the listeners were dropped by the close.
    pub(crate) fn is_released(&self) -> bool {
        self.readable.state().base.is_released.get()
    }

    /// Returns the readable side.
    #[must_use]
    pub fn readable(&self) -> &Readable<R> {
        &self.readable
    }

    /// Returns the writable side.
    #[must_use]
    pub fn writable(&self) -> &Writable<W> {
        &self.writable
    }

    /// Returns whether the writable side stays open when the readable side has ended. JavaScript:
    /// `duplex.allowHalfOpen`.
    #[must_use]
    pub fn allow_half_open(&self) -> bool {
        self.readable.state().base.allow_half_open.get()
    }

    /// Sets [`allow_half_open`](Self::allow_half_open); effective until the readable side ends.
    /// JavaScript: `duplex.allowHalfOpen = false`.
    pub fn set_allow_half_open(&self, allow: bool) {
        self.readable.state().base.allow_half_open.set(allow);
    }

    /// Destroys both sides at once; see [`Readable::destroy`].
    pub fn destroy(&self, error: Option<Error>) {
        self.readable.destroy(error);
    }
}

/// A weak reference to a [`Duplex`].
pub(crate) struct WeakDuplex<W: 'static, R: 'static> {
    readable: Weak<readable::State<R>>,
    writable: Weak<writable::State<W>>,
}

impl<W: 'static, R: 'static> WeakDuplex<W, R> {
    pub(crate) fn upgrade(&self) -> Option<Duplex<W, R>> {
        let (readable, writable) = (self.readable.upgrade()?, self.writable.upgrade()?);
        Some(Duplex {
            readable: Readable::of(readable),
            writable: Writable::of(writable),
        })
    }
}

impl<W: 'static, R: 'static> Emitter for Duplex<W, R> {
    fn emitter(&self) -> &EventEmitter {
        self.readable.emitter()
    }
}

impl<W: 'static, R: 'static> crate::events::WeakThis for Duplex<W, R> {
    fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>> {
        let this = self.downgrade();
        Box::new(move || this.upgrade())
    }
}

impl<W: 'static, R: 'static> Clone for Duplex<W, R> {
    fn clone(&self) -> Self {
        Self {
            readable: self.readable.clone(),
            writable: self.writable.clone(),
        }
    }
}

impl<W: 'static, R: 'static> fmt::Debug for Duplex<W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Duplex")
            .field("readable", &self.readable)
            .field("writable", &self.writable)
            .finish()
    }
}
