//! A loop in a child after `fork`: libuv's `uv_loop_fork`.

use std::io;

use super::loop_handle::LoopHandle;

impl LoopHandle {
    /// Makes the loop usable in a child process after `fork` without `exec`, on Linux only. It is
    /// libuv's `uv_loop_fork`.
    ///
    /// The child's copy of a loop shares its kernel objects with the parent. Before this call, the
    /// child can drop the loop and its handles without an effect on the parent, but it cannot run
    /// the loop: runs and new sources fail. Call this in the child for each loop that it continues
    /// to use. Without a fork the call has no effect.
    ///
    /// After this call, too, the drop of what was made before the fork has no effect on the parent:
    /// no direction of a socket is shut down, no socket's file is removed, and no terminal gets its
    /// settings back. The parent does that when it drops its copy.
    ///
    /// Timers, hooks, tasks, sources and poll handles with their waiters, signal listeners and file
    /// watchers continue in the child. Sockets are shared with the parent: data that one process
    /// reads does not reach the other. Signals and sends to async handles that were not delivered
    /// before the fork are lost in the child, and so are jobs of the pool: their callbacks are not
    /// called, futures that await them stay pending, and they no longer keep the loop alive. New
    /// jobs run on threads of the child. The children of the parent are not children of this
    /// process: waiting for them fails with `ECHILD`.
    ///
    /// # What `fork` itself asks for
    ///
    /// Only the thread that calls `fork` continues in the child. A lock that another thread held
    /// stays locked for ever. So fork before threads are started, or while they are idle: without a
    /// job on the pool and without a [`Remote`](crate::Remote) in use. To run another program, use
    /// [`process::Command`](crate::process::Command).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) anywhere but on Linux. Any OS error of
    /// `epoll_create1`, `eventfd`, `inotify_init1` and `epoll_ctl`. After an error the loop can
    /// only be dropped.
    pub fn reinit_after_fork(&self) -> io::Result<()> {
        self.core().reinit_after_fork()
    }
}
