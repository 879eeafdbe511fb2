//! The socket of a message, and what the message keeps while it has none.

use std::rc::Rc;

use super::{CRLF, HeadState, Sending};
use crate::http::outgoing::SOCKET;
use crate::net::Socket;
use crate::stream::{DRAIN, PREFINISH, Sink as _, Writable};

impl Sending {
    /// Gives the message its socket: its turn in a pipeline, or the connection of a request.
    // H17, H18.
    pub(in crate::http) fn attach(&self, socket: Rc<Socket>) {
        self.socket.replace(Some(socket.clone()));
        for _ in 0..self.corked.get() {
            socket.writable().cork();
        }
        self.has_turn.set(true);
        self.emitter().emit(SOCKET, &*socket);
    }

    /// Takes the turn from the message. The socket stays known unless `forgets` is set.
    pub(in crate::http) fn detach(&self, forgets: bool) {
        self.has_turn.set(false);
        if forgets {
            let socket = self.socket.take();
            if let Some(socket) = socket {
                (0..self.corked.get()).for_each(|_| socket.writable().uncork());
            }
        }
    }

    /// Writes what was kept, after the socket was attached.
    pub(in crate::http) fn flush(&self) {
        let Some(socket) = self.socket() else { return };
        if !socket.writable().is_writable() {
            return;
        }
        let room = self.write_kept(&socket);
        if self.ended.get() {
            self.emitter().emit(PREFINISH, ());
        } else if room != Some(false) && self.needs_drain.take() {
            self.emitter().emit(DRAIN, ());
        }
    }

    /// Returns the size of the chunk that was gathered, with what it leaves with.
    pub(super) fn gathered_length(&self) -> usize {
        let size = self.gathered_size.get();
        if size == 0 {
            return 0;
        }
        let digits = format!("{size:x}").len();
        let head = match &*self.head.borrow() {
            HeadState::Fixed(bytes) => bytes.len(),
            HeadState::Open | HeadState::Sent => 0,
        };
        head + digits + 2 * CRLF.len() + size
    }

    /// Writes what was kept. Returns whether the socket has room, or `None` if nothing was kept.
    pub(super) fn write_kept(&self, socket: &Socket) -> Option<bool> {
        let writable = socket.writable();
        let kept = self.kept.take();
        if kept.is_empty() {
            return None;
        }
        writable.cork();
        let mut room = true;
        for (bytes, callback) in kept {
            room = socket.writable().write_chunk(bytes, callback);
        }
        writable.uncork();
        let size = self.kept_size.take();
        self.role.kept_bytes_changed(0, size);
        Some(room)
    }

    /// Reports that the socket has drained.
    pub(in crate::http) fn socket_drained(&self) {
        if !self.ended.get() && self.length() == 0 && self.needs_drain.take() {
            self.emitter().emit(DRAIN, ());
        }
    }

    /// Drops what is kept: the connection is gone.
    pub(in crate::http) fn drop_kept(&self) {
        let kept = self.kept.take();
        let size = self.kept_size.take();
        if size > 0 {
            self.role.kept_bytes_changed(0, size);
        }
        let callbacks = self.end_callbacks.take();
        drop((kept, callbacks));
    }

    /// Drops what is kept and will be written: the message never gets its turn. The size stays, so
    /// that the message does not seem to be finished.
    pub(in crate::http) fn abandon(&self) {
        self.is_abandoned.set(true);
        let (kept, callbacks) = (self.kept.take(), self.end_callbacks.take());
        drop((kept, callbacks));
    }

    /// Marks the message as destroyed without any effect on the socket.
    pub(in crate::http) fn mark_destroyed(&self) {
        self.base.destroyed.set(true);
    }

    /// Emits 'close', after which the message emits nothing.
    pub(in crate::http) fn emit_close(&self) {
        Writable::<Vec<u8>>::close_foreign(&self.base);
        let callbacks = self.end_callbacks.take();
        drop(callbacks);
    }

    /// Emits 'close' of a request that was answered. If it has not ended, it still finishes.
    // H61.
    pub(in crate::http) fn emit_close_answered(&self) {
        if self.ended.get() {
            return self.emit_close();
        }
        self.finishes_closed.set(true);
        Writable::<Vec<u8>>::close_foreign_early(&self.base);
    }

    /// Emits 'close' of a response that was destroyed before its turn. It may still get its socket.
    pub(in crate::http) fn close_before_turn(&self) {
        if self.base.is_closed() {
            return;
        }
        if self.is_abandoned.get() {
            return self.emit_close();
        }
        Writable::<Vec<u8>>::close_foreign_early(&self.base);
        self.finishes_closed.set(true);
    }

    /// The connection is closed, and the turn of this response never comes.
    pub(in crate::http) fn lose_turn(&self) {
        self.is_abandoned.set(true);
        self.release_closed();
    }

    /// Releases the listeners of a request that has ended after its 'close'.
    pub(super) fn release_closed(&self) {
        if self.finishes_closed.take() {
            Writable::<Vec<u8>>::release_foreign(&self.base);
        }
    }
}
