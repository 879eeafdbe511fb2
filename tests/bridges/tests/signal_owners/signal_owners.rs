//! Signals that others in the process listen to as well: `signal-hook`, or a plain `sigaction`,
//! each before, while and after a listener of ours. What the process is left with is theirs, or
//! what it was.
//!
//! Each test runs in a process of its own, which a signal may end.
#![allow(
    unsafe_code,
    reason = "installs handlers as other libraries in the process would do it"
)]

use crate::util::child::in_child;
use crate::util::raise::raise;
use crate::util::trace::{Trace, paused, turn};
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use phaseloop::signal::{Signal, SignalKind, Signals};
use phaseloop::{AsyncHandle, EventLoop, LoopHandle};

const TERM: SignalKind = SignalKind::TERM;
const COMPLETE: &str = "all was as it should be";

/// Runs `body` in a child and says how the child has ended. `None` in the child.
fn end_of_child(test: &str, body: impl FnOnce()) -> Option<ExitStatus> {
    let child = in_child(&[], test, || {
        body();
        eprintln!("{COMPLETE}");
    })?;
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    eprintln!("{text}");
    // One that is to be ended by a signal says so when it has come that far.
    assert!(text.contains(COMPLETE), "the child did not come to its end");
    Some(output.status)
}

/// Runs `body` in a child, which must come to its end.
fn survives(test: &str, body: impl FnOnce()) {
    if let Some(status) = end_of_child(test, body) {
        assert!(status.success(), "{status}");
    }
}

/// Runs `body` in a child, which must be ended by SIGTERM then.
fn is_terminated(test: &str, body: impl FnOnce()) {
    let status = end_of_child(test, || {
        body();
        eprintln!("{COMPLETE}");
        raise(TERM);
        unreachable!("ended by the signal");
    });
    if let Some(status) = status {
        assert_eq!(status.signal(), Some(TERM.as_raw()), "{status}");
    }
}

/// A loop with listeners that log.
struct Ours {
    event_loop: EventLoop,
    handle: LoopHandle,
    trace: Trace,
}

impl Ours {
    fn new() -> Self {
        let (event_loop, handle, trace) = paused();
        Self {
            event_loop,
            handle,
            trace,
        }
    }

    fn listen(&self) -> Signal {
        self.listen_to(TERM)
    }

    fn listen_to(&self, kind: SignalKind) -> Signal {
        let signal = Signal::new(&self.handle);
        let trace = self.trace.clone();
        signal.start(kind, move |_, _| trace.log("ours")).unwrap();
        signal
    }

    /// What the listeners have logged of one SIGTERM.
    fn receive(&mut self) -> String {
        raise(TERM);
        turn(&mut self.event_loop);
        self.trace.take()
    }
}

/// A listener by `signal-hook`; counts.
fn hook() -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let count_up = move || {
        counter.fetch_add(1, Ordering::SeqCst);
    };
    // SAFETY: an atomic addition may be done in a signal handler.
    unsafe { signal_hook::low_level::register(TERM.as_raw(), count_up) }.unwrap();
    count
}

static FOREIGN: AtomicUsize = AtomicUsize::new(0);

/// A handler that calls no other one.
extern "C" fn count_foreign(_: i32) {
    FOREIGN.fetch_add(1, Ordering::SeqCst);
}

fn set_action(handler: libc::sighandler_t) -> libc::sigaction {
    // SAFETY: a structure of C for which zero is a value: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    set(&action)
}

fn set(action: &libc::sigaction) -> libc::sigaction {
    let mut before = MaybeUninit::uninit();
    // SAFETY: the action is complete, its handler an atomic addition, or came from the system.
    let result = unsafe { libc::sigaction(TERM.as_raw(), action, before.as_mut_ptr()) };
    assert_eq!(result, 0);
    // SAFETY: filled by the call, which has succeeded.
    unsafe { before.assume_init() }
}

fn install_foreign() -> libc::sigaction {
    set_action(count_foreign as *const () as usize)
}

/// How often the foreign handler was called since the last question.
fn foreign() -> usize {
    FOREIGN.swap(0, Ordering::SeqCst)
}

fn calls(count: &AtomicUsize) -> usize {
    count.swap(0, Ordering::SeqCst)
}

