//! Workers: threads with a loop and an engine of their own. Messages are clones, as bytes.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use phaseloop_node::events::{ERROR, Emitter as _};
use phaseloop_node::worker_threads::{self as node, BroadcastChannel, EXIT, MessagePort, ONLINE};
use phaseloop_node::{Error, process};

use super::ports::port_function;
use super::{arg, operations, text};
use crate::api::Engine;
use crate::builder::Builder;
use crate::convert::Plain;
use crate::engine::{Held, Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] = &[
    ("worker", worker),
    ("parentPort", parent_port),
    ("workerData", worker_data),
    ("threadId", thread_id),
    ("environmentData", environment_data),
    ("setEnvironmentData", set_environment_data),
    ("broadcast", broadcast),
];

type Bytes = Vec<u8>;

/// What a worker sends to its parent.
pub(crate) enum Post {
    Message(Bytes),
    /// A text for the console, and whether it is an error.
    Write(bool, String),
    /// The error that ends the worker.
    Failed(Failure),
}

/// An error of JavaScript, for another thread.
#[derive(Clone)]
pub(crate) struct Failure {
    name: String,
    message: String,
    stack: String,
    code: Option<String>,
    /// The copy of what was thrown, if that is no error.
    copy: Option<Bytes>,
}

impl From<Bytes> for Post {
    fn from(message: Bytes) -> Self {
        Self::Message(message)
    }
}

/// The end of a worker's channel in the worker, and what its parent has given to it.
pub(crate) struct Parent {
    port: MessagePort<Post, Bytes>,
    data: Bytes,
}

/// A worker that runs, for the engine that has started it.
pub(crate) struct Running {
    worker: node::Worker<Bytes, Post>,
    /// Ends the script of the worker.
    stop: Arc<AtomicBool>,
}

impl Running {
    /// Ends the worker.
    pub(crate) fn stop(&self) -> phaseloop_node::Promise<Option<i32>> {
        self.stop.store(true, Ordering::Relaxed);
        self.worker.terminate()
    }
}

/// Starts a worker: the file or the source, whether it is a source, its arguments, its environment,
/// its data, and what is called with its events. Returns the function of the worker.
fn worker<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let program = text(scope, args, 0)?;
    let is_source = arg(scope, args, 1).is_truthy();
    let texts = |index: usize| -> Res<'js, Vec<String>> {
        let list = arg(scope, args, index).elements()?;
        list.iter().map(Val::to_text).collect()
    };
    let (argv, env) = (texts(2)?, texts(3)?);
    let data = scope.serialize(&arg(scope, args, 4))?;
    let mut settings = scope.inner.data.settings.clone();
    let stop = Arc::new(AtomicBool::new(false));
    settings.stop = Some(stop.clone());
    settings.argv = argv;
    let pairs = env.chunks_exact(2);
    settings.env = Some(
        pairs
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect(),
    );
    let has_console = scope.inner.data.console.borrow().is_some();
    let started = node::Worker::new(move |port: MessagePort<Post, Bytes>| async move {
        let mut builder = Builder::of(settings);
        if has_console {
            let port = port.clone();
            builder = builder.console(move |is_error: bool, text: &str| {
                port.post_message(Post::Write(is_error, text.to_owned()));
            });
        }
        let engine = match builder.build() {
            Ok(engine) => engine,
            Err(error) => phaseloop_node::throw(error),
        };
        run(&engine, Parent { port, data }, &program, is_source);
    });
    let worker = started.map_err(|error| scope.throw_reason(&error.into()))?;
    follow(scope, &worker, &arg(scope, args, 5));
    let number = scope.inner.data.number();
    let weak = Rc::downgrade(&scope.inner);
    worker.once(EXIT, move |_| {
        let ended = weak
            .upgrade()
            .and_then(|inner| inner.data.workers.borrow_mut().remove(&number));
        drop(ended);
    });
    let running = Rc::new(Running { worker, stop });
    let workers = &scope.inner.data.workers;
    workers.borrow_mut().insert(number, running.clone());
    operations(scope, "worker", move |scope, operation, args| {
        operate(scope, &running, operation, args)
    })
}

/// Runs the program of a worker. The loop keeps the engine up to its own end.
fn run(engine: &Engine, parent: Parent, program: &str, is_source: bool) {
    let port = parent.port.clone();
    let before = engine.inner().data.parent.replace(Some(parent));
    drop(before);
    let weak = Rc::downgrade(engine.inner());
    process::on_uncaught_exception_monitor(move |reason, _| {
        let Some(error) = error::of_reason(reason) else {
            return;
        };
        let thrown = error.held().filter(|_| error.name().is_empty());
        let copy = thrown.and_then(|held| {
            let copied = weak
                .upgrade()?
                .try_run(|scope| scope.serialize(&held.get(scope)?));
            copied.ok()
        });
        port.post_message(Post::Failed(Failure {
            name: error.name().to_owned(),
            message: error.message().to_owned(),
            stack: error.stack().to_owned(),
            code: error.code().map(str::to_owned),
            copy,
        }));
    });
    let kept = engine.clone();
    process::on_exit(move |_| {
        let _kept = &kept;
    });
    let result = match is_source {
        true => engine.run_source(program),
        false => engine.run_file(program).map(drop),
    };
    if let Err(error) = result {
        phaseloop_node::throw(error);
    }
}

