//! A loop in a child after `fork`: libuv's `uv_loop_fork`.

use std::io;

use super::core::Core;
use super::handle::LoopHandle;

impl LoopHandle {
    /// Makes the loop usable in a child process after `fork` without `exec`. libuv's
    /// `uv_loop_fork`; Linux only.
    ///
    /// The child's copy of a loop shares its kernel objects with the parent. Until this is called,
    /// the child can drop what it has of the loop, and the parent does not notice. It cannot run
    /// it: runs and new sources fail. Call this in the child, for each loop that is to go on there.
    /// Without a fork it does nothing.
    ///
    /// What was there goes on in the child: timers, hooks, tasks, sources and poll handles with
    /// those who wait for them, listeners to signals, file watchers. Sockets are shared with the
    /// parent: what one reads, the other does not. Lost in the child are signals and sends to async
    /// handles that were not delivered before the fork, and jobs of the pool: their callbacks are
    /// not called, futures that await them stay pending, and they keep the loop alive no more. New
    /// jobs get threads of the child's own. The children of the parent are no children of this
    /// process: waiting for them ends with `ECHILD`.
    ///
    /// # What `fork` itself asks for
    ///
    /// Only the thread that calls `fork` goes on in the child. A lock that another thread held then
    /// stays locked for ever. So fork before threads are started, or while they rest: no job of the
    /// pool, no [`Remote`](crate::Remote) in use. A child that wants another program is better
    /// served by [`process::Command`](crate::process::Command).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) anywhere but on Linux. Any OS error of
    /// `epoll_create1`, `eventfd`, `inotify_init1` and `epoll_ctl`; the loop can be dropped then.
    pub fn reinit_after_fork(&self) -> io::Result<()> {
        self.core().reinit_after_fork()
    }
}

impl Core {
    fn reinit_after_fork(&self) -> io::Result<()> {
        if !self.poller.is_inherited() {
            return Ok(());
        }
        self.poller.reinit()?;
        self.asyncs.forget_sent();
        self.lose_jobs();
        let sources = self.sources.list();
        let mut result = sources
            .iter()
            .try_for_each(|source| source.register_again(&self.poller));
        result = result.and(self.register_polls_again());
        result.and(self.reinit_late())
    }
}
