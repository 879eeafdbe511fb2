//! Streams: sequences of values that arrive over time.
//!
//! [`time::Interval`](crate::time::Interval), [`JoinSet`](crate::task::JoinSet), the accepted
//! connections of a listener, signals, directory entries and file events are streams. They
//! implement [`Stream`], the trait of the `futures` crate. [`StreamExt`] has the methods `next`,
//! `map`, `take`, `try_next` and others. It comes from `futures-lite`, which is built quickly;
//! `futures::StreamExt` works on these streams as well.
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

pub use futures_lite::stream::{Stream, StreamExt};
