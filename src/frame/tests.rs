//! Frames by themselves.

use super::{Capture, Frame, Key, Restored, carry, is_plain, use_on_this_thread};
use crate::raw::call::Call;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

fn value(frame: &Frame, key: Key) -> Option<u32> {
    frame
        .get(key)
        .map(|value| *value.downcast::<u32>().unwrap())
}

const ONE: Key = Key::Static(1);
const TWO: Key = Key::Numbered(1);

#[test]
fn a_frame_keeps_one_value_a_variable_and_never_changes() {
    let one = Frame::default().with(ONE, Rc::new(1_u32));
    let both = one.with(TWO, Rc::new(2_u32));
    let other = both.with(ONE, Rc::new(3_u32));
    assert_eq!((value(&one, ONE), value(&one, TWO)), (Some(1), None));
    assert_eq!((value(&both, ONE), value(&both, TWO)), (Some(1), Some(2)));
    assert_eq!((value(&other, ONE), value(&other, TWO)), (Some(3), Some(2)));
    assert_eq!(other.entries().len(), 2);
    assert!(one.without(ONE).is_empty());
    assert_eq!(value(&other.without(ONE), TWO), Some(2));
}

#[test]
fn a_frame_is_current_for_a_call_also_if_it_panics() {
    use_on_this_thread();
    let frame = Frame::default().with(ONE, Rc::new(1_u32));
    assert!(is_plain());
    let seen = frame.clone().run(|| value(&Frame::current(), ONE));
    assert_eq!(seen, Some(1));
    let panicked = catch_unwind(AssertUnwindSafe(|| frame.run(|| panic!("inside"))));
    assert!(panicked.is_err());
    assert!(is_plain() && Frame::current().is_empty());
}

#[test]
fn a_closure_is_wrapped_only_in_a_frame() {
    use_on_this_thread();
    let seen = Rc::new(Cell::new(None));
    let look = |seen: &Rc<Cell<_>>| {
        let seen = seen.clone();
        Call::new(move || seen.set(Some(value(&Frame::current(), ONE))))
    };
    assert!(Capture::new("").is_none());
    carry("", look(&seen)).call();
    assert_eq!(seen.take(), Some(None));
    let frame = Frame::default().with(ONE, Rc::new(1_u32));
    let carried = frame.run(|| carry("", look(&seen)));
    carried.call();
    assert_eq!(seen.take(), Some(Some(1)));
    assert!(is_plain());
}

#[test]
fn the_drop_of_a_value_may_use_frames() {
    struct Looks(Rc<Cell<bool>>);
    impl Drop for Looks {
        fn drop(&mut self) {
            self.0.set(Frame::current().is_empty());
        }
    }
    use_on_this_thread();
    let saw_none = Rc::new(Cell::new(false));
    let restored = Restored::current();
    let frame = Frame::default().with(ONE, Rc::new(Looks(saw_none.clone())));
    drop(frame.enter());
    drop(restored);
    assert!(saw_none.get());
}
