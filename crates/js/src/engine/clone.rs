//! Copies of values, as bytes.

use rquickjs::{Value, qjs};

use super::{Fault, Res, Scope, Val};

impl<'js> Scope<'js> {
    /// Returns the bytes of a value: plain objects, arrays, maps, sets, dates, typed arrays and
    /// primitive values, also if they refer to each other.
    pub(crate) fn serialize(&self, value: &Val<'js>) -> Res<'js, Vec<u8>> {
        let ctx = self.ctx.as_raw().as_ptr();
        let mut length = 0;
        // SAFETY: context and value are alive. The bytes are copied before they are freed.
        unsafe {
            let flags = qjs::JS_WRITE_OBJ_REFERENCE as i32;
            let start = qjs::JS_WriteObject(ctx, &mut length, value.0.as_raw(), flags);
            if start.is_null() {
                return Err(Fault);
            }
            let bytes = std::slice::from_raw_parts(start, length as usize).to_vec();
            qjs::js_free(ctx, start.cast());
            Ok(bytes)
        }
    }

    /// Returns the value of bytes that [`serialize`](Self::serialize) has made.
    pub(crate) fn deserialize(&self, bytes: &[u8]) -> Res<'js> {
        let ctx = self.ctx.as_raw().as_ptr();
        // SAFETY: the context is alive, and the bytes are those of the engine itself: no byte code
        // is accepted. The value is owned by the caller.
        let value = unsafe {
            let flags = qjs::JS_READ_OBJ_REFERENCE as i32;
            let value = qjs::JS_ReadObject(ctx, bytes.as_ptr(), bytes.len() as _, flags);
            Value::from_raw(self.ctx.clone(), value)
        };
        match value.is_exception() {
            true => Err(Fault),
            false => Ok(Val(value)),
        }
    }
}
