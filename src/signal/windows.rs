//! Console events that Unix does not have.

use std::future::Future;
use std::io;
use std::panic::Location;

use super::{SignalKind, next};

/// Waits for the next ctrl-break in the console, which is [`SignalKind::BREAK`]. Windows only.
///
/// It listens from the first poll until the future completes or is dropped; see
/// [`ctrl_c`](super::ctrl_c).
///
/// # Errors
///
/// Any OS error of `SetConsoleCtrlHandler`.
///
/// # Cancel safety
///
/// Dropping the future takes no event from other listeners.
///
/// # Panics
///
/// When the future is awaited and no loop runs on this thread.
#[track_caller]
pub fn ctrl_break() -> impl Future<Output = io::Result<()>> {
    next("signal::ctrl_break", SignalKind::BREAK, Location::caller())
}

#[cfg(test)]
mod tests {
    use super::ctrl_break;
    use crate::event_loop::EventLoop;
    use crate::event_loop::RunMode;
    use crate::runtime::block_on::block_on;
    use crate::signal::{Signal, SignalKind, Signals, ctrl_c};
    use crate::sys::signal::{WITH_CONSOLE, raise};
    use futures::FutureExt as _;
    use std::cell::RefCell;
    use std::pin::pin;
    use std::rc::Rc;

    const CTRL_C: u32 = 0;
    const CTRL_BREAK: u32 = 1;

    #[test]
    fn ctrl_c_and_ctrl_break_are_futures_of_the_console_events() {
        let _alone = WITH_CONSOLE.lock();
        block_on(async {
            let (mut first, mut second) = (pin!(ctrl_c()), pin!(ctrl_break()));
            assert!(first.as_mut().now_or_never().is_none());
            assert!(second.as_mut().now_or_never().is_none());
            assert!(raise(CTRL_BREAK));
            second.await.unwrap();
            assert!(raise(CTRL_C));
            first.await.unwrap();
            assert!(!raise(CTRL_C), "the default action is back");
        });
    }

    #[test]
    fn an_event_goes_to_all_listeners_in_the_order_of_their_start() {
        let _alone = WITH_CONSOLE.lock();
        let mut event_loop = EventLoop::new().unwrap();
        let order = Rc::new(RefCell::new(Vec::new()));
        let listeners = ["first", "second"].map(|name| {
            let (signal, order) = (Signal::new(&event_loop.handle()), order.clone());
            let log = move |signal: &Signal, kind: SignalKind| {
                order.borrow_mut().push(format!("{name} {kind}"));
                signal.stop();
            };
            signal.start(SignalKind::INT, log).unwrap();
            signal
        });
        assert!(
            raise(CTRL_C) && raise(CTRL_C),
            "both are one until they are delivered"
        );
        event_loop.run(RunMode::Default).unwrap();
        assert_eq!(*order.borrow(), ["first SIGINT", "second SIGINT"]);
        drop(listeners);
    }

    #[test]
    fn what_never_arrives_can_be_listened_to() {
        block_on(async {
            let signals = Signals::new([SignalKind::TERM, SignalKind::HUP, SignalKind::WINCH]);
            assert!(signals.is_ok());
            assert!(Signals::new([SignalKind::KILL]).is_err());
        });
    }
}
