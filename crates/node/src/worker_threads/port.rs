//! Message ports.
//!
//! ```text
//!   post_message ──> queue of the other side ──> poll phase: one callback for each message
//!   close ──> closing phase: 'close' ──> queue of the other side ──> poll phase: it closes as well
//! ```

mod line;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use self::line::{Ends, Item, Line};
use crate::events::{Emitter, Event, EventEmitter, ListenerId, Listening, Watch};
use crate::site::Site;
use phaseloop::AsyncHandle;
use phaseloop::Handle as _;
use phaseloop::LoopHandle;
use phaseloop::extension::frame::Frame;

/// The minimum limit of messages that one visit to a port delivers. Node's limit.
const MESSAGES_PER_VISIT: usize = 1000;

/// A port or a worker is closed. JavaScript: `'close'`.
pub const CLOSE: Event<()> = Event::new("close");

/// Two connected ports. The first port sends `A` and receives `B`. JavaScript: `new
/// MessageChannel()`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::worker_threads::MessageChannel;
///
/// fn main() {
///     phaseloop::run(async {
///         let channel = MessageChannel::<u32>::new();
///         let port = channel.port2.clone();
///         channel.port2.on_message(move |n| {
///             assert_eq!(*n, 7);
///             port.close();
///         });
///         channel.port1.post_message(7);
///     })
///     .unwrap();
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct MessageChannel<A: 'static, B: 'static = A> {
    /// The first port.
    pub port1: MessagePort<A, B>,
    /// The second port.
    pub port2: MessagePort<B, A>,
}

impl<A: 'static, B: 'static> MessageChannel<A, B> {
    /// Creates two ports on the running loop, `port1` before `port2`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    #[track_caller]
    pub fn new() -> Self {
        let (one, two) = pair();
        Self {
            port1: one.attach(),
            port2: two.attach(),
        }
    }
}

impl<A: 'static, B: 'static> Default for MessageChannel<A, B> {
    fn default() -> Self {
        Self::new()
    }
}

/// Creates two connected ports that are not on a loop yet.
pub(super) fn pair<A, B>() -> (DetachedPort<A, B>, DetachedPort<B, A>) {
    let (one, two) = (Arc::new(Line::default()), Arc::new(Line::default()));
    let port1 = Ends {
        incoming: one.clone(),
        outgoing: two.clone(),
    };
    let port2 = Ends {
        incoming: two,
        outgoing: one,
    };
    (DetachedPort::new(port1), DetachedPort::new(port2))
}

/// Creates a port that others send to, and that sends to none.
#[track_caller]
pub(super) fn lone<T: 'static>() -> (MessagePort<T>, Outlet<T>) {
    let incoming = Arc::new(Line::default());
    let ends = Ends {
        incoming: incoming.clone(),
        outgoing: Arc::new(Line::default()),
    };
    (DetachedPort::new(ends).attach(), Outlet(incoming))
}

/// The way to a port of [`lone`].
pub(super) struct Outlet<T>(Arc<Line<T>>);

impl<T> Outlet<T> {
    pub(super) fn push(&self, message: T) {
        self.0.push(Item::Message(message));
    }
}

impl<T> Clone for Outlet<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// One side of a channel, on a loop: it sends `S` and receives `R`. A clone is a handle to the same
/// port. JavaScript: `MessagePort`.
///
/// The port receives, and keeps the loop alive, from the first listener for
/// [`MESSAGE`](Self::MESSAGE) on, until it is [closed](Self::close), has no listener left, or is
/// [unref'd](Self::unref). Earlier messages are queued. A port with a listener is held by its loop;
/// a port without listeners is closed when its last handle is dropped.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, worker_threads::MessageChannel};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let MessageChannel { port1, port2, .. } = MessageChannel::<&str>::new();
///         port1.post_message("hello");
///         assert_eq!(port2.receive_message(), Some("hello"));
///         port2.close();
///     })
/// }
/// ```
pub struct MessagePort<S: 'static, R: 'static = S> {
    port: Rc<Port<S, R>>,
}

