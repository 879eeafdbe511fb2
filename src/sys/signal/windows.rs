//! Windows: the events of the console, as signals.
//!
//! | event | signal |
//! |---|---|
//! | ctrl-c | SIGINT |
//! | ctrl-break | SIGBREAK |
//! | the console window is closed | SIGHUP |
//!
//! The other signals exist by name and never arrive. The numbers are those of the C library and of
//! libuv.
#![allow(unsafe_code, reason = "installs a handler for console events")]

mod caught;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, SetConsoleCtrlHandler,
};
use windows_sys::core::BOOL;

pub(crate) use self::caught::Caught;

macro_rules! names {
    ($($name:ident = $number:literal),* $(,)?) => {
        $(pub(crate) const $name: i32 = $number;)*

        /// The signals with a name.
        pub(crate) const NAMES: &[(i32, &str)] = &[$(($name, stringify!($name)),)*];
    };
}

names! {
    SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGILL = 4, SIGFPE = 8, SIGKILL = 9, SIGSEGV = 11,
    SIGTERM = 15, SIGBREAK = 21, SIGABRT = 22, SIGWINCH = 28,
}

/// No signal reports the exit of a child.
pub(crate) const CHILD_SIGNAL: Option<i32> = None;

/// Returns the name of a signal.
pub(crate) fn name(number: i32) -> Option<&'static str> {
    let named = NAMES.iter().find(|(known, _)| *known == number);
    named.map(|&(_, name)| name)
}

/// Returns whether a number is a signal.
pub(crate) fn exists(number: i32) -> bool {
    name(number).is_some()
}

/// The largest signal number.
const LARGEST: usize = 31;

/// Signals that cannot be caught, and fault signals, as on Unix.
const FORBIDDEN: [i32; 4] = [SIGKILL, SIGILL, SIGFPE, SIGSEGV];

/// Returns whether a listener can be started for a signal.
pub(crate) fn can_be_caught(number: i32) -> bool {
    !FORBIDDEN.contains(&number)
}

/// Records a signal for a loop, from [`watch`] until it is dropped.
pub(crate) struct Watch {
    number: i32,
    caught: Arc<Caught>,
}

/// The watches of all loops of the process.
struct Watches {
    list: Vec<(i32, Arc<Caught>)>,
    is_installed: bool,
}

static WATCHES: Mutex<Watches> = Mutex::new(Watches {
    list: Vec::new(),
    is_installed: false,
});

fn lock() -> MutexGuard<'static, Watches> {
    WATCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records each catch of signal `number` in `caught`, from now on.
///
/// # Errors
///
/// `InvalidInput` for an invalid signal number and for the [`FORBIDDEN`] signals.
pub(crate) fn watch(number: i32, caught: &Arc<Caught>) -> io::Result<Watch> {
    if !exists(number) || !can_be_caught(number) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut watches = lock();
    if !watches.is_installed {
        // SAFETY: the handler is a function of the program, which may be called on any thread.
        if unsafe { SetConsoleCtrlHandler(Some(on_event), 1) } == 0 {
            return Err(io::Error::last_os_error());
        }
        watches.is_installed = true;
    }
    watches.list.push((number, caught.clone()));
    Ok(Watch {
        number,
        caught: caught.clone(),
    })
}

impl Watch {
    /// Does nothing: the handler stays installed, and passes on what no listener wants.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the signature is shared with the platforms that have handlers of one signal"
    )]
    pub(crate) fn install(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let list = &mut lock().list;
        let is_this = |(number, caught): &(i32, Arc<Caught>)| {
            *number == self.number && Arc::ptr_eq(caught, &self.caught)
        };
        if let Some(place) = list.iter().position(is_this) {
            list.remove(place);
        }
    }
}

/// Records a signal for all loops that watch it. It returns `false` if there is none.
fn note(number: i32) -> bool {
    let watches = lock();
    let of_it = watches.list.iter().filter(|(other, _)| *other == number);
    of_it.map(|(_, caught)| caught.note(number)).count() > 0
}

/// The handler, which the OS calls on a thread of its own. Zero passes the event on to the next
/// handler, and at last to the default action.
unsafe extern "system" fn on_event(event: u32) -> BOOL {
    let is_received = match event {
        CTRL_C_EVENT => note(SIGINT),
        CTRL_BREAK_EVENT => note(SIGBREAK),
        CTRL_CLOSE_EVENT => {
            if note(SIGHUP) {
                // The process ends when the handler returns. The OS ends it anyway after some
                // seconds, which are left to the loop.
                std::thread::sleep(Duration::MAX);
            }
            false
        }
        _ => false,
    };
    BOOL::from(is_received)
}

/// Held by a test that counts on no other listener.
#[cfg(test)]
pub(crate) static WITH_CONSOLE: Mutex<()> = Mutex::new(());

/// Does what the OS does for an event of the console. Returns whether a listener received it.
#[cfg(test)]
pub(crate) fn raise(event: u32) -> bool {
    // SAFETY: the handler may be called on any thread.
    let call = move || unsafe { on_event(event) } != 0;
    std::thread::spawn(call).join().expect("it does not panic")
}

#[cfg(test)]
mod tests {
    use super::{Caught, SIGBREAK, SIGINT, SIGTERM, WITH_CONSOLE, raise, watch};
    use crate::sys::poller::{Events, Poller};
    use std::sync::Arc;
    use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_LOGOFF_EVENT};

    #[test]
    fn a_console_event_wakes_the_loops_that_watch_it_and_is_passed_on_if_none_does() {
        let _alone = WITH_CONSOLE.lock();
        let pollers = [Poller::new().unwrap(), Poller::new().unwrap()];
        let caught = pollers
            .each_ref()
            .map(|poller| Arc::new(Caught::new(poller.notifier())));
        let first = watch(SIGINT, &caught[0]).unwrap();
        let second = watch(SIGINT, &caught[1]).unwrap();
        let other = watch(SIGBREAK, &caught[1]).unwrap();
        assert!(raise(CTRL_C_EVENT));
        assert!(raise(CTRL_BREAK_EVENT));
        assert!(!raise(CTRL_LOGOFF_EVENT), "it goes to services");
        for poller in &pollers {
            // This would wait for ever if the wake were lost.
            poller.wait(&mut Events::new(), None).unwrap();
        }
        assert_eq!(caught[0].take(), [SIGINT]);
        assert_eq!(caught[1].take(), [SIGINT, SIGBREAK]);
        drop((first, other));
        assert!(raise(CTRL_C_EVENT), "another loop watches it");
        drop(second);
        assert!(!raise(CTRL_C_EVENT) && !raise(CTRL_BREAK_EVENT));
    }

    #[test]
    fn what_cannot_be_caught_is_refused() {
        let poller = Poller::new().unwrap();
        let caught = Arc::new(Caught::new(poller.notifier()));
        for number in [0, 5, 9, 11, 99, -1] {
            assert!(watch(number, &caught).is_err(), "{number}");
        }
        assert!(watch(SIGTERM, &caught).is_ok(), "it never arrives");
    }
}
