//! A child process.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::process::{ExitStatus, Output};
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::io::AsyncRead;

#[cfg(unix)]
use super::channel::Channel;
use super::children::{ChildState, End};
use crate::error::Error;
use crate::io::{PipeReader, PipeWriter};
use crate::raw::bound::Bound;
use crate::runtime::handle::{Handle, HandleCore, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::signal::SignalKind;
use crate::sys::errno::cancelled;
use crate::wait_list::WaitKey;

/// The writing end of the child's standard input.
pub type ChildStdin = PipeWriter;

/// The reading end of the child's standard output.
pub type ChildStdout = PipeReader;

/// The reading end of the child's standard error.
pub type ChildStderr = PipeReader;

/// A child process.
///
/// It is *active* from its start until its exit is delivered in the poll phase, and keeps the loop
/// alive for that time, unless it is [unref'd](Handle::unref). Dropping it does not end the
/// process; [the module](super) says how it is reaped.
///
/// # Examples
///
/// ```
/// use phaseloop::io::AsyncWriteExt;
/// use phaseloop::process::{Command, Stdio};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
///     child.stdin.as_mut().unwrap().write_all(b"hello").await?;
///     let output = child.wait_with_output().await?;
///     assert_eq!(output.stdout, b"hello");
///     Ok(())
/// }
/// ```
pub struct Child {
    /// The child's standard input, if it was [piped](super::Stdio::piped).
    pub stdin: Option<ChildStdin>,
    /// The child's standard output, if it was [piped](super::Stdio::piped).
    pub stdout: Option<ChildStdout>,
    /// The child's standard error, if it was [piped](super::Stdio::piped).
    pub stderr: Option<ChildStderr>,
    /// The channel to the child, if one was [requested](super::Command::channel). Unix only.
    #[cfg(unix)]
    pub channel: Option<Channel>,
    core: HandleCore,
    state: Bound<Rc<ChildState>>,
    kill_on_drop: bool,
}

impl Child {
    pub(super) fn new(core: HandleCore, state: Rc<ChildState>, kill_on_drop: bool) -> Self {
        Self {
            stdin: None,
            stdout: None,
            stderr: None,
            #[cfg(unix)]
            channel: None,
            core,
            state: Bound::new(state),
            kill_on_drop,
        }
    }

    /// Returns the process id. After the exit was delivered, the kernel may reuse it.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut child = Command::new("true").spawn()?;
    ///     assert_ne!(child.id(), std::process::id());
    ///     child.wait().await?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn id(&self) -> u32 {
        self.state.process.id()
    }

    /// Closes [`stdin`](Self::stdin) and waits until the child exits. The task is woken in the poll
    /// phase.
    ///
    /// A child that writes to a pipe may wait until the pipe is read: read its output meanwhile, or
    /// drop it.
    ///
    /// # Errors
    ///
    /// `ECHILD` if other code in the process has reaped the child, or if SIGCHLD is ignored. An
    /// error with [`Error`](crate::Error) as its source if the loop was dropped.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the child runs on, and `wait` can be called again.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn()?;
    ///     assert_eq!(child.wait().await?.code(), Some(3));
    ///     assert_eq!(child.wait().await?.code(), Some(3)); // it may be awaited again
    ///     Ok(())
    /// }
    /// ```
    pub fn wait(&mut self) -> impl Future<Output = io::Result<ExitStatus>> {
        Wait {
            child: self,
            waiting: None,
        }
    }

    /// Returns a future for the exit of the child, which borrows nothing: the child can be waited
    /// for, signalled or dropped meanwhile. It leaves [`stdin`](Self::stdin) open.
    ///
    /// # Errors
    ///
    /// The errors of [`wait`](Self::wait).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the child runs on, and another future can wait for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let child = Command::new("true").spawn()?;
    ///     let exited = child.exited(); // does not borrow the child: another task may wait
    ///     let waiting = phaseloop::spawn(exited);
    ///     assert!(waiting.await.unwrap()?.success());
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "futures do nothing unless awaited"]
    pub fn exited(&self) -> Exited {
        Exited {
            handle: self.core.handle.clone(),
            state: self.state.clone(),
            waiting: None,
        }
    }

    /// Returns the exit status if the child has exited. It asks the kernel (`waitpid`) and does not
    /// wait.
    ///
    /// Tasks that [wait](Self::wait) are still woken in the poll phase.
    ///
    /// # Errors
    ///
    /// The errors of [`wait`](Self::wait).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut child = Command::new("sleep").arg("60").kill_on_drop(true).spawn()?;
    ///     assert!(child.try_wait()?.is_none(), "it still runs");
    ///     child.kill().await?;
    ///     assert!(child.try_wait()?.is_some());
    ///     Ok(())
    /// }
    /// ```
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.state.look().map(End::result).transpose()
    }

    /// Closes [`stdin`](Self::stdin), waits until the child exits and collects its output. Both
    /// streams are read concurrently, so that neither pipe fills up. A stream that was not piped,
    /// or was taken, yields no bytes.
    ///
    /// It also waits for EOF of both streams, which other processes may hold open.
    ///
    /// # Errors
    ///
    /// The errors of [`wait`](Self::wait), and any OS error of `read`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the output read so far is lost and the `Child` is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::{Command, Stdio};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let child = Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?;
    ///     let output = child.wait_with_output().await?;
    ///     assert_eq!((output.status.success(), output.stdout), (true, b"hello\n".to_vec()));
    ///     Ok(())
    /// }
    /// ```
    pub fn wait_with_output(self) -> impl Future<Output = io::Result<Output>> + Unpin {
        Collecting {
            exited: self.exited(),
            child: Box::new(self),
            status: None,
            stdout: Collect::default(),
            stderr: Collect::default(),
        }
    }

    /// Waits as [`wait`](Self::wait) does, and keeps the child until then.
    pub(super) fn wait_owned(mut self) -> impl Future<Output = io::Result<ExitStatus>> + Unpin {
        drop(self.stdin.take());
        let (mut exited, child) = (self.exited(), Box::new(self));
        poll_fn(move |cx| {
            // The child is dropped with the future.
            let _ = &child;
            Pin::new(&mut exited).poll(cx)
        })
    }

    /// Kills the child, closes [`stdin`](Self::stdin) and waits until the child exits; see
    /// [`start_kill`](Self::start_kill).
    ///
    /// # Errors
    ///
    /// The errors of [`start_kill`](Self::start_kill) and [`wait`](Self::wait).
    ///
    /// # Cancel safety
    ///
    /// The signal is sent by the first poll. If the future is dropped later, the child ends
    /// nevertheless, and [`wait`](Self::wait) returns its status.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut child = Command::new("sleep").arg("60").spawn()?;
    ///     child.kill().await?;
    ///     assert!(!child.try_wait()?.expect("it has exited").success());
    ///     Ok(())
    /// }
    /// ```
    pub async fn kill(&mut self) -> io::Result<()> {
        self.start_kill()?;
        self.wait().await?;
        Ok(())
    }

    /// Sends SIGKILL to the child and does not wait for its exit. It succeeds if the child has
    /// exited already. On Windows it terminates the process, with exit code 1.
    ///
    /// # Errors
    ///
    /// Any OS error of `pidfd_send_signal`, `kill` or `TerminateProcess`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut child = Command::new("sleep").arg("60").spawn()?;
    ///     child.start_kill()?; // sends SIGKILL, and does not wait
    ///     assert!(!child.wait().await?.success());
    ///     Ok(())
    /// }
    /// ```
    pub fn start_kill(&self) -> io::Result<()> {
        if self.state.look().is_some() {
            return Ok(());
        }
        self.state.signal(SignalKind::KILL.as_raw())
    }

    /// Sends a signal to the child. Signal 0 only checks whether a signal could be sent.
    ///
    /// On Windows, SIGINT, SIGQUIT, SIGTERM and SIGKILL terminate the process, as libuv does; it
    /// cannot catch them.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for an invalid signal number. `ESRCH` once the
    /// child is reaped: its process id may be reused by then. A child that has exited and is not
    /// reaped yet accepts every signal. On Windows [`NotFound`](io::ErrorKind::NotFound) once it
    /// has exited, and [`Unsupported`](io::ErrorKind::Unsupported) for the other signals.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::os::unix::process::ExitStatusExt;
    /// use phaseloop::{process::Command, signal::SignalKind};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut child = Command::new("sleep").arg("60").spawn()?;
    ///     child.signal(SignalKind::TERM)?;
    ///     assert_eq!(child.wait().await?.signal(), Some(SignalKind::TERM.as_raw()));
    ///     Ok(())
    /// }
    /// ```
    pub fn signal(&self, kind: SignalKind) -> io::Result<()> {
        let sent = self.state.signal(kind.as_raw());
        sent.map_err(|error| kind.explain(error))
    }
}

