//! What users hold: engines, values and promises of JavaScript.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use phaseloop_node::{Exit, Reason, host};

use crate::builder::Builder;
use crate::convert::{Args, FromJs, Plain, ToJs};
use crate::data::Data;
use crate::engine::{Closure, Held, Inner, Limits, Res, Scope, Val};
use crate::error::Error;
use crate::natives;

/// An engine of JavaScript on the current loop. Clones are the same engine; the last one
/// [closes](Self::close) it.
///
/// # Examples
///
/// ```
/// fn main() -> phaseloop_node::Exit<()> {
///     phaseloop_node::run(async {
///         let engine = phaseloop_js::Engine::new().unwrap();
///         let later = engine.run("a.js", "new Promise((f) => setTimeout(f, 1, 'done'))");
///         let value = later.unwrap().into_promise().await.unwrap();
///         assert_eq!(value.to::<String>().unwrap(), "done");
///     })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Engine(Rc<Owner>);

#[derive(Debug)]
struct Owner(Rc<Inner>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.data.close();
    }
}

impl Engine {
    /// Creates an engine with the usual settings.
    ///
    /// # Errors
    ///
    /// If its heap cannot be allocated.
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// Returns the settings of a new engine.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn start(limits: Limits, data: Data) -> Result<Self, Error> {
        let inner = Inner::new(limits, data)?;
        inner.try_run(natives::install)?;
        inner.limit_time(limits.time);
        host::describe_with(crate::error::described);
        Ok(Self(Rc::new(Owner(inner))))
    }

    pub(crate) fn inner(&self) -> &Rc<Inner> {
        &self.0.0
    }

    /// Runs a script and returns the value of its last expression. `require` is that of a file in
    /// the [root](Builder::root).
    ///
    /// # Errors
    ///
    /// What the script throws, a `SyntaxError` included.
    pub fn run(&self, name: &str, source: &str) -> Result<Value, Error> {
        let value = self.inner().try_run(|scope| {
            let root = scope.inner.data.settings.root.clone();
            let root = std::path::absolute(&root).unwrap_or(root);
            let require =
                scope.internal("makeRequire", &[scope.string(&root.to_string_lossy())?])?;
            scope.global().set("require", &require)?;
            Ok(scope.hold(&scope.eval(name, source, 1)?))
        })?;
        Ok(Value::new(value))
    }

    /// Runs a file as the main program and returns its exports. A file `.mjs`, and a file `.js` of
    /// a package with `"type": "module"`, is an ES module: the value is a promise of its namespace.
    ///
    /// # Errors
    ///
    /// What a CommonJS file throws, and one that cannot be read. What an ES module throws rejects
    /// its promise.
    pub fn run_file(&self, path: impl AsRef<Path>) -> Result<Value, Error> {
        let path = path.as_ref();
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let value = self.inner().try_run(|scope| {
            let file = scope.string(&path.to_string_lossy())?;
            Ok(scope.hold(&scope.internal("runMain", &[file])?))
        })?;
        Ok(Value::new(value))
    }

    /// Runs the source of a worker as a CommonJS program.
    pub(crate) fn run_source(&self, source: &str) -> Result<(), Error> {
        self.inner().try_run(|scope| {
            scope.internal("runSource", &[scope.string(source)?])?;
            Ok(())
        })
    }

    /// Adds a function to the module `rust:app`.
    ///
    /// # Errors
    ///
    /// If the heap is full.
    pub fn function<T: ToJs>(
        &self,
        name: &str,
        f: impl Fn(Args) -> Result<T, Error> + 'static,
    ) -> Result<(), Error> {
        self.module("rust:app", |module| module.function(name, f))
    }

    /// Adds an async function to the module `rust:app`. It is polled at once, up to its first wait;
    /// JavaScript gets a promise.
    ///
    /// # Errors
    ///
    /// If the heap is full.
    pub fn async_function<T: ToJs + 'static>(
        &self,
        name: &str,
        f: impl AsyncFn(Args) -> Result<T, Error> + 'static,
    ) -> Result<(), Error> {
        self.module("rust:app", |module| module.async_function(name, f))
    }

    /// Makes a module of Rust, or adds to it. A name that is the path of a file, absolute or from
    /// the [root](Builder::root), takes the place of that file: `./db` is that of `db.js`.
    ///
    /// # Errors
    ///
    /// If the heap is full.
    pub fn module(&self, name: &str, fill: impl FnOnce(&mut Module)) -> Result<(), Error> {
        let data = &self.inner().data;
        let root = &data.settings.root;
        let name = match name.starts_with('.') {
            true => natives::joined(root, name),
            false => name.to_owned(),
        };
        let mut module = Module { parts: Vec::new() };
        fill(&mut module);
        let held = self.inner().try_run(|scope| {
            let known = scope.inner.data.modules.borrow().get(&name).cloned();
            let object = match known {
                Some(known) => known.get(scope)?,
                None => scope.object()?,
            };
            for (name, part) in module.parts {
                let value = match part {
                    Part::Function(closure) => scope.closure(&name, closure)?,
                    Part::Value(plain) => plain.make(scope)?,
                };
                object.set(&name, &value)?;
            }
            Ok(scope.hold(&object))
        })?;
        let before = data.modules.borrow_mut().insert(name, held);
        drop(before);
        Ok(())
    }

    /// Ends what JavaScript has started: timers, immediates and listeners of the process.
    pub fn close(&self) {
        self.inner().data.close();
    }

    /// The number of values that Rust keeps in the engine, for tests of leaks.
    #[doc(hidden)]
    #[must_use]
    pub fn held(&self) -> usize {
        self.inner().collect();
        self.inner().held()
    }

    /// The bytes that the values of the engine use, for tests of leaks.
    #[doc(hidden)]
    #[must_use]
    pub fn heap_used(&self) -> i64 {
        self.inner().collect();
        self.inner().heap().1
    }
}

