//! Loops in threads that send each other messages: `MessageChannel`, `MessagePort`, `Worker`.
//!
//! A message is a callback of the poll phase, with a drain of the lanes after it. One visit to a port goes on until it is
//! empty, messages posted meanwhile included, but not beyond 1000 messages, or those that waited when it began if that is
//! more. Ports that have messages are visited in the order of their creation (N130), after the results of the thread pool
//! (N93).
//!
//! Messages are values of any type, not copies: a port of one thread carries an `Rc`, one that goes
//! [elsewhere](MessagePort::detach) carries what is `Send`.

mod port;
mod worker;

pub use self::port::{CLOSE, DetachedPort, MessageChannel, MessagePort};
pub use self::worker::{EXIT, ONLINE, Worker};
