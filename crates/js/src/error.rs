//! Errors of JavaScript for Rust, and errors of Rust for JavaScript.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use phaseloop_node::process::Origin;
use phaseloop_node::{Error as NodeError, Reason, host};

use crate::api::Value;
use crate::engine::{Held, Res, Scope, Val};

/// An error that JavaScript has thrown, or with which a promise was rejected.
///
/// Its text is name, message and the stack of JavaScript.
///
/// # Examples
///
/// ```
/// fn main() -> phaseloop_node::Exit<()> {
///     phaseloop_node::run(async {
///         let engine = phaseloop_js::Engine::new().unwrap();
///         let error = engine.run("a.js", "null.x").unwrap_err();
///         assert_eq!(error.name(), "TypeError");
///         assert!(error.stack().contains("a.js:1"));
///     })
/// }
/// ```
#[derive(Clone)]
pub struct Error(Rc<Inner>);

struct Inner {
    name: String,
    message: String,
    stack: String,
    code: Option<String>,
    value: Option<Held>,
    is_error: bool,
    /// No `catch` of JavaScript may see it.
    is_uncatchable: bool,
}

impl Error {
    /// Creates an error that is none of JavaScript yet.
    pub(crate) fn plain(name: &str, message: &str) -> Self {
        Self(Rc::new(Inner {
            name: name.to_owned(),
            message: message.to_owned(),
            stack: String::new(),
            code: None,
            value: None,
            is_error: true,
            is_uncatchable: false,
        }))
    }

    /// Creates an error with a name, such as `TypeError`, and a message. A function of Rust returns
    /// it to throw.
    #[must_use]
    pub fn new(name: &str, message: &str) -> Self {
        Self::plain(name, message)
    }

    /// Creates the error for a value that was thrown.
    pub(crate) fn caught<'js>(scope: &Scope<'js>, value: &Val<'js>, is_uncatchable: bool) -> Self {
        let field = |key: &str| {
            let text = match value.get(scope, key) {
                Ok(field) if !field.is_nullish() => field.as_text(),
                Ok(_) => None,
                Err(_) => {
                    scope.take_exception();
                    None
                }
            };
            text.unwrap_or_default()
        };
        let is_error = value.is_error();
        let (name, message, stack, code) = if is_error {
            (
                field("name"),
                field("message"),
                field("stack"),
                field("code"),
            )
        } else {
            let text = value.to_text().unwrap_or_else(|_| {
                scope.take_exception();
                value.type_name().to_owned()
            });
            (String::new(), text, String::new(), String::new())
        };
        let is_interrupted = is_uncatchable && message == "interrupted";
        Self(Rc::new(Inner {
            name,
            message: if is_interrupted {
                TIMEOUT.to_owned()
            } else {
                message
            },
            stack: own_frames(&stack),
            code: match is_interrupted {
                true => Some("ERR_SCRIPT_EXECUTION_TIMEOUT".to_owned()),
                false => Some(code).filter(|code| !code.is_empty()),
            },
            value: Some(scope.hold(value)),
            is_error,
            is_uncatchable,
        }))
    }

    /// The name, such as `TypeError`; empty for a value that is no error.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The message, or the text of a value that is no error.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The stack of JavaScript: a line `    at function (file:line:column)` for each frame.
    #[must_use]
    pub fn stack(&self) -> &str {
        &self.0.stack
    }

    /// Node's code, such as `ERR_INVALID_ARG_TYPE`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The value that was thrown. `None`: the error was made by Rust.
    #[must_use]
    pub fn value(&self) -> Option<Value> {
        self.0.value.clone().map(Value::new)
    }

    /// Whether the time limit has ended the script.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.code() == Some("ERR_SCRIPT_EXECUTION_TIMEOUT")
    }

    /// Whether the heap was full.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.0.name == "InternalError" && self.0.message == "out of memory"
    }

    pub(crate) fn held(&self) -> Option<&Held> {
        self.0.value.as_ref()
    }
}

/// The message of a script that the time limit has ended.
const TIMEOUT: &str = "Script execution timed out";

/// Leaves out the frames of the prelude and of the engine.
fn own_frames(stack: &str) -> String {
    let is_frame = |line: &str| line.trim_start().starts_with("at ");
    let is_foreign = |line: &str| line.contains("phaseloop:") || line.contains("(native)");
    let is_own = |line: &&str| !(is_frame(line) && is_foreign(line));
    let lines: Vec<_> = stack.lines().filter(is_own).collect();
    lines.join("\n")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        match inner.name.is_empty() {
            true => f.write_str(&inner.message)?,
            false => write!(f, "{}: {}", inner.name, inner.message)?,
        }
        match inner.stack.is_empty() {
            true => Ok(()),
            false => write!(f, "\n{}", inner.stack),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// A rejected promise, as the loop keeps it.
pub(crate) struct Rejected {
    pub(crate) error: Error,
    /// Until it was reported.
    pub(crate) promise: RefCell<Option<Held>>,
}

/// The reason of a rejected promise of the engine.
pub(crate) struct Rejection(pub(crate) Rc<Rejected>);

impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.error, f)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.error, f)
    }
}

