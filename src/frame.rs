//! Frames: the values of the context variables at one point of the program, and how they follow
//! what the program queues.
//!
//! A frame is an immutable list, and the current one is a cell of the thread. What is queued takes
//! the current frame along ([`carry`]), and runs in it. A callback without a frame is queued as it
//! is, and costs the test of [`is_plain`].
//!
//! | what | runs in the frame |
//! |---|---|
//! | a closure, each call of a callback | of the call that queued or set it ([`Capture`]) |
//! | a task | of its spawn; the executor keeps it between two polls |
//! | the main future | of the call that runs the loop |
//! | a message of another thread | that is empty |
//!
//! The loop sets the frame before it runs user code, once contexts are in use on the thread. It
//! therefore need not restore the frame after a panic: the handler of the panic runs in the frame
//! of what panicked.
// Marks: `cold`, since few programs use contexts, and each queued closure asks.

mod framed;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

pub(crate) use self::framed::Framed;
use crate::raw::call::Call;
use crate::raw::unwind::{Steps, ignore_panic};

/// The kind of a closure in the microtask lane, for a tracker.
pub(crate) const MICROTASK: &str = "Microtask";

thread_local! {
    static CURRENT: Current = const { Current(RefCell::new(Frame(None))) };
    /// Apart from the frame, since it has no destructor: a read is one instruction.
    static STATE: Cell<u8> = const { Cell::new(0) };
    static TRACKER: RefCell<Option<Rc<dyn Tracker>>> = const { RefCell::new(None) };
    static ON_CAPTURE: Cell<Option<OnCapture>> = const { Cell::new(None) };
}

/// The current frame of a thread, which a value may not end together with the thread.
struct Current(RefCell<Frame>);

impl Drop for Current {
    fn drop(&mut self) {
        // A panic would end the process.
        ignore_panic(|| drop(self.0.take()));
    }
}

/// Called with the kind and the number of values of each [`Capture`] that has values.
pub(crate) type OnCapture = fn(&'static str, usize);

/// The current frame is not empty.
const FILLED: u8 = 1;
/// There is a [`Tracker`].
const TRACKED: u8 = 2;
/// A frame or a tracker was set on this thread.
const USED: u8 = 4;

/// Returns whether what is queued now needs no context.
#[inline]
pub fn is_plain() -> bool {
    STATE.get() & (FILLED | TRACKED) == 0
}

/// Returns whether there is a [`Tracker`], and what is queued now concerns it.
#[inline]
pub fn is_tracked() -> bool {
    STATE.get() & TRACKED != 0
}

/// Returns whether a frame or a tracker was ever set on this thread.
#[inline]
pub fn is_used() -> bool {
    STATE.get() & USED != 0
}

/// Notes that contexts are in use on this thread. The loop must know it, too.
pub(crate) fn use_on_this_thread() {
    STATE.set(STATE.get() | USED);
}

/// The identity of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The number of a static variable, or an address that is the crate's own.
    Static(usize),
    /// The number of a variable that was made at run time.
    Numbered(u64),
}

#[derive(Clone)]
struct Entry {
    key: Key,
    /// `None` if the value was removed from the frame.
    value: RefCell<Option<Rc<dyn Any>>>,
}

/// The values of all variables that have one. A clone is cheap, and the same frame.
#[derive(Clone, Default)]
pub struct Frame(Option<Rc<Vec<Entry>>>);

impl Drop for Frame {
    #[inline]
    fn drop(&mut self) {
        if let Some(entries) = self.0.take().and_then(Rc::into_inner) {
            drop_each(entries);
        }
    }
}

/// Drops the values of a frame one by one, so that a panic of one leaves the others their drop.
#[cold]
fn drop_each(entries: Vec<Entry>) {
    let mut steps = Steps::default();
    steps.drop_each(entries);
    steps.end();
}

impl Frame {
    /// Returns the current frame.
    pub fn current() -> Self {
        if STATE.get() & FILLED == 0 {
            return Self::default();
        }
        CURRENT
            .try_with(|current| current.0.borrow().clone())
            .unwrap_or_default()
    }

    /// Returns the frame for what is queued now, and reports a frame with values to the debug log.
    pub fn captured_as(kind: &'static str) -> Self {
        let frame = Self::current();
        if let (Some(report), 1..) = (ON_CAPTURE.get(), frame.len()) {
            report(kind, frame.len());
        }
        frame
    }

    /// Returns the value of a variable in the current frame.
    pub fn current_value(key: Key) -> Option<Rc<dyn Any>> {
        Self::current().get(key)
    }

