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
