//! The channel between a parent and a forked child, in Node's protocol: either end may be a Node
//! process.
//!
//! A message is a line of JSON. The child inherits one end of a socket pair, and the environment
//! variable `NODE_CHANNEL_FD` holds its descriptor. Node's internal messages begin with a `cmd` of
//! `NODE_…` and are skipped.

mod json;

use std::cell::{Cell, RefCell};
use std::io;
use std::os::unix::net::UnixStream;
use std::rc::{Rc, Weak};

pub use self::json::Json;
use super::error::Error;
use super::events::{ERROR, Emitter as _, Event, EventEmitter};
use super::net::{Socket, socket_of};
use super::stream::{CLOSE, END};
use phaseloop::task::next_tick;

/// A message was received.
pub const MESSAGE: Event<Json> = Event::new("message");

/// The channel was closed: no message can be received or sent any more.
pub const DISCONNECT: Event<()> = Event::new("disconnect");

/// The environment variable that holds the child's descriptor of the channel.
pub(super) const VARIABLE: &str = "NODE_CHANNEL_FD";

/// The environment variable that selects the serialization, and the one used here.
pub(super) const MODE: (&str, &str) = ("NODE_CHANNEL_SERIALIZATION_MODE", "json");

/// `send` returns `false` while this many bytes or more are queued.
const HIGH_WATER_MARK: usize = 2 * 64 * 1024;

/// The prefix of Node's internal messages, which are not for the program.
const INTERNAL: &str = "{\"cmd\":\"NODE_";

/// One end of the channel.
pub(super) struct Ipc {
    socket: Socket,
    emitter: EventEmitter,
    is_connected: Cell<bool>,
    /// Called when the channel is closed. The listener of the socket owns it, so that the end of
    /// the loop, which drops all listeners, drops it.
    on_close: RefCell<Weak<OnClose>>,
    /// The received part of an incomplete line.
    partial: RefCell<Vec<u8>>,
}

impl Ipc {
    /// Creates an end of the channel over `stream`, which emits its events on `emitter`.
    #[track_caller]
    pub(super) fn new(stream: UnixStream, emitter: EventEmitter) -> io::Result<Rc<Self>> {
        let ipc = Rc::new(Self {
            socket: socket_of(stream)?,
            emitter,
            is_connected: Cell::new(true),
            on_close: RefCell::default(),
            partial: RefCell::default(),
        });
        let reads = Rc::downgrade(&ipc);
        ipc.socket.on_data(move |bytes| {
            if let Some(ipc) = reads.upgrade() {
                ipc.take(bytes);
            }
        });
        let ends = Rc::downgrade(&ipc);
        ipc.socket.on(END, move |()| {
            if let Some(ipc) = ends.upgrade().filter(|ipc| ipc.is_connected()) {
                ipc.disconnect();
                // As in Node, before the event of the disconnection.
                let on_close = ipc.on_close.borrow().upgrade();
                if let Some(on_close) = on_close {
                    on_close.call();
                }
            }
        });
        // Node treats an I/O error of the channel like EOF.
        let breaks = Rc::downgrade(&ipc);
        ipc.socket.on(ERROR, move |_| {
            if let Some(ipc) = breaks.upgrade().filter(|ipc| ipc.is_connected()) {
                ipc.disconnect();
            }
        });
        Ok(ipc)
    }

    /// Calls `f` when the peer has closed the channel, or else when the socket is closed.
    pub(super) fn on_close(&self, f: impl FnOnce() + 'static) {
        let on_close = Rc::new(OnClose(Cell::new(Some(Box::new(f)))));
        self.on_close.replace(Rc::downgrade(&on_close));
        self.socket.once(CLOSE, move |()| on_close.call());
    }

    pub(super) fn is_connected(&self) -> bool {
        self.is_connected.get()
    }

    /// Sets whether the channel keeps the loop alive.
    pub(super) fn set_referenced(&self, is_referenced: bool) {
        if is_referenced {
            self.socket.ref_();
        } else {
            self.socket.unref();
        }
    }

    /// Splits the received bytes into lines. Each message is emitted in a tick of its own.
    fn take(&self, bytes: &[u8]) {
        let mut partial = self.partial.borrow_mut();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            partial.extend_from_slice(part);
            if part.last() != Some(&b'\n') {
                return;
            }
            let line = std::mem::take(&mut *partial);
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if text.is_empty() || text.starts_with(INTERNAL) {
                continue;
            }
            let emitter = self.emitter.clone();
            next_tick(move || {
                emitter.emit(MESSAGE, Json::from_text(text));
            });
        }
    }

    /// Sends a message. `false`: the channel is closed, or [`HIGH_WATER_MARK`] is reached.
    pub(super) fn send(&self, message: &Json, callback: Option<Sent>) -> bool {
        if !self.is_connected() {
            return refuse(&self.emitter, callback);
        }
        let line = format!("{message}\n");
        self.socket.write_with(line, move |result| {
            if let Some(callback) = callback {
                callback(result);
            }
        });
        self.socket.writable().length() < HIGH_WATER_MARK
    }

    /// Closes the channel after the queued messages. [`DISCONNECT`] is emitted in a tick.
    pub(super) fn disconnect(&self) {
        if !self.is_connected.replace(false) {
            let text = "IPC channel is already disconnected";
            let error = Error::with_code("ERR_IPC_DISCONNECTED", text);
            self.emitter.emit(ERROR, &error);
            return;
        }
        let (socket, emitter) = (self.socket.clone(), self.emitter.clone());
        next_tick(move || {
            if socket.writable().length() > 0 {
                socket.end(());
            } else {
                socket.destroy(None);
            }
            emitter.emit(DISCONNECT, ());
        });
    }
}

/// What is called once at the end of the channel.
struct OnClose(Cell<Option<Box<dyn FnOnce()>>>);

impl OnClose {
    fn call(&self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}

/// The callback of a send.
pub(super) type Sent = Box<dyn FnOnce(Result<(), Error>)>;

/// Fails a send over a closed channel: in a tick, the callback receives the error, or else the
/// `error` event is emitted.
pub(super) fn refuse(emitter: &EventEmitter, callback: Option<Sent>) -> bool {
    let error = Error::with_code("ERR_IPC_CHANNEL_CLOSED", "Channel closed");
    let emitter = emitter.clone();
    next_tick(move || match callback {
        Some(callback) => callback(Err(error)),
        None => {
            emitter.emit(ERROR, &error);
        }
    });
    false
}
