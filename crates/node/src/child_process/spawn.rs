//! The options of `spawn`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::{Arguments, ChildProcess, EXIT, failure, platform};
use crate::abort::AbortSignal;
use crate::delay::Delay;
use crate::error::Error;
use crate::events::Emitter as _;
use crate::fs::FileHandle;
use crate::timers::set_timeout;
use phaseloop::process::{self, Command};
use phaseloop::signal::SignalKind;

/// Options of [`spawn_with`]. JavaScript: `{ cwd, env, argv0, stdio, detached, shell, timeout,
/// signal, killSignal, uid, gid }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::child_process::{SpawnOptions, Stdio};
///
/// fn main() {
///     let quiet = SpawnOptions { stdio: vec![Stdio::Ignore; 3], ..Default::default() };
///     assert!(!quiet.detached);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct SpawnOptions {
    /// The working directory. The default is that of this process.
    pub cwd: Option<PathBuf>,
    /// The whole environment. The default is that of this process.
    pub env: Option<Vec<(OsString, OsString)>>,
    /// The value of `argv[0]`, if it is not the name of the program. Windows ignores it.
    pub argv0: Option<OsString>,
    /// What the descriptors of the process are, from standard input on. Those of the first three
    /// that are missing are pipes. Windows ignores what follows the first three.
    pub stdio: Vec<Stdio>,
    /// Whether the process leads a session of its own, so that it can outlive this process and its
    /// terminal. On Windows it gets a console of its own.
    pub detached: bool,
    /// The shell that runs the program and its arguments as one line, which it splits and expands:
    /// quote what comes from outside. The default is no shell.
    pub shell: Option<Shell>,
    /// The time after which the process is killed.
    pub timeout: Option<Delay>,
    /// Kills the process when it is aborted; the process then emits an `AbortError`.
    pub signal: Option<AbortSignal>,
    /// The signal that kills the process on a timeout or an abort. The default is SIGTERM.
    pub kill_signal: SignalKind,
    /// The user id of the process. Windows ignores it.
    pub uid: Option<u32>,
    /// The group id of the process. Windows ignores it.
    pub gid: Option<u32>,
}

impl Default for SpawnOptions {
    fn default() -> Self {
        Self {
            cwd: None,
            env: None,
            argv0: None,
            stdio: Vec::new(),
            detached: false,
            shell: None,
            timeout: None,
            signal: None,
            kill_signal: SignalKind::TERM,
            uid: None,
            gid: None,
        }
    }
}

/// The shell of [`SpawnOptions`]. JavaScript: `true`, or a path.
///
/// # Examples
///
/// ```
/// use phaseloop_node::child_process::Shell;
///
/// fn main() {
///     assert_eq!(Shell::from("/bin/bash"), Shell::Program("/bin/bash".into()));
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shell {
    /// `/bin/sh`, on Windows `cmd.exe`.
    System,
    /// The program of a shell.
    Program(PathBuf),
}

impl From<&str> for Shell {
    fn from(path: &str) -> Self {
        Self::Program(path.into())
    }
}

impl Shell {
    fn path(&self) -> Option<&Path> {
        match self {
            Self::System => None,
            Self::Program(path) => Some(path),
        }
    }
}

/// What one descriptor of a child process is. JavaScript: an element of `options.stdio`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::child_process::{SpawnOptions, Stdio, spawn_with};
/// use phaseloop_node::{Exit, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let stdio = vec![Stdio::Ignore, Stdio::Pipe, Stdio::Inherit];
///         let child = spawn_with("echo", ["hello"], SpawnOptions { stdio, ..Default::default() });
///         assert!(child.stdin().is_none() && child.stderr().is_none());
///         child.stdout().unwrap().on_data(|bytes| assert_eq!(bytes, b"hello\n"));
///     })
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Stdio {
    /// A pipe to this process. JavaScript: `'pipe'`.
    Pipe,
    /// `/dev/null`, on Windows `NUL`; beyond the first three no descriptor. JavaScript: `'ignore'`.
    Ignore,
    /// The descriptor of this process with the same number, of the first three; beyond these no
    /// descriptor. JavaScript: `'inherit'`.
    Inherit,
    /// An open file, or what is used as one: a pipe, a socket. The process gets a copy of its
    /// descriptor. The standard output of this process is
    /// `stdout().as_fd().try_clone_to_owned()` there. JavaScript: a descriptor, or a stream that
    /// has one.
    File(Rc<File>),
    /// The channel of messages that [`fork`](super::fork) has, beyond the first three, and at most
    /// once. Unix only. JavaScript: `'ipc'`.
    Ipc,
}

impl From<File> for Stdio {
    fn from(file: File) -> Self {
        Self::File(Rc::new(file))
    }
}