    /// Returns the value of a variable.
    pub(crate) fn get(&self, key: Key) -> Option<Rc<dyn Any>> {
        let entry = self.entries().iter().find(|entry| entry.key == key)?;
        entry.value.borrow().clone()
    }

    /// Returns this frame with another value of a variable.
    #[inline]
    pub fn with(&self, key: Key, value: Rc<dyn Any>) -> Self {
        let others = self.entries().iter().filter(|entry| entry.key != key);
        let value = RefCell::new(Some(value));
        let new = Entry { key, value };
        Self(Some(Rc::new(others.cloned().chain([new]).collect())))
    }

    /// Returns this frame without the value of a variable.
    pub(crate) fn without(&self, key: Key) -> Self {
        self.filtered(|entry| entry.key != key)
    }

    /// Returns this frame without the value of a variable. It is not the empty frame, even if no
    /// variable has a value: what is queued takes it along.
    pub fn unset(&self, key: Key) -> Self {
        let others = self.entries().iter().filter(|entry| entry.key != key);
        Self(Some(Rc::new(others.cloned().collect())))
    }

    /// Removes the value of a variable from this frame, wherever it is in use. Frames that were
    /// made of it keep the value.
    pub fn remove(&self, key: Key) {
        let entry = self.entries().iter().find(|entry| entry.key == key);
        let value = entry.and_then(|entry| entry.value.take());
        drop(value);
    }

    fn filtered(&self, stays: impl Fn(&Entry) -> bool) -> Self {
        let entries = self.entries().iter().filter(|entry| stays(entry));
        let entries: Vec<_> = entries.cloned().collect();
        Self((!entries.is_empty()).then(|| Rc::new(entries)))
    }

    fn entries(&self) -> &[Entry] {
        self.0.as_ref().map_or(&[], |entries| entries.as_slice())
    }

    /// Returns whether this is the frame of a program that has set no variable.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the number of variables that have a value.
    pub(crate) fn len(&self) -> usize {
        self.entries().len()
    }

    /// Makes this frame the current one and returns the one before, whose drop may run user code.
    pub fn enter(self) -> Self {
        let filled = if self.is_empty() { 0 } else { FILLED };
        debug_assert!(filled == 0 || is_used(), "the loop does not know");
        let state = STATE.get();
        if state & FILLED == 0 && filled == 0 {
            return self;
        }
        STATE.set(state & !FILLED | filled);
        // A thread that ends has no frame any more.
        let before = CURRENT.try_with(|current| current.0.replace(self));
        before.unwrap_or_default()
    }

    /// Calls `f`, a callback, in this frame. The one before is current again afterwards, but not
    /// after a panic: its handler runs in the frame of what has panicked.
    #[inline]
    pub fn call<R>(self, f: impl FnOnce() -> R) -> R {
        let before = self.enter();
        let value = f();
        drop(before.enter());
        value
    }

    /// Calls `f` in this frame. The one before is current again afterwards, also after a panic.
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        let _restored = Restored(Some(self.enter()));
        f()
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.entries().iter().map(|entry| entry.key))
            .finish()
    }
}

/// Restores a frame when it is dropped.
pub(crate) struct Restored(Option<Frame>);

impl Restored {
    /// Restores the frame that is current now.
    pub(crate) fn current() -> Self {
        Self(Some(Frame::current()))
    }

    /// Restores the frame that is current now, in place of the one before.
    pub(crate) fn keep_current(&mut self) {
        let before = self.0.replace(Frame::current());
        drop(before);
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        if let Some(frame) = self.0.take() {
            drop(frame.enter());
        }
    }
}

/// Makes the current frame empty, and returns it. Its drop may run user code.
#[inline]
pub(crate) fn take() -> Frame {
    if STATE.get() & FILLED == 0 {
        return Frame::default();
    }
    Frame::default().enter()
}

