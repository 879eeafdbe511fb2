//! A program to be started.

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
use crate::site::Site;
use crate::sys::process::{
    Ids, PreExec, Process, enter_fault, has_inheritable_signals, inherited, is_limit,
    is_worth_another_try,
};

/// How often a start is tried when other threads get in the way of the chosen numbers.
const ATTEMPTS: usize = 32;

/// A program to be started, its arguments, environment, directory, descriptors and rights.
///
/// Methods are those of [`std::process::Command`] and, for Unix, of [`CommandExt`]. A command may start any number of
/// children. A child starts with the default action for every signal and with none blocked, and inherits no descriptor
/// but its standard ones and those given to [`fd`](Self::fd).
///
/// # Examples
///
/// ```
/// use phaseloop::process::Command;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let output = Command::new("sh").args(["-c", "echo $GREETING; exit 3"]).env("GREETING", "hi").output().await?;
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
    /// Which of the standard descriptors the user has set.
    has_stdin: bool,
    has_stdout: bool,
    has_stderr: bool,
    /// There as soon as something is asked for that the standard library does not do.
    pre_exec: Option<PreExec>,
}

impl Command {
    /// A command for the program of this name or path, without arguments, with the environment, directory and standard
    /// descriptors of this process.
    ///
    /// A name without a slash is looked for in `PATH`: in that of the child, if the command sets it.
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

    /// Sets the name that the program is told it was started by, in place of the one that it is looked for by.
    pub fn arg0(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.std.arg0(name);
        self
    }

    /// Sets a variable of the environment.
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.std.env(key, value);
        self
    }

    /// Sets variables of the environment.
    pub fn envs(
        &mut self,
        variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> &mut Self {
        self.std.envs(variables);
        self
    }

    /// Leaves a variable out of the environment.
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Self {
        self.std.env_remove(key);
        self
    }

    /// Starts with an empty environment.
    pub fn env_clear(&mut self) -> &mut Self {
        self.std.env_clear();
        self
    }

    /// Sets the directory that the child starts in. A program given by a relative path is looked for from there.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        self.std.current_dir(directory);
        self
    }

    /// Sets the child's standard input: inherited, empty ([`Stdio::null`]), a pipe, or any open descriptor.
    ///
    /// Sockets and pipes of this crate do not block, which few programs expect; their `into_std` and `into_owned_fd` give
    /// descriptors to be made blocking and passed here.
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

    /// Gives the child a descriptor under a number of 3 or more. It stays open here for as long as the command.
    ///
    /// The mode of the open file is left alone; it is shared with the child.
    ///
    /// # Panics
    ///
    /// For a number below 3: those are the standard descriptors.
    #[track_caller]
    pub fn fd(&mut self, number: RawFd, descriptor: impl Into<OwnedFd>) -> &mut Self {
        assert!(
            number > 2,
            "{number} is not a number for a further descriptor: they begin with 3; use `stdin`, `stdout` or `stderr` for the \
             others"
        );
        let descriptor = descriptor.into();
        self.descriptors.retain(|(other, _)| *other != number);
        self.descriptors.push((number, descriptor));
        self
    }

    /// Gives each child a [`Channel`] to this process, which it takes by [`Channel::from_env`]. The socket has the first
    /// number from 3 on that [`fd`](Self::fd) leaves.
    pub fn channel(&mut self, channel: bool) -> &mut Self {
        self.has_channel = channel;
        self
    }

    /// Sets the user that the child runs as. Its further groups are dropped, if they can be, unless
    /// [`groups`](Self::groups) are set.
    pub fn uid(&mut self, user: u32) -> &mut Self {
        self.ids.user = Some(user);
        self
    }

    /// Sets the group that the child runs as; see [`uid`](Self::uid).
    pub fn gid(&mut self, group: u32) -> &mut Self {
        self.ids.group = Some(group);
        self
    }

    /// Sets the further groups of the child.
    pub fn groups(&mut self, groups: &[u32]) -> &mut Self {
        self.ids.groups = Some(groups.to_vec());
        self
    }

    /// Puts the child into a process group; 0 makes it the first of a new one.
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.std.process_group(group);
        self
    }

    /// Makes the child the first of a session of its own, without a terminal: libuv's and Node's *detached*. A parent that
    /// is to end before it unrefs or drops the [`Child`]. Not together with [`process_group`](Self::process_group).
    pub fn setsid(&mut self, new_session: bool) -> &mut Self {
        self.new_session = new_session;
        self
    }

    /// Ends the child by SIGKILL when its [`Child`] is dropped. Off from the start.
    pub fn kill_on_drop(&mut self, kill: bool) -> &mut Self {
        self.kill_on_drop = kill;
        self
    }

    /// Starts a child. Standard descriptors that are not set are inherited.
    ///
    /// Returns when the program was loaded, or could not be. That blocks the loop for as long as it takes, usually less
    /// than a millisecond; with [`fd`](Self::fd), users, groups or a session the child is forked, which takes longer the
    /// more memory this process has.
    ///
    /// # Errors
    ///
    /// The system's: [`NotFound`](io::ErrorKind::NotFound), [`PermissionDenied`](io::ErrorKind::PermissionDenied) and so
    /// on; [`OsError`](crate::OsError) tells whether the program or the directory is at fault. No child is left then.
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
        let state = handle
            .core()
            .add_child(core.header.clone(), Process::of(&started));
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

    /// Opens a channel for the next child, and sees to it that the child learns of that, and of no other one.
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

    /// Closes the child's end of the channel here.
    fn forget_channel(&mut self) {
        if self.has_channel {
            self.descriptors.pop();
            self.std.env_remove(channel::VARIABLE);
        }
    }

    /// Starts a child at once; the future waits for its end. Standard descriptors that are not set are inherited.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn) and [`Child::wait`].
    ///
    /// # Cancel safety
    ///
    /// Given up, the [`Child`] is dropped.
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

    /// Starts a child at once; the future waits for its end and collects what it writes. Of the standard descriptors that
    /// are not set, the input is empty and the others are piped.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn) and [`Child::wait_with_output`].
    ///
    /// # Cancel safety
    ///
    /// Given up, the [`Child`] is dropped.
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
        // As they were: the next start may be another one.
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

    /// The command of the standard library, to ask what is set.
    #[must_use]
    pub fn as_std(&self) -> &process::Command {
        &self.std
    }
}

/// Adds the program and its directory to the error of a start. The system does not say which of them it is about, so the
/// directory is tried once more.
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

/// Puts this side of the child's streams on the loop.
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

/// The error of a stream that the loop could not take; the child was killed.
fn unwatched(stream: &str, error: io::Error) -> io::Error {
    let text = format!("its {stream} could not be put on the loop: {error}");
    io::Error::new(error.kind(), text)
}

/// A command of the standard library, with everything that is set in it.
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

/// The command line.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.std.fmt(f)
    }
}
