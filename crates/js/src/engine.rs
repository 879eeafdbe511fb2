//! QuickJS, as the rest of the crate uses it.
//!
//! Only this file and its folder know `rquickjs`, and only they contain `unsafe` code: the same
//! rule as for `src/sys` and `src/raw` of the loop's crate. Another engine would replace them.
//!
//! Rust keeps no value of JavaScript: it keeps the number of a slot ([`Held`]) and a weak
//! reference to the engine. The values of all slots are freed with the heap.
#![allow(
    unsafe_code,
    reason = "calls inside of calls, job queues and bytes are out of reach of the safe API"
)]

mod clone;
mod contexts;
mod hook;
mod import;
mod memory;
mod native;
mod value;

use std::cell::{Cell, RefCell};
use std::ffi::CString;
use std::fmt;
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::rc::{Rc, Weak};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use phaseloop_node::host;
use rquickjs::function::Rest;
use rquickjs::{Context, Ctx, Function, Persistent, Runtime, Value, qjs};
use slab::Slab;

use self::contexts::Contexts;
use self::hook::Hook;
use self::memory::Limited;
pub(crate) use self::native::{Kept, Key};
pub(crate) use self::value::Val;
use crate::data::Data;
use crate::error::{self, Error};

/// The outcome of what runs JavaScript. [`Fault`]: the exception is in the context.
pub(crate) type Res<'js, T = Val<'js>> = Result<T, Fault>;

/// An exception was thrown, and is in the context.
#[derive(Debug)]
pub(crate) struct Fault;

/// A function of Rust that JavaScript calls.
pub(crate) type Native = for<'js> fn(&Scope<'js>, &[Val<'js>]) -> Res<'js>;

/// A closure of Rust that JavaScript calls.
pub(crate) type Closure = Rc<dyn for<'js> Fn(&Scope<'js>, &[Val<'js>]) -> Res<'js>>;

/// The limits of an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of the heap; 0: no limit.
    pub(crate) memory: usize,
    /// Bytes of the stack.
    pub(crate) stack: usize,
    /// Time of one callback, or of one run of jobs.
    pub(crate) time: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 0,
            stack: 512 * 1024,
            time: None,
        }
    }
}

/// An engine: a heap, a global object, and the state of what is bound.
// Fields are dropped in this order: values first, the heap last.
pub(crate) struct Inner {
    pub(crate) data: Data,
    slots: RefCell<Slab<Persistent<Value<'static>>>>,
    natives: RefCell<Vec<Native>>,
    /// The class of numbered objects.
    numbered: Cell<qjs::JSClassID>,
    hook: Hook,
    contexts: Contexts,
    /// How many calls into the engine are on the stack.
    depth: Cell<usize>,
    /// What unwinds through Rust as soon as JavaScript has returned.
    unwinding: Cell<Option<host::Payload>>,
    deadline: Rc<Cell<Option<Instant>>>,
    /// The limit of time; none while the prelude runs.
    time_limit: Cell<Option<Duration>>,
    raw: NonNull<qjs::JSContext>,
    /// Keeps the context, which `raw` is.
    _context: Context,
    runtime: Runtime,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Inner {
    /// Creates an engine without a prelude.
    pub(crate) fn new(limits: Limits, data: Data) -> Result<Rc<Self>, Error> {
        let failed = |error: rquickjs::Error| Error::plain("Error", &error.to_string());
        let runtime = match limits.memory {
            0 => Runtime::new(),
            limit => Runtime::new_with_alloc(Limited::new(limit)),
        };
        let runtime = runtime.map_err(failed)?;
        runtime.set_max_stack_size(limits.stack);
        let context = Context::full(&runtime).map_err(failed)?;
        let deadline = Rc::new(Cell::new(None::<Instant>));
        let stop = data.settings.stop.clone();
        if limits.time.is_some() || stop.is_some() {
            let deadline = deadline.clone();
            let is_stopped = move || stop.as_ref().is_some_and(|it| it.load(Ordering::Relaxed));
            let is_late = move || deadline.get().is_some_and(|end| Instant::now() >= end);
            let is_over = move || is_late() || is_stopped();
            runtime.set_interrupt_handler(Some(Box::new(is_over)));
        }
        let raw = context.as_raw();
        // SAFETY: the context is alive, and so is its runtime. `Atomics.wait` sleeps, as Node's.
        unsafe { qjs::JS_SetCanBlock(qjs::JS_GetRuntime(raw.as_ptr()), true) };
        let inner = Rc::new(Self {
            data,
            slots: RefCell::default(),
            natives: RefCell::default(),
            numbered: Cell::new(0),
            hook: Hook::default(),
            contexts: Contexts::default(),
            depth: Cell::new(0),
            unwinding: Cell::new(None),
            deadline,
            time_limit: Cell::new(None),
            raw,
            _context: context,
            runtime,
        });
        inner.prepare_natives();
        inner.track_rejections();
        inner.load_modules();
        Ok(inner)
    }

    /// Begins to limit the time of callbacks.
    pub(crate) fn limit_time(&self, limit: Option<Duration>) {
        self.time_limit.set(limit);
    }

    /// Calls `f` with the engine entered, at any depth.
    pub(crate) fn enter<R>(self: &Rc<Self>, f: impl for<'js> FnOnce(&Scope<'js>) -> R) -> R {
        self.hook_to_js();
        self.hook.begin_js();
        let result = self.inside(f);
        self.hook_to_rust();
        self.unwind();
        result
    }