/// Calls the function of JavaScript with the events of a worker.
fn follow<'js>(scope: &Scope<'js>, worker: &node::Worker<Bytes, Post>, emit: &Val<'js>) {
    let emit = scope.hold(emit);
    let call = |emit: &Held| {
        let emit = emit.clone();
        move |name: &'static str, value: &dyn for<'s> Fn(&Scope<'s>) -> Res<'s>| {
            emit.call(|scope| Ok(vec![scope.string(name)?, value(scope)?]));
        }
    };
    let online = call(&emit);
    worker.on(ONLINE, move |()| {
        online("online", &|scope| Ok(scope.undefined()));
    });
    let failed = Rc::new(std::cell::RefCell::new(None));
    let (message, failure) = (call(&emit), failed.clone());
    let weak = Rc::downgrade(&scope.inner);
    worker.on_message(move |post| match post {
        Post::Message(bytes) => message("message", &|scope| scope.deserialize(bytes)),
        Post::Write(is_error, text) => {
            if let Some(inner) = weak.upgrade() {
                let mut console = inner.data.console.borrow_mut();
                if let Some(console) = &mut *console {
                    console.write(*is_error, text);
                }
            }
        }
        Post::Failed(error) => drop(failure.replace(Some(error.clone()))),
    });
    let error = call(&emit);
    worker.on(ERROR, move |reason: &Error| {
        let known = failed.take();
        error("error", &|scope| {
            let Some(failure) = &known else {
                return error::of_node(scope, reason);
            };
            if let Some(bytes) = &failure.copy {
                return scope.deserialize(bytes);
            }
            let fields = scope.object()?;
            if let Some(code) = &failure.code {
                fields.set("code", &scope.string(code)?)?;
            }
            let Failure {
                name,
                message,
                stack,
                ..
            } = failure;
            let args = [scope.string(name)?, scope.string(message)?, fields];
            let made = scope.internal("makeError", &args)?;
            let stack = scope.string(&format!("{name}: {message}\n{stack}"))?;
            scope.internal("setStack", &[made.clone(), stack])?;
            Ok(made)
        });
    });
    worker.on(EXIT, move |code| {
        call(&emit)("exit", &|scope| Ok(scope.number(f64::from(*code))));
    });
}

fn operate<'js>(
    scope: &Scope<'js>,
    running: &Running,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    let worker = &running.worker;
    match operation {
        "post" => worker.post_message(scope.serialize(&arg(scope, args, 0))?),
        "terminate" => {
            let code = |code: Option<i32>| match code {
                Some(code) => Plain::Number(f64::from(code)),
                None => Plain::Undefined,
            };
            return Plain::promise(running.stop(), code).make(scope);
        }
        "ref" => match arg(scope, args, 0).is_truthy() {
            true => worker.ref_(),
            false => worker.unref(),
        },
        "threadId" => {
            let id = worker.thread_id().map(|id| id as f64);
            return Ok(scope.number(id.unwrap_or(-1.0)));
        }
        _ => {}
    }
    Ok(scope.undefined())
}

/// Returns the function of the port to the parent; `undefined` in the main thread.
fn parent_port<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let port = scope.inner.data.parent.borrow();
    match port.as_ref().map(|parent| parent.port.clone()) {
        Some(port) => port_function(scope, port),
        None => Ok(scope.undefined()),
    }
}

fn worker_data<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let parent = scope.inner.data.parent.borrow();
    match parent.as_ref().map(|parent| parent.data.clone()) {
        Some(data) => scope.deserialize(&data),
        None => Ok(scope.null()),
    }
}

fn thread_id<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    Ok(scope.number(node::thread_id() as f64))
}

fn environment_data<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    match node::get_environment_data::<Bytes>(&text(scope, args, 0)?) {
        Some(data) => scope.deserialize(&data),
        None => Ok(scope.undefined()),
    }
}

fn set_environment_data<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (key, value) = (text(scope, args, 0)?, arg(scope, args, 1));
    match value.is_undefined() {
        true => node::remove_environment_data(&key),
        false => node::set_environment_data(key, scope.serialize(&value)?),
    }
    Ok(scope.undefined())
}

/// Joins a channel: its name, and what is called with messages. Returns the channel's function.
fn broadcast<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let channel = BroadcastChannel::<Bytes>::new(text(scope, args, 0)?);
    let receive = scope.hold(&arg(scope, args, 1));
    let id = std::cell::Cell::new(None);
    operations(scope, "channel", move |scope, operation, args| {
        match operation {
            "post" => channel.post_message(scope.serialize(&arg(scope, args, 0))?),
            "listen" => {
                let receive = receive.clone();
                let wanted = arg(scope, args, 0).is_truthy();
                if let Some(id) = id.take().filter(|_| !wanted) {
                    channel.off(id);
                } else if wanted {
                    id.set(Some(channel.on_message(move |bytes: &Bytes| {
                        receive.call(|scope| Ok(vec![scope.deserialize(bytes)?]));
                    })));
                }
            }
            "close" => channel.close(),
            "ref" => match arg(scope, args, 0).is_truthy() {
                true => channel.ref_(),
                false => channel.unref(),
            },
            _ => {}
        }
        Ok(scope.undefined())
    })
}
