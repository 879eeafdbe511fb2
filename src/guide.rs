//! Guides: recipes, the way from tokio and libuv to this crate, which crates of the ecosystem work
//! how, what authors of libraries implement, how tests try orders, how to find out why a program
//! hangs, platforms, and what is stable. The guide for ports from Node is the front page of the
//! crate `phaseloop-node`.

#[doc = include_str!("guide/cookbook.md")]
// `tests/bridges` compiles and runs the first of these pages, `phaseloop-node` and `phaseloop-js`
// the others.
#[cfg_attr(not(doctest), doc = include_str!("guide/cookbook_features.md"))]
#[cfg_attr(not(doctest), doc = include_str!("guide/cookbook_node.md"))]
#[cfg_attr(not(doctest), doc = include_str!("guide/cookbook_js.md"))]
pub mod cookbook {}
#[doc = include_str!("guide/crates.md")]
pub mod crates {}
#[doc = include_str!("guide/diagnosing.md")]
pub mod diagnosing {}
#[doc = include_str!("guide/from_libuv.md")]
pub mod from_libuv {}
#[doc = include_str!("guide/from_tokio.md")]
pub mod from_tokio {}
#[doc = include_str!("guide/libraries.md")]
pub mod libraries {}
#[doc = include_str!("guide/orders.md")]
pub mod orders {}
#[doc = include_str!("guide/platforms.md")]
pub mod platforms {}
#[doc = include_str!("guide/stability.md")]
pub mod stability {}
