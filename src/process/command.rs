//! The builder of child processes.

#[cfg_attr(unix, path = "command/unix.rs")]
#[cfg_attr(not(unix), path = "command/windows.rs")]
mod platform;
mod settings;

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::panic::Location;
use std::path::Path;
use std::pin::Pin;
use std::process::{self, ExitStatus, Output};
use std::task::{Context, Poll};

use self::platform::Options;
use super::child::Child;
use crate::error::OsError;
use crate::error::os::About;
use crate::io::{PipeReader, PipeWriter, pipe};
use crate::keeper::Keeper;
use crate::probe::Area;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::process::{Process, enter_fault, is_limit};

/// Describes a program to start: arguments, environment, directory, descriptors, user and groups.
///
/// The methods are those of [`std::process::Command`] and of its extension for the platform. A
/// command can start any number of children. On Unix a child starts with the default action for
/// every signal and with no signal blocked. It inherits its standard descriptors and those given to
/// `fd`, no others.
///
/// On Windows there are no users, groups, sessions, extra descriptors and channels. The standard
/// library passes all inheritable handles of the process on to a child.
///
/// # Examples
///
/// ```
/// use phaseloop::process::Command;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut command = Command::new("sh");
///     command.args(["-c", "echo $GREETING; exit 3"]).env("GREETING", "hi");
///     let output = command.output().await?;
///     assert_eq!(output.stdout, b"hi\n");
///     assert_eq!(output.status.code(), Some(3));
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_spawn")]
#[doc(alias = "child_process")]
pub struct Command {
    std: process::Command,
    kill_on_drop: bool,
    /// What the platform offers besides.
    options: Options,
    /// Which standard descriptors the caller has set.
    has_stdin: bool,
    has_stdout: bool,
    has_stderr: bool,
    /// Which of them are pipes that a start creates.
    pipes: [bool; 3],
}

/// This side of the pipes of a child: its input, output and errors.
type Pipes = (Option<PipeWriter>, Option<PipeReader>, Option<PipeReader>);

impl Command {
    /// Creates a command for the program of this name or path. It has no arguments, and the
    /// environment, directory and standard descriptors of this process.
    ///
    /// A name without a slash is searched in `PATH`; in the `PATH` of the child, if the command
    /// sets it.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     assert!(Command::new("true").status().await?.success());
    ///     let missing = Command::new("no-such-program").status().await.unwrap_err();
    ///     assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    ///     Ok(())
    /// }
    /// ```
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        process::Command::new(program).into()
    }

    /// Sets whether the child is [killed](Child::start_kill) when its [`Child`] is dropped. The
    /// default is `false`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{process::Command, time::timeout};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut child = Command::new("sleep").arg("60").kill_on_drop(true).spawn()?;
    ///     assert!(timeout(Duration::from_millis(1), child.wait()).await.is_err());
    ///     drop(child); // SIGKILL; the loop reaps it
    ///     Ok(())
    /// }
    /// ```
    pub fn kill_on_drop(&mut self, kill: bool) -> &mut Self {
        self.kill_on_drop = kill;
        self
    }

    /// Starts a child. Standard descriptors that were not set are inherited.
    ///
    /// It returns when the program is loaded, or could not be loaded. This blocks the loop, usually
    /// for less than a millisecond. With `fd`, a user, groups or a session the child is forked,
    /// which takes longer the more memory this process has.
    ///
    /// # Errors
    ///
    /// Any OS error of `posix_spawn`, of `fork` and `exec`, or of `CreateProcess`, such as
    /// [`NotFound`](io::ErrorKind::NotFound) and
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied); [`OsError`](crate::OsError) names the
    /// program or the directory, whichever is at fault. No child is left then.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut child = Command::new("sleep").arg("0").spawn()?;
    ///     println!("process {} runs", child.id());
    ///     assert!(child.wait().await?.success());
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn spawn(&mut self) -> io::Result<Child> {
        let site = Location::caller();
        let handle = LoopHandle::current();
        let started = self.options.start(&mut self.std);
        let (mut started, extra) = started.map_err(|error| cannot_start(error, &self.std))?;
        let streams = Streams::of(&mut started);
        let core = handle.open(Keeper::Child, site);
        let state = handle.core().add_child(
            core.header.clone(),
            Process::of(started),
            self.std.get_program(),
        );
        let header = &core.header;
        handle.core().executor.probe.log(Area::Process, || {
            format!("{} ({site}) is started", header.label(handle.core()))
        });
        let mut child = Child::new(core, state, self.kill_on_drop);
        let streams = streams.register(&mut child, site);
        if let Err(error) = streams.and_then(|()| extra.register(&mut child, site)) {
            let _ = child.start_kill();
            return Err(cannot_start(error, &self.std));
        }
        Ok(child)
    }

    /// Starts a child at once; the future waits until it exits. Standard descriptors that were not
    /// set are inherited.
    ///
    /// # Errors
    ///
    /// The errors of [`spawn`](Self::spawn) and [`Child::wait`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the [`Child`], whose process runs on unless
    /// [`kill_on_drop`](Self::kill_on_drop) is set.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let status = Command::new("sh").args(["-c", "exit 3"]).status().await?;
    ///     assert_eq!(status.code(), Some(3));
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    #[must_use = "the program runs already; its end is known only to who awaits it"]
    #[inline]
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + use<> {
        Started::new(self.spawn(), Child::wait_owned)
    }

    /// Starts a child at once; the future waits until it exits and collects its output. Of the
    /// standard descriptors that were not set, the input is
    /// [`Stdio::null`](crate::process::Stdio::null) and the others are pipes.
    ///
    /// # Errors
    ///
    /// The errors of [`spawn`](Self::spawn) and [`Child::wait_with_output`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the [`Child`], whose process runs on unless
    /// [`kill_on_drop`](Self::kill_on_drop) is set.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let output = Command::new("echo").arg("hello").output().await?;
    ///     assert!(output.status.success());
    ///     assert_eq!(output.stdout, b"hello\n");
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    #[must_use = "the program runs already; its end is known only to who awaits it"]
    #[inline]
    pub fn output(&mut self) -> impl Future<Output = io::Result<Output>> + use<> {
        Started::new(self.spawn_for_output(), Child::wait_with_output)
    }

    #[track_caller]
    #[inline]
    fn spawn_for_output(&mut self) -> io::Result<Child> {
        if !self.has_stdin {
            self.std.stdin(process::Stdio::null());
        }
        if !self.has_stdout {
            self.std.stdout(process::Stdio::piped());
        }
        if !self.has_stderr {
            self.std.stderr(process::Stdio::piped());
        }
        let child = self.spawn();
        // Restored: the next start may be a `spawn`, which inherits descriptors that were not set.
        if !self.has_stdin {
            self.std.stdin(process::Stdio::inherit());
        }
        if !self.has_stdout {
            self.std.stdout(process::Stdio::inherit());
        }
        if !self.has_stderr {
            self.std.stderr(process::Stdio::inherit());
        }
        child
    }

    /// Creates the pipes that a child would have that could not be started: nothing is at their
    /// other ends.
    ///
    /// # Errors
    ///
    /// The errors of [`pipe`](crate::io::pipe()).
    #[doc(hidden)]
    #[track_caller]
    #[inline]
    pub fn pipes_to_nobody(&self) -> io::Result<Pipes> {
        let [stdin, stdout, stderr] = self.pipes;
        let input = stdin.then(|| pipe().map(|(_, input)| input));
        let output = |is_pipe: bool| is_pipe.then(|| pipe().map(|(output, _)| output));
        Ok((
            input.transpose()?,
            output(stdout).transpose()?,
            output(stderr).transpose()?,
        ))
    }

    /// Returns the command of the standard library, to query the settings.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// fn main() {
    ///     let mut command = Command::new("ls");
    ///     command.arg("-l");
    ///     assert_eq!(command.as_std().get_program(), "ls");
    /// }
    /// ```
    #[must_use]
    pub fn as_std(&self) -> &process::Command {
        &self.std
    }
}

