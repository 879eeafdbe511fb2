//! Streams: sequences of values that arrive over time.
//!
//! [`time::Interval`](crate::time::Interval), [`JoinSet`](crate::task::JoinSet), the accepted
//! connections of a listener, signals, directory entries and file events are streams. They
//! implement [`Stream`], the trait of the `futures` crate. [`StreamExt`] has the methods `next`,
//! `map`, `take` and others, [`TryStreamExt`] has `try_next`, `try_collect` and others for streams
//! of results. All of them are those of the `futures` crate.
//!
//! ```
//! use std::time::Duration;
//! use phaseloop::{stream::StreamExt, time::interval};
//!
//! #[phaseloop::main]
//! async fn main() {
//!     let ticks = interval(Duration::from_millis(1)).take(3);
//!     assert_eq!(ticks.count().await, 3);
//! }
//! ```

pub use futures::stream::{Stream, StreamExt, TryStream, TryStreamExt};
