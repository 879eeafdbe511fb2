//! Natives, kept values and numbered objects: what every timer, tick and immediate goes through.
//!
//! They call QuickJS without the conversions of `rquickjs`: a call of a native by them costs 300
//! instructions, by a function of `rquickjs` 1,500.

use std::ffi::CString;
use std::os::raw::{c_int, c_void};
use std::rc::Rc;

use rquickjs::{Ctx, Value, qjs};

use super::{Fault, Inner, Native, Res, Scope, Val, invoke};

/// A value that the engine keeps for Rust. It is a part of the engine's state, which is dropped
/// before the heap; it must be nowhere else.
pub(crate) struct Kept {
    runtime: *mut qjs::JSRuntime,
    value: qjs::JSValue,
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: the runtime outlives the engine's state, and the value is this one's own.
        unsafe { qjs::JS_FreeValueRT(self.runtime, self.value) };
    }
}

impl Kept {
    pub(crate) fn get<'js>(&self, scope: &Scope<'js>) -> Val<'js> {
        // SAFETY: the value is alive, and of the engine that is entered.
        unsafe { scope.shared(self.value) }
    }
}

/// The name of a property, known to the engine.
pub(crate) struct Key {
    runtime: *mut qjs::JSRuntime,
    atom: qjs::JSAtom,
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: as for `Kept`.
        unsafe { qjs::JS_FreeAtomRT(self.runtime, self.atom) };
    }
}

impl Inner {
    fn runtime(&self) -> *mut qjs::JSRuntime {
        // SAFETY: the context is alive.
        unsafe { qjs::JS_GetRuntime(self.raw.as_ptr()) }
    }

    /// Makes the engine known to its natives, and the class of numbered objects to the engine.
    pub(super) fn prepare_natives(self: &Rc<Self>) {
        let class = qjs::JSClassDef {
            class_name: c"Numbered".as_ptr(),
            finalizer: None,
            gc_mark: None,
            call: None,
            exotic: std::ptr::null_mut(),
        };
        let mut id = 0;
        // SAFETY: context and runtime are alive, and so is the definition during the call. The engine
        // is alive whenever JavaScript calls: each call into it holds a reference.
        unsafe {
            qjs::JS_SetContextOpaque(self.raw.as_ptr(), Rc::as_ptr(self) as *mut c_void);
            qjs::JS_NewClassID(self.runtime(), &mut id);
            qjs::JS_NewClass(self.runtime(), id, &class);
        }
        self.numbered.set(id);
    }
}

impl<'js> Scope<'js> {
    /// Creates a function that calls `native`.
    pub(crate) fn native(&self, name: &str, native: Native) -> Res<'js> {
        let mut natives = self.inner.natives.borrow_mut();
        let number = natives.len();
        natives.push(native);
        drop(natives);
        let name = CString::new(name).unwrap_or_default();
        let kind = qjs::JSCFunctionEnum_JS_CFUNC_generic_magic;
        let call = qjs::JSCFunctionType {
            generic_magic: Some(call),
        };
        // SAFETY: the context is alive, the name ends with a NUL, and a function of the kind with a
        // number is called with that number.
        let value = unsafe {
            let plain = call.generic;
            qjs::JS_NewCFunction2(self.raw(), plain, name.as_ptr(), 0, kind, number as c_int)
        };
        self.owned(value)
    }

    fn raw(&self) -> *mut qjs::JSContext {
        self.ctx.as_raw().as_ptr()
    }

    /// Returns a value that the caller owns.
    fn owned(&self, value: qjs::JSValue) -> Res<'js> {
        // SAFETY: the value is of this context, and has no other owner.
        let value = unsafe { Value::from_raw(self.ctx.clone(), value) };
        match value.is_exception() {
            true => Err(Fault),
            false => Ok(Val(value)),
        }
    }

    /// Returns another reference to a value.
    ///
    /// # Safety
    ///
    /// The value is alive, and of this context.
    unsafe fn shared(&self, value: qjs::JSValue) -> Val<'js> {
        // SAFETY: by the contract of this function.
        unsafe {
            Val(Value::from_raw(
                self.ctx.clone(),
                qjs::JS_DupValue(self.raw(), value),
            ))
        }
    }

    /// Keeps a value for the engine's state.
    pub(crate) fn keep(&self, value: &Val<'js>) -> Kept {
        Kept {
            runtime: self.inner.runtime(),
            // SAFETY: context and value are alive.
            value: unsafe { qjs::JS_DupValue(self.raw(), value.0.as_raw()) },
        }
    }

    /// Returns the name of a property, for the engine's state.
    pub(crate) fn key(&self, name: &str) -> Key {
        Key {
            runtime: self.inner.runtime(),
            // SAFETY: the context is alive, and the engine copies the name.
            atom: unsafe { qjs::JS_NewAtomLen(self.raw(), name.as_ptr().cast(), name.len() as _) },
        }
    }

    /// Creates an object with a number, which JavaScript can neither see nor change.
    pub(crate) fn numbered(&self, prototype: &Val<'js>, number: usize) -> Res<'js> {
        let class = self.inner.numbered.get();
        // SAFETY: context and prototype are alive, and the class is registered.
        let value = unsafe { qjs::JS_NewObjectProtoClass(self.raw(), prototype.0.as_raw(), class) };
        let object = self.owned(value)?;
        object.set_number(number);
        Ok(object)
    }
}

