//! The part that all streams share: events, errors, construction and destruction.
//!
//! ```text
//!   open ── destroy(error?) ──> destroyed: `destroy` runs at once ──> a tick: 'error', 'close'
//!     └── both sides ended ──> destroy()
//! ```

mod again;
mod done;

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::done::Done;
use super::CLOSE;
use crate::error::Error;
use crate::events::{ERROR, EventEmitter, Mark};
use crate::promise;
use crate::reason::Reason;
use phaseloop::task::next_tick;

/// A caller's callback, which gets the result of one operation.
pub(crate) type Callback = Box<dyn FnOnce(Result<(), Error>)>;

/// The user's `destroy` function.
pub(super) type DestroyHook = Box<dyn FnOnce(Option<Error>, Done)>;

/// Called when the stream is [left](Base::leave). Returns whether it is to be destroyed.
pub(super) type LeaveHook = Rc<dyn Fn() -> bool>;

/// The user's `construct` function, which runs before any other.
pub(super) type ConstructHook = Box<dyn FnOnce(Done)>;

/// Identifies a stream; the argument of [`PIPE`](super::PIPE) and [`UNPIPE`](super::UNPIPE).
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, events::Emitter as _, run, stream};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let source = stream::Readable::from_iter([1, 2]);
///         let sink = stream::Writable::objects(|_: i32, done| done.ok()).build();
///         let id = source.id();
///         sink.on(stream::PIPE, move |from| assert_eq!(*from, id));
///         source.pipe(&sink);
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(u64);

/// The number of the next stream.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// The readable side of a stream, without its chunk type.
pub(super) trait ReadableSide {
    fn is_readable(&self) -> bool;
    /// Whether the source has ended. Chunks may still be buffered.
    fn ended(&self) -> bool;
    fn end_emitted(&self) -> bool;
    fn is_empty(&self) -> bool;
    /// Whether the stream is still piped into another stream.
    fn has_pipes(&self) -> bool;
    fn constructed(&self);
    /// Whether the stream has a [`Source`](super::readable::Source).
    fn has_source(&self) -> bool;
    fn destroy_source(&self, error: Option<Error>, done: Done);
    /// The reader gives the stream up. Returns whether it is to be destroyed.
    fn leave_source(&self) -> bool;
    /// Drops the functions and the buffered chunks.
    fn release(&self);
    /// Makes the side usable again.
    fn undestroy(&self);
}

/// The writable side of a stream, without its chunk type.
pub(super) trait WritableSide {
    fn is_writable(&self) -> bool;
    fn ending(&self) -> bool;
    /// Whether `end` was called and has returned.
    fn ended(&self) -> bool;
    fn finished(&self) -> bool;
    /// Whether `end` was called and no chunk waits to be written.
    fn ended_and_empty(&self) -> bool;
    fn pending_callbacks(&self) -> usize;
    fn need_drain(&self) -> bool;
    fn end_now(&self);
    fn constructed(&self);
    /// The write that was begun last is done, perhaps inside the write function.
    fn write_is_done(&self, result: Result<(), Error>);
    /// The last function is done.
    fn end_is_done(&self, result: Result<(), Error>);
    /// Queues a tick that fails the callbacks of all waiting writes.
    fn before_destroy(&self);
    fn release(&self);
    /// Makes the side usable again.
    fn undestroy(&self);
}

/// The state that all streams share.
#[expect(
    unnameable_types,
    reason = "an internal of the sealed trait `AnyStream`"
)]
pub struct Base {
    /// Set when it is asked for.
    id: OnceCell<StreamId>,
    pub(crate) emitter: EventEmitter,
    pub(super) constructed: Cell<bool>,
    pub(crate) destroyed: Cell<bool>,
    /// Whether the `destroy` function is done.
    pub(super) closed: Cell<bool>,
    pub(super) close_emitted: Cell<bool>,
    pub(super) error_emitted: Cell<bool>,
    /// When the last event of the stream was emitted.
    ended_at: Cell<Option<Mark>>,
    pub(crate) errored: RefCell<Option<Error>>,
    pub(crate) auto_destroy: Cell<bool>,
    pub(super) allow_half_open: Cell<bool>,
    /// Whether the stream emits 'close' itself, on a tick. A stream with a handle emits it when the
    /// handle is closed.
    pub(super) emits_close: Cell<bool>,
    /// Whether the close keeps the listeners: the stream may be used again.
    keeps_listeners: Cell<bool>,
    /// Whether 'close' was emitted since the stream was destroyed. A stream with a handle emits it
    /// after [`close_emitted`](Self::close_emitted) is set.
    is_over: Cell<bool>,
    /// Whether the close has dropped the listeners.
    pub(super) is_released: Cell<bool>,
    destroy_hook: RefCell<Option<DestroyHook>>,
    leave_hook: RefCell<Option<LeaveHook>>,
    /// Whether a destroy waits for the `construct` function.
    destroy_later: Cell<bool>,
    /// Whether the `destroy` function has reported its end, or panicked.
    destroy_reported: Cell<bool>,
    readable: OnceCell<Weak<dyn ReadableSide>>,
    writable: OnceCell<Weak<dyn WritableSide>>,
}

