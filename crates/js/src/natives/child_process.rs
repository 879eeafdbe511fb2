//! Child processes: an object of JavaScript has a function that calls its process of Rust.

use std::ffi::OsString;
use std::io::Write as _;
use std::rc::Rc;

use phaseloop::signal::SignalKind;
use phaseloop_node::child_process::{
    self as node, CLOSE, ChildProcess, EXIT, ExecError, ExecOptions, Exit, SPAWN, Shell,
    SpawnOptions, Stdio,
};
use phaseloop_node::events::{ERROR, Emitter as _, EventEmitter};
use phaseloop_node::{Delay, Error};

use super::emitter::{Listen, Numbered, count_end, emit_error, note, remove};
use super::signals::lent;
use super::stream::{Handle, bind, keep};
use super::{arg, number, operations, outside, text};
use crate::engine::{Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] =
    &[("spawn", spawn), ("exec", exec), ("spawnSync", spawn_sync)];

/// Reads the options of a process.
struct Given<'a, 'js>(&'a Scope<'js>, Val<'js>);

impl<'js> Given<'_, 'js> {
    fn get(&self, name: &str) -> Res<'js> {
        self.1.get(self.0, name)
    }

    fn text(&self, name: &str) -> Res<'js, Option<String>> {
        Ok(self.get(name)?.as_text())
    }

    fn number(&self, name: &str) -> Res<'js, Option<f64>> {
        Ok(self.get(name)?.as_number())
    }

    fn id(&self, name: &str) -> Res<'js, Option<u32>> {
        Ok(self.number(name)?.map(|it| it as u32))
    }

    /// The environment: names and values by turns.
    fn env(&self) -> Res<'js, Option<Vec<(OsString, OsString)>>> {
        let texts = texts(&self.get("env")?)?;
        let pairs = texts.chunks_exact(2);
        let pairs = pairs.map(|pair| (pair[0].clone().into(), pair[1].clone().into()));
        Ok(Some(pairs.collect()))
    }

    fn kill_signal(&self) -> Res<'js, SignalKind> {
        let number = self.number("killSignal")?;
        Ok(number.map_or(SignalKind::TERM, |it| SignalKind::from_raw(it as i32)))
    }

    fn timeout(&self) -> Res<'js, Option<Delay>> {
        let delay = self.number("timeout")?.filter(|it| *it > 0.0);
        Ok(delay.map(Delay::from))
    }
}

fn texts<'js>(list: &Val<'js>) -> Res<'js, Vec<String>> {
    list.elements()?.iter().map(Val::to_text).collect()
}

/// Returns what a descriptor of the child is: a word, the number of one of this process, or a
/// function that lends an open file.
fn stdio_of<'js>(scope: &Scope<'js>, place: usize, what: &Val<'js>) -> Res<'js, Stdio> {
    let failed = |error: Error| scope.throw_reason(&error.into());
    if what.is_function() {
        what.call(&scope.undefined(), &[scope.string("lend")?])?;
        let file = scope.inner.data.lent_file.take();
        let made = file.map(|file| Stdio::from_handle(&file).map_err(failed));
        return made.unwrap_or(Ok(Stdio::Ignore));
    }
    if let Some(number) = what.as_number() {
        return match (number as usize) == place {
            true => Ok(Stdio::Inherit),
            false => own_descriptor(number).map_err(|error| failed(error.into())),
        };
    }
    Ok(match what.as_text().as_deref() {
        Some("ignore") => Stdio::Ignore,
        Some("inherit") => Stdio::Inherit,
        Some("ipc") => Stdio::Ipc,
        _ => Stdio::Pipe,
    })
}