enum Part {
    Function(Closure),
    Value(Plain),
}

/// A module of Rust, while it is filled; see [`Engine::module`].
pub struct Module {
    parts: Vec<(String, Part)>,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.parts.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}

fn args_of<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Args {
    Args::new(args.iter().map(|arg| scope.hold(arg)).collect())
}

impl Module {
    /// Adds a function. An error that it returns is thrown.
    pub fn function<T: ToJs>(
        &mut self,
        name: &str,
        f: impl Fn(Args) -> Result<T, Error> + 'static,
    ) {
        let closure: Closure = Rc::new(move |scope, args| match f(args_of(scope, args)) {
            Ok(value) => value.to_js().make(scope),
            Err(error) => Err(scope.throw_reason(&Reason::new(error))),
        });
        self.parts.push((name.to_owned(), Part::Function(closure)));
    }

    /// Adds an async function. It is polled at once, up to its first wait; JavaScript gets a
    /// promise, which an error rejects.
    pub fn async_function<T: ToJs + 'static>(
        &mut self,
        name: &str,
        f: impl AsyncFn(Args) -> Result<T, Error> + 'static,
    ) {
        let f = Rc::new(f);
        let closure: Closure = Rc::new(move |scope, args| {
            let (args, f) = (args_of(scope, args), f.clone());
            let line = scope.report_line("async function of Rust, called at");
            let function = phaseloop_node::try_call(async move {
                let _line = line;
                f(args)
                    .await
                    .map(|value| Rc::new(RefCell::new(Some(value.to_js()))))
            });
            // The end of the function settles the promise in place.
            let convert =
                |value: Rc<RefCell<Option<Plain>>>| value.take().unwrap_or(Plain::Undefined);
            Plain::promise(function, convert).make(scope)
        });
        self.parts.push((name.to_owned(), Part::Function(closure)));
    }

    /// Adds a value.
    pub fn value(&mut self, name: &str, value: impl ToJs) {
        self.parts
            .push((name.to_owned(), Part::Value(value.to_js())));
    }
}

