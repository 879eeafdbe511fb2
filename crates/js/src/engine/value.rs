//! Values of JavaScript, inside of the engine.

use rquickjs::function::Args;
use rquickjs::{Array, BigInt, Coerced, Ctx, IntoJs, Object, TypedArray, Value, qjs};

use super::{Fault, Res, Scope};

/// A value of JavaScript.
#[derive(Clone)]
pub(crate) struct Val<'js>(pub(super) Value<'js>);

impl<'js> Scope<'js> {
    pub(crate) fn undefined(&self) -> Val<'js> {
        Val(Value::new_undefined(self.ctx.clone()))
    }

    pub(crate) fn null(&self) -> Val<'js> {
        Val(Value::new_null(self.ctx.clone()))
    }

    pub(crate) fn boolean(&self, value: bool) -> Val<'js> {
        Val(Value::new_bool(self.ctx.clone(), value))
    }

    pub(crate) fn number(&self, value: f64) -> Val<'js> {
        Val(Value::new_number(self.ctx.clone(), value))
    }

    pub(crate) fn string(&self, text: &str) -> Res<'js> {
        self.made(text)
    }

    /// Creates a `bigint`.
    pub(crate) fn bigint(&self, value: u64) -> Res<'js> {
        let made = BigInt::from_u64(self.ctx.clone(), value);
        Ok(Val(self.known(made)?.into_value()))
    }

    pub(crate) fn object(&self) -> Res<'js> {
        Ok(Val(self.known(Object::new(self.ctx.clone()))?.into_value()))
    }

    pub(crate) fn array(&self, values: &[Val<'js>]) -> Res<'js> {
        let array = self.known(Array::new(self.ctx.clone()))?;
        for (index, value) in values.iter().enumerate() {
            self.known(array.set(index, value.0.clone()))?;
        }
        Ok(Val(array.into_value()))
    }

    /// Creates a `Uint8Array`.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Res<'js> {
        let made = TypedArray::<u8>::new(self.ctx.clone(), bytes);
        Ok(Val(self.known(made)?.into_value()))
    }

    fn made<T: IntoJs<'js>>(&self, value: T) -> Res<'js> {
        Ok(Val(self.known(value.into_js(&self.ctx))?))
    }

    pub(crate) fn global(&self) -> Val<'js> {
        Val(self.ctx.globals().into_value())
    }

    /// Creates an error of the global class `class`.
    pub(crate) fn error(&self, class: &str, message: &str) -> Res<'js> {
        let constructor = self.global().get(self, class)?;
        let message = self.string(message)?;
        constructor.construct(self, &[message])
    }

    /// Creates a pending promise, with its two functions.
    pub(crate) fn promise(&self) -> Res<'js, (Val<'js>, Val<'js>, Val<'js>)> {
        let (promise, resolve, reject) = self.known(self.ctx.promise())?;
        let [resolve, reject] = [resolve, reject].map(|function| Val(function.into_value()));
        Ok((Val(promise.into_value()), resolve, reject))
    }
}

