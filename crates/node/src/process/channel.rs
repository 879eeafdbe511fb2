//! The IPC channel to the parent that has forked this process.

use std::cell::OnceCell;
use std::env;
use std::rc::{Rc, Weak};

use super::Listener;
use crate::context::Node;
use crate::error::Error;
use crate::events::{Event, EventEmitter};
use crate::ipc::{self, DISCONNECT, Ipc, Json, MESSAGE};
use phaseloop::extension::take_node_channel;

/// The channel, opened by its first use. It belongs to one loop of the process.
#[derive(Default)]
pub(crate) struct ParentChannel {
    emitter: EventEmitter,
    ipc: OnceCell<Option<Rc<Ipc>>>,
}

impl ParentChannel {
    #[track_caller]
    fn ipc(&self) -> Option<&Rc<Ipc>> {
        let ipc = self.ipc.get_or_init(|| {
            let number = env::var_os(ipc::VARIABLE)?;
            let socket = take_node_channel(&number)?;
            let stream = socket.try_clone().ok()?;
            let ipc = Ipc::new(stream.into(), self.emitter.clone()).ok()?;
            // The inherited descriptor stays open, so the parent gets EOF by a shutdown.
            ipc.on_close(move || drop(socket));
            // Only listeners keep the loop alive.
            ipc.set_referenced(false);
            Some(ipc)
        });
        ipc.as_ref()
    }

    /// Updates the ref count: as in Node, a listener of either event keeps the channel and the loop
    /// alive.
    fn listeners_changed(&self) {
        let count = self.emitter.listener_count(MESSAGE) + self.emitter.listener_count(DISCONNECT);
        if let Some(ipc) = self.ipc() {
            ipc.set_referenced(count > 0);
        }
    }

    pub(super) fn shut_down(&self) {
        self.emitter.clear();
    }
}

#[track_caller]
fn listen<A: 'static>(event: Event<A>, listener: impl Fn(&A) + 'static) -> Listener {
    let node = Node::current();
    let channel = &node.process.channel;
    let id = channel.emitter.on(event, listener);
    channel.listeners_changed();
    let node = Rc::downgrade(&node);
    Listener {
        remove: Box::new(move || {
            Weak::upgrade(&node).is_some_and(|node| {
                let channel = &node.process.channel;
                let was_there = channel.emitter.off(id);
                channel.listeners_changed();
                was_there
            })
        }),
    }
}

/// Calls `listener` with each message of the parent that has
/// [forked](crate::child_process::fork) this process; the parent may be Node. The listener
/// keeps the loop alive until the channel is closed. JavaScript: `process.on('message', ..)`.
///
/// Without an IPC channel the listener is never called.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, process, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         process::on_message(|message| {
///             process::send(format!("you said {message}"));
///         });
///     })
/// }
/// ```
#[track_caller]
pub fn on_message(listener: impl Fn(&Json) + 'static) -> Listener {
    listen(MESSAGE, listener)
}

/// Calls `listener` when the channel to the parent is closed. JavaScript: `process.on('disconnect',
/// ..)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn on_disconnect(listener: impl Fn() + 'static) -> Listener {
    listen(DISCONNECT, move |()| listener())
}

/// Sends a message to the parent. Returns `false` if there is no channel, or if many messages wait
/// to be sent. JavaScript: `process.send(message)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn send(message: impl Into<Json>) -> bool {
    let node = Node::current();
    let ipc = node.process.channel.ipc();
    ipc.is_some_and(|ipc| ipc.is_connected() && ipc.send(&message.into(), None))
}

/// Sends a message to the parent, and calls `callback` when it is sent. JavaScript:
/// `process.send(message, callback)`.
///
/// # Errors
///
/// The callback gets `ERR_IPC_CHANNEL_CLOSED`, or any OS error of `write`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn send_with(
    message: impl Into<Json>,
    callback: impl FnOnce(Result<(), Error>) + 'static,
) -> bool {
    let node = Node::current();
    let channel = &node.process.channel;
    match channel.ipc() {
        Some(ipc) => ipc.send(&message.into(), Some(Box::new(callback))),
        None => ipc::refuse(&channel.emitter, Some(Box::new(callback))),
    }
}

/// Closes the channel to the parent. Messages sent before are still delivered. JavaScript:
/// `process.disconnect()`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn disconnect() {
    let node = Node::current();
    let ipc = node.process.channel.ipc();
    if let Some(ipc) = ipc.filter(|ipc| ipc.is_connected()) {
        ipc.disconnect();
    }
}

/// Returns whether there is an open channel to the parent. JavaScript: `process.connected`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
#[track_caller]
pub fn connected() -> bool {
    let node = Node::current();
    let ipc = node.process.channel.ipc();
    ipc.is_some_and(|ipc| ipc.is_connected())
}
