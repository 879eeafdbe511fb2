//! The signal handler: records a signal for every listening loop, then calls the handler that it
//! has replaced.
//!
//! All state that a handler accesses is atomic: no lock, no allocation, no panic. Removing a
//! listener waits until no handler reads it any more.
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

/// The most layers of our handler in one chain of handlers; see [`disposition`].
pub(super) const LAYERS: usize = 4;

/// The signals without a default action. A stopped process goes on by SIGCONT in any case.
const IGNORED: [c_int; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];

type WithInfo = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
type Plain = extern "C" fn(c_int);

/// A function for each layer. It is a static, so that each function has one address, which can be
/// compared.
static HANDLERS: [WithInfo; LAYERS] = [
    on_signal::<0>,
    on_signal::<1>,
    on_signal::<2>,
    on_signal::<3>,
];

static SIGNALS: [Signal; LARGEST + 1] = [const { Signal::new() }; LARGEST + 1];

/// The state of one signal.
struct Signal {
    /// The head of the list of listeners. Nodes of stopped listeners stay in the list and are
    /// reused.
    listeners: AtomicPtr<Node>,
    /// The layer that records signals. The layers below it only pass signals on.
    live: AtomicUsize,
    before: [Before; LAYERS],
}

/// The handler that a layer has replaced. At most one field is set. There are two, so that a
/// handler is never called with the signature of the other kind.
pub(in crate::sys) struct Before {
    with_info: AtomicUsize,
    /// `SIG_DFL` and `SIG_IGN` are stored here as well.
    plain: AtomicUsize,
}

/// A listening loop. Nodes are never freed.
struct Node {
    /// From `Arc::into_raw`; null while the node has no listener.
    caught: AtomicPtr<Caught>,
    /// The number of handlers that read the node now.
    readers: AtomicUsize,
    next: AtomicPtr<Self>,
}

/// Identifies an added listener.
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
        // SAFETY: nodes are initialised before they are added to the list, and never freed.
        let node = |link: &AtomicPtr<Node>| unsafe { link.load(Ordering::Acquire).as_ref() };
        std::iter::successors(node(&self.listeners), move |before| node(&before.next))
    }

    /// Records a signal for all listeners. It returns `false` if there is none.
    fn note(&self, number: i32) -> bool {
        let mut is_received = false;
        for node in self.nodes() {
            // The count is raised before the pointer is read; `remove` does the opposite. So either
            // this sees that the listener is removed, or `remove` sees this reader.
            node.readers.fetch_add(1, Ordering::SeqCst);
            let caught = node.caught.load(Ordering::SeqCst);
            // SAFETY: `remove` frees it only after it has seen no reader.
            if let Some(caught) = unsafe { caught.as_ref() } {
                caught.note(number);
                is_received = true;
            }
            node.readers.fetch_sub(1, Ordering::SeqCst);
        }
        is_received
    }

    /// Restores the default action and raises the signal again, which arrives when the handler
    /// returns.
    fn take_default_action(&self, number: c_int, layer: usize) {
        // The default action of these is none. To restore it would take the handler from a listener
        // that has started since this signal arrived.
        let default = action_of(libc::SIG_DFL, 0);
        if IGNORED.contains(&number) || disposition::set(number, &default).is_err() {
            return;
        }
        // A thread that starts a listener adds it before it looks at the disposition. So either it
        // installs a handler after the call above, or this one finds the listener.
        if self.note(number) {
            let _ = disposition::set(number, &action(layer));
        } else {
            // SAFETY: the call sends a signal to this thread.
            unsafe { libc::raise(number) };
        }
    }
}

impl Before {
    pub(in crate::sys) const fn new() -> Self {
        Self {
            with_info: AtomicUsize::new(0),
            plain: AtomicUsize::new(libc::SIG_DFL),
        }
    }

    pub(in crate::sys) fn set(&self, before: &libc::sigaction) {
        let takes_info = is_function(before) && before.sa_flags & libc::SA_SIGINFO != 0;
        let (with_info, plain) = match takes_info {
            true => (before.sa_sigaction, libc::SIG_DFL),
            false => (0, before.sa_sigaction),
        };
        self.with_info.store(with_info, Ordering::Release);
        self.plain.store(plain, Ordering::Release);
    }

