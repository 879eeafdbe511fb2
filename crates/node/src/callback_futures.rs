//! Futures that run in callbacks of the loop, not in the microtask lane.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use slab::Slab;
use waker_fn::waker_fn;

use super::context::Node;
use crate::async_hooks::{Capture, Work};
use phaseloop::Remote;
use phaseloop::extension::Call;
use phaseloop::extension::Loop;
use phaseloop::extension::Payload;
use phaseloop::extension::frame::{self, Frame};

/// Runs `future` where its wakes come from. The code after an `await` runs inside the callback that
/// ended the wait, before the drain, as a callback of Node does.
///
/// A task would be polled by a microtask of that drain, after the ticks and microtasks that were
/// queued before. The difference is that of `socket.on('data', ..)` and `for await (.. of socket)`.
/// The first poll happens at once. A wake from another thread arrives in the poll phase.
///
/// A panic counts as a panic of the callback. The future is dropped.
///
/// In plain Rust: [`spawn`](phaseloop::spawn).
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, in_callbacks, next_tick, run};
/// use phaseloop::{phase, spawn};
///
/// fn main() -> Exit<()> {
///     run(async {
///         in_callbacks(async {
///             phase::check().await;
///             next_tick(|| println!("second"));
///             println!("first: still in the check phase's callback");
///         });
///     })
/// }
/// ```
#[track_caller]
pub fn in_callbacks(future: impl Future<Output = ()> + 'static) {
    in_callbacks_as(CALLBACKS, future);
}

/// Runs a future as [`in_callbacks`] does, as work of a kind that hooks receive.
#[track_caller]
pub(super) fn in_callbacks_as(kind: &'static str, future: impl Future<Output = ()> + 'static) {
    let node = Node::current();
    let Some(core) = node.core() else { return };
    let context = Capture::new(kind).unwrap_or_default();
    let key = node
        .callbacks
        .insert(Box::pin(future), context, core.remote());
    node.callbacks.poll_now(key);
    node.callbacks.keep_frame(key);
}

/// Runs `callback` as a callback of its own, with a drain after it, inside the running callback. It
/// is for one OS event that causes several callbacks. The listeners for uncaught exceptions receive
/// its panic; without a listener, the panic continues.
pub(super) fn run_as_callback(callback: impl FnOnce()) {
    if let Some(core) = Node::current().core() {
        core.dispatch_nested(callback);
    }
}

/// Calls user code inside a future of [`in_callbacks`] that must continue after a panic. `None`:
/// the code panicked. The panic leaves the callback when the future waits again.
pub(super) fn call_user<R>(code: impl FnOnce() -> R) -> Option<R> {
    let frame = Frame::current();
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(value) => {
            // What the code has entered ends with it.
            drop(frame.enter());
            Some(value)
        }
        Err(payload) => {
            // The handler of the panic runs in the frame of what has panicked.
            let panic = Some((payload, frame.enter()));
            let before = Node::current().callbacks.panic.replace(panic);
            debug_assert!(before.is_none(), "a future waits after a panic");
            None
        }
    }
}

/// Returns whether a future is ready without waiting.
pub(super) fn is_ready<F: Future + Unpin>(mut future: F) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    Pin::new(&mut future).poll(&mut cx).is_ready()
}

/// The kind of a future that runs in callbacks, for hooks.
const CALLBACKS: &str = "CALLBACKS";

type BoxedFuture = Pin<Box<dyn Future<Output = ()>>>;

/// The futures of one loop that run in callbacks.
#[derive(Default)]
pub(super) struct CallbackFutures {
    list: RefCell<Slab<Rc<CallbackFuture>>>,
    next_id: Cell<u64>,
    /// The panic that [`call_user`] caught, for the callback to resume.
    panic: RefCell<Option<(Payload, Frame)>>,
}

struct CallbackFuture {
    id: u64,
    /// The future; `None` while it is polled.
    future: RefCell<Option<BoxedFuture>>,
    waker: Waker,
    /// The frame of the next poll.
    frame: RefCell<Frame>,
    /// Boxed, since it is rare.
    work: Option<Box<Work>>,
}