/// Adds the program or its directory to the error of a start. The kernel does not say which of them
/// failed, so the directory is checked again.
fn cannot_start(error: io::Error, command: &process::Command) -> io::Error {
    let directory = command.get_current_dir();
    let fault = directory.and_then(|directory| enter_fault(directory).err());
    let about = About {
        path: Some(command.get_program().into()),
        directory: directory.map(Path::to_owned),
        is_directory: fault.is_some(),
        hint: is_limit(&error).then_some(
            "the limit of processes (RLIMIT_NPROC, or that of the control group) or the memory may be \
             exhausted",
        ),
        ..About::default()
    };
    OsError::wrap(fault.unwrap_or(error), "spawn", about)
}

/// The future of a child that was started, or was not.
enum Started<F> {
    Running(F),
    Failed(Option<io::Error>),
}

impl<F> Started<F> {
    fn new(child: io::Result<Child>, wait: impl FnOnce(Child) -> F) -> Self {
        match child {
            Ok(child) => Self::Running(wait(child)),
            Err(error) => Self::Failed(Some(error)),
        }
    }
}

impl<T, F: Future<Output = io::Result<T>> + Unpin> Future for Started<F> {
    type Output = io::Result<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        match self.get_mut() {
            Self::Running(future) => Pin::new(future).poll(cx),
            Self::Failed(error) => {
                let error = error.take();
                Poll::Ready(Err(error.expect("a future is polled until it is ready")))
            }
        }
    }
}

/// This side of the child's streams.
struct Streams {
    stdin: Option<process::ChildStdin>,
    stdout: Option<process::ChildStdout>,
    stderr: Option<process::ChildStderr>,
}

impl Streams {
    fn of(child: &mut process::Child) -> Self {
        Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        }
    }

    /// Registers them with the loop.
    #[inline]
    fn register(self, child: &mut Child, site: Site) -> io::Result<()> {
        let stdin = self
            .stdin
            .map(|end| PipeWriter::from_owned_at(end.into(), site));
        child.stdin = stdin
            .transpose()
            .map_err(|error| unwatched("stdin", &error))?;
        let stdout = self
            .stdout
            .map(|end| PipeReader::from_owned_at(end.into(), site));
        child.stdout = stdout
            .transpose()
            .map_err(|error| unwatched("stdout", &error))?;
        let stderr = self
            .stderr
            .map(|end| PipeReader::from_owned_at(end.into(), site));
        child.stderr = stderr
            .transpose()
            .map_err(|error| unwatched("stderr", &error))?;
        Ok(())
    }
}

/// Returns the error of a stream that could not be registered; the child was killed.
fn unwatched(stream: &str, error: &io::Error) -> io::Error {
    let text = format!("its {stream} could not be registered with the loop: {error}");
    io::Error::new(error.kind(), text)
}

/// Converts a command of the standard library with all its settings.
impl From<process::Command> for Command {
    #[inline]
    fn from(std: process::Command) -> Self {
        Self {
            std,
            kill_on_drop: false,
            options: Options::default(),
            has_stdin: false,
            has_stdout: false,
            has_stderr: false,
            pipes: [false; 3],
        }
    }
}

/// Prints the command line.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.std.fmt(f)
    }
}