    /// Calls the handler. It returns `false` if there is none, so that the default action is due.
    pub(in crate::sys) fn call(
        &self,
        number: c_int,
        info: *mut siginfo_t,
        context: *mut c_void,
    ) -> bool {
        let with_info = self.with_info.load(Ordering::Acquire);
        let plain = self.plain.load(Ordering::Acquire);
        if with_info != 0 {
            let function = with_info as *const ();
            // SAFETY: the function was installed as the handler of this signal with `SA_SIGINFO`.
            let function = unsafe { std::mem::transmute::<*const (), WithInfo>(function) };
            function(number, info, context);
        } else if plain != libc::SIG_DFL && plain != libc::SIG_IGN {
            let function = plain as *const ();
            // SAFETY: the function was installed as the handler of this signal without
            // `SA_SIGINFO`.
            let function = unsafe { std::mem::transmute::<*const (), Plain>(function) };
            function(number);
        }
        with_info != 0 || plain != libc::SIG_DFL
    }
}

/// The signal handler.
///
/// A layer that is neither live nor installed was called by a handler above it, and passes the
/// signal on. A layer that is installed without a listener was restored by other code; it takes the
/// action that the signal would have without it.
extern "C" fn on_signal<const LAYER: usize>(
    number: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
) {
    let errno = errno::errno();
    let signal = usize::try_from(number).ok();
    if let Some(signal) = signal.and_then(|number| SIGNALS.get(number)) {
        let is_live = signal.live.load(Ordering::Acquire) == LAYER;
        let is_received = (is_live || is_installed(number, LAYER)) && signal.note(number);
        let is_handled = signal.before[LAYER].call(number, info, context) || is_received;
        if !is_handled && is_installed(number, LAYER) {
            signal.take_default_action(number, LAYER);
        }
    }
    errno::set_errno(errno);
}

fn is_installed(number: c_int, layer: usize) -> bool {
    let current = disposition::get(number).ok();
    current.as_ref().and_then(layer_of) == Some(layer)
}

/// Returns which of our layers a disposition calls, if any.
pub(super) fn layer_of(action: &libc::sigaction) -> Option<usize> {
    let is_it = |handler: &WithInfo| *handler as *const () as usize == action.sa_sigaction;
    HANDLERS.iter().position(is_it)
}

/// Returns whether a disposition calls a function, ours or another.
pub(super) fn is_function(action: &libc::sigaction) -> bool {
    !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
}

/// Returns the disposition that calls one of our layers. Interrupted system calls are restarted.
pub(super) fn action(layer: usize) -> libc::sigaction {
    let handler = HANDLERS[layer] as *const () as usize;
    action_of(handler, libc::SA_SIGINFO | libc::SA_RESTART)
}

/// Returns the disposition that calls `handler`, and blocks no other signal meanwhile.
pub(in crate::sys) fn action_of(handler: libc::sighandler_t, flags: c_int) -> libc::sigaction {
    // SAFETY: all zeros are a valid `sigaction`: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags as _;
    action
}

/// Sets the handler that a layer has replaced.
pub(super) fn set_before(number: i32, layer: usize, before: &libc::sigaction) {
    signal(number).before[layer].set(before);
}

/// Sets the layer that records signals.
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
    let node: &'static Node = Box::leak(Box::new(Node {
        caught: AtomicPtr::new(caught),
        readers: AtomicUsize::new(0),
        next: AtomicPtr::new(signal.listeners.load(Ordering::Acquire)),
    }));
    // Nodes are changed through their atomics only, also behind this pointer.
    let pointer = ptr::from_ref(node).cast_mut();
    signal.listeners.store(pointer, Ordering::Release);
    Listener(node)
}

/// Removes a listener, once, and waits for handlers on other threads that read it.
pub(super) fn remove(Listener(node): Listener) {
    let caught = node.caught.swap(ptr::null_mut(), Ordering::SeqCst);
    while node.readers.load(Ordering::SeqCst) != 0 {
        std::thread::yield_now();
    }
    // SAFETY: the pointer comes from `Arc::into_raw` in `add`, and no handler can read it any more.
    drop(unsafe { Arc::from_raw(caught) });
}

fn signal(number: i32) -> &'static Signal {
    let number = usize::try_from(number).ok();
    let signal = number.and_then(|number| SIGNALS.get(number));
    signal.expect("the number was checked by `watch`")
}
