//! Streams: sequences of values that arrive over time.
//!
//! [`time::Interval`](crate::time::Interval), [`JoinSet`](crate::task::JoinSet), the accepted
//! connections of a listener, signals, directory entries and file events are streams. They
//! implement [`Stream`] of the `futures` crate, and [`StreamExt`] has the methods `next`, `map`,
//! `take` and others. This module re-exports the items of `futures::stream`.
//!
//! ```
//! use std::time::Duration;
//! use phaseloop::{stream::StreamExt, time::interval};
//!
//! phaseloop::block_on(async {
//!     let ticks = interval(Duration::from_millis(1)).take(3);
//!     assert_eq!(ticks.count().await, 3);
//! });
//! ```

pub use futures::stream::{Stream, StreamExt, TryStreamExt};
