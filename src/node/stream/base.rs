//! What all streams have: events, errors, the end.
//!
//! ```text
//!   open ── destroy(error?) ──> destroyed: its function runs at once ──> a tick: 'error', 'close'
//!     └── read to its end and written to its end ──> destroy()
//! ```

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::error::Error;
use super::super::events::{ERROR, EventEmitter};
use super::super::promise;
use super::super::reason::Reason;
use super::CLOSE;
use crate::task::next_tick;

/// Tells a stream that what it asked for is done, or has failed. Dropped without a call, it leaves the stream waiting.
#[must_use = "the stream waits until it is called"]
pub struct Done(Box<dyn FnOnce(Result<(), Error>)>);

impl Done {
    pub(super) fn new(call: impl FnOnce(Result<(), Error>) + 'static) -> Self {
        Self(Box::new(call))
    }

    /// Tells it.
    pub fn call(self, result: Result<(), Error>) {
        (self.0)(result);
    }

    /// Passes an error on that was given, or tells that it is done: what a function of the end usually does.
    pub fn pass(self, error: Option<Error>) {
        self.call(error.map_or(Ok(()), Err));
    }

    /// It is done.
    pub fn ok(self) {
        self.call(Ok(()));
    }

    /// It has failed.
    pub fn fail(self, error: impl Into<Error>) {
        self.call(Err(error.into()));
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Done")
    }
}

/// What a caller gives to be told of one operation.
pub(super) type Callback = Box<dyn FnOnce(Result<(), Error>)>;

/// What a stream does when it is destroyed.
pub(super) type DestroyHook = Box<dyn FnOnce(Option<Error>, Done)>;

/// What a stream does before anything else.
pub(super) type ConstructHook = Box<dyn FnOnce(Done)>;

/// Tells streams apart: [`PIPE`](super::PIPE) and [`UNPIPE`](super::UNPIPE) say which one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId(u64);

/// The next stream's number.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// The readable side of a stream, whatever its chunks.
pub(super) trait ReadableSide {
    fn is_readable(&self) -> bool;
    /// The source has ended; perhaps not all is read.
    fn ended(&self) -> bool;
    fn end_emitted(&self) -> bool;
    fn is_empty(&self) -> bool;
    /// Something of it is still piped into another stream.
    fn has_pipes(&self) -> bool;
    fn constructed(&self);
    /// Lets go of functions and chunks.
    fn release(&self);
}

/// The writable side of a stream, whatever its chunks.
pub(super) trait WritableSide {
    fn is_writable(&self) -> bool;
    fn ending(&self) -> bool;
    /// `end` was called and has returned.
    fn ended(&self) -> bool;
    fn finished(&self) -> bool;
    /// `end` was called, and nothing waits to be written.
    fn ended_and_empty(&self) -> bool;
    fn pending_callbacks(&self) -> usize;
    fn need_drain(&self) -> bool;
    fn end_now(&self);
    fn constructed(&self);
    /// Those who wait will be told, by a tick, that nothing will be written.
    fn before_destroy(&self);
    fn release(&self);
}

/// What all streams have.
#[expect(
    unnameable_types,
    reason = "an internal of the sealed trait `AnyStream`"
)]
pub struct Base {
    pub(super) id: StreamId,
    pub(super) emitter: EventEmitter,
    pub(super) constructed: Cell<bool>,
    pub(super) destroyed: Cell<bool>,
    /// What the stream used is closed.
    pub(super) closed: Cell<bool>,
    pub(super) close_emitted: Cell<bool>,
    pub(super) error_emitted: Cell<bool>,
    pub(super) errored: RefCell<Option<Error>>,
    pub(super) auto_destroy: Cell<bool>,
    pub(super) allow_half_open: Cell<bool>,
    /// Whether the stream emits 'close' itself, by a tick; what has a handle does so when that is closed.
    pub(super) emits_close: Cell<bool>,
    destroy_hook: RefCell<Option<DestroyHook>>,
    /// A destroy that waits for the construction.
    destroy_later: Cell<bool>,
    readable: OnceCell<Weak<dyn ReadableSide>>,
    writable: OnceCell<Weak<dyn WritableSide>>,
}

