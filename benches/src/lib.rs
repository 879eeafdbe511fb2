//! What one operation costs on phaseloop, and on its peers in the same run.
//!
//! `cargo bench --manifest-path benches/Cargo.toml` prints the tables and writes the report;
//! `-- --help` shows its options, `METHOD.md` says what is measured and what is not.
//!
//! | file | |
//! |---|---|
//! | `catalogue.rs` | the workloads and the runtimes by name |
//! | `own.rs` | workloads of your own: one registration each |
//! | `runtime.rs`, `runtime/` | the runtimes with futures, behind a few traits |
//! | `workload.rs`, `workload/` | what they do, written once over these traits |
//! | `peer.rs`, `peer/` | peers without futures |
//! | `client.rs`, `client/` | the other end of the socket workloads |
//! | `meter.rs`, `latency.rs` | what is read before and after |
//! | `cell.rs`, `costs.rs`, `allocs.rs` | one workload on one runtime; `allocs.rs` counts |
//! | `echo.rs`, `examples/` | the smallest programs, for their size |
//! | `compare.rs`, `compare/`, `driver.rs` | runs these for every pair, prints the tables, writes the report |

mod affinity;
pub mod catalogue;
pub mod cell;
mod client;
pub mod compare;
pub mod echo;
pub mod latency;
pub mod meter;
pub mod own;
mod peer;
mod runtime;
mod workload;

/// The longest time in seconds that a process may be given.
pub(crate) const LONGEST_LIMIT: u64 = 900;