/// A value of JavaScript that Rust keeps. A clone is the same value.
///
/// # Examples
///
/// ```
/// fn main() -> phaseloop_node::Exit<()> {
///     phaseloop_node::run(async {
///         let engine = phaseloop_js::Engine::new().unwrap();
///         let object = engine.run("a.js", "({ add: (a, b) => a + b })").unwrap();
///         let sum = object.get("add").unwrap().call((2.0, 40.0)).unwrap();
///         assert_eq!(sum.to::<f64>().unwrap(), 42.0);
///     })
/// }
/// ```
#[derive(Clone)]
pub struct Value(Held);

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Value").finish()
    }
}

/// The arguments of a call of JavaScript: a tuple, or a list.
pub trait IntoArgs {
    /// Returns the arguments.
    fn into_args(self) -> Vec<Plain>;
}

impl IntoArgs for () {
    fn into_args(self) -> Vec<Plain> {
        Vec::new()
    }
}

impl<A: ToJs> IntoArgs for (A,) {
    fn into_args(self) -> Vec<Plain> {
        vec![self.0.to_js()]
    }
}

impl<A: ToJs, B: ToJs> IntoArgs for (A, B) {
    fn into_args(self) -> Vec<Plain> {
        vec![self.0.to_js(), self.1.to_js()]
    }
}

impl<T: ToJs> IntoArgs for Vec<T> {
    fn into_args(self) -> Vec<Plain> {
        self.into_iter().map(T::to_js).collect()
    }
}

impl Value {
    pub(crate) fn new(held: Held) -> Self {
        Self(held)
    }

    pub(crate) fn held(&self) -> &Held {
        &self.0
    }

    /// Calls `f` with the value, inside of the engine.
    pub(crate) fn with<R>(
        &self,
        f: impl for<'js> FnOnce(&Scope<'js>, &Val<'js>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let Some(inner) = self.0.engine() else {
            return Err(Error::new("Error", "the engine was dropped"));
        };
        inner.enter(|scope| match self.0.get(scope) {
            Ok(value) => f(scope, &value),
            Err(_) => Err(scope.take_error()),
        })
    }

    fn made(
        &self,
        f: impl for<'js> FnOnce(&Scope<'js>, &Val<'js>) -> Res<'js>,
    ) -> Result<Self, Error> {
        self.with(|scope, value| match f(scope, value) {
            Ok(value) => Ok(Self::new(scope.hold(&value))),
            Err(_) => Err(scope.take_error()),
        })
    }

    /// Returns a property.
    ///
    /// # Errors
    ///
    /// What a getter throws.
    pub fn get(&self, key: &str) -> Result<Self, Error> {
        self.made(|scope, value| value.get(scope, key))
    }

    /// Sets a property.
    ///
    /// # Errors
    ///
    /// What a setter throws.
    pub fn set(&self, key: &str, new: impl ToJs) -> Result<(), Error> {
        let set = self.made(|scope, value| {
            value.set(key, &new.to_js().make(scope)?)?;
            Ok(scope.undefined())
        });
        set.map(drop)
    }

    /// Calls a function.
    ///
    /// # Errors
    ///
    /// What it throws; a `TypeError`, if the value is no function.
    pub fn call(&self, args: impl IntoArgs) -> Result<Self, Error> {
        self.made(|scope, value| {
            let args: Res<'_, Vec<_>> = args
                .into_args()
                .into_iter()
                .map(|it| it.make(scope))
                .collect();
            value.call(&scope.undefined(), &args?)
        })
    }

    /// Calls a method.
    ///
    /// # Errors
    ///
    /// What it throws; a `TypeError`, if there is no such method.
    pub fn call_method(&self, name: &str, args: impl IntoArgs) -> Result<Self, Error> {
        self.made(|scope, value| {
            let args: Res<'_, Vec<_>> = args
                .into_args()
                .into_iter()
                .map(|it| it.make(scope))
                .collect();
            value.get(scope, name)?.call(value, &args?)
        })
    }

    /// Converts the value.
    ///
    /// # Errors
    ///
    /// A `TypeError`, if it is of another type.
    pub fn to<T: FromJs>(&self) -> Result<T, Error> {
        T::from_js(self)
    }

    /// Returns the future of a promise. Another value is that of a resolved one.
    #[must_use]
    pub fn into_promise(self) -> Promise {
        Promise(State::New(self))
    }
}