/// Both sides of a stream: whoever has something to do with one keeps the other.
#[derive(Clone, Default)]
pub(super) struct Held {
    _readable: Option<Rc<dyn ReadableSide>>,
    _writable: Option<Rc<dyn WritableSide>>,
}

impl Base {
    pub(super) fn new(destroy_hook: Option<DestroyHook>, auto_destroy: bool) -> Rc<Self> {
        Rc::new(Self {
            id: StreamId(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            emitter: EventEmitter::new(),
            constructed: Cell::new(true),
            destroyed: Cell::new(false),
            closed: Cell::new(false),
            close_emitted: Cell::new(false),
            error_emitted: Cell::new(false),
            errored: RefCell::new(None),
            auto_destroy: Cell::new(auto_destroy),
            allow_half_open: Cell::new(true),
            emits_close: Cell::new(true),
            destroy_hook: RefCell::new(destroy_hook),
            destroy_later: Cell::new(false),
            readable: OnceCell::new(),
            writable: OnceCell::new(),
        })
    }

    pub(super) fn has_readable(&self, side: Weak<dyn ReadableSide>) {
        let known = self.readable.set(side);
        debug_assert!(known.is_ok(), "a stream has one readable side");
    }

    pub(super) fn has_writable(&self, side: Weak<dyn WritableSide>) {
        let known = self.writable.set(side);
        debug_assert!(known.is_ok(), "a stream has one writable side");
    }

    pub(super) fn readable(&self) -> Option<Rc<dyn ReadableSide>> {
        self.readable.get().and_then(Weak::upgrade)
    }

    pub(super) fn writable(&self) -> Option<Rc<dyn WritableSide>> {
        self.writable.get().and_then(Weak::upgrade)
    }

    pub(super) fn hold(&self) -> Held {
        Held {
            _readable: self.readable(),
            _writable: self.writable(),
        }
    }

    /// Calls `f` by a tick.
    fn tick(self: &Rc<Self>, f: impl FnOnce(&Rc<Self>) + 'static) {
        let (base, held) = (self.clone(), self.hold());
        next_tick(move || {
            f(&base);
            drop(held);
        });
    }

    pub(super) fn is_errored(&self) -> bool {
        self.errored.borrow().is_some()
    }

    pub(super) fn error(&self) -> Option<Error> {
        self.errored.borrow().clone()
    }

    /// The first error counts.
    pub(super) fn set_errored(&self, error: &Error) {
        let mut errored = self.errored.borrow_mut();
        if errored.is_none() {
            *errored = Some(error.clone());
        }
    }

    // Beginning.

    /// Runs the function of the beginning by a tick; until it is done nothing is read, written or destroyed.
    pub(super) fn construct(self: &Rc<Self>, hook: ConstructHook) {
        self.constructed.set(false);
        self.tick(move |base| {
            let (later, held) = (base.clone(), base.hold());
            let done = Done::new(move |result| {
                later.tick(move |base| base.end_construct(result));
                drop(held);
            });
            if let Err(reason) = promise::catch(|| hook(done)) {
                let error = error_of(&reason);
                base.tick(move |base| base.end_construct(Err(error)));
            }
        });
    }

    fn end_construct(self: &Rc<Self>, result: Result<(), Error>) {
        self.constructed.set(true);
        if self.destroy_later.get() {
            let error = result.err().or_else(|| self.error());
            self.run_destroy(error);
        } else if let Err(error) = result {
            self.error_or_destroy(error, true);
        } else {
            if let Some(readable) = self.readable() {
                readable.constructed();
            }
            if let Some(writable) = self.writable() {
                writable.constructed();
            }
        }
    }

    // End.

    /// Ends the stream (N144). The first call counts.
    pub(super) fn destroy(self: &Rc<Self>, error: Option<Error>) {
        if self.destroyed.get() {
            return;
        }
        if let Some(writable) = self.writable() {
            writable.before_destroy();
        }
        self.destroyed.set(true);
        if let Some(error) = &error {
            self.set_errored(error);
        }
        if self.constructed.get() {
            self.run_destroy(error);
        } else {
            self.destroy_later.set(true);
        }
    }

    fn run_destroy(self: &Rc<Self>, error: Option<Error>) {
        let hook = self.destroy_hook.take();
        let Some(hook) = hook else {
            return self.end_destroy(error);
        };
        let called = Rc::new(Cell::new(false));
        let (base, held, once) = (self.clone(), self.hold(), called.clone());
        // What the function reports, not what it was given: it may keep an error to itself.
        let done = Done::new(move |result| {
            if !once.replace(true) {
                base.end_destroy(result.err());
            }
            drop(held);
        });
        if let Err(reason) = promise::catch(|| hook(error, done)) {
            if !called.replace(true) {
                self.end_destroy(Some(error_of(&reason)));
            }
        }
    }

    fn end_destroy(self: &Rc<Self>, error: Option<Error>) {
        if let Some(error) = &error {
            self.set_errored(error);
        }
        self.closed.set(true);
        self.tick(move |base| {
            // Whatever the listeners of the error do, the close follows.
            let close = EmitClose(base);
            if let Some(error) = &error {
                base.emit_error(error);
            }
            drop(close);
        });
    }

    fn emit_error(&self, error: &Error) {
        if !self.error_emitted.replace(true) {
            self.emitter.emit(ERROR, error);
        }
    }

    /// Something went wrong: ends the stream, or, if it is not to end by itself, tells.
    pub(super) fn error_or_destroy(self: &Rc<Self>, error: Error, by_tick: bool) {
        if self.destroyed.get() {
            return;
        }
        if self.auto_destroy.get() {
            return self.destroy(Some(error));
        }
        self.set_errored(&error);
        if by_tick {
            self.tick(move |base| base.emit_error(&error));
        } else {
            self.emit_error(&error);
        }
    }
}

/// Emits 'close', also when a listener of 'error' panics, or when there is none.
struct EmitClose<'a>(&'a Rc<Base>);