impl std::error::Error for Rejection {}

/// Returns the error of JavaScript inside a reason.
pub(crate) fn of_reason(reason: &Reason) -> Option<&Error> {
    let rejection = reason.downcast_ref::<Rejection>();
    rejection
        .map(|rejection| &rejection.0.error)
        .or_else(|| reason.downcast_ref())
        .or_else(|| host::node_error(reason).and_then(kept))
}

/// Returns what is printed of an uncaught error of JavaScript.
pub(crate) fn described(reason: &Reason, origin: Origin) -> Option<String> {
    let error = of_reason(reason)?;
    let is_rejection = origin == Origin::UnhandledRejection;
    let text = error.held().and_then(|held| {
        let text = held.engine()?.try_run(|scope| {
            let args = [held.get(scope)?, scope.boolean(is_rejection)];
            scope.internal("described", &args)?.to_text()
        });
        text.ok()
    });
    Some(text.unwrap_or_else(|| error.to_string()))
}

/// Returns whether no `catch` of JavaScript may see the error.
pub(crate) fn is_uncatchable(reason: &Reason) -> bool {
    of_reason(reason).is_some_and(|error| error.0.is_uncatchable)
}

/// Returns the value of JavaScript for an error of Rust.
pub(crate) fn to_value<'js>(scope: &Scope<'js>, reason: &Reason) -> Res<'js> {
    if let Some(error) = of_reason(reason) {
        if let Some(held) = error.held().filter(|held| held.is_of(&scope.inner)) {
            return held.get(scope);
        }
        let fields = scope.object()?;
        if let Some(code) = error.code() {
            fields.set("code", &scope.string(code)?)?;
        }
        let name = if error.0.is_error {
            error.name()
        } else {
            "Error"
        };
        return make(scope, name, error.message(), fields);
    }
    match host::node_error(reason) {
        Some(error) => of_node(scope, error),
        None => {
            let fields = scope.object()?;
            if let Some(code) = reason.code() {
                fields.set("code", &scope.string(code)?)?;
            }
            make(scope, reason.name(), &reason.to_string(), fields)
        }
    }
}

/// Returns the error of the Node layer for a value of JavaScript. The value comes out again.
pub(crate) fn to_node<'js>(scope: &Scope<'js>, value: &Val<'js>) -> NodeError {
    of_js(&Error::caught(scope, value, false))
}

/// Returns the error of the Node layer for one of JavaScript, which comes out again.
pub(crate) fn of_js(error: &Error) -> NodeError {
    let name = match error.name() {
        "" => "Error".to_owned(),
        name => name.to_owned(),
    };
    let mut made = NodeError::named(name, error.message().to_owned());
    if let Some(code) = error.code() {
        made = made.coded(code.to_owned());
    }
    host::with_value(made, Rc::new(error.clone()))
}

/// Returns what an error of the Node layer stands for.
fn kept(error: &NodeError) -> Option<&Error> {
    let value = host::value_of(error)?;
    let reason = || value.downcast_ref::<Reason>().and_then(of_reason);
    value.downcast_ref::<Error>().or_else(reason)
}

/// Returns the value of JavaScript for an error of the Node layer.
pub(crate) fn of_node<'js>(scope: &Scope<'js>, error: &NodeError) -> Res<'js> {
    let known = kept(error).and_then(Error::held);
    if let Some(held) = known.filter(|held| held.is_of(&scope.inner)) {
        return held.get(scope);
    }
    let fields = scope.object()?;
    if let Some(errno) = error.errno() {
        fields.set("errno", &scope.number(f64::from(errno)))?;
    }
    let texts = [
        ("code", error.code()),
        ("syscall", error.syscall()),
        ("hostname", error.hostname()),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            fields.set(key, &scope.string(text)?)?;
        }
    }
    for (key, path) in [("path", error.path()), ("dest", error.target())] {
        if let Some(path) = path {
            fields.set(key, &scope.string(&path.to_string_lossy())?)?;
        }
    }
    let cause = std::error::Error::source(error).and_then(|it| it.downcast_ref());
    if let Some(cause) = cause {
        fields.set("cause", &of_node(scope, cause)?)?;
    }
    if let Some(address) = error.address() {
        fields.set("address", &scope.string(&address.ip().to_string())?)?;
        // As in Node, any port is none.
        if address.port() != 0 {
            fields.set("port", &scope.number(f64::from(address.port())))?;
        }
    }
    make(scope, error.name(), error.message(), fields)
}

/// Makes an error of JavaScript.
pub(crate) fn make<'js>(
    scope: &Scope<'js>,
    name: &str,
    message: &str,
    fields: Val<'js>,
) -> Res<'js> {
    let args = [scope.string(name)?, scope.string(message)?, fields];
    scope.internal("makeError", &args)
}
