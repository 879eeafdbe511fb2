//! The operations of `fs` that block, and take several steps of the loop: a thread with a loop of its own
//! takes them, and the caller waits. It asks the caller for what a function of JavaScript decides.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use phaseloop_node::fs::{self as node, promises};
use phaseloop_node::{Error, Promise};

use super::pool::{access, cp_options};
use crate::engine::{Fault, Res, Scope, Val};
use crate::error::make;
use crate::natives::{arg, number, outside, text};

/// What a thread sends to the caller.
enum Message {
    /// Asks the function about paths; the answer goes to the sender.
    Ask(Vec<PathBuf>, Sender<bool>),
    Done(Result<Vec<PathBuf>, Failure>),
}

/// The parts of an error, which stays on its thread.
struct Failure {
    name: String,
    message: String,
    errno: Option<i32>,
    texts: Vec<(&'static str, String)>,
}

impl Failure {
    fn of(error: &Error) -> Self {
        let owned = |path: &Path| path.to_string_lossy().into_owned();
        let texts = [
            ("code", error.code().map(str::to_owned)),
            ("syscall", error.syscall().map(str::to_owned)),
            ("path", error.path().map(owned)),
            ("dest", error.target().map(owned)),
        ];
        let texts = texts.into_iter();
        Self {
            name: error.name().to_owned(),
            message: error.message().to_owned(),
            errno: error.errno(),
            texts: texts.filter_map(|(key, it)| Some((key, it?))).collect(),
        }
    }

    fn throw(&self, scope: &Scope<'_>) -> Fault {
        let made = scope.object().and_then(|fields| {
            if let Some(errno) = self.errno {
                fields.set("errno", &scope.number(-f64::from(errno.abs())))?;
            }
            for (key, text) in &self.texts {
                fields.set(key, &scope.string(text)?)?;
            }
            Ok(scope.throw(make(scope, &self.name, &self.message, fields)?))
        });
        made.unwrap_or_else(|fault| fault)
    }
}

/// Returns a function that asks the caller.
fn asking(caller: &Sender<Message>) -> impl Fn(&[&Path]) -> bool + 'static {
    let caller = caller.clone();
    move |paths| {
        let (sender, answer) = channel();
        let paths = paths.iter().map(|path| path.to_path_buf()).collect();
        let asked = caller.send(Message::Ask(paths, sender));
        asked.is_ok() && answer.recv().unwrap_or(false)
    }
}

/// Runs `start` on a thread, and waits for what its promise becomes.
fn run<'js, T: Clone + 'static>(
    scope: &Scope<'js>,
    function: &Val<'js>,
    start: impl FnOnce(&Sender<Message>) -> Promise<T> + Send,
    paths: impl FnOnce(T) -> Vec<PathBuf> + Send,
) -> Res<'js> {
    let (sender, messages) = channel();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            phaseloop_node::run(async move {
                let result = start(&sender).await;
                let failed = |reason: phaseloop_node::Reason| Failure::of(&Error::from(reason));
                let result = result.map(paths).map_err(failed);
                // The caller waits for it.
                let _ = sender.send(Message::Done(result));
            })
        });
        answer(scope, function, &messages)
    })
}

/// Answers the thread until it is done. After an exception nothing is copied or found any more.
fn answer<'js>(scope: &Scope<'js>, function: &Val<'js>, messages: &Receiver<Message>) -> Res<'js> {
    let mut fault = None;
    for message in messages {
        match message {
            Message::Ask(paths, sender) => {
                let ask = || {
                    let paths = paths.iter().map(|it| scope.string(&it.to_string_lossy()));
                    let paths = paths.collect::<Res<'js, Vec<_>>>()?;
                    let answer = scope.call_js(function, &scope.undefined(), &paths)?;
                    Ok(answer.is_truthy())
                };
                let answer = match fault {
                    None => ask().unwrap_or_else(|it| {
                        fault = Some(it);
                        false
                    }),
                    Some(_) => false,
                };
                let _ = sender.send(answer);
            }
            Message::Done(_) if fault.is_some() => break,
            Message::Done(Ok(paths)) => {
                let paths = paths.iter().map(|it| scope.string(&it.to_string_lossy()));
                return scope.array(&paths.collect::<Res<'js, Vec<_>>>()?);
            }
            Message::Done(Err(failure)) => return Err(failure.throw(scope)),
        }
    }
    Err(fault.unwrap_or(Fault))
}

/// Calls an operation; `None` for one that is not of these.
pub(super) fn call<'js>(
    scope: &Scope<'js>,
    operation: &str,
    args: &[Val<'js>],
) -> Option<Res<'js>> {
    match operation {
        "access" => Some(check(scope, args)),
        "cp" => Some(copy(scope, args)),
        "glob" => Some(glob(scope, args)),
        _ => None,
    }
}

fn path<'js>(scope: &Scope<'js>, args: &[Val<'js>], index: usize) -> Res<'js, PathBuf> {
    super::allowed(scope, PathBuf::from(text(scope, args, index)?))
}

fn check<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (path, mode) = (path(scope, args, 0)?, number(scope, args, 1) as u32);
    let start = move |_: &Sender<Message>| promises::access(path, access(mode));
    run(scope, &scope.undefined(), start, |()| Vec::new())?;
    Ok(scope.undefined())
}

fn copy<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (from, to) = (path(scope, args, 0)?, path(scope, args, 1)?);
    let filter = arg(scope, args, 9);
    let has_filter = filter.is_function();
    let given = cp_options(scope, &args[..args.len().min(9)])?;
    let is_exclusive = arg(scope, args, 8).is_truthy();
    let start = move |caller: &Sender<Message>| {
        let ask = asking(caller);
        // Only the flags are moved: an option may hold a function of this thread.
        let options = node::CpOptions {
            dereference: given.dereference,
            error_on_exist: given.error_on_exist,
            force: given.force,
            preserve_timestamps: given.preserve_timestamps,
            recursive: given.recursive,
            verbatim_symlinks: given.verbatim_symlinks,
            mode: node::CopyOptions::new().exclusive(is_exclusive),
            filter: has_filter
                .then(|| std::rc::Rc::new(move |from: &Path, to: &Path| ask(&[from, to])) as _),
        };
        promises::cp_with(from, to, options)
    };
    run(scope, &filter, start, |()| Vec::new())?;
    Ok(scope.undefined())
}

fn glob<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    // A pattern names any folder.
    outside(scope)?;
    let patterns = arg(scope, args, 0).elements()?;
    let patterns: Vec<_> = patterns.iter().map(Val::to_text).collect::<Res<'js, _>>()?;
    let (folder, exclude) = (text(scope, args, 1)?, arg(scope, args, 2));
    let has_exclude = exclude.is_function();
    let start = move |caller: &Sender<Message>| {
        let ask = asking(caller);
        let options = node::GlobOptions::default().cwd(folder);
        let options = match has_exclude {
            true => options.exclude(move |path| ask(&[path])),
            false => options,
        };
        promises::glob_with(patterns, options)
    };
    run(scope, &exclude, start, |found| found)
}
