//! Guides: from tokio to this crate, which crates of the ecosystem work how, what authors of
//! libraries implement, and how tests try orders. The guide for ports from Node is the
//! front page of the crate `phaseloop-node`.

#[doc = include_str!("guide/crates.md")]
pub mod crates {}
#[doc = include_str!("guide/from_tokio.md")]
pub mod from_tokio {}
#[doc = include_str!("guide/libraries.md")]
pub mod libraries {}
#[doc = include_str!("guide/orders.md")]
pub mod orders {}