// signal-hook.

#[test]
fn signal_hook_that_came_later_still_listens() {
    survives("signal_hook_that_came_later_still_listens", || {
        let mut ours = Ours::new();
        let listener = ours.listen();
        let theirs = hook();
        assert_eq!((ours.receive(), calls(&theirs)), ("ours".to_owned(), 1));
        drop(listener);
        assert_eq!((ours.receive(), calls(&theirs)), (String::new(), 1));
        assert_eq!((ours.receive(), calls(&theirs)), (String::new(), 1));
    });
}

#[test]
fn signal_hook_that_came_first_still_listens() {
    survives("signal_hook_that_came_first_still_listens", || {
        let theirs = hook();
        let mut ours = Ours::new();
        for _ in 0..3 {
            let listener = ours.listen();
            assert_eq!((ours.receive(), calls(&theirs)), ("ours".to_owned(), 1));
            drop(listener);
            assert_eq!((ours.receive(), calls(&theirs)), (String::new(), 1));
        }
    });
}

#[test]
fn signal_hook_that_comes_after_our_last_listener_listens() {
    survives(
        "signal_hook_that_comes_after_our_last_listener_listens",
        || {
            let mut ours = Ours::new();
            drop(ours.listen());
            let theirs = hook();
            assert_eq!((ours.receive(), calls(&theirs)), (String::new(), 1));
        },
    );
}

#[test]
fn a_listener_of_ours_that_comes_back_hears_once_and_so_does_signal_hook() {
    survives(
        "a_listener_of_ours_that_comes_back_hears_once_and_so_does_signal_hook",
        || {
            let mut ours = Ours::new();
            drop(ours.listen());
            let listener = ours.listen();
            let theirs = hook();
            drop(listener);
            for _ in 0..10 {
                let listener = ours.listen();
                assert_eq!((ours.receive(), calls(&theirs)), ("ours".to_owned(), 1));
                let second = ours.listen();
                assert_eq!(
                    (ours.receive(), calls(&theirs)),
                    ("ours ours".to_owned(), 1)
                );
                drop(listener);
                assert_eq!((ours.receive(), calls(&theirs)), ("ours".to_owned(), 1));
                drop(second);
                assert_eq!((ours.receive(), calls(&theirs)), (String::new(), 1));
            }
        },
    );
}

#[test]
fn a_loop_that_goes_leaves_signal_hook_its_signals() {
    survives("a_loop_that_goes_leaves_signal_hook_its_signals", || {
        let ours = Ours::new();
        let _kept = Signals::new_on(&ours.handle, [TERM]).unwrap();
        let theirs = hook();
        drop(ours);
        raise(TERM);
        assert_eq!(calls(&theirs), 1);
    });
}

#[test]
fn r249_others_who_came_first_still_listen() {
    survives("r249_others_who_came_first_still_listen", || {
        let theirs = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(TERM.as_raw(), theirs.clone()).unwrap();
        let ours = Ours::new();
        drop(ours.listen());
        raise(TERM);
        assert!(theirs.load(Ordering::SeqCst));
    });
}

/// `AsyncSender::send` is called in a signal handler of other code.
#[test]
fn r124_an_async_handle_is_sent_from_a_signal_handler() {
    survives("r124_an_async_handle_is_sent_from_a_signal_handler", || {
        let (mut event_loop, handle, trace) = paused();
        let async_handle = AsyncHandle::new(&handle, trace.on("sent")).unwrap();
        let sender = async_handle.sender();
        let send = move || drop(sender.send());
        // Its default action would end the process.
        let kind = SignalKind::from_raw(40);
        // SAFETY: a send takes no lock and allocates nothing.
        let id = unsafe { signal_hook::low_level::register(kind.as_raw(), send) }.unwrap();
        for _ in 0..3 {
            raise(kind);
        }
        turn(&mut event_loop);
        assert_eq!(trace.take(), "sent");
        signal_hook::low_level::unregister(id);
    });
}

// A plain `sigaction`.

