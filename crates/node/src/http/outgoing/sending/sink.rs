//! A message as the sink of its stream.

use super::Sending;
use crate::error::Error;
use crate::stream::{Callback, DRAIN, HIGH_WATER_MARK, Sink};

impl Sink<Vec<u8>> for Sending {
    fn write(&self, chunk: Vec<u8>, callback: Option<Callback>) -> bool {
        let room = self.write_body(chunk, callback);
        if !room {
            self.needs_drain.set(true);
        }
        room
    }

    fn end(&self, chunk: Option<Vec<u8>>, callback: Option<Callback>) {
        self.end_body(chunk, callback);
    }

    fn cork(&self) {
        self.corked.set(self.corked.get() + 1);
        if let Some(socket) = self.socket() {
            socket.writable().cork();
        }
    }

    fn uncork(&self) {
        // An uncork too many has no effect. In Node 26 it holds back what is written later.
        let left = self.corked.get().saturating_sub(1);
        self.corked.set(left);
        let is_flushed = left == 0 && !self.gathered.borrow().is_empty() && self.write_gathered();
        if let Some(socket) = self.socket() {
            socket.writable().uncork();
        }
        if is_flushed && self.needs_drain.get() && self.length() == 0 {
            self.needs_drain.set(false);
            self.emitter().emit(DRAIN, ());
        }
    }

    fn corked(&self) -> usize {
        self.corked.get()
    }

    fn ended(&self) -> bool {
        self.ended.get()
    }

    fn finished(&self) -> bool {
        self.is_finished.get()
    }

    fn need_drain(&self) -> bool {
        self.needs_drain.get()
    }

    fn length(&self) -> usize {
        let of_socket = self.socket().map_or(0, |socket| socket.writable().length());
        of_socket + self.kept_size.get() + self.gathered_length()
    }

    fn high_water_mark(&self) -> usize {
        let of_socket = self
            .socket()
            .map(|socket| socket.writable().high_water_mark());
        of_socket.unwrap_or(HIGH_WATER_MARK)
    }

    fn destroy(&self, error: Option<Error>) {
        self.drop_gathered();
        self.role.destroyed(self, error);
    }
}