/// Returns a standard stream of this process.
fn own_descriptor(number: f64) -> std::io::Result<Stdio> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd as _;
        let owned = match number {
            0.0 => std::io::stdin().as_fd().try_clone_to_owned()?,
            1.0 => std::io::stdout().as_fd().try_clone_to_owned()?,
            2.0 => std::io::stderr().as_fd().try_clone_to_owned()?,
            _ => return Err(std::io::Error::from_raw_os_error(BAD_DESCRIPTOR)),
        };
        Ok(std::fs::File::from(owned).into())
    }
    #[cfg(not(unix))]
    {
        let _ = number;
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// EBADF.
#[cfg(unix)]
const BAD_DESCRIPTOR: i32 = 9;

/// Starts a program: the file, the arguments and the options.
fn spawn<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    outside(scope)?;
    let (file, arguments) = (text(scope, args, 0)?, texts(&arg(scope, args, 1))?);
    let given = Given(scope, arg(scope, args, 2));
    let shell = given.get("shell")?;
    let stdio = given.get("stdio")?.elements()?.into_iter().enumerate();
    let options = SpawnOptions {
        cwd: given.text("cwd")?.map(Into::into),
        env: given.env()?,
        argv0: given.text("argv0")?.map(Into::into),
        stdio: stdio
            .map(|(place, what)| stdio_of(scope, place, &what))
            .collect::<Res<'js, _>>()?,
        detached: given.get("detached")?.is_truthy(),
        shell: match shell.as_text() {
            Some(path) if !path.is_empty() => Some(Shell::Program(path.into())),
            _ if shell.as_bool() == Some(true) => Some(Shell::System),
            _ => None,
        },
        timeout: given.timeout()?,
        signal: lent(scope, &given.get("controller")?)?,
        kill_signal: given.kill_signal()?,
        uid: given.id("uid")?,
        gid: given.id("gid")?,
    };
    let child = node::spawn_with(file, arguments.clone(), options);
    child_function(scope, child, arguments)
}

/// Runs a command, or a program with arguments, and collects its output: the command, its arguments
/// if it is a program, the options, and the callback.
fn exec<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    outside(scope)?;
    let (file, arguments) = (text(scope, args, 0)?, arg(scope, args, 1));
    let given = Given(scope, arg(scope, args, 2));
    let usual = ExecOptions::default();
    let options = ExecOptions {
        cwd: given.text("cwd")?.map(Into::into),
        env: given.env()?,
        encoding: super::buffer::encoding(scope, &[given.get("encoding")?], 0)?,
        timeout: given.timeout()?,
        // A limit of `Infinity` is the largest number.
        max_buffer: given
            .number("maxBuffer")?
            .map_or(usual.max_buffer, |it| it as usize),
        kill_signal: given.kill_signal()?,
        shell: given.text("shell")?.map(Into::into),
        uid: given.id("uid")?,
        gid: given.id("gid")?,
        signal: lent(scope, &given.get("controller")?)?,
    };
    let done = scope.hold(&arg(scope, args, 3));
    let done = move |error: Option<ExecError>, stdout: String, stderr: String| {
        done.call(|scope| {
            let error = match error {
                Some(error) => exec_error(scope, &error)?,
                None => scope.null(),
            };
            Ok(vec![error, scope.string(&stdout)?, scope.string(&stderr)?])
        });
    };
    if arguments.is_nullish() {
        let child = node::exec_with(&file, options, done);
        return child_function(scope, child, Vec::new());
    }
    let arguments = texts(&arguments)?;
    let child = node::exec_file_with(file, arguments.clone(), options, done);
    child_function(scope, child, arguments)
}

fn exec_error<'js>(scope: &Scope<'js>, error: &ExecError) -> Res<'js> {
    let value = error::of_node(scope, error.error())?;
    if let Some(exit) = exit_of(error) {
        let [code, signal] = shown(scope, &exit)?;
        value.set("code", &code)?;
        value.set("killed", &scope.boolean(error.killed()))?;
        value.set("signal", &signal)?;
    }
    value.set("cmd", &scope.string(error.cmd())?)?;
    Ok(value)
}

/// How a command has ended; `None` for one that could not be started or was stopped.
fn exit_of(error: &ExecError) -> Option<(Option<i32>, Option<SignalKind>)> {
    let is_known = error.exit_code().is_some() || error.signal().is_some();
    is_known.then(|| (error.exit_code(), error.signal()))
}

