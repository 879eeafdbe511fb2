//! A random program as `fuzz/FORMAT.md` describes it, read from JSON.

use std::rc::Rc;

use serde_json::Value;

pub(crate) type Actions = Rc<[Action]>;

pub(crate) struct Program {
    pub(crate) main: Actions,
    pub(crate) before_exit: Vec<Actions>,
}

pub(crate) enum Action {
    Log {
        id: String,
    },
    Block {
        ms: f64,
    },
    Tick {
        id: String,
        body: Actions,
    },
    Micro {
        id: String,
        body: Actions,
    },
    Timeout {
        id: String,
        ms: f64,
        body: Actions,
    },
    Interval {
        id: String,
        ms: f64,
        times: f64,
        body: Actions,
    },
    Immediate {
        id: String,
        body: Actions,
    },
    Clear {
        of: String,
    },
    Refresh {
        id: String,
        of: String,
        max: f64,
    },
    Ref {
        of: String,
        referenced: bool,
    },
    Chain {
        id: String,
        links: u64,
        nest: Option<u64>,
    },
    Async(Rc<Function>),
    Then {
        of: String,
        id: String,
        body: Actions,
    },
    Resolve {
        of: String,
    },
    Fs {
        id: String,
        body: Actions,
    },
    Pipe {
        id: String,
        body: Actions,
    },
    Write {
        of: String,
        bytes: usize,
    },
    Close {
        of: String,
        body: Actions,
    },
    Throw {
        id: String,
    },
    Try {
        body: Actions,
        catch: Actions,
    },
}

/// An async function.
pub(crate) struct Function {
    pub(crate) id: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) returns_promise: bool,
}

pub(crate) enum Step {
    Act(Action),
    Await(Awaited),
}

pub(crate) enum Awaited {
    Resolved,
    Thenable,
    Tick,
    Sleep { ms: f64 },
    Immediate,
    Fs,
    Defer { of: String },
    Async(Rc<Function>),
    All(Vec<Rc<Function>>),
    Race(Vec<Rc<Function>>),
}

/// What is wrong with a program.
pub(crate) type Fault = String;

impl Program {
    pub(crate) fn parse(value: &Value) -> Result<Self, Fault> {
        let later = match value.get("beforeExit") {
            None => Vec::new(),
            Some(lists) => array(lists)?
                .iter()
                .map(actions)
                .collect::<Result<_, _>>()?,
        };
        Ok(Self {
            main: list(value, "main")?,
            before_exit: later,
        })
    }
}

impl Action {
    fn parse(value: &Value) -> Result<Self, Fault> {
        let id = || text(value, "id");
        let of = || text(value, "of");
        let body = || list(value, "do");
        Ok(match &*text(value, "op")? {
            "log" => Self::Log { id: id()? },
            "block" => Self::Block {
                ms: number(value, "ms"),
            },
            "tick" => Self::Tick {
                id: id()?,
                body: body()?,
            },
            "micro" => Self::Micro {
                id: id()?,
                body: body()?,
            },
            "timeout" => Self::Timeout {
                id: id()?,
                ms: number(value, "ms"),
                body: body()?,
            },
            "interval" => Self::Interval {
                id: id()?,
                ms: number(value, "ms"),
                times: number(value, "n"),
                body: body()?,
            },
            "immediate" => Self::Immediate {
                id: id()?,
                body: body()?,
            },
            "clear" => Self::Clear { of: of()? },
            "refresh" => Self::Refresh {
                id: id()?,
                of: of()?,
                max: number(value, "max"),
            },
            op @ ("ref" | "unref") => Self::Ref {
                of: of()?,
                referenced: op == "ref",
            },
            "chain" => Self::Chain {
                id: id()?,
                // Saturates; what is not a number is none.
                links: number(value, "n") as u64,
                nest: value.get("nest").and_then(Value::as_u64),
            },
            "async" => Self::Async(Function::parse(value)?),
            "then" => Self::Then {
                of: of()?,
                id: id()?,
                body: body()?,
            },
            "resolve" => Self::Resolve { of: of()? },
            "fs" => Self::Fs {
                id: id()?,
                body: body()?,
            },
            "pipe" => Self::Pipe {
                id: id()?,
                body: body()?,
            },
            "write" => Self::Write {
                of: of()?,
                bytes: (number(value, "n") as usize).max(1),
            },
            "close" => Self::Close {
                of: of()?,
                body: body()?,
            },
            "throw" => Self::Throw { id: id()? },
            "try" => Self::Try {
                body: body()?,
                catch: list(value, "catch")?,
            },
            other => return Err(format!("unknown action `{other}`")),
        })
    }
}

impl Function {
    fn parse(value: &Value) -> Result<Rc<Self>, Fault> {
        let steps = match value.get("steps") {
            None => Vec::new(),
            Some(steps) => array(steps)?
                .iter()
                .map(Step::parse)
                .collect::<Result<_, _>>()?,
        };
        Ok(Rc::new(Self {
            id: text(value, "id")?,
            steps,
            returns_promise: value.get("ret").is_some_and(|ret| ret == "promise"),
        }))
    }

    fn parse_all(value: &Value) -> Result<Vec<Rc<Self>>, Fault> {
        let functions = value.get("of").ok_or("`of` is missing")?;
        array(functions)?.iter().map(Self::parse).collect()
    }
}

impl Step {
    fn parse(value: &Value) -> Result<Self, Fault> {
        if text(value, "op")? != "await" {
            return Action::parse(value).map(Self::Act);
        }
        Ok(Self::Await(match &*text(value, "kind")? {
            "value" | "resolved" => Awaited::Resolved,
            "thenable" => Awaited::Thenable,
            "tick" => Awaited::Tick,
            "sleep" => Awaited::Sleep {
                ms: number(value, "ms"),
            },
            "immediate" => Awaited::Immediate,
            "fs" => Awaited::Fs,
            "defer" => Awaited::Defer {
                of: text(value, "of")?,
            },
            "async" => Awaited::Async(Function::parse(value)?),
            "all" => Awaited::All(Function::parse_all(value)?),
            "race" => Awaited::Race(Function::parse_all(value)?),
            other => return Err(format!("unknown kind of await `{other}`")),
        }))
    }
}

fn text(value: &Value, key: &str) -> Result<String, Fault> {
    let text = value.get(key).and_then(Value::as_str);
    text.map(str::to_owned)
        .ok_or_else(|| format!("`{key}` is missing in {value}"))
}

/// As JavaScript reads a number: what is missing or none is NaN, a text is parsed.
fn number(value: &Value, key: &str) -> f64 {
    match value.get(key) {
        Some(Value::Number(number)) => number.as_f64().unwrap_or(f64::NAN),
        Some(Value::Null) => 0.0,
        Some(Value::String(text)) => text.trim().parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}

fn array(value: &Value) -> Result<&Vec<Value>, Fault> {
    value
        .as_array()
        .ok_or_else(|| format!("not a list: {value}"))
}

fn actions(value: &Value) -> Result<Actions, Fault> {
    array(value)?.iter().map(Action::parse).collect()
}

/// A list of actions; one that is missing is empty.
fn list(value: &Value, key: &str) -> Result<Actions, Fault> {
    value.get(key).map_or_else(|| Ok(Rc::from([])), actions)
}
