//! The signal handler: notes a signal for every loop that listens, then calls the handler that was
//! there before.
//!
//! Everything that a signal may reach is atomic: no lock, no allocation, no panic. A listener that
//! is removed waits until no handler looks at it any more.
#![allow(
    unsafe_code,
    reason = "a signal handler, the handler before it, and memory that handlers share with threads"
)]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use libc::siginfo_t;

use super::LARGEST;
use super::caught::Caught;
use super::disposition;

/// How often our handler can be in one chain of handlers; see [`disposition`].
pub(super) const LAYERS: usize = 4;

type WithInfo = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
type Plain = extern "C" fn(c_int);

/// A function for each layer. A static, so that the address of each is the same wherever it is
/// asked for.
static HANDLERS: [WithInfo; LAYERS] = [
    on_signal::<0>,
    on_signal::<1>,
    on_signal::<2>,
    on_signal::<3>,
];

static SIGNALS: [Signal; LARGEST + 1] = [const { Signal::new() }; LARGEST + 1];

/// What the handler knows of one signal.
struct Signal {
    /// The first of the listeners. Those that have stopped stay in the list, for the next ones.
    listeners: AtomicPtr<Node>,
    /// The layer that notes. Those below it are called by others, or by no one.
    live: AtomicUsize,
    before: [Before; LAYERS],
}

/// The handler that a layer has replaced: at most one of both is there. Two fields, so that none is
/// ever called as the other kind.
struct Before {
    with_info: AtomicUsize,
    /// `SIG_DFL` and `SIG_IGN` stand here as well.
    plain: AtomicUsize,
}

/// A loop that listens to a signal; never freed.
struct Node {
    /// From `Arc::into_raw`; null while it stands for no listener.
    caught: AtomicPtr<Caught>,
    /// How many handlers look at it just now.
    readers: AtomicUsize,
    next: AtomicPtr<Self>,
}

/// Names a listener that was added.
#[derive(Clone, Copy)]
pub(super) struct Listener(&'static Node);

impl Signal {
    const fn new() -> Self {
        Self {
            listeners: AtomicPtr::new(ptr::null_mut()),
            live: AtomicUsize::new(0),
            before: [const { Before::new() }; LAYERS],
        }
    }

    fn nodes(&self) -> impl Iterator<Item = &'static Node> {
        // SAFETY: nodes are complete before they are in the list, and never freed.
        let node = |link: &AtomicPtr<Node>| unsafe { link.load(Ordering::Acquire).as_ref() };
        std::iter::successors(node(&self.listeners), move |before| node(&before.next))
    }

    /// Notes a signal for all listeners. `false`: there are none.
    fn note(&self, number: i32) -> bool {
        let mut is_heard = false;
        for node in self.nodes() {
            // In this order, and in the opposite one in `remove`: either this sees that the
            // listener is gone, or `remove` sees this reader.
            node.readers.fetch_add(1, Ordering::SeqCst);
            let caught = node.caught.load(Ordering::SeqCst);
            // SAFETY: `remove` frees it after it has seen that there is no reader.
            if let Some(caught) = unsafe { caught.as_ref() } {
                caught.note(number);
                is_heard = true;
            }
            node.readers.fetch_sub(1, Ordering::SeqCst);
        }
        is_heard
    }
}

impl Before {
    const fn new() -> Self {
        Self {
            with_info: AtomicUsize::new(0),
            plain: AtomicUsize::new(libc::SIG_DFL),
        }
    }

    fn set(&self, before: &libc::sigaction) {
        let takes_info = is_function(before) && before.sa_flags & libc::SA_SIGINFO != 0;
        let (with_info, plain) = match takes_info {
            true => (before.sa_sigaction, libc::SIG_DFL),
            false => (0, before.sa_sigaction),
        };
        self.with_info.store(with_info, Ordering::Release);
        self.plain.store(plain, Ordering::Release);
    }

    /// Calls the handler. `false`: there is none, and the default action would have happened.
    fn call(&self, number: c_int, info: *mut siginfo_t, context: *mut c_void) -> bool {
        let with_info = self.with_info.load(Ordering::Acquire);
        let plain = self.plain.load(Ordering::Acquire);
        if with_info != 0 {
            let function = with_info as *const ();
            // SAFETY: it was installed as the handler of this signal, with `SA_SIGINFO`.
            let function = unsafe { std::mem::transmute::<*const (), WithInfo>(function) };
            function(number, info, context);
        } else if plain != libc::SIG_DFL && plain != libc::SIG_IGN {
            let function = plain as *const ();
            // SAFETY: it was installed as the handler of this signal, without `SA_SIGINFO`.
            let function = unsafe { std::mem::transmute::<*const (), Plain>(function) };
            function(number);
        }
        with_info != 0 || plain != libc::SIG_DFL
    }
}

