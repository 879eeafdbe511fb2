//! What the layer above, `phaseloop-node`, may do to a loop beyond the public API.
//!
//! It is hidden and promises nothing to others: the two crates are released together.

mod event_loop;
mod timer;

pub use self::event_loop::{Loop, WeakLoop};
pub use self::timer::SharedTimer;
#[cfg(any(feature = "fs", feature = "net"))]
pub use crate::error::os::About;
pub use crate::event_loop::current::{hop, note_wait, note_waker};
pub use crate::event_loop::extension::{Due, Extension, Waiting};
pub use crate::executor::join::panic_message;
pub use crate::executor::notes::{
    Combined, Key as WaitKey, NamedWait, NamedWaits, Source, WaitNote,
};
pub use crate::numbered::{NumberHasher, NumberedMap};
pub use crate::probe::Origin;
pub use crate::raw::call::Call;
pub use crate::raw::nesting::{call_nested, drop_flat};
pub use crate::raw::task::Payload;
pub use crate::raw::thread_bound::ThreadBound;
pub use crate::raw::unwind::{discard, ignore_panic};
pub use crate::sys::errno::{cancelled, name as errno_name};
#[cfg(all(unix, feature = "process"))]
pub use crate::sys::process::inherited::Inherited;
#[cfg(all(unix, feature = "process"))]
pub use crate::sys::process::node_channel::take as take_node_channel;

/// Operations on files for jobs of the pool.
#[cfg(feature = "fs")]
pub mod files {
    use std::io;
    use std::path::Path;

    use crate::error::os::About;
    use crate::fs::job;

    pub use crate::fs::ops::retry;
    pub use crate::sys::fs::{at_position, close, create_dir, open, read_at, set_mode, write_at};

    /// Runs an operation as one job of the pool. `about` names its object in the error of a job
    /// that cannot be queued.
    #[doc(hidden)]
    pub fn run_on<T: Send + 'static>(
        operation: &'static str,
        about: impl Fn() -> About,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> impl Future<Output = io::Result<T>> {
        job::run_on(operation, about, job)
    }

    /// Runs an operation on a path. An error names the operation and the path.
    #[doc(hidden)]
    pub fn on_path<T: Send + 'static>(
        operation: &'static str,
        path: impl AsRef<Path>,
        job: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> impl Future<Output = io::Result<T>> {
        job::on_path(operation, path, job)
    }
}

/// The values of context variables, and how they follow what is queued.
pub mod frame {
    pub use crate::event_loop::current::{log_value, use_contexts};
    pub use crate::frame::{
        Frame, Key, Tracker, Work, carry, is_plain, is_tracked, is_used, set_tracker,
        without_context,
    };
}

/// Lines on standard error.
pub mod stderr {
    pub use crate::stderr::{print, write};
}