/// The future of a promise of JavaScript: ready one tick after it is settled, as `await` is there.
///
/// # Cancel safety
///
/// Dropping it loses nothing; the promise is not affected.
pub struct Promise(State);

enum State {
    New(Value),
    Waits(Rc<RefCell<Wait>>),
    Done,
}

#[derive(Default)]
struct Wait {
    result: Option<Result<Value, Error>>,
    waker: Option<Waker>,
}

impl fmt::Debug for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Promise").finish()
    }
}

impl Future for Promise {
    type Output = Result<Value, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &self.0 {
            State::New(value) => {
                let wait = Rc::new(RefCell::new(Wait::default()));
                wait.borrow_mut().waker = Some(cx.waker().clone());
                if let Err(error) = react(value, &wait) {
                    self.0 = State::Done;
                    return Poll::Ready(Err(error));
                }
                self.0 = State::Waits(wait);
                Poll::Pending
            }
            State::Waits(wait) => {
                let mut wait = wait.borrow_mut();
                let Some(result) = wait.result.take() else {
                    wait.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                };
                drop(wait);
                self.0 = State::Done;
                Poll::Ready(result)
            }
            State::Done => Poll::Pending,
        }
    }
}

/// Lets the promise end the wait. Its reaction polls what waits in place: a wake through the lane
/// would take a second tick.
fn react(value: &Value, wait: &Rc<RefCell<Wait>>) -> Result<(), Error> {
    value.with(|scope, value| {
        let end = |is_error: bool| -> Closure {
            let wait = wait.clone();
            Rc::new(move |scope: &Scope<'_>, args: &[Val<'_>]| {
                let value = args.first().cloned().unwrap_or_else(|| scope.undefined());
                let mut wait = wait.borrow_mut();
                wait.result = Some(match is_error {
                    true => Err(Error::caught(scope, &value, false)),
                    false => Ok(Value::new(scope.hold(&value))),
                });
                let waker = wait.waker.take();
                drop(wait);
                if let Some(waker) = waker {
                    host::poll_in_place(waker);
                }
                Ok(scope.undefined())
            })
        };
        let run = || {
            let promise = match value.is_promise() {
                true => value.clone(),
                false => scope.internal("resolved", std::slice::from_ref(value))?,
            };
            let args = [
                promise,
                scope.closure("", end(false))?,
                scope.closure("", end(true))?,
            ];
            scope.internal("then", &args)
        };
        run().map(drop).map_err(|_| scope.take_error())
    })
}

/// Runs a file as a whole program, on a loop of its own: `fn main() -> Exit<()> {
/// phaseloop_js::main("app.js") }`. `process.argv` is that of the process. If the variable
/// `PHASELOOP_JS_POSITIONS` is set, [positions](Builder::positions) are recorded.
///
/// # Panics
///
/// When the loop cannot be created, and when a loop already runs on this thread.
pub fn main(path: impl AsRef<Path>) -> Exit<()> {
    let path = path.as_ref().to_path_buf();
    phaseloop_node::run(async move {
        let argv = std::env::args();
        let positions = std::env::var_os("PHASELOOP_JS_POSITIONS").is_some();
        let builder = Engine::builder().argv(argv).positions(positions);
        let engine = match builder.build() {
            Ok(engine) => engine,
            Err(error) => phaseloop_node::throw(error),
        };
        // The program outlives its main file: the loop keeps the engine up to its own end.
        let kept = engine.clone();
        phaseloop_node::process::on_exit(move |_| {
            let _kept = &kept;
        });
        let result = engine.run_file(path);
        if let Err(error) = result {
            phaseloop_node::throw(error);
        }
    })
}