struct Port<S: 'static, R: 'static> {
    ends: Ends<S, R>,
    emitter: EventEmitter,
    /// `None` after the close.
    handle: RefCell<Option<AsyncHandle>>,
    anchor: Weak<Anchor<S, R>>,
    receiving: Cell<bool>,
    /// Whether `close` was called.
    closing: Cell<bool>,
    /// Whether the queues have moved to a `DetachedPort`, so that the drop closes nothing.
    detached: Cell<bool>,
    visit: Visit,
    /// Calls to make when all messages are delivered, one by one with a drain after each.
    when_empty: RefCell<VecDeque<Box<dyn FnOnce()>>>,
    /// What its events run in: the frame of its making.
    frame: Frame,
}

/// The progress of the current visit.
#[derive(Default)]
struct Visit {
    running: Cell<bool>,
    left: Cell<usize>,
}

/// Owned by the callback of the port's async handle. The loop keeps a receiving port through it,
/// and drops both together.
struct Anchor<S: 'static, R: 'static> {
    weak: RefCell<Weak<Port<S, R>>>,
    kept: RefCell<Option<Rc<Port<S, R>>>>,
}

impl<S: 'static, R: 'static> MessagePort<S, R> {
    /// A message has arrived. JavaScript: `'message'`.
    pub const MESSAGE: Event<R> = Event::new("message");

    #[track_caller]
    fn attach(ends: Ends<S, R>, site: Site) -> Self {
        let loop_handle = LoopHandle::current();
        let anchor = Rc::new(Anchor {
            weak: RefCell::default(),
            kept: RefCell::default(),
        });
        let known = Rc::downgrade(&anchor);
        let handle = AsyncHandle::new_at(&loop_handle, site, move |handle| {
            let port = anchor.weak.borrow().upgrade();
            if let Some(port) = port {
                port.frame.clone().call(|| port.visit(handle));
            }
        });
        let handle = handle.expect("the running loop is open");
        handle.unref();
        let sender = handle.sender();
        ends.incoming.set_receiver(Some(sender.clone()));
        let port = Rc::new(Port {
            ends,
            emitter: EventEmitter::of_class("MessagePort"),
            handle: RefCell::new(Some(handle)),
            anchor: known,
            receiving: Cell::new(false),
            closing: Cell::new(false),
            detached: Cell::new(false),
            visit: Visit::default(),
            when_empty: RefCell::default(),
            frame: Frame::current(),
        });
        if let Some(anchor) = port.anchor.upgrade() {
            *anchor.weak.borrow_mut() = Rc::downgrade(&port);
        }
        let watch: Weak<dyn Watch> = Rc::<Port<S, R>>::downgrade(&port);
        port.emitter.watched_by(watch);
        if port.ends.incoming.is_ready(false) {
            // The other side was closed while this port was on no loop.
            let _ = sender.send();
        }
        Self { port }
    }

    /// Sends a message. The message is dropped if either side is closed. JavaScript:
    /// `port.postMessage(message)`.
    pub fn post_message(&self, message: S) {
        if !self.port.closing.get() {
            self.port.ends.outgoing.push(Item::Message(message));
        }
    }

    /// Adds a listener for messages and starts receiving; see [`MessagePort`]. JavaScript:
    /// `port.on('message', ..)`.
    pub fn on_message(&self, listener: impl Fn(&R) + 'static) -> ListenerId {
        self.port.emitter.on(Self::MESSAGE, listener)
    }

    /// Adds a listener for messages that gets the port as its first argument; see
    /// [`Emitter::on_this`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, run, worker_threads::MessageChannel};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let MessageChannel { port1, port2, .. } = MessageChannel::<u32>::new();
    ///         port2.on_message_this(|port, n| {
    ///             assert_eq!(*n, 7);
    ///             port.close();
    ///         });
    ///         port1.post_message(7);
    ///     })
    /// }
    /// ```
    pub fn on_message_this(&self, listener: impl Fn(&Listening<Self>, &R) + 'static) -> ListenerId {
        self.on_this(Self::MESSAGE, listener)
    }

    /// Returns a queued message at once, without a callback. JavaScript:
    /// `receiveMessageOnPort(port)`.
    #[must_use]
    pub fn receive_message(&self) -> Option<R> {
        match self.port.ends.incoming.pop(true)? {
            Item::Message(message) => Some(message),
            Item::Close => {
                self.close();
                None
            }
        }
    }

    /// Closes both sides. [`CLOSE`] is emitted in the closing phase of this side. The other side
    /// closes in its next poll phase, after all earlier messages. A running visit still delivers
    /// the queued messages of this side. JavaScript: `port.close()`.
    // N131.
    pub fn close(&self) {
        if !self.port.closing.replace(true) && !self.port.visit.running.get() {
            self.port.finish_close();
        }
    }

