//! The builder of child processes.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::panic::Location;
use std::path::Path;
use std::process::{self, ExitStatus, Output, Stdio};

use super::channel::{self, Channel};
use super::child::Child;
use crate::error::OsError;
use crate::error::os::About;
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::io::{PipeReader, PipeWriter};
use crate::keeper::Keeper;
use crate::probe::Area;
use crate::site::Site;
use crate::sys::process::{
    Ids, PreExec, Process, enter_fault, has_inheritable_signals, inherited, is_limit,
    is_worth_another_try,
};

/// How often a start is tried when other threads occupy the chosen descriptor numbers meanwhile.
const ATTEMPTS: usize = 32;

/// Describes a program to start: arguments, environment, directory, descriptors, user and groups.
///
/// The methods are those of [`std::process::Command`] and [`CommandExt`]. A command can start any
/// number of children. A child starts with the default action for every signal and with no signal
/// blocked. It inherits its standard descriptors and those given to [`fd`](Self::fd), no others.
///
/// # Examples
///
/// ```
/// use phaseloop::process::Command;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let mut command = Command::new("sh");
///     command.args(["-c", "echo $GREETING; exit 3"]).env("GREETING", "hi");
///     let output = command.output().await?;
///     assert_eq!(output.stdout, b"hi\n");
///     assert_eq!(output.status.code(), Some(3));
///     Ok(())
/// })
/// # }
/// ```
pub struct Command {
    std: process::Command,
    kill_on_drop: bool,
    new_session: bool,
    ids: Ids,
    descriptors: Vec<(RawFd, OwnedFd)>,
    has_channel: bool,
    /// Which standard descriptors the caller has set.
    has_stdin: bool,
    has_stdout: bool,
    has_stderr: bool,
    /// Set once a start has needed a step that the standard library does not offer.
    pre_exec: Option<PreExec>,
}