#[test]
fn a_foreign_handler_that_came_later_stays() {
    survives("a_foreign_handler_that_came_later_stays", || {
        let mut ours = Ours::new();
        let listener = ours.listen();
        install_foreign();
        drop(listener);
        assert_eq!((ours.receive(), foreign()), (String::new(), 1));
        // It calls no other handler, so ours has to be installed above it.
        let listener = ours.listen();
        assert_eq!((ours.receive(), foreign()), ("ours".to_owned(), 1));
        drop(listener);
        assert_eq!((ours.receive(), foreign()), (String::new(), 1));
    });
}

#[test]
fn a_foreign_handler_that_came_first_is_called_and_put_back() {
    survives(
        "a_foreign_handler_that_came_first_is_called_and_put_back",
        || {
            install_foreign();
            let mut ours = Ours::new();
            let listener = ours.listen();
            assert_eq!((ours.receive(), foreign()), ("ours".to_owned(), 1));
            drop(listener);
            assert_eq!((ours.receive(), foreign()), (String::new(), 1));
        },
    );
}

#[test]
fn a_listener_that_starts_under_a_foreign_handler_hears() {
    survives(
        "a_listener_that_starts_under_a_foreign_handler_hears",
        || {
            let mut ours = Ours::new();
            let _first = ours.listen();
            install_foreign();
            let second = ours.listen();
            assert_eq!((ours.receive(), foreign()), ("ours ours".to_owned(), 1));
            drop(second);
            assert_eq!((ours.receive(), foreign()), ("ours".to_owned(), 1));
        },
    );
}

#[test]
fn many_changes_of_the_handler_above_ours_are_survived() {
    survives(
        "many_changes_of_the_handler_above_ours_are_survived",
        || {
            let mut ours = Ours::new();
            let theirs = hook();
            for _ in 0..20 {
                let listener = ours.listen();
                // Takes the handler of `signal-hook`, and ours, out of the chain.
                install_foreign();
                drop(listener);
                assert_eq!(ours.receive(), "");
                assert_eq!((foreign(), calls(&theirs)), (1, 0));
                set_action(libc::SIG_IGN);
            }
            let _listener = ours.listen();
            assert_eq!(ours.receive(), "ours");
        },
    );
}

// What was there before.

#[test]
fn the_default_action_comes_back_when_another_owner_puts_our_handler_back() {
    is_terminated(
        "the_default_action_comes_back_when_another_owner_puts_our_handler_back",
        || {
            let mut ours = Ours::new();
            let listener = ours.listen();
            let before = install_foreign();
            drop(listener);
            assert_eq!((ours.receive(), foreign()), (String::new(), 1));
            set(&before);
        },
    );
}

#[test]
fn a_listener_hears_again_when_another_owner_puts_our_handler_back() {
    is_terminated(
        "a_listener_hears_again_when_another_owner_puts_our_handler_back",
        || {
            let mut ours = Ours::new();
            let first = ours.listen();
            let before = install_foreign();
            let second = ours.listen();
            set(&before);
            assert_eq!(ours.receive(), "ours ours");
            drop((first, second));
        },
    );
}

#[test]
fn what_was_ignored_stays_ignored_when_another_owner_puts_our_handler_back() {
    survives(
        "what_was_ignored_stays_ignored_when_another_owner_puts_our_handler_back",
        || {
            set_action(libc::SIG_IGN);
            let mut ours = Ours::new();
            let listener = ours.listen();
            let before = install_foreign();
            drop(listener);
            set(&before);
            assert_eq!(ours.receive(), "");
        },
    );
}

#[test]
fn listeners_that_come_and_go_under_a_storm_of_signals_lose_none() {
    survives(
        "listeners_that_come_and_go_under_a_storm_of_signals_lose_none",
        || {
            // Ignored by default: it may come when there is no listener.
            const URG: SignalKind = SignalKind::URG;
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                // Also after an assertion that fails: the scope waits for the threads.
                let _end = EndOnDrop(&is_over);
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        raise(URG);
                    }
                });
                scope.spawn(|| {
                    let other = Ours::new();
                    while !is_over.load(Ordering::SeqCst) {
                        drop(other.listen_to(URG));
                    }
                });
                let mut ours = Ours::new();
                for _ in 0..500 {
                    let listener = ours.listen_to(URG);
                    raise(URG);
                    turn(&mut ours.event_loop);
                    assert!(ours.trace.take().starts_with("ours"));
                    drop(listener);
                }
            });
        },
    );
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