    /// Makes the port keep the loop alive, also without listeners. JavaScript: `port.ref()`.
    pub fn ref_(&self) {
        self.port.with_handle(AsyncHandle::ref_);
    }

    /// Lets the loop end while the port has listeners. JavaScript: `port.unref()`.
    pub fn unref(&self) {
        self.port.with_handle(AsyncHandle::unref);
    }

    /// Returns whether the port keeps the loop alive. JavaScript: `port.hasRef()`.
    #[must_use]
    pub fn has_ref(&self) -> bool {
        let handle = self.port.handle.borrow();
        handle.as_ref().is_some_and(AsyncHandle::has_ref)
    }

    /// Removes the port from its loop, so that it can be attached to another loop. The returned
    /// value is `Send` if its messages are. Listeners are dropped; queued messages move with the
    /// port. Returns `None` if the port is closed.
    #[must_use]
    pub fn detach(&self) -> Option<DetachedPort<S, R>> {
        let port = &self.port;
        if port.closing.get() || port.detached.replace(true) {
            return None;
        }
        port.closing.set(true);
        port.ends.incoming.set_receiver(None);
        drop(port.handle.take());
        port.emitter.remove_all_events();
        Some(DetachedPort::new(Ends {
            incoming: port.ends.incoming.clone(),
            outgoing: port.ends.outgoing.clone(),
        }))
    }

    /// Calls `call` when the port has no message left to deliver: at once, or in a visit to the
    /// port.
    pub(super) fn when_empty(&self, call: impl FnOnce() + 'static) {
        if self.port.has_more() {
            self.port.when_empty.borrow_mut().push_back(Box::new(call));
        } else {
            call();
        }
    }
}

impl<S: 'static, R: 'static> Port<S, R> {
    fn with_handle(&self, f: impl FnOnce(&AsyncHandle)) {
        if let Some(handle) = &*self.handle.borrow() {
            f(handle);
        }
    }

    /// Returns whether a visit would do any work.
    fn has_more(&self) -> bool {
        self.ends.incoming.is_ready(self.receiving.get()) || !self.when_empty.borrow().is_empty()
    }

    /// Delivers one message, or the close of the other side. The loop drains the lanes after it,
    /// and calls again while there are more.
    fn visit(&self, handle: &AsyncHandle) {
        if !self.visit.running.replace(true) {
            let waiting = self.ends.incoming.len();
            self.visit.left.set(waiting.max(MESSAGES_PER_VISIT));
        }
        let end = EndVisit { port: self, handle };
        match self.ends.incoming.pop(self.receiving.get()) {
            Some(Item::Message(message)) => {
                self.visit.left.set(self.visit.left.get() - 1);
                self.emitter.emit(MessagePort::<S, R>::MESSAGE, &message);
            }
            Some(Item::Close) => self.closing.set(true),
            None => {
                let call = self.when_empty.borrow_mut().pop_front();
                if let Some(call) = call {
                    call();
                }
            }
        }
        if self.visit.left.get() > 0 && self.has_more() {
            std::mem::forget(end);
            handle.call_again();
        }
    }

    /// Ends a visit: the port is empty, the limit is reached, or a listener has panicked.
    fn end_visit(&self, handle: &AsyncHandle) {
        self.visit.running.set(false);
        if self.has_more() {
            let _ = handle.sender().send();
        }
        if self.closing.get() && self.when_empty.borrow().is_empty() {
            self.finish_close();
        }
    }

    fn finish_close(&self) {
        // Taken out of its cell first: the drop of the handle may drop the port.
        let handle = self.handle.take();
        let Some(handle) = handle else { return };
        self.receiving.set(false);
        let port = self.anchor.upgrade();
        let port = port.and_then(|anchor| anchor.weak.borrow().upgrade());
        let Some(port) = port else { return };
        handle.close().then(move || {
            port.ends.close();
            port.emitter.emit(CLOSE, ());
            port.emitter.remove_all_events();
        });
    }

