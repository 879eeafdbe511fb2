//! The workloads, each written once over the traits of `runtime.rs`.
//!
//! Each function is one question of the kind "what does this operation cost?", and does it `n`
//! times. The measured part runs in a spawned task; what the loop does between two polls of it is
//! measured with it.

pub(crate) mod axum;
mod axum_app;
pub(crate) mod bursts;
pub(crate) mod cluster;
pub(crate) mod fairness;
pub(crate) mod growth;
pub(crate) mod http;
pub(crate) mod lanes;
pub(crate) mod memory;
pub(crate) mod node_http;
pub(crate) mod pool;
pub(crate) mod process;
pub(crate) mod sockets;
pub(crate) mod sync;
pub(crate) mod tasks;
pub(crate) mod timers;
