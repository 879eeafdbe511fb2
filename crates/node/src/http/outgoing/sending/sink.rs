//! A message as the sink of its stream.

use super::{HIGH_WATER_MARK, Sending};
use crate::error::Error;
use crate::stream::{Callback, Sink};

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
        match self.socket() {
            Some(socket) => socket.writable().cork(),
            None => self.corked.set(self.corked.get() + 1),
        }
    }

    fn uncork(&self) {
        match self.socket() {
            Some(socket) => socket.writable().uncork(),
            None => self.corked.set(self.corked.get().saturating_sub(1)),
        }
    }

    fn corked(&self) -> usize {
        let of_socket = self.socket().map_or(0, |socket| socket.writable().corked());
        of_socket + self.corked.get()
    }

    fn ended(&self) -> bool {
        self.ended.get()
    }

    fn finished(&self) -> bool {
        self.ended.get() && self.length() == 0 && self.end_error.borrow().is_none()
    }

    fn need_drain(&self) -> bool {
        self.needs_drain.get()
    }

    fn length(&self) -> usize {
        let of_socket = self.socket().map_or(0, |socket| socket.writable().length());
        of_socket + self.kept_size.get()
    }

    fn high_water_mark(&self) -> usize {
        let of_socket = self
            .socket()
            .map(|socket| socket.writable().high_water_mark());
        of_socket.unwrap_or(HIGH_WATER_MARK)
    }

    fn destroy(&self, error: Option<Error>) {
        self.role.destroyed(self, error);
    }
}