    /// Calls `f` inside of the engine, without the hook of the lanes.
    fn inside<R>(self: &Rc<Self>, f: impl for<'js> FnOnce(&Scope<'js>) -> R) -> R {
        let depth = self.depth.get();
        if depth == 0 {
            // SAFETY: the runtime is alive. The outermost call measures the stack from here.
            unsafe { qjs::JS_UpdateStackTop(qjs::JS_GetRuntime(self.raw.as_ptr())) };
            let limit = self.time_limit.get().map(|limit| Instant::now() + limit);
            self.deadline.set(limit);
        }
        self.depth.set(depth + 1);
        let _leave = Leave(self, depth);
        // SAFETY: the context lives as long as `self`, which this call borrows. The lock of the
        // runtime protects against threads, and the engine stays on one; so a call inside of
        // another needs none.
        let ctx = unsafe { Ctx::from_raw(self.raw) };
        f(&Scope {
            ctx,
            inner: self.clone(),
        })
    }

    /// Continues to unwind with what JavaScript was ended for.
    fn unwind(&self) {
        if let Some(payload) = self.unwinding.take() {
            resume_unwind(payload);
        }
    }

    /// Calls `f` with the engine entered.
    ///
    /// # Errors
    ///
    /// The exception of `f`.
    pub(crate) fn try_run<R>(
        self: &Rc<Self>,
        f: impl for<'js> FnOnce(&Scope<'js>) -> Res<'js, R>,
    ) -> Result<R, Error> {
        self.enter(|scope| f(scope).map_err(|Fault| scope.take_error()))
    }

    /// Calls `f` with the engine entered. Throws the exception of `f` through Rust.
    pub(crate) fn run<R>(
        self: &Rc<Self>,
        f: impl for<'js> FnOnce(&Scope<'js>) -> Res<'js, R>,
    ) -> R {
        match self.try_run(f) {
            Ok(value) => value,
            Err(error) => phaseloop_node::throw(error),
        }
    }

    /// Reports rejected promises to the loop.
    fn track_rejections(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        let tracker: rquickjs::runtime::RejectionTracker =
            Box::new(move |ctx, promise, reason, handled| {
                if let Some(inner) = weak.upgrade() {
                    let scope = Scope { ctx, inner };
                    crate::rejections::track(&scope, &Val(promise), Val(reason), handled);
                }
            });
        self.runtime
            .set_host_promise_rejection_tracker(Some(tracker));
    }

    /// Collects garbage.
    pub(crate) fn collect(&self) {
        self.runtime.run_gc();
    }

    /// Returns the bytes that the engine has allocated, and those of them that its values use.
    pub(crate) fn heap(&self) -> (i64, i64) {
        let usage = self.runtime.memory_usage();
        (usage.malloc_size, usage.memory_used_size)
    }

    /// Returns the number of values that Rust keeps.
    pub(crate) fn held(&self) -> usize {
        self.slots.borrow().len()
    }
}