impl<'js> Val<'js> {
    /// Returns the number of a numbered object.
    pub(crate) fn number(&self, scope: &Scope<'js>) -> Option<usize> {
        // SAFETY: the value is alive. That of another class has no number.
        let number = unsafe { qjs::JS_GetOpaque(self.0.as_raw(), scope.inner.numbered.get()) };
        (!number.is_null()).then_some(number as usize)
    }

    /// Gives a numbered object another number.
    pub(crate) fn set_number(&self, number: usize) {
        // SAFETY: the object is alive. The number is never used as a pointer.
        unsafe { qjs::JS_SetOpaque(self.0.as_raw(), number as *mut c_void) };
    }

    pub(crate) fn is_function(&self) -> bool {
        self.0.is_function()
    }

    /// Returns the property `key`.
    pub(crate) fn property(&self, scope: &Scope<'js>, key: &Key) -> Res<'js> {
        // SAFETY: context, value and name are alive.
        scope.owned(unsafe { qjs::JS_GetProperty(scope.raw(), self.0.as_raw(), key.atom) })
    }

    /// Defines the property `key`.
    pub(crate) fn define(&self, scope: &Scope<'js>, key: &Key, value: &Self) -> Res<'js, ()> {
        let flags = qjs::JS_PROP_C_W_E as c_int;
        // SAFETY: context, values and name are alive. The call takes a reference of its own.
        let done = unsafe {
            let value = qjs::JS_DupValue(scope.raw(), value.0.as_raw());
            qjs::JS_DefinePropertyValue(scope.raw(), self.0.as_raw(), key.atom, value, flags)
        };
        if done < 0 { Err(Fault) } else { Ok(()) }
    }

    /// Calls a function.
    pub(crate) fn call(&self, this: &Self, args: &[Self]) -> Res<'js> {
        let mut list: Vec<_> = args.iter().map(|arg| arg.0.as_raw()).collect();
        let ctx = self.ctx().as_raw().as_ptr();
        // SAFETY: context, function and arguments are alive. What is no function throws.
        let value = unsafe {
            let count = list.len() as c_int;
            let value = qjs::JS_Call(
                ctx,
                self.0.as_raw(),
                this.0.as_raw(),
                count,
                list.as_mut_ptr(),
            );
            Value::from_raw(self.ctx().clone(), value)
        };
        match value.is_exception() {
            true => Err(Fault),
            false => Ok(Self(value)),
        }
    }
}

/// Calls the native with this number.
///
/// # Safety
///
/// The engine calls it, with a context whose pointer is that of a live [`Inner`].
unsafe extern "C" fn call(
    ctx: *mut qjs::JSContext,
    _this: qjs::JSValue,
    count: c_int,
    args: *mut qjs::JSValue,
    number: c_int,
) -> qjs::JSValue {
    // SAFETY: by the contract of this function. The reference is one of this call's own.
    let scope = unsafe {
        let inner = qjs::JS_GetContextOpaque(ctx).cast::<Inner>().cast_const();
        Rc::increment_strong_count(inner);
        Scope {
            ctx: Ctx::from_raw(std::ptr::NonNull::new_unchecked(ctx)),
            inner: Rc::from_raw(inner),
        }
    };
    let native = scope.inner.natives.borrow()[number as usize];
    let places = 0..count as usize;
    // SAFETY: the engine passes `count` values, which live during the call.
    let args: Vec<_> = places
        .map(|at| unsafe { scope.shared(*args.add(at)) })
        .collect();
    match invoke(&scope, || native(&scope, &args)) {
        // SAFETY: context and value are alive; the caller gets a reference of its own.
        Ok(value) => unsafe { qjs::JS_DupValue(ctx, value.0.as_raw()) },
        Err(Fault) => qjs::JS_EXCEPTION,
    }
}
