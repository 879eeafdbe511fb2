//! The limit on how long the processes of a cell may take.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The processes that are ended when the limit is over, by their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched(Arc<Mutex<Vec<u32>>>);

impl Watched {
    pub(crate) fn add(&self, process: u32) {
        self.lock().push(process);
    }

    /// To be called before the process is waited for: after that its id may be another's.
    pub(crate) fn remove(&self, process: u32) {
        self.lock().retain(|other| *other != process);
    }

    /// Ends one of them, if it is still watched.
    pub(crate) fn end(&self, process: u32) {
        if self.lock().contains(&process) {
            end_tree(process);
        }
    }

    pub(crate) fn end_all(&self) {
        // The lock is held meanwhile, so that no process is waited for before its signal.
        for process in self.lock().iter() {
            end_tree(*process);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

/// A limit that runs from its start until it is stopped.
pub(crate) struct Watchdog {
    stop: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watchdog {
    pub(crate) fn start(watched: &Watched, limit: Duration) -> Self {
        let (stop, stopped) = mpsc::channel();
        let watched = watched.clone();
        let thread = thread::spawn(move || {
            let is_over = stopped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if is_over {
                watched.end_all();
            }
            is_over
        });
        Self { stop, thread }
    }

    /// Whether the limit was over before.
    pub(crate) fn stop(self) -> bool {
        // If the thread has ended, it needs no notice.
        let _ = self.stop.send(());
        self.thread.join().expect("it does not panic")
    }
}

/// Ends a process and what it has started: a tool that is killed leaves its program running. It is
/// stopped first, so that it starts nothing more meanwhile.
fn end_tree(process: u32) {
    signal(process, libc::SIGSTOP);
    for child in children(process) {
        end_tree(child);
    }
    signal(process, libc::SIGKILL);
}

fn signal(process: u32, signal: i32) {
    // SAFETY: it takes no pointer; the process has not been waited for, so the id is still its own.
    unsafe { libc::kill(process as i32, signal) };
}

fn children(process: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .map(|thread| thread.path().join("children"));
    let ids = lists.flat_map(|list| {
        let text = fs::read_to_string(list).unwrap_or_default();
        let ids = text.split_whitespace().map(str::parse);
        ids.collect::<Vec<_>>()
    });
    ids.flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell whose child prints a word after some seconds, unless it is ended.
    fn shell() -> Child {
        Command::new("sh")
            .args(["-c", "(sleep 5; echo alive); true"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell")
    }

    #[test]
    fn a_process_over_its_limit_is_ended_with_its_children() {
        let (watched, child) = (Watched::default(), shell());
        watched.add(child.id());
        let watchdog = Watchdog::start(&watched, Duration::from_millis(200));
        // The output ends when no process holds it any more.
        let output = child.wait_with_output().expect("it is a child");
        assert!(watchdog.stop());
        assert!(!output.status.success());
        assert_eq!(output.stdout, b"");
    }

    #[test]
    fn a_process_within_its_limit_is_left_alone() {
        let (watched, mut child) = (Watched::default(), shell());
        watched.add(child.id());
        let watchdog = Watchdog::start(&watched, Duration::from_secs(600));
        assert!(!watchdog.stop());
        assert!(child.try_wait().expect("it is a child").is_none());
        end_tree(child.id());
        child.wait().expect("it is a child");
    }

    #[test]
    fn what_was_removed_is_not_ended() {
        let (watched, mut child) = (Watched::default(), shell());
        watched.add(child.id());
        watched.remove(child.id());
        let watchdog = Watchdog::start(&watched, Duration::ZERO);
        thread::sleep(Duration::from_millis(50));
        assert!(watchdog.stop());
        assert!(child.try_wait().expect("it is a child").is_none());
        end_tree(child.id());
        child.wait().expect("it is a child");
    }
}
