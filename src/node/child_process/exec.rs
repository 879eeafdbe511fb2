//! Programs whose output is collected.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::rc::Rc;

use super::{Arguments, ChildProcess, spawn};
use crate::node::error::Error;
use crate::node::events::{ERROR, Emitter as _};
use crate::node::stream::{CLOSE, Readable};
use crate::signal::SignalKind;

/// How many bytes of an output are collected; a program that writes more is ended.
const MAX_BUFFER: usize = 1024 * 1024;

/// Runs a command line in a shell, `/bin/sh`, and calls back with what it has written.
///
/// The callback gets an error if the program could not be started, did not end with the code 0, or wrote more than 1 MiB,
/// which ends it; then standard output and standard error. It is called when the child is closed (N102);
/// [`ChildProcess::exit`] has the code.
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
///         assert_eq!(stdout, "hello\n");
///         assert_eq!(error.unwrap().message(), "Command failed: echo hello; exit 3\n");
///     });
/// });
/// ```
#[track_caller]
pub fn exec(
    command: &str,
    callback: impl FnOnce(Option<Error>, String, String) + 'static,
) -> ChildProcess {
    let child = spawn("/bin/sh", ["-c", command]);
    collect(child, command.to_owned(), callback)
}

/// Runs a program without a shell; otherwise as [`exec`].
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn exec_file(
    program: impl AsRef<OsStr>,
    arguments: impl Arguments,
    callback: impl FnOnce(Option<Error>, String, String) + 'static,
) -> ChildProcess {
    let arguments = arguments.into_arguments();
    let words = std::iter::once(program.as_ref()).chain(arguments.iter().map(AsRef::as_ref));
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    let command = words.join(" ");
    collect(spawn(program, arguments), command, callback)
}

/// What a program has written so far, and why it was ended.
#[derive(Default)]
struct Collected {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    error: Option<Error>,
}

fn collect(
    child: ChildProcess,
    command: String,
    callback: impl FnOnce(Option<Error>, String, String) + 'static,
) -> ChildProcess {
    let collected = Rc::new(RefCell::new(Collected::default()));
    if let Some(output) = child.stdout() {
        take_all(&child, "stdout", output, &collected, |c| &mut c.stdout);
    }
    if let Some(output) = child.stderr() {
        take_all(&child, "stderr", output, &collected, |c| &mut c.stderr);
    }
    let callback = Rc::new(RefCell::new(Some(callback)));
    let (failed, unfinished) = (callback.clone(), collected.clone());
    child.on(ERROR, move |error| {
        unfinished.borrow_mut().error = Some(error.clone());
        finish(&failed, &unfinished);
    });
    let this = Rc::downgrade(&child.inner);
    child.on(CLOSE, move |()| {
        let exit = this.upgrade().and_then(|inner| inner.exit.get());
        if exit.is_none_or(|exit| exit.code != Some(0)) {
            let mut collected = collected.borrow_mut();
            let stderr = String::from_utf8_lossy(&collected.stderr).into_owned();
            let failed = || Error::new(format!("Command failed: {command}\n{stderr}"));
            collected.error.get_or_insert_with(failed);
        }
        finish(&callback, &collected);
    });
    child
}

/// Collects one output, up to the limit.
fn take_all(
    child: &ChildProcess,
    name: &'static str,
    output: &Readable<Vec<u8>>,
    collected: &Rc<RefCell<Collected>>,
    place: fn(&mut Collected) -> &mut Vec<u8>,
) {
    let (child, collected) = (Rc::downgrade(&child.inner), collected.clone());
    output.on_data(move |bytes| {
        let is_too_much = {
            let mut collected = collected.borrow_mut();
            let bytes_so_far = place(&mut collected);
            let room = MAX_BUFFER - bytes_so_far.len();
            bytes_so_far.extend_from_slice(&bytes[..bytes.len().min(room)]);
            let is_too_much = bytes.len() > room && collected.error.is_none();
            if is_too_much {
                collected.error = Some(Error::with_code(
                    "ERR_CHILD_PROCESS_STDIO_MAXBUFFER",
                    format!("{name} maxBuffer length exceeded"),
                ));
            }
            is_too_much
        };
        if let (true, Some(inner)) = (is_too_much, child.upgrade()) {
            let child = ChildProcess { inner };
            // So that whoever else writes there, a child of the child, ends as well.
            for output in [child.stdout(), child.stderr()].into_iter().flatten() {
                output.destroy(None);
            }
            child.kill(SignalKind::TERM);
        }
    });
}

/// Calls back, once.
fn finish<F: FnOnce(Option<Error>, String, String)>(
    callback: &RefCell<Option<F>>,
    collected: &RefCell<Collected>,
) {
    let callback = callback.take();
    let collected = collected.take();
    if let Some(callback) = callback {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        callback(
            collected.error,
            text(collected.stdout),
            text(collected.stderr),
        );
    }
}