/// Leaves the engine, also when it unwinds.
struct Leave<'a>(&'a Inner, usize);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.depth.set(self.1);
        if self.1 == 0 {
            self.0.deadline.set(None);
        }
    }
}

/// An engine that is entered.
#[derive(Clone)]
pub(crate) struct Scope<'js> {
    ctx: Ctx<'js>,
    pub(crate) inner: Rc<Inner>,
}

impl<'js> Scope<'js> {
    /// Creates a function that calls `closure`.
    pub(crate) fn closure(&self, name: &str, closure: Closure) -> Res<'js> {
        let weak = Rc::downgrade(&self.inner);
        let call = move |ctx: Ctx<'js>, args: Rest<Value<'js>>| {
            let Some(inner) = weak.upgrade() else {
                return Ok(Value::new_undefined(ctx));
            };
            let args: Vec<_> = args.0.into_iter().map(Val).collect();
            let scope = Scope { ctx, inner };
            let outcome = invoke(&scope, || closure(&scope, &args));
            outcome.map_or_else(|Fault| Err(rquickjs::Error::Exception), |value| Ok(value.0))
        };
        let function = self.known(Function::new(self.ctx.clone(), call))?;
        self.known(function.set_name(name))?;
        Ok(Val(function.into_value()))
    }

    /// Calls a function of JavaScript inside of one of Rust, which may queue microtasks before and
    /// after it.
    pub(crate) fn call_js(&self, f: &Val<'js>, this: &Val<'js>, args: &[Val<'js>]) -> Res<'js> {
        self.inner.hook_to_js();
        self.inner.hook.begin_js();
        let result = f.call(this, args);
        self.inner.hook_to_rust();
        result
    }

    /// Turns an error of the bindings into an exception that is in the context.
    fn known<T>(&self, result: rquickjs::Result<T>) -> Res<'js, T> {
        result.map_err(|error| {
            if !matches!(error, rquickjs::Error::Exception) {
                rquickjs::Exception::throw_message(&self.ctx, &error.to_string());
            }
            Fault
        })
    }

    /// Throws a value.
    pub(crate) fn throw(&self, value: Val<'js>) -> Fault {
        self.ctx.throw(value.0);
        Fault
    }

    /// Throws an error that no `catch` and no `finally` of JavaScript sees.
    fn throw_uncatchable(&self, value: Val<'js>) -> Fault {
        // SAFETY: context and value are alive, and the call keeps neither.
        unsafe { qjs::JS_SetUncatchableError(self.ctx.as_raw().as_ptr(), value.0.as_raw()) };
        self.throw(value)
    }

    /// Throws the error of Rust for a reason.
    pub(crate) fn throw_reason(&self, reason: &phaseloop_node::Reason) -> Fault {
        match error::to_value(self, reason) {
            Ok(value) if error::is_uncatchable(reason) => self.throw_uncatchable(value),
            Ok(value) => self.throw(value),
            Err(fault) => fault,
        }
    }

    /// Takes the exception out of the context.
    pub(crate) fn take_exception(&self) -> (Val<'js>, bool) {
        let value = Val(self.ctx.catch());
        let is_uncatchable = value.0.is_uncatchable_error();
        // SAFETY: the context is alive. The error that was taken out is an error as any other.
        unsafe { qjs::JS_ResetUncatchableError(self.ctx.as_raw().as_ptr()) };
        (value, is_uncatchable)
    }

    /// Takes the exception out of the context, as an error of Rust.
    pub(crate) fn take_error(&self) -> Error {
        let (value, is_uncatchable) = self.take_exception();
        Error::caught(self, &value, is_uncatchable)
    }

    /// Keeps a value for Rust.
    pub(crate) fn hold(&self, value: &Val<'js>) -> Held {
        let value = Persistent::save(&self.ctx, value.0.clone());
        let number = self.inner.slots.borrow_mut().insert(value);
        Held(Rc::new(Slot {
            number,
            engine: Rc::downgrade(&self.inner),
        }))
    }

    /// Runs the byte code of a script.
    pub(crate) fn run_code(&self, code: &'static [u8]) -> Res<'js> {
        let ctx = self.ctx.as_raw().as_ptr();
        let flags = qjs::JS_READ_OBJ_BYTECODE as i32;
        // SAFETY: the context is alive. The build script has written the code with the engine of this
        // version. The second call takes the script, which may be an exception.
        let value = unsafe {
            let script = qjs::JS_ReadObject(ctx, code.as_ptr(), code.len() as _, flags);
            let value = match qjs::JS_IsException(script) {
                true => script,
                false => qjs::JS_EvalFunction(ctx, script),
            };
            Value::from_raw(self.ctx.clone(), value)
        };
        match value.is_exception() {
            true => Err(Fault),
            false => Ok(Val(value)),
        }
    }

    /// Evaluates a script whose first line has the number `line`. Its functions are sloppy, unless
    /// they ask for strict mode.
    pub(crate) fn eval(&self, name: &str, source: &str, line: i32) -> Res<'js> {
        let (Ok(input), Ok(name)) = (CString::new(source), CString::new(name)) else {
            return Err(self.throw(self.error("SyntaxError", "the source contains a NUL")?));
        };
        let mut options = qjs::JSEvalOptions {
            version: 1,
            eval_flags: qjs::JS_EVAL_TYPE_GLOBAL as i32,
            filename: name.as_ptr(),
            line_num: line,
        };
        // SAFETY: the context is alive; the texts end with a NUL and live longer than the call. The
        // value is owned by the caller.
        let value = unsafe {
            let length = source.len() as _;
            let ctx = self.ctx.as_raw().as_ptr();
            let value = qjs::JS_Eval2(ctx, input.as_ptr(), length, &mut options);
            Value::from_raw(self.ctx.clone(), value)
        };
        match value.is_exception() {
            true => Err(Fault),
            false => Ok(Val(value)),
        }
    }
}

