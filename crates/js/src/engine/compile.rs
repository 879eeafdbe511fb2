//! Byte code of the prelude: a part of the build script, which compiles it.
#![allow(unsafe_code, reason = "the safe API compiles ES modules only")]

use std::ffi::CString;

use rquickjs::{Context, Runtime, qjs};

/// Compiles a script. Lines and columns stay in the byte code; the text does not.
pub(crate) fn compile(name: &str, source: &str) -> Result<Vec<u8>, String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let context = Context::full(&runtime).map_err(|error| error.to_string())?;
    let [file, input] = [name, source].map(|text| CString::new(text).expect("no NUL is in it"));
    context.with(|ctx| {
        let raw = ctx.as_raw().as_ptr();
        let mut options = qjs::JSEvalOptions {
            version: 1,
            eval_flags: (qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_COMPILE_ONLY) as i32,
            filename: file.as_ptr(),
            line_num: 1,
        };
        // SAFETY: the context is alive; the texts end with a NUL and live longer than the calls. What
        // the engine has written is copied, then freed with its own function.
        unsafe {
            let script = qjs::JS_Eval2(raw, input.as_ptr(), source.len() as _, &mut options);
            if qjs::JS_IsException(script) {
                return Err(format!("{name}: {:?}", ctx.catch().as_exception()));
            }
            let flags = (qjs::JS_WRITE_OBJ_BYTECODE | qjs::JS_WRITE_OBJ_STRIP_SOURCE) as i32;
            let mut length = 0;
            let start = qjs::JS_WriteObject(raw, &mut length, script, flags);
            qjs::JS_FreeValue(raw, script);
            if start.is_null() {
                return Err(format!("{name}: it cannot be written"));
            }
            let code = std::slice::from_raw_parts(start, length as usize).to_vec();
            qjs::js_free(raw, start.cast());
            Ok(code)
        }
    })
}
