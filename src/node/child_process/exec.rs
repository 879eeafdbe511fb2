//! Programs whose output is collected.

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

use super::{Arguments, ChildProcess, Exit, Inner};
use crate::node::abort::AbortSignal;
use crate::node::delay::Delay;
use crate::node::error::Error;
use crate::node::events::{ERROR, Emitter as _};
use crate::node::promise::{Deferred, Promise};
use crate::node::stream::{CLOSE, Readable};
use crate::node::string_decoder::Encoding;
use crate::node::timers::{Timeout, set_timeout};
use crate::process::{Command, Stdio};
use crate::signal::SignalKind;
use crate::task::next_tick;

/// How [`exec_with`] and [`exec_file_with`] run a program. JavaScript: `{ cwd, env, encoding, timeout, maxBuffer, killSignal,
/// shell, uid, gid, signal }`.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{child_process::{ExecOptions, exec_with}, run};
///
/// run(async {
///     let options = ExecOptions { cwd: Some("/".into()), ..Default::default() };
///     exec_with("pwd", options, |error, stdout, _stderr| {
///         assert!(error.is_none());
///         assert_eq!(stdout, "/\n");
///     });
/// });
/// ```
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// The directory it runs in; this process's unless told otherwise.
    pub cwd: Option<PathBuf>,
    /// All its variables; this process's unless told otherwise.
    pub env: Option<Vec<(OsString, OsString)>>,
    /// How its output is decoded.
    pub encoding: Encoding,
    /// After how long it is ended.
    pub timeout: Option<Delay>,
    /// How many bytes of each output are collected, 1 MiB unless told otherwise. A program that writes more is ended.
    pub max_buffer: usize,
    /// What ends it then, and on an abort: SIGTERM unless told otherwise.
    pub kill_signal: SignalKind,
    /// The shell that runs it. [`exec_with`] takes `/bin/sh` if there is none; [`exec_file_with`] needs none.
    pub shell: Option<PathBuf>,
    /// The user it runs as.
    pub uid: Option<u32>,
    /// The group it runs as.
    pub gid: Option<u32>,
    /// Ends it, with an `AbortError`.
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

/// Why a program has failed: an [`Error`] with the fields that Node adds to it.
///
/// JavaScript: `error.code` is a number for a program that has ended with it, here [`exit_code`](Self::exit_code), and a
/// text otherwise, here [`code`](Error::code).
#[derive(Clone, Debug)]
pub struct ExecError {
    error: Error,
    exit: Option<Exit>,
    was_killed: bool,
    command: Rc<str>,
    output: Rc<ExecOutput>,
}

impl ExecError {
    /// The code it has ended with. JavaScript: `error.code`, where that is a number.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.exit?.code
    }

    /// The signal that has ended it. JavaScript: `error.signal`.
    #[must_use]
    pub fn signal(&self) -> Option<SignalKind> {
        self.exit?.signal
    }

    /// Whether it was ended by a signal from here: by [`ChildProcess::kill`] or a timeout. As in Node, `false` where the error
    /// has a [`code`](Error::code). JavaScript: `error.killed`.
    #[must_use]
    pub fn killed(&self) -> bool {
        self.was_killed
    }

    /// What was run. JavaScript: `error.cmd`.
    #[must_use]
    pub fn cmd(&self) -> &str {
        &self.command
    }

    /// What it has written to standard output. JavaScript: `error.stdout`.
    #[must_use]
    pub fn stdout(&self) -> &str {
        &self.output.stdout
    }

    /// What it has written to standard error. JavaScript: `error.stderr`.
    #[must_use]
    pub fn stderr(&self) -> &str {
        &self.output.stderr
    }

    /// The error alone.
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
        self.error.fmt(f)
    }
}

impl std::error::Error for ExecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// What a program has written, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecOutput {
    /// To standard output.
    pub stdout: String,
    /// To standard error.
    pub stderr: String,
}

/// Runs a command line in a shell, `/bin/sh`, and calls back with what it has written.
///
/// JavaScript: `exec(command, (error, stdout, stderr) => ..)`. The callback gets an error if the program could not be
/// started, did not end with the code 0, or wrote more than 1 MiB, which ends it; then standard output and standard error.
/// It is called when the child is closed.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{child_process::exec, run};
///
/// run(async {
///     exec("echo hello; exit 3", |error, stdout, _stderr| {
///         let error = error.unwrap();
///         assert_eq!(stdout, "hello\n");
///         assert_eq!(error.message(), "Command failed: echo hello; exit 3\n");
///         assert_eq!((error.exit_code(), error.cmd()), (Some(3), "echo hello; exit 3"));
///     });
/// });
/// ```
#[track_caller]
pub fn exec(
    command: &str,
    callback: impl FnOnce(Option<ExecError>, String, String) + 'static,
) -> ChildProcess {
    exec_with(command, ExecOptions::default(), callback)
}

