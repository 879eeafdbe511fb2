//! The clock, the environment, texts and modules.

use std::time::Instant;

use phaseloop_node::string_decoder::Encoding;

use super::{arg, text};
use crate::engine::{Native, Res, Scope, Val};

pub(super) const TABLE: &[(&str, Native)] = &[
    ("hrtime", hrtime),
    ("uptime", uptime),
    ("cwd", cwd),
    ("chdir", chdir),
    ("execPath", exec_path),
    ("pid", pid),
    ("argv", argv),
    ("env", env),
    ("activeResources", active),
    ("encode", encode),
    ("decode", decode),
    ("isEncoding", is_encoding),
    ("compile", compile),
    ("rustModule", rust_module),
    ("promiseState", promise_state),
    ("debugs", debugs),
    ("import", import),
    ("evaluate", evaluate),
];

/// The start of the first engine of the process.
pub(super) fn start() -> Instant {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    *START.get_or_init(Instant::now)
}

fn hrtime<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let offset = 1_000_000_000;
    scope.bigint(offset + start().elapsed().as_nanos() as u64)
}

fn uptime<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    Ok(scope.number(start().elapsed().as_secs_f64()))
}

fn cwd<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let folder = std::env::current_dir().unwrap_or_default();
    scope.string(&folder.to_string_lossy())
}

fn chdir<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    match std::env::set_current_dir(text(scope, args, 0)?) {
        Ok(()) => Ok(scope.undefined()),
        Err(error) => Err(scope.throw_reason(&error.into())),
    }
}

fn exec_path<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    match std::env::current_exe() {
        Ok(path) => scope.string(&path.to_string_lossy()),
        Err(_) => Ok(scope.undefined()),
    }
}

fn pid<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    Ok(scope.number(f64::from(std::process::id())))
}

fn argv<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let argv = scope.inner.data.settings.argv.iter();
    let argv: Res<'js, Vec<_>> = argv.map(|it| scope.string(it)).collect();
    scope.array(&argv?)
}

fn env<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let object = scope.object()?;
    let pairs = scope.inner.data.settings.env.clone().unwrap_or_else(|| {
        let pairs = std::env::vars_os();
        let text = |it: std::ffi::OsString| it.to_string_lossy().into_owned();
        pairs.map(|(key, value)| (text(key), text(value))).collect()
    });
    for (key, value) in pairs {
        object.set(&key, &scope.string(&value)?)?;
    }
    Ok(object)
}

fn active<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let data = &scope.inner.data;
    let timers = data.timers.borrow();
    let timers = timers.values().filter(|it| it.timeout.has_ref());
    let immediates = data.immediates.borrow();
    let immediates = immediates.values().filter(|it| it.immediate.has_ref());
    let names = timers
        .map(|_| "Timeout")
        .chain(immediates.map(|_| "Immediate"));
    let names: Res<'js, Vec<_>> = names.map(|name| scope.string(name)).collect();
    scope.array(&names?)
}

fn encode<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    scope.bytes(text(scope, args, 0)?.as_bytes())
}

fn decode<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let bytes = arg(scope, args, 0).to_bytes().unwrap_or_default();
    let name = text(scope, args, 1)?;
    match name.parse::<Encoding>() {
        Ok(encoding) => scope.string(&encoding.decode(&bytes)),
        Err(error) => Err(scope.throw_reason(&error.into())),
    }
}

fn is_encoding<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    Ok(scope.boolean(text(scope, args, 0)?.parse::<Encoding>().is_ok()))
}

/// Compiles a file as the body of a function. The first line is left as it is: the head of the
/// function is two lines before it, as the engine takes the number 0 for none.
fn compile<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (file, source) = (text(scope, args, 0)?, text(scope, args, 1)?);
    let source = source.strip_prefix('\u{feff}').unwrap_or(&source);
    let (mark, source) = match source.starts_with("#!") {
        true => ("//", source),
        false => ("", source),
    };
    let head = "(function (exports, require, module, __filename, __dirname) {";
    scope.eval(&file, &format!("{head}\n\n{mark}{source}\n}})"), -1)
}

fn rust_module<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let name = text(scope, args, 0)?;
    let module = scope.inner.data.modules.borrow().get(&name).cloned();
    match module {
        Some(module) => module.get(scope),
        None => Ok(scope.undefined()),
    }
}

fn promise_state<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (state, result) = arg(scope, args, 0).promise_state(scope);
    scope.array(&[scope.string(state)?, result])
}

/// Returns whether `NODE_DEBUG` names a section.
fn debugs<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let log = phaseloop_node::util::debuglog(&text(scope, args, 0)?);
    Ok(scope.boolean(log.enabled()))
}

fn import<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    scope.import(&text(scope, args, 0)?)
}

fn evaluate<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (name, source) = (text(scope, args, 0)?, text(scope, args, 1)?);
    let [take, check] = [2, 3].map(|index| arg(scope, args, index));
    scope.evaluate(&name, &source, &take, &check)
}