/// Calls a function of Rust for JavaScript. Nothing unwinds through the engine.
fn invoke<'js>(scope: &Scope<'js>, f: impl FnOnce() -> Res<'js>) -> Res<'js> {
    let inner = &scope.inner;
    inner.hook_to_rust();
    let outcome = host::catch_any(f);
    inner.hook_to_js();
    inner.hook.begin_js();
    let fault = match outcome {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(fault)) => fault,
        Err(payload) => match host::thrown(payload) {
            Ok(reason) => scope.throw_reason(&reason),
            Err(payload) => {
                inner.unwinding.set(Some(payload));
                match scope.error("Error", "the program ends") {
                    Ok(error) => scope.throw_uncatchable(error),
                    Err(fault) => fault,
                }
            }
        },
    };
    Err(fault)
}

/// A value that Rust keeps. A clone is the same slot; the last one releases it.
#[derive(Clone)]
pub(crate) struct Held(Rc<Slot>);

struct Slot {
    number: usize,
    engine: Weak<Inner>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.upgrade() {
            let value = engine.slots.borrow_mut().try_remove(self.number);
            drop(value);
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.0.number).finish()
    }
}

impl Held {
    /// Returns the engine, unless it was dropped.
    pub(crate) fn engine(&self) -> Option<Rc<Inner>> {
        self.0.engine.upgrade()
    }

    /// Returns whether the value is of this engine.
    pub(crate) fn is_of(&self, inner: &Rc<Inner>) -> bool {
        std::ptr::eq(self.0.engine.as_ptr(), Rc::as_ptr(inner))
    }

    /// Returns the value.
    ///
    /// # Errors
    ///
    /// A `TypeError`, if the value is of another engine.
    pub(crate) fn get<'js>(&self, scope: &Scope<'js>) -> Res<'js> {
        if !self.is_of(&scope.inner) {
            let error = scope.error("TypeError", "the value belongs to another engine")?;
            return Err(scope.throw(error));
        }
        let kept = scope.inner.slots.borrow().get(self.0.number).cloned();
        match kept.map(|value| value.restore(&scope.ctx)) {
            Some(value) => Ok(Val(scope.known(value)?)),
            None => Ok(scope.undefined()),
        }
    }

    /// Calls the function from the loop. Throws its exception through Rust. Does nothing if the
    /// engine was dropped.
    pub(crate) fn call(&self, args: impl for<'js> FnOnce(&Scope<'js>) -> Res<'js, Vec<Val<'js>>>) {
        if let Some(inner) = self.engine() {
            inner.run(|scope| {
                let args = args(scope)?;
                self.get(scope)?.call(&scope.undefined(), &args).map(drop)
            });
        }
    }
}
