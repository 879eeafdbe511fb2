//! Threads with their own loops that exchange messages: Node's `worker_threads` with
//! `MessageChannel`, `MessagePort` and `Worker`.
//!
//! ```
//! use std::{cell::Cell, rc::Rc};
//! use phaseloop_node as node;
//! use phaseloop_node::{Emitter, worker_threads::{EXIT, Worker}};
//!
//! fn main() {
//!     let sum = Rc::new(Cell::new(0));
//!     let seen = sum.clone();
//!     let exit = node::run(async move {
//!         let worker = Worker::new(|port| async move {
//!             let parent = port.clone();
//!             port.on_message(move |n: &u32| {
//!                 parent.post_message(n * 2);
//!                 parent.close();
//!             });
//!         })?;
//!         worker.on_message(move |n| seen.set(*n));
//!         worker.on(EXIT, |code| assert_eq!(*code, 0));
//!         worker.post_message(21);
//!         Ok::<_, std::io::Error>(())
//!     });
//!     assert_eq!((exit.code(), sum.get()), (0, 42));
//! }
//! ```
//!
//! Each message is a callback of the poll phase, with a drain of the lanes after it. A visit to a
//! port delivers messages until the port is empty, including those posted meanwhile. It stops after
//! 1000 messages, or after the number that waited at its start if that is more. Ports with messages
//! are visited in the order of their creation, after the results of the thread pool.
//!
//! Messages are moved, not copied, and can be of any type. A port that stays on its thread can
//! carry an `Rc`; a port that [moves](MessagePort::detach) to another thread carries `Send` values.
//!
//! | Node | here |
//! |---|---|
//! | `new MessageChannel()` | [`MessageChannel`] |
//! | `new BroadcastChannel(name)` | [`BroadcastChannel`] |
//! | `new Worker(file)`, `parentPort` | [`Worker::new`], the port that its function gets |
//! | `worker.threadId` | [`Worker::thread_id`] |
//! | `threadId`, `isMainThread` | [`thread_id`], [`is_main_thread`] |
//! | `getEnvironmentData(key)` | [`get_environment_data`] |
//! | `setEnvironmentData(key, value)` | [`set_environment_data`] |
//! | `workerData` | what the function of the worker captures |
//! | `cluster` | none: `examples/cluster.rs` of `phaseloop` shows several loops on one port |
//
// N93, N130.

mod broadcast;
mod environment;
mod port;
mod worker;

pub use self::broadcast::BroadcastChannel;
pub(crate) use self::environment::Environment;
pub use self::environment::{
    get_environment_data, is_main_thread, remove_environment_data, set_environment_data, thread_id,
};
pub use self::port::{CLOSE, DetachedPort, MessageChannel, MessagePort};
pub use self::worker::{EXIT, ONLINE, Worker};
