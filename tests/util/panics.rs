//! The texts of panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f`, which has to panic, and returns the text of the panic.
#[track_caller]
pub(crate) fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("it did not panic"),
        Err(payload) => text_of(&*payload),
    }
}

/// The text of a panic.
pub(crate) fn text_of(payload: &(dyn Any + Send)) -> String {
    match payload.downcast_ref::<&str>() {
        Some(text) => (*text).to_owned(),
        None => payload.downcast_ref::<String>().unwrap().clone(),
    }
}
