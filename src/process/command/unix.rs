//! What a command of Unix offers besides: descriptors, channels, users, groups and sessions.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process;

use super::super::channel::{self, Channel};
use super::super::child::Child;
use super::{Command, unwatched};
use crate::site::Site;
use crate::sys::process::{Ids, PreExec, has_inheritable_signals, inherited, is_worth_another_try};

/// How often a start is tried when other threads occupy the chosen descriptor numbers meanwhile.
const ATTEMPTS: usize = 32;

#[derive(Default)]
pub(super) struct Options {
    new_session: bool,
    ids: Ids,
    descriptors: Vec<(RawFd, OwnedFd)>,
    has_channel: bool,
    /// Set once a start has needed a step that the standard library does not offer.
    pre_exec: Option<PreExec>,
}

/// What a start has opened besides the standard streams.
pub(super) struct Extra {
    channel: Option<UnixStream>,
}

impl Extra {
    /// Registers it with the loop.
    #[inline]
    pub(super) fn register(self, child: &mut Child, site: Site) -> io::Result<()> {
        let channel = self
            .channel
            .map(|stream| Channel::from_std_at(stream, site));
        child.channel = channel
            .transpose()
            .map_err(|error| unwatched("channel", &error))?;
        Ok(())
    }
}

impl Options {
    /// Starts a child.
    #[inline]
    pub(super) fn start(
        &mut self,
        command: &mut process::Command,
    ) -> io::Result<(process::Child, Extra)> {
        let channel = self.prepare_channel(command)?;
        let started = self.start_prepared(command);
        self.forget_channel(command);
        Ok((started?, Extra { channel }))
    }

    #[inline]
    fn start_prepared(&mut self, command: &mut process::Command) -> io::Result<process::Child> {
        let reset_signals = has_inheritable_signals();
        let is_plain = !self.new_session
            && !reset_signals
            && self.ids == Ids::default()
            && self.descriptors.is_empty();
        if is_plain && self.pre_exec.is_none() {
            return command.spawn();
        }
        let plan = match &self.pre_exec {
            Some(plan) => plan,
            None => {
                let pre_exec = self.pre_exec.insert(PreExec::default());
                pre_exec.attach(command);
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
            match command.spawn() {
                Err(error) if attempts < ATTEMPTS && is_worth_another_try(&error) => {}
                started => return started,
            }
        }
    }

    /// Opens a channel for the next child and describes it in the child's environment. Without one,
    /// the description of this process's own channel is removed.
    #[inline]
    fn prepare_channel(
        &mut self,
        command: &mut process::Command,
    ) -> io::Result<Option<UnixStream>> {
        if !self.has_channel {
            if std::env::var_os(channel::VARIABLE).is_some() {
                command.env_remove(channel::VARIABLE);
            }
            return Ok(None);
        }
        let is_taken = |number| self.descriptors.iter().any(|(taken, _)| *taken == number);
        let number = (3..).find(|number| !is_taken(*number));
        let number = number.expect("there are fewer descriptors than numbers");
        let (ours, theirs) = UnixStream::pair()?;
        let description = inherited::describe(number, &theirs)?;
        command.env(channel::VARIABLE, description);
        self.descriptors.push((number, theirs.into()));
        Ok(Some(ours))
    }

    /// Closes the child's end of the channel in this process.
    fn forget_channel(&mut self, command: &mut process::Command) {
        if self.has_channel {
            self.descriptors.pop();
            command.env_remove(channel::VARIABLE);
        }
    }
}

impl Command {
    /// Sets `argv[0]`, which is the name of the program by default. Unix only.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let output = Command::new("sh").arg0("worker").args(["-c", "echo $0"]).output().await?;
    ///     assert_eq!(output.stdout, b"worker\n"); // the name that `ps` shows
    ///     Ok(())
    /// }
    /// ```
    pub fn arg0(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.std.arg0(name);
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
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Read;
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (mut reader, writer) = std::io::pipe()?;
    ///     let mut command = Command::new("sh");
    ///     command.args(["-c", "echo hello >&5"]).fd(5, writer);
    ///     assert!(command.status().await?.success());
    ///     drop(command); // with its copy of the writer
    ///     let mut text = String::new();
    ///     reader.read_to_string(&mut text)?;
    ///     assert_eq!(text, "hello\n");
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn fd(&mut self, number: RawFd, descriptor: impl Into<OwnedFd>) -> &mut Self {
        assert!(
            number > 2,
            "fd {number} is reserved: extra descriptors start at 3; use `stdin`, `stdout` or `stderr`"
        );
        let descriptor = descriptor.into();
        self.options
            .descriptors
            .retain(|(other, _)| *other != number);
        self.options.descriptors.push((number, descriptor));
        self
    }

    /// Gives each child a [`Channel`] to this process, which the child takes with
    /// [`Channel::from_env`]. The socket has the first number from 3 on that [`fd`](Self::fd) does
    /// not use.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut command = Command::new("worker"); // it calls `Channel::from_env`
    ///     let mut child = command.channel(true).spawn()?;
    ///     let channel = child.channel.take().unwrap();
    ///     channel.send(b"job 1").await?;
    ///     let answer = channel.recv().await?.expect("the worker answers");
    ///     println!("{:?}", answer.bytes);
    ///     child.wait().await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn channel(&mut self, channel: bool) -> &mut Self {
        self.options.has_channel = channel;
        self
    }

    /// Sets the user id of the child. Its supplementary groups are dropped if this process has the
    /// privilege, unless [`groups`](Self::groups) are set.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     // As root: the child runs as another user.
    ///     let mut child = Command::new("server").uid(1000).gid(1000).groups(&[1000]).spawn()?;
    ///     child.wait().await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn uid(&mut self, user: u32) -> &mut Self {
        self.options.ids.user = Some(user);
        self
    }

    /// Sets the group id of the child; see [`uid`](Self::uid).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     // As root: the child runs as another user.
    ///     let mut child = Command::new("server").uid(1000).gid(1000).groups(&[1000]).spawn()?;
    ///     child.wait().await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn gid(&mut self, group: u32) -> &mut Self {
        self.options.ids.group = Some(group);
        self
    }

    /// Sets the supplementary groups of the child.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     // As root: the child runs as another user.
    ///     let mut child = Command::new("server").uid(1000).gid(1000).groups(&[1000]).spawn()?;
    ///     child.wait().await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn groups(&mut self, groups: &[u32]) -> &mut Self {
        self.options.ids.groups = Some(groups.to_vec());
        self
    }

    /// Sets the process group of the child; 0 makes the child the leader of a new group.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut child = Command::new("sleep").arg("60").process_group(0).spawn()?;
    ///     // ctrl-c in the terminal does not reach this child: its group is its own.
    ///     child.kill().await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.std.process_group(group);
        self
    }

    /// Makes the child the leader of a new session without a terminal: *detached* in libuv and
    /// Node. To let this process exit first, unref or drop the [`Child`]. It cannot be combined
    /// with [`process_group`](Self::process_group).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     // A daemon: without a terminal, and not ended with it.
    ///     let mut child = Command::new("true").setsid(true).spawn()?;
    ///     assert!(child.wait().await?.success());
    ///     Ok(())
    /// }
    /// ```
    pub fn setsid(&mut self, new_session: bool) -> &mut Self {
        self.options.new_session = new_session;
        self
    }
}
