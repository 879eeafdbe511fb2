//! Panics that end where they are.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f`. `None`: it panicked, which the panic hook has reported, and which goes nowhere else.
pub(crate) fn quietly<R>(f: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(f)).map_err(discard).ok()
}

/// Drops the payload of a panic. Its drop may panic as well; what that carries is leaked, since its
/// drop may do the same.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(payload))));
}

#[cfg(test)]
mod tests {
    use super::quietly;

    /// Panics in its drop with another one of its kind.
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
