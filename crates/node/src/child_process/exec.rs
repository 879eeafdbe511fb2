//! Child processes whose output is collected.

mod output;

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

use self::output::Output;
use super::{Arguments, CLOSE, ChildProcess, Exit, Inner, failure, platform};
use crate::abort::AbortSignal;
use crate::delay::Delay;
use crate::error::Error;
use crate::events::{ERROR, Emitter as _};
use crate::promise::{Deferred, Promise};
use crate::stream::Readable;
use crate::string_decoder::Encoding;
use crate::timers::{Timeout, set_timeout};
use phaseloop::process::{Command, Stdio};
use phaseloop::signal::SignalKind;

/// Options of [`exec_with`] and [`exec_file_with`]. JavaScript: `{ cwd, env, encoding, timeout,
/// maxBuffer, killSignal, shell, uid, gid, signal }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, child_process::{ExecOptions, exec_with}, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let options = ExecOptions { cwd: Some("/".into()), ..Default::default() };
///         exec_with("pwd", options, |error, stdout, _stderr| {
///             assert!(error.is_none());
///             assert_eq!(stdout, "/\n");
///         });
///     })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// The working directory. The default is that of this process.
    pub cwd: Option<PathBuf>,
    /// The whole environment. The default is that of this process.
    pub env: Option<Vec<(OsString, OsString)>>,
    /// The encoding of the output.
    pub encoding: Encoding,
    /// The time after which the process is killed.
    pub timeout: Option<Delay>,
    /// The maximum size of each output in bytes; the default is 1 MiB. A process that writes more
    /// is killed.
    pub max_buffer: usize,
    /// The signal that kills the process on a timeout, an excess of output or an abort. The default
    /// is SIGTERM.
    pub kill_signal: SignalKind,
    /// The shell that runs the command. Without one, [`exec_with`] uses `/bin/sh`, on Windows
    /// `cmd.exe`, and [`exec_file_with`] uses no shell.
    pub shell: Option<PathBuf>,
    /// The user id of the process. Windows ignores it.
    pub uid: Option<u32>,
    /// The group id of the process. Windows ignores it.
    pub gid: Option<u32>,
    /// Kills the process with an `AbortError` when it is aborted.
    pub signal: Option<AbortSignal>,
}

impl Default for ExecOptions {
    fn default() -> Self {
        Self {
            cwd: None,
            env: None,
            encoding: Encoding::Utf8,
            timeout: None,
            max_buffer: 1024 * 1024,
            kill_signal: SignalKind::TERM,
            shell: None,
            uid: None,
            gid: None,
            signal: None,
        }
    }
}

/// Why a process has failed: an [`Error`] with the fields that Node adds to it.
///
/// Node's `error.code` is a number for an exit code, here [`exit_code`](Self::exit_code), and a
/// string otherwise, here [`code`](Error::code).
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, child_process::exec, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         exec("echo no >&2; exit 3", |error, _, _| {
///             let error = error.unwrap();
///             assert_eq!((error.exit_code(), error.stderr()), (Some(3), "no\n"));
///         });
///     })
/// }
/// ```
#[derive(Clone)]
pub struct ExecError {
    error: Error,
    exit: Option<Exit>,
    was_killed: bool,
    command: Rc<str>,
    output: Rc<ExecOutput>,
}

impl ExecError {
    /// Returns the exit code. JavaScript: `error.code`, if it is a number.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.exit?.code
    }

    /// Returns the signal that terminated the process. JavaScript: `error.signal`.
    #[must_use]
    pub fn signal(&self) -> Option<SignalKind> {
        self.exit?.signal
    }

    /// Returns whether this program killed the process, with [`ChildProcess::kill`] or by a
    /// timeout. As in Node, `false` if the error has a [`code`](Error::code). JavaScript:
    /// `error.killed`.
    #[must_use]
    pub fn killed(&self) -> bool {
        self.was_killed
    }

    /// Returns the command line. JavaScript: `error.cmd`.
    #[must_use]
    pub fn cmd(&self) -> &str {
        &self.command
    }

    /// Returns the collected standard output. JavaScript: `error.stdout`.
    #[must_use]
    pub fn stdout(&self) -> &str {
        &self.output.stdout
    }

    /// Returns the collected standard error. JavaScript: `error.stderr`.
    #[must_use]
    pub fn stderr(&self) -> &str {
        &self.output.stderr
    }

    /// Returns the error without the added fields.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }
}

impl Deref for ExecError {
    type Target = Error;

    fn deref(&self) -> &Error {
        &self.error
    }
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

/// One line, as [`Display`](fmt::Display) writes it; all fields with `{:#?}`.
impl fmt::Debug for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        f.debug_struct("ExecError")
            .field("error", &self.error)
            .field("exit", &self.exit)
            .field("killed", &self.was_killed)
            .field("cmd", &self.command)
            .field("output", &self.output)
            .finish()
    }
}

