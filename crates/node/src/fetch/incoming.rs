//! The body of a response: pieces as they come, unpacked, with the errors of `fetch`.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use super::causes::{cause_of, other_side_closed, terminated};
use super::decode::Decoder;
use super::exchange::Exchange;
use crate::context::Node;
use crate::error::Error;
use crate::events::{ERROR, Emitter as _, WeakThis as _};
use crate::http::IncomingMessage;
use crate::stream::{END, Readable};
use crate::timers::{Timeout, set_timeout_mut_at};
use phaseloop::LoopHandle;

/// How long the next piece of a body may take, in milliseconds.
const BODY_TIMEOUT: u32 = 300_000;

/// Where the pieces of a body come from. The body owns it; a body that is dropped closes the
/// connection, or gives it back if all is there.
struct Source {
    exchange: Rc<Exchange>,
    incoming: IncomingMessage,
    decoder: RefCell<Option<Decoder>>,
    /// Fires if no piece comes for too long.
    timeout: RefCell<Option<Timeout>>,
    /// Whether the message has ended. Pieces may wait in the decoder.
    has_ended: Cell<bool>,
    is_over: Cell<bool>,
}

/// The way back from the message to the body, which the message does not own.
struct Link {
    source: Weak<Source>,
    body: Box<dyn Fn() -> Option<Readable<Vec<u8>>>>,
}

impl Link {
    fn with(&self, call: impl FnOnce(&Source, &Readable<Vec<u8>>)) {
        if let (Some(source), Some(body)) = (self.source.upgrade(), (self.body)()) {
            call(&source, &body);
        }
    }
}

/// Returns the body of a response.
///
/// # Errors
///
/// The body has more codings than are undone.
pub(super) fn body_of(
    exchange: &Rc<Exchange>,
    incoming: &IncomingMessage,
) -> Result<Readable<Vec<u8>>, Error> {
    let codings = incoming.headers().get("content-encoding");
    let source = Rc::new(Source {
        exchange: exchange.clone(),
        incoming: incoming.clone(),
        decoder: RefCell::new(Decoder::of(codings)?),
        timeout: RefCell::default(),
        has_ended: Cell::new(false),
        is_over: Cell::new(false),
    });
    let (reads, destroys) = (source.clone(), source.clone());
    let body = Readable::bytes()
        .read(move |body, _| reads.read(body))
        .destroy(move |error, done| {
            destroys.cancel();
            done.pass(error);
        })
        .build();
    // A body that fails before it is read is no uncaught error.
    body.on(ERROR, |_| ());
    // A promise of the text holds the body. It is dropped with the loop.
    Node::current().emitters.insert(body.emitter());
    let link = || Link {
        source: Rc::downgrade(&source),
        body: body.weak_this(),
    };
    let [data, end, error, abort, late] = [(); 5].map(|()| link());
    let (delay, site) = (BODY_TIMEOUT.into(), exchange.site());
    let timeout = set_timeout_mut_at(delay, site, move |_| late.with(Source::timed_out));
    timeout.unref();
    source.timeout.replace(Some(timeout));
    incoming.on_data(move |bytes| data.with(|source, body| source.received(body, bytes)));
    incoming.on(END, move |()| end.with(Source::ended));
    incoming.on(ERROR, move |what| {
        error.with(|source, body| source.failed(body, what))
    });
    exchange.when_aborted(move |reason| abort.with(|_, body| body.destroy(Some(reason))));
    Ok(body)
}

impl Source {
    /// The reader wants more.
    fn read(&self, body: &Readable<Vec<u8>>) {
        if self.pump(body) && !self.has_ended.get() {
            self.is_active();
            self.incoming.resume();
        }
    }

    /// Starts the time for the next piece.
    fn is_active(&self) {
        if let Some(timeout) = &*self.timeout.borrow() {
            timeout.refresh();
        }
    }

    fn stop_timer(&self) {
        let timeout = self.timeout.take();
        if let Some(timeout) = timeout {
            timeout.close();
        }
    }

    /// No piece has come for too long. A reader that does not read may take its time.
    fn timed_out(&self, body: &Readable<Vec<u8>>) {
        if !self.incoming.readable().is_paused() {
            let error = Error::named("BodyTimeoutError", "Body Timeout Error");
            body.destroy(Some(terminated(error.coded("UND_ERR_BODY_TIMEOUT"))));
        }
    }

    fn received(&self, body: &Readable<Vec<u8>>, bytes: &[u8]) {
        self.is_active();
        let is_packed = match &mut *self.decoder.borrow_mut() {
            Some(decoder) => {
                decoder.feed(bytes.to_vec());
                true
            }
            None => false,
        };
        let has_room = match is_packed {
            true => self.pump(body),
            false => body.push(bytes.to_vec()),
        };
        if !has_room {
            self.incoming.pause();
        }
    }

    fn ended(&self, body: &Readable<Vec<u8>>) {
        self.has_ended.set(true);
        self.stop_timer();
        self.pump(body);
    }

    /// Unpacks until the body is full. Returns whether it has room.
    fn pump(&self, body: &Readable<Vec<u8>>) -> bool {
        loop {
            let stepped = match &mut *self.decoder.borrow_mut() {
                Some(decoder) => decoder.step(),
                None => Ok(None),
            };
            let stepped = match stepped {
                Ok(None) if self.has_ended.get() => return self.finish(body),
                other => other,
            };
            match stepped {
                Ok(Some(bytes)) => {
                    if !body.push(bytes) {
                        return false;
                    }
                }
                Ok(None) => return true,
                Err(error) => {
                    body.destroy(Some(terminated(error)));
                    return false;
                }
            }
        }
    }

    /// Passes on what the decoder still has, and the end.
    fn finish(&self, body: &Readable<Vec<u8>>) -> bool {
        loop {
            let rest = match &mut *self.decoder.borrow_mut() {
                Some(decoder) => decoder.finish(),
                None => Ok(None),
            };
            match rest {
                Ok(Some(bytes)) => {
                    if !body.push(bytes) {
                        return false;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    body.destroy(Some(terminated(error)));
                    return false;
                }
            }
        }
        if !self.is_over.replace(true) {
            self.exchange.over();
            body.push_end();
        }
        false
    }

    // H92.
    fn failed(&self, body: &Readable<Vec<u8>>, error: &Error) {
        let cause = match (error.code(), self.exchange.broken()) {
            (Some("ECONNRESET"), Some(why)) => cause_of(&why),
            (Some("ECONNRESET"), None) => other_side_closed(),
            _ => error.clone(),
        };
        body.destroy(Some(terminated(cause)));
    }

    /// The body is not read to its end.
    fn cancel(&self) {
        self.stop_timer();
        if self.is_over.replace(true) {
            return;
        }
        self.exchange.over();
        if self.incoming.complete() {
            self.incoming.dump();
        } else {
            self.incoming.destroy(None);
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // A loop that is dropped closes its sockets itself.
        if LoopHandle::try_current().is_some() {
            self.cancel();
        }
    }
}
