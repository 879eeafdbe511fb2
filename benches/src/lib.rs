//! What one operation costs on phaseloop, and on tokio and smol in the same run.
//!
//! `cargo bench --manifest-path benches/Cargo.toml` prints the table; see `compare.rs` for its options.
//!
//! | file | |
//! |---|---|
//! | `runtime.rs` | the runtimes |
//! | `workload.rs` | what they do |
//! | `meter.rs` | what is read before and after |
//! | `costs.rs`, `allocs.rs` | one workload on one runtime; the second counts allocations |
//! | `compare.rs` | runs these for every pair and prints the tables |

pub mod catalogue;
pub mod meter;
mod runtime;
mod workload;