impl Command {
    /// Creates a command for the program of this name or path. It has no arguments, and the
    /// environment, directory and standard descriptors of this process.
    ///
    /// A name without a slash is searched in `PATH`; in the `PATH` of the child, if the command
    /// sets it.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        process::Command::new(program).into()
    }

    /// Adds an argument.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.std.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.std.args(args);
        self
    }

    /// Sets `argv[0]`, which is the name of the program by default.
    pub fn arg0(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.std.arg0(name);
        self
    }

    /// Sets an environment variable.
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.std.env(key, value);
        self
    }

    /// Sets environment variables.
    pub fn envs(
        &mut self,
        variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> &mut Self {
        self.std.envs(variables);
        self
    }

    /// Removes an environment variable.
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Self {
        self.std.env_remove(key);
        self
    }

    /// Clears the environment.
    pub fn env_clear(&mut self) -> &mut Self {
        self.std.env_clear();
        self
    }

    /// Sets the working directory of the child. A relative path of the program is resolved against
    /// it.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        self.std.current_dir(directory);
        self
    }

    /// Sets the child's standard input: inherited, [`Stdio::null`], a pipe, or any open descriptor.
    ///
    /// Sockets and pipes of this crate are in non-blocking mode, which few programs expect.
    /// `into_std` returns a socket to be set to blocking mode and passed here; `into_owned_fd` of a
    /// pipe restores its mode.
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Self {
        self.has_stdin = true;
        self.std.stdin(stdin);
        self
    }

    /// Sets the child's standard output; see [`stdin`](Self::stdin).
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Self {
        self.has_stdout = true;
        self.std.stdout(stdout);
        self
    }

    /// Sets the child's standard error; see [`stdin`](Self::stdin).
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Self {
        self.has_stderr = true;
        self.std.stderr(stderr);
        self
    }

    /// Passes a descriptor to the child under a number of 3 or more. It stays open here as long as
    /// the command exists.
    ///
    /// The mode of the open file description is not changed; it is shared with the child.
    ///
    /// # Panics
    ///
    /// For a number below 3: those are the standard descriptors.
    #[track_caller]
    pub fn fd(&mut self, number: RawFd, descriptor: impl Into<OwnedFd>) -> &mut Self {
        assert!(
            number > 2,
            "fd {number} is reserved: extra descriptors start at 3; use `stdin`, `stdout` or `stderr`"
        );
        let descriptor = descriptor.into();
        self.descriptors.retain(|(other, _)| *other != number);
        self.descriptors.push((number, descriptor));
        self
    }

    /// Gives each child a [`Channel`] to this process, which the child takes with
    /// [`Channel::from_env`]. The socket has the first number from 3 on that [`fd`](Self::fd) does
    /// not use.
    pub fn channel(&mut self, channel: bool) -> &mut Self {
        self.has_channel = channel;
        self
    }

    /// Sets the user id of the child. Its supplementary groups are dropped if this process has the
    /// privilege, unless [`groups`](Self::groups) are set.
    pub fn uid(&mut self, user: u32) -> &mut Self {
        self.ids.user = Some(user);
        self
    }

    /// Sets the group id of the child; see [`uid`](Self::uid).
    pub fn gid(&mut self, group: u32) -> &mut Self {
        self.ids.group = Some(group);
        self
    }

    /// Sets the supplementary groups of the child.
    pub fn groups(&mut self, groups: &[u32]) -> &mut Self {
        self.ids.groups = Some(groups.to_vec());
        self
    }

    /// Sets the process group of the child; 0 makes the child the leader of a new group.
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.std.process_group(group);
        self
    }

    /// Makes the child the leader of a new session without a terminal: *detached* in libuv and
    /// Node. To let this process exit first, unref or drop the [`Child`]. It cannot be combined
    /// with [`process_group`](Self::process_group).
    pub fn setsid(&mut self, new_session: bool) -> &mut Self {
        self.new_session = new_session;
        self
    }

    /// Sets whether the child is killed (SIGKILL) when its [`Child`] is dropped. The default is
    /// `false`.
    pub fn kill_on_drop(&mut self, kill: bool) -> &mut Self {
        self.kill_on_drop = kill;
        self
    }

    /// Starts a child. Standard descriptors that were not set are inherited.
    ///
    /// It returns when the program is loaded, or could not be loaded. This blocks the loop, usually
    /// for less than a millisecond. With [`fd`](Self::fd), a user, groups or a session the child is
    /// forked, which takes longer the more memory this process has.
    ///
    /// # Errors
    ///
    /// Any OS error of `posix_spawn`, or of `fork` and `exec`, such as
    /// [`NotFound`](io::ErrorKind::NotFound) and
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied); [`OsError`](crate::OsError) names the
    /// program or the directory, whichever is at fault. No child is left then.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn spawn(&mut self) -> io::Result<Child> {
        let site = Location::caller();
        let handle = LoopHandle::current();
        let started = self.prepare_channel().and_then(|channel| {
            let started = self.start();
            self.forget_channel();
            Ok((started?, channel))
        });
        let (mut started, channel) = started.map_err(|error| cannot_start(error, &self.std))?;
        let core = handle.open(Keeper::Child, site);
        let state = handle.core().add_child(
            core.header.clone(),
            Process::of(&started),
            self.std.get_program(),
        );
        let header = &core.header;
        handle.core().log(Area::Process, || {
            format!("{} ({site}) is started", header.label(handle.core()))
        });
        let mut child = Child::new(core, state, self.kill_on_drop);
        let streams = take_streams(&mut child, &mut started, channel, site);
        if let Err(error) = streams {
            let _ = child.kill();
            return Err(cannot_start(error, &self.std));
        }
        Ok(child)
    }

    fn start(&mut self) -> io::Result<process::Child> {
        let reset_signals = has_inheritable_signals();
        let is_plain = !self.new_session
            && !reset_signals
            && self.ids == Ids::default()
            && self.descriptors.is_empty();
        if is_plain && self.pre_exec.is_none() {
            return self.std.spawn();
        }
        let plan = match &self.pre_exec {
            Some(plan) => plan,
            None => {
                let pre_exec = self.pre_exec.insert(PreExec::default());
                pre_exec.attach(&mut self.std);
                pre_exec
            }
        };
        let mut attempts = 0;
        loop {
            attempts += 1;
            let _placeholders = plan.set(
                self.new_session,
                &self.ids,
                &self.descriptors,
                reset_signals,
            )?;
            match self.std.spawn() {
                Err(error) if attempts < ATTEMPTS && is_worth_another_try(&error) => {}
                started => return started,
            }
        }
    }

    /// Opens a channel for the next child and describes it in the child's environment. Without one,
    /// the description of this process's own channel is removed.
    fn prepare_channel(&mut self) -> io::Result<Option<UnixStream>> {
        if !self.has_channel {
            if std::env::var_os(channel::VARIABLE).is_some() {
                self.std.env_remove(channel::VARIABLE);
            }
            return Ok(None);
        }
        let is_taken = |number| self.descriptors.iter().any(|(taken, _)| *taken == number);
        let number = (3..).find(|number| !is_taken(*number));
        let number = number.expect("there are fewer descriptors than numbers");
        let (ours, theirs) = UnixStream::pair()?;
        let description = inherited::describe(number, &theirs)?;
        self.std.env(channel::VARIABLE, description);
        self.descriptors.push((number, theirs.into()));
        Ok(Some(ours))
    }

    /// Closes the child's end of the channel in this process.
    fn forget_channel(&mut self) {
        if self.has_channel {
            self.descriptors.pop();
            self.std.env_remove(channel::VARIABLE);
        }
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
    #[track_caller]
    #[must_use = "futures do nothing unless awaited"]
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + use<> {
        let child = self.spawn();
        async { child?.wait().await }
    }

    /// Starts a child at once; the future waits until it exits and collects its output. Of the
    /// standard descriptors that were not set, the input is [`Stdio::null`] and the others are
    /// pipes.
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
    #[track_caller]
    #[must_use = "futures do nothing unless awaited"]
    pub fn output(&mut self) -> impl Future<Output = io::Result<Output>> + use<> {
        let child = self.spawn_for_output();
        async { child?.wait_with_output().await }
    }

    #[track_caller]
    fn spawn_for_output(&mut self) -> io::Result<Child> {
        if !self.has_stdin {
            self.std.stdin(Stdio::null());
        }
        if !self.has_stdout {
            self.std.stdout(Stdio::piped());
        }
        if !self.has_stderr {
            self.std.stderr(Stdio::piped());
        }
        let child = self.spawn();
        // Restored: the next start may be a `spawn`, which inherits descriptors that were not set.
        if !self.has_stdin {
            self.std.stdin(Stdio::inherit());
        }
        if !self.has_stdout {
            self.std.stdout(Stdio::inherit());
        }
        if !self.has_stderr {
            self.std.stderr(Stdio::inherit());
        }
        child
    }

    /// Returns the command of the standard library, to query the settings.
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

/// Registers this side of the child's streams with the loop.
fn take_streams(
    child: &mut Child,
    started: &mut process::Child,
    channel: Option<UnixStream>,
    site: Site,
) -> io::Result<()> {
    let write = |end: process::ChildStdin| PipeWriter::from_fd_at(end.into(), site);
    let read = |end: OwnedFd| PipeReader::from_fd_at(end, site);
    let stdin = started.stdin.take().map(write);
    child.stdin = stdin
        .transpose()
        .map_err(|error| unwatched("stdin", error))?;
    let stdout = started.stdout.take().map(OwnedFd::from).map(read);
    child.stdout = stdout
        .transpose()
        .map_err(|error| unwatched("stdout", error))?;
    let stderr = started.stderr.take().map(OwnedFd::from).map(read);
    child.stderr = stderr
        .transpose()
        .map_err(|error| unwatched("stderr", error))?;
    let channel = channel.map(|stream| Channel::from_std_at(stream, site));
    child.channel = channel
        .transpose()
        .map_err(|error| unwatched("channel", error))?;
    Ok(())
}

/// Returns the error of a stream that could not be registered; the child was killed.
fn unwatched(stream: &str, error: io::Error) -> io::Error {
    let text = format!("its {stream} could not be registered with the loop: {error}");
    io::Error::new(error.kind(), text)
}

/// Converts a command of the standard library with all its settings.
impl From<process::Command> for Command {
    fn from(std: process::Command) -> Self {
        Self {
            std,
            kill_on_drop: false,
            new_session: false,
            ids: Ids::default(),
            descriptors: Vec::new(),
            has_channel: false,
            has_stdin: false,
            has_stdout: false,
            has_stderr: false,
            pre_exec: None,
        }
    }
}

/// Prints the command line.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.std.fmt(f)
    }
}