impl std::error::Error for ExecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The decoded output of a process.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, child_process::{ExecOptions, promises}, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let output = promises::exec("echo hello", ExecOptions::default()).await.unwrap();
///         assert_eq!((&*output.stdout, &*output.stderr), ("hello\n", ""));
///     })
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecOutput {
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

/// Runs a command line in the shell `/bin/sh`, on Windows `cmd.exe`, and calls `callback` with its
/// output. JavaScript: `exec(command, (error, stdout, stderr) => ..)`.
///
/// The callback is called when the child is closed. Its first argument is an error if the process
/// could not be started, exited with a code other than 0, or wrote more than 1 MiB, which kills it.
/// The other arguments are standard output and standard error.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, child_process::exec, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         exec("echo hello; exit 3", |error, stdout, _stderr| {
///             let error = error.unwrap();
///             assert_eq!(stdout, "hello\n");
///             assert_eq!(error.message(), "Command failed: echo hello; exit 3\n");
///             assert_eq!((error.exit_code(), error.cmd()), (Some(3), "echo hello; exit 3"));
///         });
///     })
/// }
/// ```
#[track_caller]
pub fn exec(
    command: &str,
    callback: impl FnOnce(Option<ExecError>, String, String) + 'static,
) -> ChildProcess {
    exec_with(command, ExecOptions::default(), callback)
}

/// Runs a command line in a shell, with options; see [`exec`]. JavaScript: `exec(command, options,
/// callback)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn exec_with(
    command: &str,
    options: ExecOptions,
    callback: impl FnOnce(Option<ExecError>, String, String) + 'static,
) -> ChildProcess {
    failure::check_text("argument", "command", command.as_ref());
    failure::check_name(command.as_ref());
    let line = platform::shell(options.shell.as_deref(), command);
    run(line, command.into(), options, callback)
}

/// Runs a program without a shell; see [`exec`]. JavaScript: `execFile(file, args, callback)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn exec_file(
    program: impl AsRef<OsStr>,
    arguments: impl Arguments,
    callback: impl FnOnce(Option<ExecError>, String, String) + 'static,
) -> ChildProcess {
    exec_file_with(program, arguments, ExecOptions::default(), callback)
}

/// Runs a program with options, and without a shell unless the options name one; see [`exec`].
/// JavaScript: `execFile(file, args, options, callback)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn exec_file_with(
    program: impl AsRef<OsStr>,
    arguments: impl Arguments,
    options: ExecOptions,
    callback: impl FnOnce(Option<ExecError>, String, String) + 'static,
) -> ChildProcess {
    let arguments = arguments.into_arguments();
    failure::check_words(program.as_ref(), &arguments);
    let words = std::iter::once(program.as_ref()).chain(arguments.iter().map(AsRef::as_ref));
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    let text = words.join(" ");
    let mut command = match &options.shell {
        Some(shell) => platform::shell(Some(shell), &text),
        None => {
            let mut command = Command::new(&program);
            command.args(&arguments);
            command
        }
    };
    command.stdin(Stdio::piped());
    run(command, text.into(), options, callback)
}

