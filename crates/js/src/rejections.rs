//! Rejected promises without a handler, from the engine to the loop.

use std::rc::Rc;

use phaseloop_node::{Reason, host};

use crate::engine::{Scope, Val};
use crate::error::{Error, Rejected};

/// Called by the engine for a promise that is rejected without a handler, and for one that gets its
/// handler later.
pub(crate) fn track<'js>(
    scope: &Scope<'js>,
    promise: &Val<'js>,
    reason: Val<'js>,
    is_handled: bool,
) {
    let Some(address) = promise.address() else {
        return;
    };
    let rejections = &scope.inner.data.rejections;
    if is_handled {
        let known = rejections.borrow_mut().remove(&address);
        if let Some((rejection, state)) = known {
            state.promise.replace(Some(scope.hold(promise)));
            rejection.handled();
        }
        return;
    }
    let state = Rc::new(Rejected {
        error: Error::caught(scope, &reason, false),
        promise: Some(scope.hold(promise)).into(),
    });
    let rejection = host::rejected(Reason::new(crate::error::Rejection(state.clone())));
    let before = rejections.borrow_mut().insert(address, (rejection, state));
    drop(before);
}
