//! Serializes the stall reports of one loop: whichever thread finds no report in progress prints.
//!
//! The names of a stack are read from the debug information of the program, which may take longer
//! than the stall. The loop does not wait for that: the thread that prints a report prints the
//! next one of the loop, too.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Listener, Stall};
use crate::stderr;

/// How long the end of a loop waits for its last report.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The reports of one loop.
pub(super) struct Reporter {
    words: Mutex<Words>,
    /// Notified when no report is in progress.
    silence: Condvar,
}

pub(super) struct Words {
    then: Option<Listener>,
    left: VecDeque<Word>,
    is_spoken: bool,
}

/// Reports one stall, to a listener or on standard error.
type Word = Box<dyn FnOnce(&mut Option<Listener>) + Send>;

impl Reporter {
    pub(super) fn new(then: Option<Listener>) -> Self {
        Self {
            words: Mutex::new(Words {
                then,
                left: VecDeque::new(),
                is_spoken: false,
            }),
            silence: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Words> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a word, and speaks unless another thread does.
    pub(super) fn speak<'a>(
        &'a self,
        mut words: MutexGuard<'a, Words>,
        word: impl FnOnce(&mut Option<Listener>) + Send + 'static,
    ) {
        words.left.push_back(Box::new(word));
        if words.is_spoken {
            return;
        }
        words.is_spoken = true;
        while let Some(word) = words.left.pop_front() {
            let mut then = words.then.take();
            drop(words);
            word(&mut then);
            words = self.lock();
            words.then = then;
        }
        words.is_spoken = false;
        drop(words);
        self.silence.notify_all();
    }

    /// Waits until everything is told, but not for ever: a listener may wait for the caller.
    pub(super) fn wait_for_silence(&self) {
        let words = self.lock();
        let waited = self
            .silence
            .wait_timeout_while(words, LAST_WORDS, |words| words.is_spoken);
        drop(waited);
    }
}

/// Tells a stall whose last part, the names of the stack, may take long: standard error has the
/// first line at once.
pub(super) fn tell(
    then: &mut Option<Listener>,
    mut stall: Stall,
    complete: impl FnOnce(&mut Stall),
) {
    match then {
        Some(then) => {
            complete(&mut stall);
            // A panic of user code must not end the watchdog, nor the loop.
            drop(catch_unwind(AssertUnwindSafe(|| then(&stall))));
        }
        None => {
            let mut text = String::new();
            // Writing to a string does not fail.
            let _ = stall.write_head(&mut text);
            stderr::write(&text);
            text.clear();
            complete(&mut stall);
            let _ = stall.write_rest(&mut text);
            stderr::write(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reporter;
    use std::sync::{Arc, Mutex, mpsc};
    use std::thread;

    #[test]
    fn what_is_told_meanwhile_is_told_by_the_thread_that_speaks() {
        let reporter = Arc::new(Reporter::new(None));
        let (said, heard) = mpsc::channel();
        let (go, wait) = mpsc::channel();
        let (begun, has_begun) = mpsc::channel();
        let speaker = thread::spawn({
            let (reporter, said) = (reporter.clone(), said.clone());
            move || {
                reporter.speak(reporter.lock(), move |_| {
                    begun.send(()).unwrap();
                    wait.recv().unwrap();
                    said.send(("first", thread::current().id())).unwrap();
                });
            }
        });
        has_begun.recv().unwrap();
        reporter.speak(reporter.lock(), move |_| {
            said.send(("second", thread::current().id())).unwrap();
        });
        assert!(heard.try_recv().is_err(), "the caller does not wait");
        go.send(()).unwrap();
        reporter.wait_for_silence();
        let heard: Vec<_> = heard.iter().collect();
        let id = speaker.thread().id();
        assert_eq!(heard, [("first", id), ("second", id)]);
        speaker.join().unwrap();
    }

    #[test]
    fn the_listener_is_lent_to_each_word() {
        let count = Arc::new(Mutex::new(0));
        let counter = count.clone();
        let reporter = Reporter::new(Some(Box::new(move |_| *counter.lock().unwrap() += 1)));
        for _ in 0..2 {
            reporter.speak(reporter.lock(), |then| assert!(then.is_some()));
        }
        assert_eq!(*count.lock().unwrap(), 0);
    }
}