/// Returns Node's code and signal.
fn shown<'js>(
    scope: &Scope<'js>,
    (code, signal): &(Option<i32>, Option<SignalKind>),
) -> Res<'js, [Val<'js>; 2]> {
    let code = code.map_or(scope.null(), |code| scope.number(f64::from(code)));
    let signal = match signal.map(|it| it.name().map_or(it.to_string(), str::to_owned)) {
        Some(name) => scope.string(&name)?,
        None => scope.null(),
    };
    Ok([code, signal])
}

fn child_function<'js>(
    scope: &Scope<'js>,
    child: ChildProcess,
    arguments: Vec<String>,
) -> Res<'js> {
    let (listeners, arguments): (_, Rc<[String]>) = (Numbered::default(), arguments.into());
    operations(scope, "child", move |scope, operation, args| {
        operate(scope, &child, &arguments, &listeners, operation, args)
    })
}

/// Adds a listener for an event of processes.
fn listen(
    child: &ChildProcess,
    arguments: &Rc<[String]>,
    listen: Listen,
) -> phaseloop_node::events::ListenerId {
    let emitter = child.emitter();
    match listen.name.as_str() {
        "spawn" => listen.plain(emitter, SPAWN),
        "exit" => listen.add(emitter, EXIT, |scope, exit: &Exit| {
            Ok(shown(scope, &(exit.code, exit.signal))?.into())
        }),
        "close" => listen.add(emitter, CLOSE, |scope, exit: &Exit| {
            Ok(shown(scope, &(exit.code, exit.signal))?.into())
        }),
        #[cfg(unix)]
        "message" => listen.add(emitter, node::MESSAGE, |scope, json: &node::Json| {
            Ok(vec![
                scope.internal("parseJson", &[scope.string(json.as_text())?])?,
            ])
        }),
        #[cfg(unix)]
        "disconnect" => listen.plain(emitter, node::DISCONNECT),
        _ => {
            let arguments = arguments.clone();
            let event = match listen.name.as_str() {
                "errorMonitor" => ERROR.monitor(),
                _ => ERROR,
            };
            listen.add(emitter, event, move |scope, error: &Error| {
                let value = error::of_node(scope, error)?;
                if error.syscall().is_some_and(|it| it.starts_with("spawn")) {
                    let texts = arguments.iter().map(|it| scope.string(it));
                    let list = scope.array(&texts.collect::<Res<'_, Vec<_>>>()?)?;
                    value.set("spawnargs", &list)?;
                }
                Ok(vec![value])
            })
        }
    }
}

fn count(emitter: &EventEmitter, name: &str) -> usize {
    match name {
        "spawn" => emitter.listener_count(SPAWN),
        "exit" => emitter.listener_count(EXIT),
        "close" => emitter.listener_count(CLOSE),
        #[cfg(unix)]
        "message" => emitter.listener_count(node::MESSAGE),
        #[cfg(unix)]
        "disconnect" => emitter.listener_count(node::DISCONNECT),
        _ => count_end(emitter, name),
    }
}

fn operate<'js>(
    scope: &Scope<'js>,
    child: &ChildProcess,
    arguments: &Rc<[String]>,
    listeners: &Numbered,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    let emitter = child.emitter();
    match operation {
        "on" => {
            let added = Listen::new(scope, args)?;
            let key = added.key();
            note(listeners, key, listen(child, arguments, added));
        }
        "off" => remove(scope, listeners, emitter, args),
        "emit" => return emit_error(scope, emitter, args),
        "count" => {
            let count = count(emitter, &text(scope, args, 0)?);
            return Ok(scope.number(count as f64));
        }
        "onceClosed" => {
            let callback = scope.hold(&arg(scope, args, 0));
            emitter.once(CLOSE, move |_| callback.call(|_| Ok(Vec::new())));
        }
        "pid" => {
            return Ok(match child.pid() {
                Some(pid) => scope.number(f64::from(pid)),
                None => scope.undefined(),
            });
        }
        "has" => {
            return Ok(scope.boolean(match text(scope, args, 0)?.as_str() {
                "stdin" => child.stdin().is_some(),
                "stdout" => child.stdout().is_some(),
                _ => child.stderr().is_some(),
            }));
        }
        "stdin" => {
            if let Some(stream) = child.stdin() {
                let object = arg(scope, args, 0);
                keep(scope, &object, stream.emitter(), stream.id());
                return bind(scope, &object, Handle::of_bytes(None, Some(stream)));
            }
        }
        "stdout" | "stderr" => {
            let stream = match operation {
                "stdout" => child.stdout(),
                _ => child.stderr(),
            };
            if let Some(stream) = stream {
                let object = arg(scope, args, 0);
                keep(scope, &object, stream.emitter(), stream.id());
                return bind(scope, &object, Handle::of_bytes(Some(stream), None));
            }
        }
        #[cfg(unix)]
        "stdio" => {
            if let Some(socket) = child.stdio(number(scope, args, 0) as usize) {
                return super::net::socket_object(scope, &socket);
            }
        }
        "exit" => {
            let exit = child.exit().map(|it| (it.code, it.signal));
            return scope.array(&shown(scope, &exit.unwrap_or_default())?);
        }
        "kill" => {
            let signal = SignalKind::from_raw(number(scope, args, 0) as i32);
            return Ok(scope.boolean(child.kill(signal)));
        }
        "killed" => return Ok(scope.boolean(child.killed())),
        "ref" => match arg(scope, args, 0).is_truthy() {
            true => child.ref_(),
            false => child.unref(),
        },
        #[cfg(unix)]
        "connected" => return Ok(scope.boolean(child.connected())),
        #[cfg(unix)]
        "disconnect" => child.disconnect(),
        #[cfg(unix)]
        "send" => {
            let json = node::Json::from_text(text(scope, args, 0)?);
            let callback = arg(scope, args, 1);
            return Ok(scope.boolean(match callback.is_function() {
                true => child.send_with(json, super::stream::written(&scope.hold(&callback))),
                false => child.send(json),
            }));
        }
        _ => {}
    }
    Ok(scope.undefined())
}