/// Runs a command line in a shell, with options; otherwise as [`exec`]. JavaScript: `exec(command, options, callback)`.
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
    let shell = options.shell.clone().unwrap_or_else(|| "/bin/sh".into());
    let mut line = Command::new(shell);
    line.args(["-c", command]);
    run(line, command.into(), options, callback)
}

/// Runs a program without a shell; otherwise as [`exec`]. JavaScript: `execFile(file, args, callback)`.
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

/// Runs a program with options, and without a shell unless they name one. JavaScript: `execFile(file, args, options,
/// callback)`.
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
    let words = std::iter::once(program.as_ref()).chain(arguments.iter().map(AsRef::as_ref));
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    let text = words.join(" ");
    let mut command = match &options.shell {
        Some(shell) => {
            let mut command = Command::new(shell);
            command.args(["-c", &text]);
            command
        }
        None => {
            let mut command = Command::new(&program);
            command.args(&arguments);
            command
        }
    };
    command.stdin(Stdio::piped());
    run(command, text.into(), options, callback)
}

/// Programs whose output is collected, as promises. JavaScript: `util.promisify(exec)`, `util.promisify(execFile)`.
pub mod promises {
    use super::{
        Arguments, ChildProcess, Deferred, ExecError, ExecOptions, ExecOutput, OsStr, Promise,
    };

    /// Runs a command line in a shell; see [`exec_with`](super::exec_with). JavaScript: `await
    /// util.promisify(exec)(command, options)`.
    ///
    /// # Errors
    ///
    /// Rejected with an [`ExecError`].
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn exec(command: &str, options: ExecOptions) -> Promise<ExecOutput> {
        promise(|callback| super::exec_with(command, options, callback))
    }

    /// Runs a program; see [`exec_file_with`](super::exec_file_with). JavaScript: `await util.promisify(execFile)(file, args,
    /// options)`.
    ///
    /// # Errors
    ///
    /// Rejected with an [`ExecError`].
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
    if let Some(user) = options.uid {
        command.uid(user);
    }
    if let Some(group) = options.gid {
        command.gid(group);
    }
    let child = ChildProcess::start(&mut command);
    let run = Rc::new(Run {
        child: Rc::downgrade(&child.inner),
        command: text,
        limit: options.max_buffer,
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

/// A program that runs and whose output is collected.
struct Run {
    /// The child has listeners that have this.
    child: Weak<Inner>,
    command: Rc<str>,
    limit: usize,
    kill_signal: SignalKind,
    collected: RefCell<Collected>,
    was_killed: Cell<bool>,
    timeout: RefCell<Option<Timeout>>,
    callback: RefCell<Option<Callback>>,
}

/// What a program has written so far, and why it was ended.
#[derive(Default)]
struct Collected {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    error: Option<Error>,
}

impl Run {
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
        child.on(CLOSE, move |()| run.finish());
        if let Some(delay) = options.timeout {
            let run = self.clone();
            let timeout = set_timeout(delay, move || run.kill());
            self.timeout.replace(Some(timeout));
        }
        if let Some(signal) = &options.signal {
            self.end_with(signal);
        }
    }

    /// Ends the program with the signal, which need not be new.
    fn end_with(self: &Rc<Self>, signal: &AbortSignal) {
        let (run, reason) = (self.clone(), signal.clone());
        let abort = move || {
            if let Some(reason) = reason.reason() {
                run.kill();
                run.fail(Error::aborted_by(reason));
            }
        };
        if signal.aborted() {
            next_tick(abort);
        } else {
            signal.on_abort(abort);
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
        place: fn(&mut Collected) -> &mut Vec<u8>,
    ) {
        let run = self.clone();
        output.on_data(move |text| {
            let is_too_much = {
                let mut collected = run.collected.borrow_mut();
                let so_far = place(&mut collected);
                let room = run.limit - so_far.len();
                so_far.extend_from_slice(&text[..text.len().min(room)]);
                text.len() > room
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
            // So that whoever else writes there, a child of the child, ends as well.
            for output in [child.stdout(), child.stderr()].into_iter().flatten() {
                output.destroy(None);
            }
            child.kill(self.kill_signal);
        }
    }

    /// It could not be started, or was aborted: nothing more is waited for.
    fn fail(&self, error: Error) {
        self.collected.borrow_mut().error = Some(error);
        self.finish();
    }

    /// Calls back, once.
    fn finish(&self) {
        let timeout = self.timeout.take();
        if let Some(timeout) = timeout {
            timeout.close();
        }
        let callback = self.callback.take();
        let Some(callback) = callback else { return };
        let collected = self.collected.take();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let output = ExecOutput {
            stdout: text(collected.stdout),
            stderr: text(collected.stderr),
        };
        let error = collected.error.map(|error| self.error(error, &output));
        let error = error.or_else(|| self.failure(&output));
        callback(error, output.stdout, output.stderr);
    }

    /// The error of a program that did not end with the code 0.
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

    /// An error that has another cause: as in Node it does not tell how the program has ended.
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
