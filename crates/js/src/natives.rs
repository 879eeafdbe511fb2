//! The functions of Rust that the prelude calls.

mod buffer;
mod child_process;
mod contexts;
mod dgram;
mod dns;
mod emitter;
mod files;
mod http;
mod net;
mod os;
mod perf_hooks;
mod ports;
mod process;
mod readline;
mod signals;
mod stream;
mod system;
mod timers;
#[cfg(feature = "fetch")]
mod web;
mod workers;
#[cfg(feature = "zlib")]
mod zlib;

use std::rc::Rc;

use phaseloop_node::Error;
use phaseloop_node::host::{self, ReportLine};

pub(crate) use self::perf_hooks::Recordable;
pub(crate) use self::stream::Handle;
pub(crate) use self::timers::Shapes;
pub(crate) use self::workers::{Parent, Running};
use crate::engine::{Closure, Fault, Native, Res, Scope, Val};

/// All functions, by name.
const TABLES: [&[(&str, Native)]; 19] = [
    workers::TABLE,
    child_process::TABLE,
    readline::TABLE,
    signals::TABLE,
    dns::TABLE,
    dgram::TABLE,
    perf_hooks::TABLE,
    ports::TABLE,
    http::TABLE,
    net::TABLE,
    stream::TABLE,
    buffer::TABLE,
    contexts::TABLE,
    files::TABLE,
    os::TABLE,
    os::UNIX,
    process::TABLE,
    system::TABLE,
    timers::TABLE,
];

/// The byte code of the prelude's files, by their names; the build script makes it.
const PRELUDE: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/prelude.rs"));

/// The modules of the prelude that a program may ask for.
const PUBLIC: &[&str] = &[
    "assert",
    "assert/strict",
    "console",
    "crypto",
    "diagnostics_channel",
    "module",
    "path/posix",
    "process",
    "tty",
    "util/types",
    "zlib",
    "url",
    "worker_threads",
    "child_process",
    "readline",
    "readline/promises",
    "dns",
    "dns/promises",
    "dgram",
    "http",
    "stream/consumers",
    "net",
    "stream",
    "stream/promises",
    "async_hooks",
    "buffer",
    "string_decoder",
    "events",
    "fs",
    "fs/promises",
    "os",
    "path",
    "perf_hooks",
    "timers",
    "timers/promises",
    "util",
];

/// Those of them that reach out of the engine; the timeline of `perf_hooks` is the loop's.
const OUTSIDE: [&str; 13] = [
    "worker_threads",
    "child_process",
    "readline",
    "readline/promises",
    "dgram",
    "dns",
    "dns/promises",
    "fs",
    "fs/promises",
    "http",
    "net",
    "os",
    "perf_hooks",
];

/// Runs the prelude.
pub(crate) fn install<'js>(scope: &Scope<'js>) -> Res<'js, ()> {
    let (natives, internal) = (scope.object()?, scope.object()?);
    for (name, native) in TABLES.into_iter().flatten() {
        natives.set(name, &scope.native(name, *native)?)?;
    }
    #[cfg(feature = "fetch")]
    for (name, native) in web::TABLE {
        natives.set(name, &scope.native(name, *native)?)?;
    }
    #[cfg(feature = "zlib")]
    for (name, native) in zlib::TABLE {
        natives.set(name, &scope.native(name, *native)?)?;
    }
    natives.set("builtin", &scope.native("builtin", builtin)?)?;
    natives.set("allowed", &scope.native("allowed", allowed)?)?;
    natives.set("moduleNames", &scope.native("moduleNames", module_names)?)?;
    // Node's names.
    let platform = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        name => name,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "x86" => "ia32",
        "aarch64" => "arm64",
        name => name,
    };
    let version = env!("CARGO_PKG_VERSION");
    system::start();
    for (key, text) in [("platform", platform), ("arch", arch), ("version", version)] {
        natives.set(key, &scope.string(text)?)?;
    }
    let base = part(scope, "base")?;
    base.call(&scope.undefined(), &[natives, internal.clone()])?;
    let held = scope.hold(&internal);
    let _ = scope.inner.data.internal.set(held);
    for name in ["process", "timers", "event_target", "modules"] {
        scope.internal("builtin", &[scope.string(name)?])?;
    }
    Ok(())
}

/// Runs a file of the prelude, if there is one with this name.
fn part<'js>(scope: &Scope<'js>, name: &str) -> Res<'js> {
    match PRELUDE.iter().find(|(known, _)| *known == name) {
        Some((_, code)) => scope.run_code(code),
        None => Ok(scope.undefined()),
    }
}

/// Runs the file of a module: `timers_promises.js` is that of `timers/promises`.
fn builtin<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    part(scope, &text(scope, args, 0)?.replace('/', "_"))
}

fn allowed<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    Ok(scope.boolean(is_allowed(scope, &text(scope, args, 0)?)))
}