impl Stdio {
    /// Returns an open file for a process, which gets a copy of its descriptor.
    ///
    /// # Errors
    ///
    /// `EBADF` if the file is closed, and any OS error of the copy, such as `EMFILE`.
    pub fn from_handle(handle: &FileHandle) -> Result<Self, Error> {
        let file = handle.opened("dup")?.try_clone()?;
        Ok(file.into())
    }

    /// Returns what the root crate knows the descriptor by.
    fn of_process(&self) -> io::Result<process::Stdio> {
        Ok(match self {
            Self::Pipe => process::Stdio::piped(),
            Self::Ignore => process::Stdio::null(),
            Self::Inherit => process::Stdio::inherit(),
            Self::File(file) => file.try_clone()?.into(),
            Self::Ipc => {
                let text = "The channel must be beyond the standard descriptors";
                crate::reason::throw(Error::type_error(text).coded("ERR_INVALID_ARG_VALUE"))
            }
        })
    }
}

/// Starts a program with options; see [`spawn`](super::spawn). JavaScript: `spawn(command, args,
/// options)`.
///
/// # Panics
///
/// When no loop runs on this thread. [Throws](crate::throw) as [`spawn`](super::spawn) does, also
/// `ERR_IPC_ONE_PIPE` for a second channel and `ERR_INVALID_ARG_VALUE` for a channel in place of a
/// standard stream.
///
/// # Examples
///
/// ```
/// use phaseloop_node::child_process::{CLOSE, SpawnOptions, spawn_with};
/// use phaseloop_node::{Emitter, Exit, run};
/// use phaseloop::signal::SignalKind;
///
/// fn main() -> Exit<()> {
///     run(async {
///         let options = SpawnOptions {
///             cwd: Some("/".into()),
///             timeout: Some(50.into()),
///             ..Default::default()
///         };
///         let child = spawn_with("sleep", ["60"], options);
///         child.on(CLOSE, |exit| assert_eq!(exit.signal, Some(SignalKind::TERM)));
///     })
/// }
/// ```
#[track_caller]
pub fn spawn_with(
    program: impl AsRef<OsStr>,
    arguments: impl Arguments,
    options: SpawnOptions,
) -> ChildProcess {
    let arguments = arguments.into_arguments();
    failure::check_words(program.as_ref(), &arguments);
    let shell = options.shell.as_ref().and_then(Shell::path);
    let (cwd, argv0) = (options.cwd.as_deref(), options.argv0.as_deref());
    failure::check_options(cwd, argv0, shell, options.env.as_deref());
    let mut command = options.command(program.as_ref(), &arguments);
    let child = match options.descriptors(&mut command) {
        Ok(pipes) => pipes.start(command),
        Err(error) => {
            let error = failure::of_start(error, &command);
            ChildProcess::failed(error, Default::default())
        }
    };
    if let Some(delay) = options.timeout {
        child.end_after(delay, options.kill_signal);
    }
    if let Some(signal) = &options.signal {
        child.end_with(signal, options.kill_signal);
    }
    child
}

impl SpawnOptions {
    fn command(&self, program: &OsStr, arguments: &[OsString]) -> Command {
        let mut command = match &self.shell {
            Some(shell) => {
                let words = std::iter::once(program).chain(arguments.iter().map(AsRef::as_ref));
                let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
                platform::shell(shell.path(), &words.join(" "))
            }
            None => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
        };
        if let Some(directory) = &self.cwd {
            command.current_dir(directory);
        }
        if let Some(variables) = &self.env {
            command.env_clear().envs(variables.iter().cloned());
        }
        platform::set_ids(&mut command, self.uid, self.gid);
        platform::set_name(&mut command, self.argv0.as_deref());
        platform::set_detached(&mut command, self.detached);
        command
    }

    /// Sets the descriptors of a command, and returns the ends of the further pipes.
    #[track_caller]
    fn descriptors(&self, command: &mut Command) -> io::Result<platform::Pipes> {
        let standard = |number: usize| self.stdio.get(number).unwrap_or(&Stdio::Pipe);
        command.stdin(standard(0).of_process()?);
        command.stdout(standard(1).of_process()?);
        command.stderr(standard(2).of_process()?);
        platform::add_descriptors(command, self.stdio.get(3..).unwrap_or_default())
    }
}

impl ChildProcess {
    /// Kills the process after a time, unless it has exited or could not be started.
    fn end_after(&self, delay: Delay, signal: SignalKind) {
        if self.pid().is_none() {
            return;
        }
        // Weak, so that the timer of a process that is left does not hold it.
        let inner = Rc::downgrade(&self.inner);
        let timeout = set_timeout(delay, move || {
            if let Some(inner) = inner.upgrade() {
                Self { inner }.kill(signal);
            }
        });
        self.once(EXIT, move |_| {
            timeout.close();
        });
    }
}