impl_handle!(Child, |this| &this.core);

impl Drop for Child {
    #[inline]
    fn drop(&mut self) {
        if self.kill_on_drop {
            // The error is ignored: the child has exited, or was reaped by other code.
            let _ = self.start_kill();
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

/// Waits until a [`Child`] exits; returned by [`Child::exited`].
///
/// The child keeps the loop alive, not this future.
///
/// # Cancel safety
///
/// Dropping the future deregisters its waker; [`Child::exited`] can be called again.
///
/// # Examples
///
/// ```
/// use phaseloop::process::Command;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let child = Command::new("sleep").arg("60").spawn()?;
///     let exited = child.exited();
///     child.start_kill()?;
///     assert!(!exited.await?.success());
///     Ok(())
/// }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Exited {
    handle: LoopHandle,
    state: Rc<ChildState>,
    /// The key of the waker in the wait list, while the future waits.
    waiting: Option<WaitKey>,
}

impl Future for Exited {
    type Output = io::Result<ExitStatus>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        let Self {
            handle,
            state,
            waiting,
        } = &mut *self;
        poll_exit(handle, state, waiting, cx)
    }
}

/// Polls the exit of a child, with the key of the waker in the wait list.
fn poll_exit(
    handle: &LoopHandle,
    state: &ChildState,
    waiting: &mut Option<WaitKey>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<ExitStatus>> {
    if let Some(end) = state.announced_end() {
        *waiting = None;
        return Poll::Ready(end.result());
    }
    // A wait that had begun was cancelled by the end of its loop. One that begins now finds none.
    if waiting.is_none() && handle.is_closed() {
        return Poll::Ready(Err(io::Error::other(Error::LOOP_CLOSED)));
    }
    let key = state.wait(*waiting, cx.waker());
    // Asked after the clone of the waker, which may run user code that closes the handle.
    if state.is_closed() {
        state.stop_waiting(key);
        *waiting = None;
        return Poll::Ready(Err(cancelled()));
    }
    *waiting = Some(key);
    Poll::Pending
}

/// Closes the input of a child and waits until it exits.
struct Wait<'a> {
    child: &'a mut Child,
    waiting: Option<WaitKey>,
}

impl Future for Wait<'_> {
    type Output = io::Result<ExitStatus>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        let Self { child, waiting } = &mut *self;
        drop(child.stdin.take());
        poll_exit(&child.core.handle, &child.state, waiting, cx)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.waiting.take() {
            self.child.state.stop_waiting(key);
        }
    }
}

