//! Interfaces that read lines: an object of JavaScript has a function that calls its interface.

use std::time::Duration;

use phaseloop_node::events::Emitter as _;
use phaseloop_node::host;
use phaseloop_node::readline::{
    self as node, CLOSE, HISTORY, Interface, LINE, PAUSE, RESUME, SIGINT, SIGTSTP,
};

use super::emitter::{Listen, Numbered, count_end, emit_error, note, remove};
use super::signals::lent;
use super::stream::{Reading, handle_of};
use super::{arg, operations, text};
use crate::convert::Plain;
use crate::engine::{Held, Native, Res, Scope, Val};

pub(super) const TABLE: &[(&str, Native)] = &[("readline", readline)];

/// Creates an interface: the input, what writes to the output, and the options.
fn readline<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let given = arg(scope, args, 2);
    let input = handle_of(scope, &arg(scope, args, 0))?.and_then(|it| it.read);
    let made = match input {
        Some(Reading::Js(input)) => host::create_interface(&input),
        Some(Reading::Bytes(input)) => host::create_interface(&input),
        None => return Err(super::unknown(scope, "readline of this input")),
    };
    let write = arg(scope, args, 1);
    let made = match write.is_function() {
        true => {
            let write = scope.hold(&write);
            host::readline_output(made, move |text| {
                write.call(|scope| Ok(vec![scope.string(text)?]));
            })
        }
        false => made,
    };
    let made = match given.get(scope, "crlfDelay")?.as_number() {
        Some(delay) if delay.is_finite() => {
            made.crlf_delay(Duration::from_secs_f64((delay / 1e3).clamp(0.0, 1e9)))
        }
        Some(_) => made.crlf_delay(Duration::MAX),
        None => made,
    };
    if let Some(prompt) = given.get(scope, "prompt")?.as_text() {
        made.set_prompt(prompt);
    }
    let made = match given.get(scope, "terminal")?.is_truthy() {
        true => terminal(scope, made, &given)?,
        false => made,
    };
    let made = match lent(scope, &given.get(scope, "controller")?)? {
        Some(signal) => made.signal(&signal),
        None => made,
    };
    let listeners = Numbered::default();
    operations(scope, "interface", move |scope, operation, args| {
        operate(scope, &made, &listeners, operation, args)
    })
}

/// Begins to edit lines.
fn terminal<'js>(scope: &Scope<'js>, made: Interface, given: &Val<'js>) -> Res<'js, Interface> {
    let lines = given.get(scope, "history")?.elements()?;
    let lines: Vec<String> = lines.iter().map(Val::to_text).collect::<Res<'js, _>>()?;
    let size = given.get(scope, "historySize")?.as_number().unwrap_or(30.0);
    let made = made.terminal().history(lines, size as usize);
    let made = match given.get(scope, "columns")?.as_number() {
        Some(columns) if columns >= 1.0 => made.columns(columns as usize),
        _ => made,
    };
    let completer = given.get(scope, "completer")?;
    if !completer.is_function() {
        return Ok(made);
    }
    let completer = scope.hold(&completer);
    Ok(made.completer(move |line| completed(&completer, line).unwrap_or_default()))
}

/// Asks the function of JavaScript, which returns the candidates and what they replace.
fn completed(completer: &Held, line: &str) -> Option<(Vec<String>, String)> {
    completer.engine().map(|inner| {
        inner.run(|scope| {
            let completer = completer.get(scope)?;
            let found = completer.call(&scope.undefined(), &[scope.string(line)?])?;
            let parts = found.elements()?;
            let words = arg(scope, &parts, 0).elements()?;
            let words = words.iter().map(Val::to_text).collect::<Res<'_, _>>()?;
            Ok((words, text(scope, &parts, 1)?))
        })
    })
}

fn operate<'js>(
    scope: &Scope<'js>,
    it: &Interface,
    listeners: &Numbered,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    let emitter = it.emitter();
    match operation {
        "on" => {
            let listen = Listen::new(scope, args)?;
            let key = listen.key();
            let id = match listen.name.as_str() {
                "line" => listen.add(emitter, LINE, |scope, line: &str| {
                    Ok(vec![scope.string(line)?])
                }),
                "history" => listen.add(emitter, HISTORY, |scope, lines: &Vec<String>| {
                    let lines = lines.iter().map(|it| scope.string(it));
                    Ok(vec![scope.array(&lines.collect::<Res<'_, Vec<_>>>()?)?])
                }),
                "pause" => listen.plain(emitter, PAUSE),
                "resume" => listen.plain(emitter, RESUME),
                "SIGINT" => listen.plain(emitter, SIGINT),
                "SIGTSTP" => listen.plain(emitter, SIGTSTP),
                _ => listen.end(emitter),
            };
            note(listeners, key, id);
        }
        "off" => remove(scope, listeners, emitter, args),
        "emit" => return emit_error(scope, emitter, args),
        "count" => {
            let count = match text(scope, args, 0)?.as_str() {
                "line" => emitter.listener_count(LINE),
                "history" => emitter.listener_count(HISTORY),
                "pause" => emitter.listener_count(PAUSE),
                "resume" => emitter.listener_count(RESUME),
                "SIGINT" => emitter.listener_count(SIGINT),
                "SIGTSTP" => emitter.listener_count(SIGTSTP),
                name => count_end(emitter, name),
            };
            return Ok(scope.number(count as f64));
        }
        "onceClosed" => {
            let callback = scope.hold(&arg(scope, args, 0));
            emitter.once(CLOSE, move |()| callback.call(|_| Ok(Vec::new())));
        }
        "question" => {
            let (query, callback) = (text(scope, args, 0)?, scope.hold(&arg(scope, args, 1)));
            let answered =
                move |line: String| callback.call(|scope| Ok(vec![scope.string(&line)?]));
            let asked = match lent(scope, &arg(scope, args, 2))? {
                Some(signal) => it.question_with_signal(&query, &signal, answered),
                None => it.question(&query, answered),
            };
            asked.map_err(|error| scope.throw_reason(&error.into()))?;
        }
        "ask" => {
            let query = text(scope, args, 0)?;
            let answer = match lent(scope, &arg(scope, args, 1))? {
                Some(signal) => node::promises::question_with_signal(it, &query, &signal),
                None => node::promises::question(it, &query),
            };
            return Plain::promise(answer, Plain::Text).make(scope);
        }
        "prompt" => match arg(scope, args, 0).is_truthy() {
            true => it.prompt_preserving_cursor(),
            false => it.prompt(),
        },
        "setPrompt" => it.set_prompt(text(scope, args, 0)?),
        "getPrompt" => return scope.string(&it.get_prompt()),
        "write" => it.write(&text(scope, args, 0)?),
        "pause" => it.pause(),
        "resume" => it.resume(),
        "close" => it.close(),
        "closed" => return Ok(scope.boolean(it.is_closed())),
        "paused" => return Ok(scope.boolean(it.is_paused())),
        "line" => return scope.string(&it.line()),
        "cursor" => return Ok(scope.number(it.cursor() as f64)),
        _ => {}
    }
    Ok(scope.undefined())
}
