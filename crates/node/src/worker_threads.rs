//! Threads with their own loops that exchange messages: Node's `worker_threads` with
//! `MessageChannel`, `MessagePort` and `Worker`.
//!
//! Each message is a callback of the poll phase, with a drain of the lanes after it. A visit to a
//! port delivers messages until the port is empty, including those posted meanwhile. It stops after
//! 1000 messages, or after the number that waited at its start if that is more. Ports with messages
//! are visited in the order of their creation, after the results of the thread pool.
//!
//! Messages are moved, not copied, and can be of any type. A port that stays on its thread can
//! carry an `Rc`; a port that [moves](MessagePort::detach) to another thread carries `Send` values.
//
// N93, N130.

mod port;
mod worker;

pub use self::port::{CLOSE, DetachedPort, MessageChannel, MessagePort};
pub use self::worker::{EXIT, ONLINE, Worker};