/// Identifies a future. The id is unique, so that a key of a completed future does not match a
/// later one in its slot.
#[derive(Clone, Copy)]
struct Key {
    slot: usize,
    id: u64,
}

impl CallbackFutures {
    /// Returns the data pointers of the wakers of these futures, in their order. No task waits for
    /// what has one, whichever was polled when the wait began.
    pub(super) fn wakers(&self) -> Vec<*const ()> {
        let list = self.list.borrow();
        let mut own: Vec<_> = list.iter().map(|(_, one)| one.waker.data()).collect();
        own.sort_unstable();
        own
    }

    fn insert(&self, future: BoxedFuture, context: Capture, home: Remote) -> Key {
        let mut list = self.list.borrow_mut();
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let entry = list.vacant_entry();
        let key = Key {
            slot: entry.key(),
            id,
        };
        entry.insert(Rc::new(CallbackFuture {
            id,
            future: RefCell::new(Some(future)),
            waker: waker_fn(move || wake(&home, key)),
            frame: RefCell::new(context.frame),
            work: context.work.map(Box::new),
        }));
        key
    }

    fn get(&self, key: Key) -> Option<Rc<CallbackFuture>> {
        let entry = self.list.borrow().get(key.slot).cloned();
        entry.filter(|entry| entry.id == key.id)
    }

    /// Polls a future in its context. `false`: it is already being polled.
    fn poll(&self, key: Key) -> bool {
        let Some(entry) = self.get(key) else {
            return true;
        };
        if !frame::is_used() {
            return self.poll_now(key);
        }
        let before = entry.frame.borrow().clone().enter();
        let polled = match &entry.work {
            Some(work) => work.run(|| self.poll_now(key)),
            None => self.poll_now(key),
        };
        // As an async function, it has over its awaits what it has entered.
        drop(entry.frame.replace(before.enter()));
        polled
    }

    /// Keeps the current frame for the next poll of a future that was just polled inside its
    /// starter: up to the first await, both have one frame.
    fn keep_frame(&self, key: Key) {
        if frame::is_used() {
            if let Some(entry) = self.get(key) {
                drop(entry.frame.replace(Frame::current()));
            }
        }
    }

    /// Polls a future in the current context. `false`: it is already being polled.
    fn poll_now(&self, key: Key) -> bool {
        let Some(entry) = self.get(key) else {
            return true;
        };
        let Some(mut future) = entry.future.take() else {
            return false;
        };
        let over = Over {
            futures: self,
            slot: key.slot,
        };
        // This poll may be nested in that of another future, whose panic must stay with it.
        let outer = self.panic.take();
        let mut cx = Context::from_waker(&entry.waker);
        if future.as_mut().poll(&mut cx).is_pending() {
            *entry.future.borrow_mut() = Some(future);
            std::mem::forget(over);
        }
        let panic = self.panic.replace(outer);
        if let Some((panic, frame)) = panic {
            drop(frame.enter());
            resume_unwind(panic);
        }
        true
    }

    pub(super) fn shut_down(&self) {
        let list = self.list.take();
        drop(list);
    }
}

/// Removes a future from the list when it has returned or panicked.
struct Over<'a> {
    futures: &'a CallbackFutures,
    slot: usize,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        let entry = self.futures.list.borrow_mut().try_remove(self.slot);
        drop(entry);
    }
}

/// Polls a future where the wake comes from; a wake of another thread arrives in the poll phase.
fn wake(home: &Remote, key: Key) {
    let Some(core) = Loop::current_of(home) else {
        let poll = move || {
            Node::current().callbacks.poll(key);
        };
        // A loop that was dropped has dropped the future, too.
        let _ = home.call(poll);
        return;
    };
    let node = Node::of(&core);
    if !node.callbacks.poll(key) {
        // The future wakes itself during its poll: a microtask polls it again.
        let again = move || {
            node.callbacks.poll(key);
        };
        core.poll_again(Call::new(again));
    }
}