/// Returns whether the program may ask for a module.
fn is_allowed(scope: &Scope<'_>, name: &str) -> bool {
    let is_off = match name {
        "url" => !cfg!(feature = "fetch"),
        "zlib" => !cfg!(feature = "zlib"),
        "crypto" => !cfg!(unix),
        _ => false,
    };
    if is_off {
        return false;
    }
    let is_allowed = match scope.inner.data.settings.modules {
        crate::Modules::None => false,
        crate::Modules::Core => !OUTSIDE.contains(&name),
        crate::Modules::Node => true,
    };
    is_allowed && PUBLIC.contains(&name)
}

/// Returns the names of the modules that the program may ask for.
fn module_names<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let mut names: Vec<_> = PUBLIC.iter().filter(|it| is_allowed(scope, it)).collect();
    names.sort();
    let names: Res<'js, Vec<_>> = names.into_iter().map(|it| scope.string(it)).collect();
    scope.array(&names?)
}

/// An operation that is not bound, or that this platform does not have.
fn unknown(scope: &Scope<'_>, operation: &str) -> Fault {
    let text = format!("The operation {operation} is not implemented");
    let error = Error::with_code("ERR_METHOD_NOT_IMPLEMENTED", text);
    scope.throw_reason(&error.into())
}

/// The error of what the settings of the engine do not allow.
fn denied(scope: &Scope<'_>) -> Fault {
    let text = "Access to this API has been restricted";
    scope.throw_reason(&Error::with_code("ERR_ACCESS_DENIED", text).into())
}

/// Refuses what could reach any file, if the engine may not.
fn outside<'js>(scope: &Scope<'js>) -> Res<'js, ()> {
    match scope.inner.data.settings.files {
        crate::Files::All => Ok(()),
        _ => Err(denied(scope)),
    }
}

/// Creates the function by which the prelude calls an object of Rust: the name of an operation, and
/// its arguments.
fn operations<'js>(
    scope: &Scope<'js>,
    name: &str,
    operate: impl for<'s> Fn(&Scope<'s>, &str, &[Val<'s>]) -> Res<'s> + 'static,
) -> Res<'js> {
    let closure: Closure = Rc::new(move |scope, args| {
        let operation = text(scope, args, 0)?;
        operate(scope, &operation, args.get(1..).unwrap_or_default())
    });
    scope.closure(name, closure)
}

/// Returns an argument; `undefined` if it was not given.
fn arg<'js>(scope: &Scope<'js>, args: &[Val<'js>], index: usize) -> Val<'js> {
    args.get(index)
        .cloned()
        .unwrap_or_else(|| scope.undefined())
}

fn text<'js>(scope: &Scope<'js>, args: &[Val<'js>], index: usize) -> Res<'js, String> {
    arg(scope, args, index).to_text()
}

fn number<'js>(scope: &Scope<'js>, args: &[Val<'js>], index: usize) -> f64 {
    arg(scope, args, index).as_number().unwrap_or(f64::NAN)
}

/// Returns the path of a module from `root`, without an extension.
pub(crate) fn joined(root: &std::path::Path, name: &str) -> String {
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_path_buf());
    let path = root.join(name.trim_start_matches("./"));
    let text = path.to_string_lossy().into_owned();
    match text.strip_suffix(".js") {
        Some(bare) => bare.to_owned(),
        None => text,
    }
}

/// Returns the file, line and column of the script that is on top of the stack.
fn position<'js>(scope: &Scope<'js>) -> Res<'js, Option<String>> {
    let stack = scope.error("Error", "")?.get(scope, "stack")?.to_text()?;
    let mut frames = stack
        .lines()
        .filter_map(|line| line.trim().strip_prefix("at "));
    let frame = frames.find(|frame| !frame.contains("phaseloop:") && !frame.contains("(native)"));
    Ok(frame.map(|frame| match frame.rsplit_once('(') {
        Some((_, place)) => place.trim_end_matches(')').to_owned(),
        None => frame.to_owned(),
    }))
}

impl<'js> Scope<'js> {
    /// Adds a line to reports: `what`, and where the script is. `None` unless positions are asked for.
    pub(crate) fn report_line(&self, what: &'static str) -> Option<ReportLine> {
        if !self.inner.data.settings.positions {
            return None;
        }
        match position(self) {
            Ok(at) => Some(host::report_line(what, at?.into())),
            Err(_) => {
                self.take_exception();
                None
            }
        }
    }

    /// Calls a function of the prelude.
    pub(crate) fn internal(&self, name: &str, args: &[Val<'js>]) -> Res<'js> {
        match self.inner.data.internal.get() {
            Some(held) => held
                .get(self)?
                .get(self, name)?
                .call(&self.undefined(), args),
            None => Ok(self.undefined()),
        }
    }
}