/// Keeps both sides of a stream alive: a holder of one side also needs the other.
#[derive(Clone, Default)]
pub(super) struct Held {
    _readable: Option<Rc<dyn ReadableSide>>,
    _writable: Option<Rc<dyn WritableSide>>,
}

impl Base {
    pub(super) fn new(destroy_hook: Option<DestroyHook>, auto_destroy: bool) -> Rc<Self> {
        Rc::new(Self {
            id: OnceCell::new(),
            emitter: EventEmitter::new(),
            constructed: Cell::new(true),
            destroyed: Cell::new(false),
            closed: Cell::new(false),
            close_emitted: Cell::new(false),
            error_emitted: Cell::new(false),
            ended_at: Cell::new(None),
            errored: RefCell::new(None),
            auto_destroy: Cell::new(auto_destroy),
            allow_half_open: Cell::new(true),
            emits_close: Cell::new(true),
            keeps_listeners: Cell::new(false),
            is_over: Cell::new(false),
            is_released: Cell::new(false),
            destroy_hook: RefCell::new(destroy_hook),
            leave_hook: RefCell::default(),
            destroy_later: Cell::new(false),
            destroy_reported: Cell::new(false),
            readable: OnceCell::new(),
            writable: OnceCell::new(),
        })
    }

    pub(super) fn id(&self) -> StreamId {
        let next = || StreamId(NEXT_ID.fetch_add(1, Ordering::Relaxed));
        *self.id.get_or_init(next)
    }

