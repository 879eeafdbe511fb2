//! 855–859: watched files.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::rc::Rc;

use phaseloop_node::fs::{self as files, FsWatcher, WatchFileOptions, WatchOptions};
use phaseloop_node::stream::CLOSE;
use phaseloop_node::{AbortController, Emitter, Error, catch, sleep};

use crate::support::{log, scratch};

super::ports! {
    Real "855-fs-watch" => watch,
    Real "856-fs-watch-file" => watch_file,
    Real "859-fs-watch-recursive" => watch_recursive,
}

/// A watcher, and what it has reported. Repeated reports of one kind and name count once.
struct Watched {
    watcher: FsWatcher,
    seen: Rc<RefCell<Vec<String>>>,
}

impl Watched {
    fn new(name: &'static str, options: WatchOptions) -> Self {
        let seen: Rc<RefCell<Vec<String>>> = Rc::default();
        let list = seen.clone();
        let watcher = files::watch_with(scratch(name), options, move |change| {
            let text = format!(
                "{} {}",
                change.event_type,
                change.filename.to_str().unwrap()
            );
            if list.borrow().last() != Some(&text) {
                list.borrow_mut().push(text);
            }
        });
        watcher.on(CLOSE, move |()| log(format!("{name} close")));
        Self { watcher, seen }
    }

    async fn show(&self, what: &str) {
        sleep(150).await.unwrap();
        log(format!("{what} {}", self.seen.take().join(", ")));
    }
}

fn append(name: &str) {
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(scratch(name))
        .unwrap();
    std::io::Write::write_all(&mut file, b"more").unwrap();
}

async fn watch() {
    let default = WatchOptions::default;
    fs::create_dir(scratch("dir")).unwrap();
    let d = Watched::new("dir", default());
    fs::write(scratch("dir/a"), "text").unwrap();
    d.show("create").await;
    append("dir/a");
    d.show("append").await;
    fs::rename(scratch("dir/a"), scratch("dir/b")).unwrap();
    d.show("rename").await;
    fs::set_permissions(scratch("dir/b"), fs::Permissions::from_mode(0o600)).unwrap();
    d.show("chmod").await;
    fs::create_dir(scratch("dir/sub")).unwrap();
    d.show("mkdir").await;
    fs::write(scratch("dir/sub/deep"), "").unwrap();
    d.show("deep").await;
    fs::remove_file(scratch("dir/b")).unwrap();
    d.show("unlink").await;
    d.watcher.close();
    d.watcher.close();
    log("closing");
    sleep(50).await.unwrap();
    fs::write(scratch("dir/late"), "").unwrap();
    d.show("late").await;
    fs::write(scratch("file"), "").unwrap();
    let f = Watched::new("file", default());
    append("file");
    f.show("append").await;
    f.watcher.close();
    sleep(20).await.unwrap();
    let reason = catch(|| files::watch(scratch("no"), |_| ())).unwrap_err();
    let error = reason.downcast_ref::<Error>().unwrap();
    let text = error
        .message()
        .replace(scratch("").to_str().unwrap(), "/")
        .replace("//", "/");
    log(format!(
        "{} {} {text}",
        error.code().unwrap(),
        error.syscall().unwrap()
    ));
    let controller = AbortController::new();
    let signal = Some(controller.signal());
    Watched::new(
        "dir",
        WatchOptions {
            signal: signal.clone(),
            ..default()
        },
    );
    controller.abort();
    log("aborted");
    sleep(20).await.unwrap();
    Watched::new(
        "dir",
        WatchOptions {
            signal,
            ..default()
        },
    );
    log("aborted before");
    sleep(20).await.unwrap();
    Watched::new(
        "dir",
        WatchOptions {
            persistent: false,
            ..default()
        },
    );
    Watched::new("file", default()).watcher.unref();
}

async fn watch_file() {
    fs::write(scratch("file"), "a").unwrap();
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    let every = |milliseconds: u32| WatchFileOptions {
        interval: milliseconds.into(),
        ..WatchFileOptions::default()
    };
    let (first, second) = (seen.clone(), seen.clone());
    files::watch_file_with(scratch("file"), every(20), move |now, before| {
        let text = format!("{} to {} {}", before.size(), now.size(), now.nlink());
        first.borrow_mut().push(text);
    });
    files::watch_file_with(scratch("file"), every(1), move |_, _| {
        second.borrow_mut().push("second".to_owned());
    });
    let sorted = || {
        let all: BTreeSet<_> = seen.take().into_iter().collect();
        log(all.into_iter().collect::<Vec<_>>().join(", "));
    };
    sleep(150).await.unwrap();
    fs::write(scratch("file"), "abc").unwrap();
    sleep(150).await.unwrap();
    sorted();
    fs::remove_file(scratch("file")).unwrap();
    sleep(150).await.unwrap();
    log(seen.take().join(", "));
    fs::write(scratch("file"), "abcdef").unwrap();
    sleep(150).await.unwrap();
    sorted();
    files::unwatch_file(scratch("file"));
    fs::write(scratch("file"), "").unwrap();
    sleep(150).await.unwrap();
    log(format!("unwatched {}", seen.take().join(", ")));
    files::watch_file_with(scratch("no"), every(20), |now, before| {
        let (size, time) = (now.size(), now.mtime_ms());
        log(format!(
            "missing {size} {time} {} {}",
            now.is_file(),
            before.ino()
        ));
    });
    sleep(150).await.unwrap();
    files::unwatch_file(scratch("no"));
    files::unwatch_file(scratch("never"));
    let options = WatchFileOptions {
        persistent: false,
        ..Default::default()
    };
    files::watch_file_with(scratch("file"), options, |_, _| log("never"));
    files::watch_file(scratch(""), |_, _| log("never")).unref();
}

async fn watch_recursive() {
    fs::create_dir_all(scratch("dir/sub")).unwrap();
    fs::write(scratch("dir/sub/old"), "a").unwrap();
    let seen: Rc<RefCell<BTreeSet<String>>> = Rc::default();
    let list = seen.clone();
    let options = WatchOptions {
        recursive: true,
        ..Default::default()
    };
    let watcher = files::watch_with(scratch("dir"), options, move |change| {
        list.borrow_mut()
            .insert(change.filename.to_str().unwrap().to_owned());
    });
    let show = async |what: &str| {
        sleep(200).await.unwrap();
        let seen: Vec<_> = seen.take().into_iter().collect();
        log(format!("{what} {}", seen.join(", ")));
    };
    sleep(100).await.unwrap();
    fs::write(scratch("dir/sub/new"), "text").unwrap();
    show("create").await;
    fs::create_dir(scratch("dir/more")).unwrap();
    show("mkdir").await;
    fs::write(scratch("dir/more/deep"), "text").unwrap();
    show("deep").await;
    fs::remove_file(scratch("dir/more/deep")).unwrap();
    show("unlink").await;
    watcher.close();
}