impl<'js> Val<'js> {
    pub(super) fn ctx(&self) -> &Ctx<'js> {
        self.0.ctx()
    }

    fn known<T>(&self, result: rquickjs::Result<T>) -> Res<'js, T> {
        result.map_err(|error| {
            if !matches!(error, rquickjs::Error::Exception) {
                rquickjs::Exception::throw_message(self.ctx(), &error.to_string());
            }
            Fault
        })
    }

    pub(crate) fn is_nullish(&self) -> bool {
        self.0.is_undefined() || self.0.is_null()
    }

    pub(crate) fn is_undefined(&self) -> bool {
        self.0.is_undefined()
    }

    pub(crate) fn is_object(&self) -> bool {
        self.0.is_object()
    }

    pub(crate) fn is_error(&self) -> bool {
        self.0.is_error()
    }

    pub(crate) fn is_promise(&self) -> bool {
        self.0.is_promise()
    }

    pub(crate) fn is_array(&self) -> bool {
        self.0.is_array()
    }

    /// Returns the name of the type, as `typeof` does for most.
    pub(crate) fn type_name(&self) -> &'static str {
        self.0.type_name()
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        self.0.as_bool()
    }

    pub(crate) fn is_truthy(&self) -> bool {
        self.0.get::<Coerced<bool>>().is_ok_and(|truth| truth.0)
    }

    pub(crate) fn as_number(&self) -> Option<f64> {
        self.0.as_number()
    }

    /// Returns `Number(value)`.
    pub(crate) fn to_number(&self) -> Res<'js, f64> {
        Ok(self.known(self.0.get::<Coerced<f64>>())?.0)
    }

    /// Returns the text of a string.
    pub(crate) fn as_text(&self) -> Option<String> {
        if !self.0.is_string() {
            return None;
        }
        let ctx = self.ctx().as_raw().as_ptr();
        let mut length = 0;
        // SAFETY: context and string are alive. The text is copied before it is freed.
        unsafe {
            let start = qjs::JS_ToCStringLen(ctx, &mut length, self.0.as_raw());
            if start.is_null() {
                self.ctx().catch();
                return None;
            }
            let bytes = std::slice::from_raw_parts(start.cast(), length);
            let text = String::from_utf8_lossy(bytes).into_owned();
            qjs::JS_FreeCString(ctx, start);
            Some(text)
        }
    }

    /// Returns `String(value)`.
    pub(crate) fn to_text(&self) -> Res<'js, String> {
        match self.as_text() {
            Some(text) => Ok(text),
            None => Ok(self.known(self.0.get::<Coerced<String>>())?.0),
        }
    }

    /// Returns the property `key`.
    pub(crate) fn get(&self, _scope: &Scope<'js>, key: &str) -> Res<'js> {
        match self.0.as_object() {
            Some(object) => Ok(Self(self.known(object.get(key))?)),
            None => Ok(Self(Value::new_undefined(self.ctx().clone()))),
        }
    }

    /// Sets the property `key`.
    pub(crate) fn set(&self, key: &str, value: &Self) -> Res<'js, ()> {
        match self.0.as_object() {
            Some(object) => self.known(object.set(key, value.0.clone())),
            None => Ok(()),
        }
    }

    /// Returns the elements of an array.
    pub(crate) fn elements(&self) -> Res<'js, Vec<Self>> {
        let Some(array) = self.0.as_array() else {
            return Ok(Vec::new());
        };
        let elements = array.iter::<Value<'js>>();
        elements.map(|value| Ok(Self(self.known(value)?))).collect()
    }

    fn construct(&self, _scope: &Scope<'js>, args: &[Self]) -> Res<'js> {
        let Some(constructor) = self.0.as_constructor() else {
            return Err(self.not_a_function());
        };
        let mut list = Args::new(self.ctx().clone(), args.len());
        for arg in args {
            self.known(list.push_arg(arg.0.clone()))?;
        }
        Ok(Self(self.known(list.construct(constructor))?))
    }

    fn not_a_function(&self) -> Fault {
        let error = rquickjs::Exception::throw_type(self.ctx(), "not a function");
        let rquickjs::Error::Exception = error else {
            unreachable!("it has thrown");
        };
        Fault
    }

    /// Returns the address of the object, which is its own as long as it lives.
    pub(crate) fn address(&self) -> Option<usize> {
        self.is_object().then(|| {
            // SAFETY: the value is an object, whose pointer is only compared.
            unsafe { qjs::JS_VALUE_GET_PTR(self.0.as_raw()) as usize }
        })
    }

    /// Returns a copy of the bytes of a typed array, a `DataView`'s buffer or an `ArrayBuffer`.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let ctx = self.ctx().as_raw().as_ptr();
        let value = self.0.as_raw();
        let mut length = 0;
        // SAFETY: context and value are alive. The bytes are copied before JavaScript runs again.
        unsafe {
            let mut start = std::ptr::null_mut();
            if qjs::JS_GetTypedArrayType(value) >= 0 {
                let (mut offset, mut size, mut each) = (0, 0, 0);
                let buffer =
                    qjs::JS_GetTypedArrayBuffer(ctx, value, &mut offset, &mut size, &mut each);
                let buffer = Value::from_raw(self.ctx().clone(), buffer);
                start = qjs::JS_GetArrayBuffer(ctx, &mut length, buffer.as_raw());
                if !start.is_null() {
                    start = start.add(offset as usize);
                    length = size;
                }
            } else if self.0.is_object() {
                start = qjs::JS_GetArrayBuffer(ctx, &mut length, value);
            }
            if start.is_null() {
                if self.ctx().has_exception() {
                    self.ctx().catch();
                }
                return None;
            }
            Some(std::slice::from_raw_parts(start, length as _).to_vec())
        }
    }

    /// Returns the state of a promise, and its result.
    pub(crate) fn promise_state(&self, scope: &Scope<'js>) -> (&'static str, Self) {
        let Some(promise) = self.0.as_promise() else {
            return ("pending", scope.undefined());
        };
        match promise.result::<Value<'js>>() {
            None => ("pending", scope.undefined()),
            Some(Ok(value)) => ("fulfilled", Self(value)),
            Some(Err(_)) => ("rejected", scope.take_exception().0),
        }
    }
}