    /// Starts or stops receiving, with the first or last listener for messages.
    fn set_receiving(&self, receiving: bool) {
        if self.closing.get() || self.receiving.replace(receiving) == receiving {
            return;
        }
        let anchor = self.anchor.upgrade();
        let mut before = None;
        if let Some(anchor) = anchor {
            let port = anchor.weak.borrow().upgrade().filter(|_| receiving);
            before = anchor.kept.replace(port);
        }
        self.with_handle(|handle| {
            if receiving {
                handle.ref_();
                if self.ends.incoming.is_ready(true) {
                    let _ = handle.sender().send();
                }
            } else {
                handle.unref();
            }
        });
        drop(before);
    }
}

/// Ends a visit when it is dropped, also after a panic of a listener.
struct EndVisit<'a, S: 'static, R: 'static> {
    port: &'a Port<S, R>,
    handle: &'a AsyncHandle,
}

impl<S: 'static, R: 'static> Drop for EndVisit<'_, S, R> {
    fn drop(&mut self) {
        self.port.end_visit(self.handle);
    }
}

impl<S: 'static, R: 'static> Watch for Port<S, R> {
    fn added(&self, name: &str) {
        if name == MessagePort::<S, R>::MESSAGE.name() {
            self.set_receiving(true);
        }
    }

    fn removed(&self, _name: &str) {
        if self.emitter.listener_count(MessagePort::<S, R>::MESSAGE) == 0 {
            self.set_receiving(false);
        }
    }
}

impl<S: 'static, R: 'static> Drop for Anchor<S, R> {
    fn drop(&mut self) {
        // The loop was dropped, or the port is closed. The listeners may hold the port itself, in a
        // cycle.
        if let Some(port) = self.kept.get_mut().take() {
            port.emitter.remove_all(MessagePort::<S, R>::MESSAGE);
        }
    }
}

impl<S: 'static, R: 'static> Drop for Port<S, R> {
    fn drop(&mut self) {
        if !self.detached.get() {
            self.ends.close();
        }
    }
}

impl<S: 'static, R: 'static> Emitter for MessagePort<S, R> {
    fn emitter(&self) -> &EventEmitter {
        &self.port.emitter
    }
}

// Weak: the loop holds the port while it can emit.
crate::weak_this!(MessagePort < S, R > { port });

impl<S: 'static, R: 'static> Clone for MessagePort<S, R> {
    fn clone(&self) -> Self {
        Self {
            port: self.port.clone(),
        }
    }
}

impl<S: 'static, R: 'static> fmt::Debug for MessagePort<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagePort")
            .field("receiving", &self.port.receiving.get())
            .field("closed", &self.port.closing.get())
            .finish_non_exhaustive()
    }
}

/// A port that is on no loop; returned by [`MessagePort::detach`]. Dropping it closes the other
/// side.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, worker_threads::MessageChannel};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let MessageChannel { port1, port2, .. } = MessageChannel::<u32>::new();
///         let detached = port2.detach().unwrap();
///         let thread = std::thread::spawn(|| {
///             run(async {
///                 detached.attach().on_message_this(|port, n| {
///                     assert_eq!(*n, 7);
///                     port.close();
///                 });
///             });
///         });
///         port1.post_message(7);
///         thread.join().unwrap();
///     })
/// }
/// ```
pub struct DetachedPort<S, R = S> {
    /// `None` once the port is attached.
    ends: Option<Ends<S, R>>,
}

impl<S, R> DetachedPort<S, R> {
    fn new(ends: Ends<S, R>) -> Self {
        Self { ends: Some(ends) }
    }

    /// Sends a message.
    pub(super) fn post(&self, message: S) {
        if let Some(ends) = &self.ends {
            ends.outgoing.push(Item::Message(message));
        }
    }

    /// Attaches the port to the running loop. Its place in the order of visits is that of this
    /// call.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    #[track_caller]
    pub fn attach(self) -> MessagePort<S, R>
    where
        S: 'static,
        R: 'static,
    {
        self.attach_at(Location::caller())
    }

    /// Attaches the port on behalf of the caller at `site`.
    #[track_caller]
    pub(super) fn attach_at(mut self, site: Site) -> MessagePort<S, R>
    where
        S: 'static,
        R: 'static,
    {
        MessagePort::attach(self.ends.take().expect("attached once"), site)
    }
}

impl<S, R> Drop for DetachedPort<S, R> {
    fn drop(&mut self) {
        if let Some(ends) = self.ends.take() {
            ends.close();
        }
    }
}

impl<S, R> fmt::Debug for DetachedPort<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DetachedPort")
    }
}