/// Runs a program and waits for its end: the file, the arguments and the options.
fn spawn_sync<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    outside(scope)?;
    let given = Given(scope, arg(scope, args, 2));
    let mut command = std::process::Command::new(text(scope, args, 0)?);
    command.args(texts(&arg(scope, args, 1))?);
    command.env_clear().envs(given.env()?.unwrap_or_default());
    if let Some(folder) = given.text("cwd")? {
        command.current_dir(folder);
    }
    let kinds = texts(&given.get("stdio")?)?;
    let kind = |place: usize| match kinds.get(place).map(String::as_str) {
        Some("inherit") => std::process::Stdio::inherit(),
        Some("ignore") => std::process::Stdio::null(),
        _ => std::process::Stdio::piped(),
    };
    command.stdin(kind(0)).stdout(kind(1)).stderr(kind(2));
    let input = given.get("input")?.to_bytes().unwrap_or_default();
    let mut run = || -> std::io::Result<(u32, std::process::Output)> {
        let mut child = command.spawn()?;
        let (pid, pipe) = (child.id(), child.stdin.take());
        // A program may write before it has read all.
        let output = std::thread::scope(|threads| {
            threads.spawn(|| {
                // It may also end without reading.
                let _ = pipe.map(|mut pipe| pipe.write_all(&input));
            });
            child.wait_with_output()
        });
        Ok((pid, output?))
    };
    let object = scope.object()?;
    let (pid, output) = match run() {
        Ok(ended) => ended,
        Err(error) => {
            object.set("error", &error::of_node(scope, &error.into())?)?;
            return Ok(object);
        }
    };
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    #[cfg(not(unix))]
    let signal = None::<i32>;
    let [status, signal] = shown(
        scope,
        &(output.status.code(), signal.map(SignalKind::from_raw)),
    )?;
    let fields = [
        ("pid", scope.number(f64::from(pid))),
        ("status", status),
        ("signal", signal),
        ("stdout", scope.bytes(&output.stdout)?),
        ("stderr", scope.bytes(&output.stderr)?),
    ];
    for (name, value) in fields {
        object.set(name, &value)?;
    }
    Ok(object)
}