/// The signal handler.
///
/// A layer that is neither live nor installed was called by a handler above it, and passes the
/// signal on. One that is installed without a listener was put back there by another owner; it
/// gives way to what would have happened without it.
extern "C" fn on_signal<const LAYER: usize>(
    number: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
) {
    let errno = errno::errno();
    let signal = usize::try_from(number).ok();
    if let Some(signal) = signal.and_then(|number| SIGNALS.get(number)) {
        let is_live = signal.live.load(Ordering::Acquire) == LAYER;
        let is_heard = (is_live || is_installed(number, LAYER)) && signal.note(number);
        let is_handled = signal.before[LAYER].call(number, info, context) || is_heard;
        if !is_handled && is_installed(number, LAYER) {
            take_default_action(number);
        }
    }
    errno::set_errno(errno);
}

fn is_installed(number: c_int, layer: usize) -> bool {
    let current = disposition::get(number).ok();
    current.as_ref().and_then(layer_of) == Some(layer)
}

/// Puts the default action back and sends the signal again, which arrives when the handler returns.
fn take_default_action(number: c_int) {
    if disposition::set(number, &action_of(libc::SIG_DFL, 0)).is_ok() {
        // SAFETY: sends a signal to this thread.
        unsafe { libc::raise(number) };
    }
}

/// Which of our layers a disposition calls, if any.
pub(super) fn layer_of(action: &libc::sigaction) -> Option<usize> {
    let is_it = |handler: &WithInfo| *handler as *const () as usize == action.sa_sigaction;
    HANDLERS.iter().position(is_it)
}

/// Whether a disposition calls a function, of whatever origin.
pub(super) fn is_function(action: &libc::sigaction) -> bool {
    !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
}

/// The disposition that calls one of our layers. System calls that it interrupts are restarted.
pub(super) fn action(layer: usize) -> libc::sigaction {
    let handler = HANDLERS[layer] as *const () as usize;
    action_of(handler, libc::SA_SIGINFO | libc::SA_RESTART)
}

fn action_of(handler: libc::sighandler_t, flags: c_int) -> libc::sigaction {
    // SAFETY: a structure of C for which zero is a value everywhere: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags as _;
    action
}

/// Tells the handler what a layer has replaced.
pub(super) fn set_before(number: i32, layer: usize, before: &libc::sigaction) {
    signal(number).before[layer].set(before);
}

/// Tells the handler which layer notes.
pub(super) fn set_live(number: i32, layer: usize) {
    signal(number).live.store(layer, Ordering::Release);
}

/// Adds a listener; one thread at a time.
pub(super) fn add(number: i32, caught: Arc<Caught>) -> Listener {
    let signal = signal(number);
    let caught = Arc::into_raw(caught).cast_mut();
    let is_free = |node: &&Node| node.caught.load(Ordering::SeqCst).is_null();
    if let Some(node) = signal.nodes().find(is_free) {
        node.caught.store(caught, Ordering::SeqCst);
        return Listener(node);
    }
    let node: &'static mut Node = Box::leak(Box::new(Node {
        caught: AtomicPtr::new(caught),
        readers: AtomicUsize::new(0),
        next: AtomicPtr::new(signal.listeners.load(Ordering::Acquire)),
    }));
    let pointer = ptr::from_mut(node);
    signal.listeners.store(pointer, Ordering::Release);
    // SAFETY: leaked, and changed through its atomics only.
    Listener(unsafe { &*pointer })
}

/// Removes a listener, once, and waits for handlers on other threads that note something for it.
pub(super) fn remove(Listener(node): Listener) {
    let caught = node.caught.swap(ptr::null_mut(), Ordering::SeqCst);
    while node.readers.load(Ordering::SeqCst) != 0 {
        std::thread::yield_now();
    }
    // SAFETY: from `Arc::into_raw` in `add`, and out of every handler's reach.
    drop(unsafe { Arc::from_raw(caught) });
}

fn signal(number: i32) -> &'static Signal {
    let number = usize::try_from(number).ok();
    let signal = number.and_then(|number| SIGNALS.get(number));
    signal.expect("the number was checked by `watch`")
}
