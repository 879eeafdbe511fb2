//! Panics that are caught: those that are discarded, and those of several steps of which each has
//! to be made.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Calls `f`, and returns `None` if it panics. The panic hook has reported the panic, which is not
/// propagated.
pub fn ignore_panic<R>(f: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(f)).map_err(discard).ok()
}

/// Drops the payload of a panic. If that drop panics, the second payload is leaked, since its drop
/// may panic again.
pub fn discard(payload: Box<dyn Any + Send>) {
    std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(payload))));
}

/// Makes steps of which each may panic: a panic does not end those behind it. A drop of several
/// values is such a row of steps, since a second panic during the unwinding of the first would end
/// the process.
#[derive(Default)]
pub(crate) struct Steps {
    /// The first panic.
    panic: Option<Box<dyn Any + Send>>,
}

impl Steps {
    /// Makes a step.
    pub(crate) fn run(&mut self, step: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(step)) {
            match self.panic {
                None => self.panic = Some(payload),
                Some(_) => discard(payload),
            }
        }
    }

    /// Drops values one by one.
    pub(crate) fn drop_each<T>(&mut self, values: impl IntoIterator<Item = T>) {
        for value in values {
            self.run(|| drop(value));
        }
    }

    /// Resumes the first panic, unless the thread unwinds already.
    pub(crate) fn end(self) {
        match self.panic {
            Some(payload) if std::thread::panicking() => discard(payload),
            Some(payload) => resume_unwind(payload),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Steps, ignore_panic};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Its drop panics with another value of this type.
    struct Endless;

    impl Drop for Endless {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new(Self));
        }
    }

    #[test]
    fn a_payload_whose_drop_panics_goes_nowhere() {
        assert_eq!(ignore_panic(|| 1), Some(1));
        assert_eq!(
            ignore_panic(|| std::panic::resume_unwind(Box::new(Endless))),
            None::<()>
        );
        assert_eq!(ignore_panic(|| drop(Endless)), None);
    }

    #[test]
    fn each_step_is_made_and_the_first_panic_comes_out() {
        let mut made = Vec::new();
        let all = catch_unwind(AssertUnwindSafe(|| {
            let mut steps = Steps::default();
            for step in 0..4 {
                steps.run(|| {
                    made.push(step);
                    assert!(step == 0, "{step}");
                });
            }
            steps.drop_each([Endless, Endless]);
            steps.end();
        }));
        assert_eq!(made, [0, 1, 2, 3]);
        assert_eq!(all.unwrap_err().downcast_ref::<String>().unwrap(), "1");
    }

    #[test]
    fn a_panic_of_a_step_during_an_unwinding_goes_nowhere() {
        struct Unwinding;
        impl Drop for Unwinding {
            fn drop(&mut self) {
                let mut steps = Steps::default();
                steps.drop_each([Endless, Endless]);
                steps.end();
            }
        }
        let all = catch_unwind(|| {
            let _unwinding = Unwinding;
            std::panic::resume_unwind(Box::new(1));
        });
        assert!(all.unwrap_err().is::<i32>());
    }
}
