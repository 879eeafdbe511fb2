//! Panics that are caught and discarded.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f`. It returns `None` if `f` panicked. The panic hook has reported the panic; it is not
/// propagated.
pub fn quietly<R>(f: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(f)).map_err(discard).ok()
}

/// Drops the payload of a panic. If that drop panics, the second payload is leaked, since its drop
/// may panic again.
pub fn discard(payload: Box<dyn Any + Send>) {
    std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(payload))));
}

#[cfg(test)]
mod tests {
    use super::quietly;

    /// Its drop panics with another value of this type.
    struct Endless;

    impl Drop for Endless {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new(Self));
        }
    }

    #[test]
    fn a_payload_whose_drop_panics_goes_nowhere() {
        assert_eq!(quietly(|| 1), Some(1));
        assert_eq!(
            quietly(|| std::panic::resume_unwind(Box::new(Endless))),
            None::<()>
        );
        assert_eq!(quietly(|| drop(Endless)), None);
    }
}