/// Collected output with promises. JavaScript: `util.promisify(exec)`, `util.promisify(execFile)`.
///
/// Dropping a promise discards the result; the process keeps running.
///
/// ```
/// use phaseloop_node::{Exit, child_process::{ExecOptions, promises::exec}, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let output = exec("echo hello", ExecOptions::default()).await.unwrap();
///         assert_eq!(output.stdout.trim_end(), "hello");
///     })
/// }
/// ```
pub mod promises {
    use super::{
        Arguments, ChildProcess, Deferred, ExecError, ExecOptions, ExecOutput, OsStr, Promise,
    };

    /// Runs a command line in a shell; see [`exec_with`](super::exec_with). JavaScript: `await
    /// util.promisify(exec)(command, options)`.
    ///
    /// # Errors
    ///
    /// The promise is rejected with an [`ExecError`].
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn exec(command: &str, options: ExecOptions) -> Promise<ExecOutput> {
        promise(|callback| super::exec_with(command, options, callback))
    }

    /// Runs a program; see [`exec_file_with`](super::exec_file_with). JavaScript: `await
    /// util.promisify(execFile)(file, args, options)`.
    ///
    /// # Errors
    ///
    /// The promise is rejected with an [`ExecError`].
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn exec_file(
        program: impl AsRef<OsStr>,
        arguments: impl Arguments,
        options: ExecOptions,
    ) -> Promise<ExecOutput> {
        promise(|callback| super::exec_file_with(program, arguments, options, callback))
    }

    type Callback = Box<dyn FnOnce(Option<ExecError>, String, String)>;

    fn promise(start: impl FnOnce(Callback) -> ChildProcess) -> Promise<ExecOutput> {
        let deferred = Deferred::new();
        let promise = deferred.promise();
        start(Box::new(move |error, stdout, stderr| match error {
            Some(error) => deferred.reject(error),
            None => deferred.resolve(ExecOutput { stdout, stderr }),
        }));
        promise
    }
}

#[track_caller]
fn run(
    mut command: Command,
    text: Rc<str>,
    options: ExecOptions,
    callback: impl FnOnce(Option<ExecError>, String, String) + 'static,
) -> ChildProcess {
    let (cwd, shell) = (options.cwd.as_deref(), options.shell.as_deref());
    failure::check_options(cwd, None, shell, options.env.as_deref());
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    if let Some(directory) = &options.cwd {
        command.current_dir(directory);
    }
    if let Some(variables) = &options.env {
        command.env_clear();
        command.envs(variables.iter().map(|(name, value)| (name, value)));
    }
    platform::set_ids(&mut command, options.uid, options.gid);
    let child = ChildProcess::start(&mut command);
    let run = Rc::new(Run {
        child: Rc::downgrade(&child.inner),
        command: text,
        limit: options.max_buffer,
        encoding: options.encoding,
        kill_signal: options.kill_signal,
        collected: RefCell::default(),
        was_killed: Cell::new(false),
        timeout: RefCell::default(),
        callback: RefCell::new(Some(Box::new(callback))),
    });
    run.start(&child, &options);
    child
}

type Callback = Box<dyn FnOnce(Option<ExecError>, String, String)>;

/// A running process whose output is collected.
struct Run {
    /// Weak, because the listeners of the child hold this value.
    child: Weak<Inner>,
    command: Rc<str>,
    limit: usize,
    encoding: Encoding,
    kill_signal: SignalKind,
    collected: RefCell<Collected>,
    was_killed: Cell<bool>,
    timeout: RefCell<Option<Timeout>>,
    callback: RefCell<Option<Callback>>,
}

/// The output so far, and the error that ended the process.
#[derive(Default)]
struct Collected {
    stdout: Output,
    stderr: Output,
    error: Option<Error>,
}

