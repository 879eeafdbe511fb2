//! The bridges to hyper, axum, tower and tokio's I/O traits.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "what tests of other systems use")
)]

#[path = "../../../util"]
mod util {
    pub(crate) mod clusters;
    pub(crate) mod files;
    pub(crate) mod json;
    pub(crate) mod polls;
}

mod axum_load;
#[path = "../../../sim/both.rs"]
mod both;
mod bridges;
mod cluster;
mod connector;
mod future_sizes;
mod json;
mod names;
mod serve;
mod simulated;
