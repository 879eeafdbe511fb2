//! Public types that the system layer uses as well as the modules in which users find them.
//!
//! | file | type | users find it in |
//! |---|---|---|
//! | `poll_events.rs` | [`PollEvents`] | `io` |
//! | `stdio_kind.rs` | [`StdioKind`] | `io` |
//! | `tty_mode.rs` | `Mode` | `tty` |
//! | `watch_kind.rs` | `WatchKind` | `fs` |

mod poll_events;
mod stdio_kind;
#[cfg(all(unix, feature = "tty"))]
mod tty_mode;
#[cfg(feature = "fs")]
mod watch_kind;

pub use poll_events::PollEvents;
pub use stdio_kind::StdioKind;
#[cfg(all(unix, feature = "tty"))]
pub use tty_mode::Mode;
#[cfg(feature = "fs")]
pub use watch_kind::WatchKind;
