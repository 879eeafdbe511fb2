//! File watches by `ReadDirectoryChangesW`.

use std::fs;
use std::path::PathBuf;

use phaseloop::fs::{WatchKind, Watcher, watch};
use phaseloop::{Handle, LoopHandle};

use crate::run;

/// A directory of its own, removed on drop.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("phaseloop-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Receives events until one is of the kind, and returns its name.
async fn until(watcher: &mut Watcher, is_it: impl Fn(WatchKind) -> bool) -> String {
    loop {
        let event = watcher.recv().await.expect("the watch goes on");
        if is_it(event.kind) {
            return event.name().unwrap().to_string_lossy().into_owned();
        }
    }
}

#[test]
fn a_directory_tells_of_its_entries() {
    run(async {
        let directory = Directory::new("entries");
        let mut watcher = watch(&directory.0).unwrap();
        fs::write(directory.path("one"), "text").unwrap();
        let first = watcher.recv().await.unwrap();
        assert_eq!(first.kind, WatchKind::Created);
        assert_eq!(first.path, directory.path("one"));
        assert!(!first.is_directory);
        fs::create_dir(directory.path("folder")).unwrap();
        loop {
            let event = watcher.recv().await.unwrap();
            if event.kind == WatchKind::Created {
                assert_eq!(event.path, directory.path("folder"));
                assert!(event.is_directory);
                break;
            }
        }
        fs::remove_file(directory.path("one")).unwrap();
        let is_it = |kind| kind == WatchKind::Removed;
        assert_eq!(until(&mut watcher, is_it).await, "one");
    });
}

#[test]
fn the_two_names_of_a_rename_have_one_number() {
    run(async {
        let directory = Directory::new("rename");
        fs::write(directory.path("old"), "text").unwrap();
        let mut watcher = watch(&directory.0).unwrap();
        fs::rename(directory.path("old"), directory.path("new")).unwrap();
        let from = watcher.recv().await.unwrap();
        let to = watcher.recv().await.unwrap();
        let (WatchKind::MovedFrom(from_number), WatchKind::MovedTo(to_number)) =
            (from.kind, to.kind)
        else {
            panic!("{from:?} {to:?}");
        };
        assert_eq!(from_number, to_number);
        assert_eq!(from.path, directory.path("old"));
        assert_eq!(to.path, directory.path("new"));
    });
}

#[test]
fn a_watched_file_tells_of_itself_alone_and_its_removal_is_the_end() {
    run(async {
        let directory = Directory::new("file");
        fs::write(directory.path("watched"), "text").unwrap();
        let mut watcher = watch(directory.path("watched")).unwrap();
        fs::write(directory.path("other"), "text").unwrap();
        fs::write(directory.path("watched"), "longer text").unwrap();
        let event = watcher.recv().await.unwrap();
        assert_eq!(event.kind, WatchKind::Modified);
        assert_eq!(event.path, directory.path("watched"));
        fs::remove_file(directory.path("watched")).unwrap();
        until(&mut watcher, |kind| kind == WatchKind::SelfRemoved).await;
        assert!(watcher.recv().await.is_none());
        assert!(!watcher.is_active());
    });
}

#[test]
fn a_watched_file_is_followed_to_its_next_name() {
    run(async {
        let directory = Directory::new("follow");
        fs::write(directory.path("old"), "text").unwrap();
        let mut watcher = watch(directory.path("old")).unwrap();
        fs::rename(directory.path("old"), directory.path("new")).unwrap();
        until(&mut watcher, |kind| kind == WatchKind::SelfMoved).await;
        fs::write(directory.path("new"), "longer text").unwrap();
        until(&mut watcher, |kind| kind == WatchKind::Modified).await;
    });
}

#[test]
fn several_watchers_hear_of_one_change() {
    run(async {
        let (one, other) = (Directory::new("several"), Directory::new("other"));
        let mut watchers = [
            watch(&one.0).unwrap(),
            watch(&one.0).unwrap(),
            watch(&other.0).unwrap(),
        ];
        fs::write(one.path("a"), "").unwrap();
        fs::write(other.path("b"), "").unwrap();
        for (watcher, name) in watchers.iter_mut().zip(["a", "a", "b"]) {
            let event = watcher.recv().await.unwrap();
            assert_eq!(event.name().unwrap(), name);
        }
        watchers[0].close().await;
        assert_eq!(LoopHandle::current().handles().len(), 2);
        fs::write(one.path("c"), "").unwrap();
        let is_it = |kind| kind == WatchKind::Created;
        assert_eq!(until(&mut watchers[1], is_it).await, "c");
        assert!(watchers[0].recv().await.is_none());
    });
}

#[test]
fn what_cannot_be_watched_is_an_error() {
    run(async {
        let directory = Directory::new("none");
        let error = watch(directory.path("missing")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    });
}

/// No change is lost between two reads of the kernel's list.
#[test]
fn all_of_many_changes_are_told_or_an_overflow_is() {
    run(async {
        let directory = Directory::new("many");
        let mut watcher = watch(&directory.0).unwrap();
        let last = 400;
        let long = "a-rather-long-name".repeat(6);
        for number in 0..=last {
            fs::write(directory.path(&format!("{long}-{number}")), "").unwrap();
        }
        let mut created = 0;
        let mut is_lost = false;
        while created <= last && !is_lost {
            let event = watcher.recv().await.unwrap();
            created += usize::from(event.kind == WatchKind::Created);
            is_lost = event.kind == WatchKind::Overflow;
        }
    });
}