impl Drop for EmitClose<'_> {
    fn drop(&mut self) {
        let base = self.0;
        base.close_emitted.set(true);
        if !base.emits_close.get() {
            return;
        }
        if std::thread::panicking() {
            // By a tick of its own: a second panic would end the process.
            return base.tick(|base| base.emit_close());
        }
        base.emit_close();
    }
}

impl Base {
    pub(super) fn emit_close(&self) {
        /// Also when a listener panics.
        struct Release<'a>(&'a Base);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                self.0.release();
            }
        }
        let _release = Release(self);
        self.emitter.emit(CLOSE, ());
    }

    /// Lets go of what may hold the stream, once it is closed and no pipe needs it any more.
    pub(super) fn release(&self) {
        let (readable, writable) = (self.readable(), self.writable());
        let is_piped = readable.as_ref().is_some_and(|side| side.has_pipes());
        if !self.close_emitted.get() || is_piped {
            return;
        }
        self.emitter.clear();
        if let Some(readable) = readable {
            readable.release();
        }
        if let Some(writable) = writable {
            writable.release();
        }
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base")
            .field("destroyed", &self.destroyed.get())
            .field("errored", &self.errored.borrow())
            .finish_non_exhaustive()
    }
}

/// A panic or a thrown error, as streams carry errors.
pub(super) fn error_of(reason: &Reason) -> Error {
    let error = reason.error().and_then(|error| error.downcast_ref());
    error
        .cloned()
        .unwrap_or_else(|| Error::new(reason.to_string()))
}

pub(super) fn destroyed(operation: &str) -> Error {
    let text = format!("Cannot call {operation} after a stream was destroyed");
    Error::with_code("ERR_STREAM_DESTROYED", text)
}

pub(super) fn premature_close() -> Error {
    Error::with_code("ERR_STREAM_PREMATURE_CLOSE", "Premature close")
}
