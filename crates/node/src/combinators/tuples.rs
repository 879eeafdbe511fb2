//! Tuples of promises of different types.

use std::cell::Cell;
use std::rc::Rc;

use super::{Members, Promises};
use crate::promise::{Deferred, Promise};
use crate::reason::Reason;

/// Wraps a result for [`all_settled`](super::all_settled), which no rejection of a member rejects.
fn always<T>(result: Result<T, Reason>) -> Result<Result<T, Reason>, Reason> {
    Ok(result)
}

/// Creates an empty slot for the result of a promise.
fn place<T, U>(_: &Promise<T>, _: fn(Result<T, Reason>) -> Result<U, Reason>) -> Cell<Option<U>> {
    Cell::new(None)
}

/// Combines a tuple of promises: each promise fills its slot, and the one that fills the last slot
/// resolves the result.
macro_rules! gather {
    ($promises:ident, $how:literal, $convert:expr, $($place:tt $value:ident)+) => {{
        let whole = Deferred::new();
        let mut members = Members::of($how);
        $(members.add(&$promises.$place);)+
        let places = Rc::new(($(place(&$promises.$place, $convert),)+));
        let left = Cell::new([$($place),+].len());
        let (filled, full) = (places.clone(), whole.clone());
        let one_more = Rc::new(move || {
            left.set(left.get() - 1);
            if left.get() == 0 {
                if let ($(Some($value),)+) = ($(filled.$place.take(),)+) {
                    full.resolve(($($value,)+));
                }
            }
        });
        $({
            let (places, one_more, failed) = (places.clone(), one_more.clone(), whole.clone());
            $promises.$place.react(move |result| match $convert(result) {
                Ok(value) => {
                    places.$place.set(Some(value));
                    one_more();
                }
                Err(reason) => failed.settle(Err(reason)),
            });
        })+
        members.settle(whole.promise())
    }};
}

macro_rules! tuples {
    ($($place:tt $type:ident $value:ident)+) => {
        impl<$($type: Clone + 'static),+> Promises<($($type,)+)> for ($(Promise<$type>,)+) {
            type Results = ($(Result<$type, Reason>,)+);

            fn all(self) -> Promise<($($type,)+)> {
                gather!(self, "all", std::convert::identity, $($place $value)+)
            }

            fn all_settled(self) -> Promise<Self::Results> {
                gather!(self, "all_settled", always, $($place $value)+)
            }
        }
    };
}

tuples!(0 A a);
tuples!(0 A a 1 B b);
tuples!(0 A a 1 B b 2 C c);
tuples!(0 A a 1 B b 2 C c 3 D d);
tuples!(0 A a 1 B b 2 C c 3 D d 4 E e);
tuples!(0 A a 1 B b 2 C c 3 D d 4 E e 5 F f);
tuples!(0 A a 1 B b 2 C c 3 D d 4 E e 5 F f 6 G g);
tuples!(0 A a 1 B b 2 C c 3 D d 4 E e 5 F f 6 G g 7 H h);
