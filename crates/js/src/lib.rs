//! JavaScript on phaseloop's event loop, in Node's order.
//!
//! An [`Engine`] is QuickJS on the current loop. Its jobs and the microtasks of Rust are one queue,
//! so a program may be part JavaScript and part Rust, and prints what it prints on Node. The timers,
//! ticks, rejections and exit codes are those of `phaseloop-node`.
//!
//! ```
//! use phaseloop_js::{Engine, Error};
//!
//! fn main() {
//!     let exit = phaseloop_node::run(async {
//!         let engine = Engine::new()?;
//!         engine.function("double", |args| Ok(args.get::<f64>(0)? * 2.0))?;
//!         let sum = engine.run("sum.js", "require('rust:app').double(20) + 2")?;
//!         assert_eq!(sum.to::<f64>()?, 42.0);
//!         Ok::<_, Error>(())
//!     });
//!     assert!(exit.into_output().unwrap().is_ok());
//! }
//! ```
//!
//! # Port a Node program file by file
//!
#![doc = include_str!("../docs/port.md")]
//! # Differences from Node
//!
#![doc = include_str!("../docs/differences.md")]

mod api;
mod builder;
mod convert;
mod data;
mod engine;
mod error;
mod natives;
mod rejections;

pub use self::api::{Engine, IntoArgs, Module, Promise, Value, main};
pub use self::builder::{Builder, Console, Files, Modules};
pub use self::convert::{Args, FromJs, ToJs};
pub use self::error::Error;

/// Compiles and runs the recipe of `phaseloop::guide::cookbook`.
#[cfg(doctest)]
#[doc = include_str!("../../../src/guide/cookbook_js.md")]
struct Cookbook;