impl Drop for Exited {
    fn drop(&mut self) {
        if let Some(key) = self.waiting.take() {
            self.state.stop_waiting(key);
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

/// Waits until a child exits, and collects its output meanwhile.
struct Collecting {
    exited: Exited,
    /// Boxed, so that the future is small.
    child: Box<Child>,
    status: Option<ExitStatus>,
    stdout: Collect,
    stderr: Collect,
}

impl Future for Collecting {
    type Output = io::Result<Output>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Output>> {
        let this = self.get_mut();
        drop(this.child.stdin.take());
        if this.status.is_none() {
            if let Poll::Ready(status) = Pin::new(&mut this.exited).poll(cx) {
                this.status = Some(status?);
            }
        }
        let is_read = [
            this.stdout.poll(&mut this.child.stdout, cx)?,
            this.stderr.poll(&mut this.child.stderr, cx)?,
        ];
        match this.status {
            Some(status) if is_read.iter().all(Poll::is_ready) => Poll::Ready(Ok(Output {
                status,
                stdout: this.stdout.take_bytes(),
                stderr: this.stderr.take_bytes(),
            })),
            _ => Poll::Pending,
        }
    }
}

/// Reads a stream to EOF.
#[derive(Default)]
struct Collect {
    /// What was read, and room for more.
    buffer: Vec<u8>,
    filled: usize,
}

impl Collect {
    /// The least room that is added.
    const ROOM: usize = 8 * 1024;

    /// Reads available bytes. Ready at EOF, when the reader is `None`.
    #[inline]
    fn poll(
        &mut self,
        stream: &mut Option<PipeReader>,
        cx: &mut Context<'_>,
    ) -> io::Result<Poll<()>> {
        while let Some(reader) = stream {
            if self.filled == self.buffer.len() {
                // It doubles, so that long output takes few, large reads. The room is filled with
                // zeros once, not before each read: a pipe hands long output over in small pieces.
                let room = self.filled.max(Self::ROOM);
                self.buffer.resize(self.filled + room, 0);
            }
            let room = &mut self.buffer[self.filled..];
            match Pin::new(reader).poll_read(cx, room) {
                Poll::Ready(Ok(0)) => *stream = None,
                Poll::Ready(Ok(count)) => self.filled += count,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(Poll::Pending),
            }
        }
        Ok(Poll::Ready(()))
    }

    fn take_bytes(&mut self) -> Vec<u8> {
        self.buffer.truncate(self.filled);
        std::mem::take(&mut self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::Collect;
    use crate::io::pipe;
    use crate::runtime::block_on::block_on;
    use futures::AsyncWriteExt;
    use std::future::poll_fn;
    use std::task::Poll;

    #[test]
    fn output_that_comes_in_pieces_is_not_cleared_again() {
        block_on(async {
            let (reader, mut writer) = pipe().unwrap();
            let (mut stream, mut collect) = (Some(reader), Collect::default());
            for piece in [b"one ", b"two "] {
                writer.write_all(piece).await.unwrap();
                // The reader waits for an event first.
                while !collect.buffer[..collect.filled].ends_with(piece) {
                    poll_fn(|cx| {
                        let before = collect.filled;
                        assert!(collect.poll(&mut stream, cx).unwrap().is_pending());
                        match collect.filled > before {
                            true => Poll::Ready(()),
                            false => Poll::Pending,
                        }
                    })
                    .await;
                }
                let rest = &mut collect.buffer[collect.filled..];
                assert!(rest.iter().all(|byte| [0, 7].contains(byte)));
                assert!(piece == b"one " || rest.iter().all(|byte| *byte == 7));
                rest.fill(7);
            }
            drop(writer);
            poll_fn(|cx| collect.poll(&mut stream, cx).unwrap()).await;
            assert_eq!(collect.take_bytes(), b"one two ");
        });
    }
}
