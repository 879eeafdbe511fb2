//! Catches the panics of a run without printing them: hundreds of runs of one exploration panic.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::executor::join::panic_message;
use crate::raw::unwind::discard;
use crate::ways_to_wait::shuffled;

thread_local! {
    /// Whether panics of this thread are kept, and the first one.
    static KEPT: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// Calls `body`.
///
/// # Errors
///
/// If `body` panics, the text and the line of the first panic of the call. An earlier panic that
/// was caught is most often the cause of the one that was not.
pub(super) fn catch<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    install();
    KEPT.set(Some(None));
    let result = catch_unwind(AssertUnwindSafe(body));
    let first = KEPT.take().flatten();
    result.map_err(|payload| {
        let text = first.unwrap_or_else(|| text_of(&*payload));
        discard(payload);
        text
    })
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    panic_message(payload)
        .unwrap_or("a panic without a text")
        .to_owned()
}

/// Puts a hook before that of the process, which passes on all panics but those of [`catch`].
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !keep(panic) {
                before(panic);
            }
        }));
    });
}

fn keep(panic: &PanicHookInfo<'_>) -> bool {
    KEPT.with_borrow_mut(|kept| {
        let Some(first) = kept else {
            return false;
        };
        first.get_or_insert_with(|| {
            let text = text_of_hook(panic);
            let location = panic.location();
            // A line of this crate says nothing to the program's author.
            let location = location.filter(|location| location.file() != shuffled::FILE);
            match location {
                Some(location) => format!("{text}  ({location})"),
                None => text,
            }
        });
        true
    })
}

fn text_of_hook(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a text").to_owned()
}

#[cfg(test)]
mod tests {
    use super::catch;
    use crate::choices::Question;
    use crate::runtime::builder::Builder;
    use crate::ways_to_wait::shuffled::DEAD_END;

    #[test]
    fn the_first_panic_is_kept_with_its_line() {
        let caught = catch(|| {
            let _ = std::panic::catch_unwind(|| panic!("the cause"));
            panic!("the effect");
        });
        let text = caught.unwrap_err();
        assert!(text.starts_with("the cause  (src"), "{text}");
    }

    #[test]
    fn a_loop_that_is_stuck_names_no_line_of_this_crate() {
        let usual = |_: &Question<'_>| 0;
        let event_loop = Builder::new().shuffle(usual).build().unwrap();
        let caught = catch(|| event_loop.block_on(std::future::pending::<()>()));
        assert_eq!(caught.unwrap_err(), DEAD_END);
    }

    #[test]
    fn a_call_without_a_panic_returns_its_value() {
        let caught = catch(|| {
            let _ = std::panic::catch_unwind(|| panic!("handled"));
            7
        });
        assert_eq!(caught, Ok(7));
    }
}