/// Follows what is queued on a thread, for a layer above.
pub trait Tracker {
    /// Begins work of a kind: it was just queued.
    fn begin(&self, kind: &'static str) -> Box<dyn Work>;
    /// The loop is about to run work that is not tracked, or has run all.
    fn reset(&self);
}

/// Tracked work. Its drop ends it.
pub trait Work {
    /// Calls `f` as this work. A panic leaves it the running work, as it leaves the frame.
    fn call(&self, f: &mut dyn FnMut());
    /// Calls `f` as this work. What ran before runs again afterwards, also after a panic.
    fn call_inside(&self, f: &mut dyn FnMut());
}

/// Sets the tracker of this thread, on which contexts are in use. `None` removes it.
pub fn set_tracker(tracker: Option<Rc<dyn Tracker>>) {
    debug_assert!(tracker.is_none() || is_used(), "the loop does not know");
    let tracked = if tracker.is_some() { TRACKED } else { 0 };
    STATE.set(STATE.get() & !TRACKED | tracked);
    let before = TRACKER.try_with(|slot| slot.replace(tracker));
    drop(before);
}

/// Returns the tracker of this thread.
pub(crate) fn tracker() -> Option<Rc<dyn Tracker>> {
    if !is_tracked() {
        return None;
    }
    let tracker = TRACKER.try_with(|tracker| tracker.borrow().clone());
    tracker.ok().flatten()
}

/// Calls `f` once, through a function that takes a closure by reference.
fn through<R>(call: impl FnOnce(&mut dyn FnMut()), f: impl FnOnce() -> R) -> R {
    let (mut f, mut value) = (Some(f), None);
    call(&mut || {
        if let Some(f) = f.take() {
            value = Some(f());
        }
    });
    value.expect("work calls what it is given")
}

/// Calls `f` as `work`, if there is any.
pub(crate) fn call_as<R>(work: Option<&dyn Work>, f: impl FnOnce() -> R) -> R {
    match work {
        Some(work) => through(|f| work.call(f), f),
        None => f(),
    }
}

/// Sets the function that is called for the captures of this thread.
#[cfg(feature = "probe")]
pub(crate) fn on_capture(log: Option<OnCapture>) {
    ON_CAPTURE.set(log);
}

/// The context of a registration, for the calls that follow from it.
#[derive(Default)]
pub(crate) struct Capture {
    pub(crate) frame: Frame,
    pub(crate) work: Option<Box<dyn Work>>,
}

impl Capture {
    /// Captures the current frame and begins work of a kind. Returns `None` if neither is needed.
    #[inline]
    pub(crate) fn new(kind: &'static str) -> Option<Self> {
        if is_plain() {
            return None;
        }
        Some(Self::of(kind))
    }

    /// Captures the current frame and begins work of a kind.
    #[cold]
    pub(crate) fn of(kind: &'static str) -> Self {
        Self {
            frame: Frame::captured_as(kind),
            work: tracker().map(|tracker| tracker.begin(kind)),
        }
    }

    /// Calls `f` in this context, and restores the one before. A panic does not restore it:
    /// its handler runs in them, and the loop sets the frame of the next call.
    pub(crate) fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.frame.clone().enter();
        let value = call_as(self.work.as_deref(), f);
        drop(before.enter());
        value
    }

    /// Calls `f` as [`run`](Self::run) does. A panic ends the work before its handler is called,
    /// which runs in the frame.
    // Rule O10: in Node, V8 reports the error of a microtask outside of all callbacks.
    fn run_outside<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.frame.clone().enter();
        // What `f` enters ends with it.
        let value = self.frame.clone().run(|| match &self.work {
            Some(work) => through(|f| work.call_inside(f), f),
            None => f(),
        });
        drop(before.enter());
        value
    }
}

/// Calls `f`, which registers something of the crate's own, in no context and untracked.
pub fn without_context<R>(f: impl FnOnce() -> R) -> R {
    struct Tracked(u8);
    impl Drop for Tracked {
        fn drop(&mut self) {
            STATE.set(STATE.get() | self.0);
        }
    }

    let _tracked = Tracked(STATE.get() & TRACKED);
    STATE.set(STATE.get() & !TRACKED);
    Frame::default().run(f)
}

/// Captures the current context for a queued closure.
#[inline]
pub fn carry(kind: &'static str, call: Call) -> Call {
    if is_plain() {
        return call;
    }
    carry_along(kind, call)
}

#[cold]
fn carry_along(kind: &'static str, call: Call) -> Call {
    let capture = Capture::of(kind);
    if kind == MICROTASK {
        return Call::new(move || capture.run_outside(|| call.call()));
    }
    Call::new(move || capture.run(|| call.call()))
}

/// Captures the current context for a boxed closure.
pub(crate) fn carry_once(kind: &'static str, call: Box<dyn FnOnce()>) -> Box<dyn FnOnce()> {
    match Capture::new(kind) {
        None => call,
        Some(capture) => Box::new(move || capture.run(call)),
    }
}

/// Captures the current context for each call of a callback.
pub(crate) fn carry_all(kind: &'static str, mut callback: Box<dyn FnMut()>) -> Box<dyn FnMut()> {
    match Capture::new(kind) {
        None => callback,
        Some(capture) => Box::new(move || capture.run(&mut callback)),
    }
}

#[cfg(test)]
mod tests;
