//! A child that runs, or has.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Output};
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::io::AsyncRead;

use super::channel::Channel;
use crate::error::Error;
use crate::event_loop::api::handle::{Handle, HandleCore, sealed};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::event_loop::phases::children::{ChildState, End};
use crate::io::{PipeReader, PipeWriter};
use crate::signal::SignalKind;
use crate::sys::errno::cancelled;

/// The end of a pipe that the child reads from.
pub type ChildStdin = PipeWriter;

/// The end of a pipe that the child writes its output to.
pub type ChildStdout = PipeReader;

/// The end of a pipe that the child writes its errors to.
pub type ChildStderr = PipeReader;

/// A child process.
///
/// It is *active* from its start until its end was seen in the poll phase, and keeps the loop alive for that time unless
/// [unref'd](Handle::unref). Dropping it lets it run on; see [the module](super) for who waits for it then.
pub struct Child {
    /// Where to write what the child reads, if it was [piped](super::Stdio::piped).
    pub stdin: Option<ChildStdin>,
    /// What the child writes, if it was [piped](super::Stdio::piped).
    pub stdout: Option<ChildStdout>,
    /// Its errors, if they were [piped](super::Stdio::piped).
    pub stderr: Option<ChildStderr>,
    /// The channel to the child, if one was [asked for](super::Command::channel).
    pub channel: Option<Channel>,
    core: HandleCore,
    state: Rc<ChildState>,
    kill_on_drop: bool,
}

impl Child {
    pub(super) fn new(core: HandleCore, state: Rc<ChildState>, kill_on_drop: bool) -> Self {
        Self {
            stdin: None,
            stdout: None,
            stderr: None,
            channel: None,
            core,
            state,
            kill_on_drop,
        }
    }

    /// The number of the process. Once its end was seen, the system may give it to another.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.state.process.id()
    }

    /// Closes the child's standard input, if it is here, and waits for the end of the child. Whoever waits is woken in the
    /// poll phase.
    ///
    /// A child whose output is a pipe that nobody reads may never end: read it meanwhile, or drop it.
    ///
    /// # Errors
    ///
    /// ECHILD when somebody else in the process has waited for it, or SIGCHLD is ignored. The loop's refusal, when it is
    /// gone.
    ///
    /// # Cancel safety
    ///
    /// Given up, it can be called again.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        self.exited().await
    }

    /// A future of its own for the end of the child, which borrows nothing: others may wait, signal or drop the child
    /// meanwhile. It leaves the standard input open.
    #[must_use = "futures do nothing unless awaited"]
    pub fn exited(&self) -> Exited {
        Exited {
            handle: self.core.handle.clone(),
            state: self.state.clone(),
            waiting: None,
        }
    }

    /// How the child has ended, if it has, by asking the system.
    ///
    /// Those who [wait](Self::wait) are told in the poll phase all the same.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.state.look().map(End::result).transpose()
    }

    /// Waits for the end of the child and collects what it writes, both streams at once so that neither can fill up.
    /// Closes the standard input first. The streams that were not piped, or are taken, are empty.
    ///
    /// Waits for the end of the output, too, which other processes may hold open.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait), and those of reading.
    ///
    /// # Cancel safety
    ///
    /// Given up, what was read is lost, and the child dropped.
    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let mut stdout = Collect::new(self.stdout.take());
        let mut stderr = Collect::new(self.stderr.take());
        let mut status = pin!(self.exited());
        let mut ended = None;
        let status = poll_fn(|cx| {
            if ended.is_none() {
                if let Poll::Ready(status) = status.as_mut().poll(cx) {
                    ended = Some(status?);
                }
            }
            let is_read = [stdout.poll(cx)?, stderr.poll(cx)?];
            match ended {
                Some(status) if is_read.iter().all(Poll::is_ready) => Poll::Ready(Ok(status)),
                _ => Poll::Pending,
            }
        });
        let status = status.await.map_err(|error: io::Error| error)?;
        Ok(Output {
            status,
            stdout: stdout.bytes,
            stderr: stderr.bytes,
        })
    }

    /// Ends the child by SIGKILL. Does not wait for its end. Fine if it has ended already.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn kill(&self) -> io::Result<()> {
        if self.state.look().is_some() {
            return Ok(());
        }
        self.state.signal(SignalKind::KILL.as_raw())
    }

    /// Sends a signal to the child; number 0 only asks whether it could be sent.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for what is no signal, ESRCH when the end of the child was seen: its
    /// number may be another's by then. A child that has ended unseen takes every signal.
    pub fn signal(&self, kind: SignalKind) -> io::Result<()> {
        let sent = self.state.signal(kind.as_raw());
        sent.map_err(|error| kind.explain(error))
    }
}

impl Handle for Child {}

impl sealed::Sealed for Child {
    fn handle_core(&self) -> &HandleCore {
        &self.core
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.kill_on_drop {
            // It has ended already, or is not ours to end any more.
            let _ = self.kill();
        }
        self.core.release();
        self.state.abandon(self.core.handle.core());
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("id", &self.id())
            .field("active", &self.is_active())
            .field("stdin", &self.stdin)
            .field("stdout", &self.stdout)
            .field("stderr", &self.stderr)
            .finish_non_exhaustive()
    }
}

/// Waits for the end of a [`Child`]; see [`Child::exited`].
///
/// It does not keep the loop alive, the child does.
///
/// # Cancel safety
///
/// Dropping it takes its waker back.
#[must_use = "futures do nothing unless awaited"]
pub struct Exited {
    handle: LoopHandle,
    state: Rc<ChildState>,
    /// The number of the waiter, while it waits.
    waiting: Option<u64>,
}

impl Future for Exited {
    type Output = io::Result<ExitStatus>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        if let Some(end) = self.state.announced_end() {
            self.waiting = None;
            return Poll::Ready(end.result());
        }
        if self.handle.is_closed() {
            return Poll::Ready(Err(io::Error::other(Error::LOOP_CLOSED)));
        }
        if self.state.is_closed() {
            return Poll::Ready(Err(cancelled()));
        }
        self.waiting = Some(self.state.wait(self.waiting, cx.waker()));
        Poll::Pending
    }
}

impl Drop for Exited {
    fn drop(&mut self) {
        if let Some(id) = self.waiting.take() {
            self.state.stop_waiting(id);
        }
    }
}

impl fmt::Debug for Exited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exited")
            .field("id", &self.state.process.id())
            .finish_non_exhaustive()
    }
}

/// Reads a stream to its end.
struct Collect {
    /// `None` at the end.
    reader: Option<PipeReader>,
    bytes: Vec<u8>,
}

impl Collect {
    /// How much room there is for the next read, at least.
    const ROOM: usize = 8 * 1024;

    fn new(reader: Option<PipeReader>) -> Self {
        Self {
            reader,
            bytes: Vec::new(),
        }
    }

    /// Reads what is there. Ready at the end.
    fn poll(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        while let Some(reader) = &mut self.reader {
            let length = self.bytes.len();
            // Doubled as it grows, so that long output takes few and large reads.
            self.bytes.resize(length + length.max(Self::ROOM), 0);
            let read = Pin::new(reader).poll_read(cx, &mut self.bytes[length..]);
            let count = match &read {
                Poll::Ready(Ok(count)) => *count,
                _ => 0,
            };
            self.bytes.truncate(length + count);
            match read {
                Poll::Ready(Ok(0)) => self.reader = None,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(Poll::Pending),
            }
        }
        Ok(Poll::Ready(()))
    }
}