impl Run {
    #[track_caller]
    fn start(self: &Rc<Self>, child: &ChildProcess, options: &ExecOptions) {
        if let Some(output) = child.stdout() {
            output.set_encoding(options.encoding);
            self.take_all("stdout", output, |collected| &mut collected.stdout);
        }
        if let Some(output) = child.stderr() {
            output.set_encoding(options.encoding);
            self.take_all("stderr", output, |collected| &mut collected.stderr);
        }
        let run = self.clone();
        child.on(ERROR, move |error| run.fail(error.clone()));
        let run = self.clone();
        child.on(CLOSE, move |_| run.finish());
        if let Some(delay) = options.timeout {
            let run = self.clone();
            let timeout = set_timeout(delay, move || run.kill());
            self.timeout.replace(Some(timeout));
        }
        if let Some(signal) = &options.signal {
            child.end_with(signal, self.kill_signal);
        }
    }

    fn child(&self) -> Option<ChildProcess> {
        let inner = self.child.upgrade()?;
        Some(ChildProcess { inner })
    }

    /// Collects one output, up to the limit.
    fn take_all(
        self: &Rc<Self>,
        name: &'static str,
        output: &Readable<Vec<u8>>,
        place: fn(&mut Collected) -> &mut Output,
    ) {
        let run = self.clone();
        output.on_data(move |text| {
            let is_too_much = {
                let mut collected = run.collected.borrow_mut();
                place(&mut collected).add(text, run.limit, run.encoding)
            };
            if is_too_much {
                let text = format!("{name} maxBuffer length exceeded");
                let error = Error::range_error(text).coded("ERR_CHILD_PROCESS_STDIO_MAXBUFFER");
                run.collected.borrow_mut().error.get_or_insert(error);
                run.kill();
            }
        });
    }

    fn kill(&self) {
        self.was_killed.set(true);
        if let Some(child) = self.child() {
            // A grandchild that still writes to the pipes gets an error and ends too.
            for output in child.outputs() {
                output.destroy(None);
            }
            child.kill(self.kill_signal);
        }
    }

    /// Finishes with an error without waiting for the process: it did not start, or was aborted.
    fn fail(&self, error: Error) {
        if let Some(child) = self.child() {
            for output in child.outputs() {
                output.destroy(None);
            }
        }
        self.collected.borrow_mut().error = Some(error);
        self.finish();
    }

    /// Calls the callback, at most once.
    fn finish(&self) {
        let timeout = self.timeout.take();
        if let Some(timeout) = timeout {
            timeout.close();
        }
        let callback = self.callback.take();
        let Some(callback) = callback else { return };
        let collected = self.collected.take();
        let output = ExecOutput {
            stdout: collected.stdout.text,
            stderr: collected.stderr.text,
        };
        let error = collected.error.map(|error| self.error(error, &output));
        let error = error.or_else(|| self.failure(&output));
        callback(error, output.stdout, output.stderr);
    }

    /// Returns the error of a process that did not exit with code 0.
    fn failure(&self, output: &ExecOutput) -> Option<ExecError> {
        let child = self.child();
        let exit = child.as_ref().and_then(ChildProcess::exit);
        if exit.is_some_and(|exit| exit.code == Some(0)) {
            return None;
        }
        let text = format!("Command failed: {}\n{}", self.command, output.stderr);
        Some(ExecError {
            exit,
            was_killed: self.was_killed.get() || child.is_some_and(|child| child.killed()),
            ..self.error(Error::new(text), output)
        })
    }

    /// Returns an error with another cause. As in Node, it does not say how the process has ended.
    fn error(&self, error: Error, output: &ExecOutput) -> ExecError {
        ExecError {
            error,
            exit: None,
            was_killed: false,
            command: self.command.clone(),
            output: Rc::new(output.clone()),
        }
    }
}