    /// Returns whether the stream is as it was built, and no listener can observe it.
    pub(super) fn is_untouched(&self) -> bool {
        // Without `..`, so that a new field is thought of here.
        let Self {
            id,
            emitter,
            constructed,
            destroyed,
            closed,
            close_emitted,
            error_emitted,
            ended_at,
            errored,
            auto_destroy,
            allow_half_open,
            emits_close,
            keeps_listeners,
            is_over,
            is_released,
            destroy_hook: _,
            leave_hook,
            destroy_later,
            destroy_reported,
            readable: _,
            writable: _,
        } = self;
        let ends = [
            destroyed,
            closed,
            close_emitted,
            error_emitted,
            destroy_later,
            destroy_reported,
            keeps_listeners,
            is_over,
            is_released,
        ];
        let defaults = [constructed, auto_destroy, allow_half_open, emits_close];
        id.get().is_none()
            && emitter.is_untouched()
            && !ends.iter().any(|flag| flag.get())
            && defaults.iter().all(|flag| flag.get())
            && ended_at.get().is_none()
            && errored.borrow().is_none()
            && leave_hook.borrow().is_none()
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

    pub(super) fn has_two_sides(&self) -> bool {
        self.readable.get().is_some() && self.writable.get().is_some()
    }

    pub(super) fn hold(&self) -> Held {
        Held {
            _readable: self.readable(),
            _writable: self.writable(),
        }
    }

    /// Runs `f` on the next tick, and keeps the stream alive until then.
    fn tick(self: &Rc<Self>, f: impl FnOnce(&Rc<Self>) + 'static) {
        let (base, held) = (self.clone(), self.hold());
        next_tick(move || {
            f(&base);
            drop(held);
        });
    }

    /// Whether 'close' was emitted.
    pub(crate) fn is_closed(&self) -> bool {
        self.close_emitted.get()
    }

    pub(super) fn is_errored(&self) -> bool {
        self.errored.borrow().is_some()
    }

    pub(super) fn error(&self) -> Option<Error> {
        self.errored.borrow().clone()
    }

    /// Sets the error of the stream. Only the first error counts.
    pub(crate) fn set_errored(&self, error: &Error) {
        let mut errored = self.errored.borrow_mut();
        if errored.is_none() {
            *errored = Some(error.clone());
        }
    }

    /// Sets the function that releases the resources, for a stream that is built before it.
    pub(super) fn set_destroy_hook(&self, hook: DestroyHook) {
        self.destroy_hook.replace(Some(hook));
    }

    // Construction.

    /// Runs the `construct` function on the next tick. The stream neither reads, writes nor runs
    /// its `destroy` function before that function is done.
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

    // Destruction.

    /// Destroys the stream. Only the first call has an effect.
    // N144.
    pub(super) fn destroy(self: &Rc<Self>, error: Option<Error>) {
        if self.destroyed.get() {
            return;
        }
        if let Some(writable) = self.writable() {
            writable.before_destroy();
        }
        self.destroyed.set(true);
        self.is_over.set(false);
        if let Some(error) = &error {
            self.set_errored(error);
        }
        if self.constructed.get() {
            self.run_destroy(error);
        } else {
            self.destroy_later.set(true);
        }
    }

    /// Destroys a stream whose loop was left or whose pipeline has failed. A message of http has a
    /// function of its own for this, which spares the connection.
    pub(super) fn leave(self: &Rc<Self>, error: Option<Error>) {
        if self.destroyed.get() {
            return;
        }
        let hook = self.leave_hook.borrow().clone();
        let is_destroyed = match hook {
            Some(hook) => hook(),
            None => self.readable().is_none_or(|side| side.leave_source()),
        };
        if is_destroyed {
            self.destroy(error);
        }
    }

    pub(super) fn set_leave_hook(&self, hook: LeaveHook) {
        let before = self.leave_hook.replace(Some(hook));
        drop(before);
    }

    fn run_destroy(self: &Rc<Self>, error: Option<Error>) {
        let hook = self.destroy_hook.take();
        let side = self.readable().filter(|side| side.has_source());
        if hook.is_none() && side.is_none() {
            return self.end_destroy(error);
        }
        let (base, held) = (self.clone(), self.hold());
        // The result of the function replaces `error`: the function may swallow the error.
        let done = Done::new(move |result| {
            if !base.destroy_reported.replace(true) {
                base.end_destroy(result.err());
            }
            drop(held);
        });
        let destroy = || match (hook, side) {
            (Some(hook), _) => hook(error, done),
            (None, Some(side)) => side.destroy_source(error, done),
            (None, None) => done.pass(error),
        };
        if let Err(reason) = promise::catch(destroy) {
            if !self.destroy_reported.replace(true) {
                self.end_destroy(Some(error_of(&reason)));
            }
        }
    }

    fn end_destroy(self: &Rc<Self>, error: Option<Error>) {
        if let Some(error) = &error {
            self.set_errored(error);
        }
        self.closed.set(true);
        // A socket that connects before the tick has a handle then, but had none here.
        let emits_close = self.emits_close.get();
        self.tick(move |base| {
            let abandoned = Abandoned(base);
            if let Some(error) = &error {
                base.emit_error(error);
            }
            std::mem::forget(abandoned);
            base.close_emitted.set(true);
            if emits_close {
                base.emit_close();
            }
        });
    }

    fn emit_error(&self, error: &Error) {
        if !self.error_emitted.replace(true) {
            self.emitter.emit(ERROR, error);
        }
    }

    /// Handles an error: destroys the stream or, without `auto_destroy`, emits 'error' only.
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

/// Dropped when 'error' was thrown: it had no listener, or a listener has panicked. As in Node,
/// 'close' does not follow then, except that a handle emits its own.
struct Abandoned<'a>(&'a Rc<Base>);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        let base = self.0;
        if base.emits_close.get() {
            base.ended_at.set(Some(Mark::now()));
            // A tick of its own, because the drop of a listener may panic.
            base.tick(|base| base.release());
        } else {
            base.close_emitted.set(true);
        }
    }
}

impl Base {
    pub(super) fn emit_close(&self) {
        /// Releases the stream when it is dropped, also if a listener panics.
        struct Release<'a>(&'a Base);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                self.0.release();
            }
        }
        self.ended_at.set(Some(Mark::now()));
        let _release = Release(self);
        self.is_over.set(true);
        self.emitter.emit(CLOSE, ());
    }

    /// The stream has emitted its last event: drops everything that may hold it.
    pub(super) fn let_go(&self) {
        self.ended_at.set(Some(Mark::now()));
        self.release();
    }

    /// Drops everything that may hold the stream, once it has emitted its last event and no pipe
    /// needs it. Listeners that were added since then stay.
    pub(super) fn release(&self) {
        let (readable, writable) = (self.readable(), self.writable());
        let is_piped = readable.as_ref().is_some_and(|side| side.has_pipes());
        let ended_at = self.ended_at.get();
        let Some(mark) = ended_at.filter(|_| !is_piped && !self.keeps_listeners.get()) else {
            return;
        };
        self.is_released.set(true);
        self.emitter.drop_before(mark, &[]);
        let hook = self.leave_hook.take();
        drop(hook);
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

/// Converts a panic or a thrown error to the error of a stream.
pub(super) fn error_of(reason: &Reason) -> Error {
    reason.clone().into()
}

pub(crate) fn destroyed(operation: &str) -> Error {
    let text = format!("Cannot call {operation} after a stream was destroyed");
    Error::with_code("ERR_STREAM_DESTROYED", text)
}

pub(super) fn premature_close() -> Error {
    Error::with_code("ERR_STREAM_PREMATURE_CLOSE", "Premature close")
}
