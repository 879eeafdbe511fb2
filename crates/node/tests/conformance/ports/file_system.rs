//! 853–858: stats, streams of handles, copies, patterns.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use phaseloop::stream::StreamExt;
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::fs::{
    self as files, CpOptions, GlobOptions, ReadStreamOptions, Stats, WriteStreamOptions,
    promises as p,
};
use phaseloop_node::net::{self, LISTENING};
use phaseloop_node::stream::{CLOSE, END, FINISH, Readable};
use phaseloop_node::{AbortController, AbortSignal, Emitter, Error, Promise, sleep};

use crate::support::{log, scratch};

super::ports! {
    Real "853-fs-stats" => stats,
    Real "854-fs-handle-streams" => handle_streams,
    Real "857-fs-cp" => cp,
    Real "858-fs-glob" => glob,
}

fn show(name: &str, s: &Stats) {
    let kinds = [
        s.is_file(),
        s.is_directory(),
        s.is_symbolic_link(),
        s.is_fifo(),
        s.is_socket(),
        s.is_block_device(),
        s.is_character_device(),
    ];
    let kinds: String = kinds.map(|is| if is { '1' } else { '0' }).iter().collect();
    log(format!(
        "{name} {} {:o} {} {kinds}",
        s.size(),
        s.mode() & 0o7777,
        s.nlink()
    ));
}

fn time(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(milliseconds)
}

fn fifo(name: &str) {
    let made = Command::new("mkfifo")
        .args(["-m", "600"])
        .arg(scratch(name))
        .status();
    assert!(made.unwrap().success());
}

async fn stats() {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).mode(0o640);
    std::io::Write::write_all(&mut options.open(scratch("file")).unwrap(), b"hello").unwrap();
    fs::hard_link(scratch("file"), scratch("second")).unwrap();
    std::os::unix::fs::symlink("file", scratch("link")).unwrap();
    fs::create_dir(scratch("dir")).unwrap();
    fs::set_permissions(scratch("dir"), fs::Permissions::from_mode(0o700)).unwrap();
    fifo("fifo");
    let server = net::Server::new();
    let listens = once(&server, LISTENING);
    server.listen(scratch("socket"));
    listens.await.unwrap();
    let (accessed, modified) = (time(1_500_000_000_250), time(1_600_000_000_500));
    p::utimes(scratch("file"), accessed, modified)
        .await
        .unwrap();
    for name in ["file", "link", "fifo"] {
        show(name, &p::stat(scratch(name)).await.unwrap());
    }
    show("lstat", &p::lstat(scratch("link")).await.unwrap());
    let dir = p::stat(scratch("dir")).await.unwrap();
    log(format!(
        "dir {} {:o}",
        dir.is_directory(),
        dir.mode() & 0o7777
    ));
    log(format!(
        "socket {}",
        p::stat(scratch("socket")).await.unwrap().is_socket()
    ));
    show("device", &p::stat("/dev/null").await.unwrap());
    server.close();
    let s = p::stat(scratch("file")).await.unwrap();
    let (uid, gid) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    let milliseconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap().as_millis();
    let are = [
        s.ctime_ms() > s.mtime_ms(),
        s.birthtime_ms() > 0.0,
        s.ino() > 0,
        s.dev() > 0,
        s.blocks() < u64::MAX,
        s.blksize() > 0,
        s.uid() == uid,
        s.gid() == gid,
    ];
    log(format!(
        "{} {} {} {} {}",
        s.atime_ms(),
        s.mtime_ms(),
        milliseconds(s.atime()),
        milliseconds(s.mtime()),
        are.map(|is| is.to_string()).join(" ")
    ));
    for name in ["file", "no"] {
        let known =
            Promise::new(|deferred| files::exists(scratch(name), move |is| deferred.resolve(is)));
        log(format!("exists {}", known.await.unwrap()));
    }
    let system = p::statfs(scratch("")).await.unwrap();
    let are = [
        system.bsize > 0,
        system.blocks >= system.bfree,
        system.bfree >= system.bavail,
        system.files >= system.ffree,
    ];
    log(format!("statfs {}", are.map(|is| is.to_string()).join(" ")));
    let reason = p::statfs(scratch("no")).await.unwrap_err();
    let error = reason.downcast_ref::<Error>().unwrap();
    log(format!(
        "{} {}",
        error.code().unwrap(),
        error.syscall().unwrap()
    ));
    vectors().await;
    p::lutimes(scratch("link"), time(3000), time(4000))
        .await
        .unwrap();
    let link = p::lstat(scratch("link")).await.unwrap().mtime_ms();
    log(format!(
        "lutimes {link} {}",
        p::stat(scratch("link")).await.unwrap().mtime_ms()
    ));
    fs::write(scratch("lines"), "one\ntwo\r\nthree").unwrap();
    let file = p::open(scratch("lines"), "r").await.unwrap();
    let mut lines = file.read_lines().lines();
    while let Some(line) = lines.next().await {
        log(format!("line {}", line.unwrap()));
    }
    log(format!("closed {}", file.fd().unwrap_or(-1)));
}

async fn vectors() {
    let h = p::open(scratch("vector"), "w+").await.unwrap();
    let buffers = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    log(format!(
        "writev {}",
        h.writev(buffers(&["abc", "", "defg"]), None).await.unwrap()
    ));
    log(format!(
        "writev {}",
        h.writev(buffers(&["XY", "Z"]), Some(1)).await.unwrap()
    ));
    for (list, position) in [
        (buffers(&["..", "..."]), Some(0)),
        (buffers(&["..", "..."]), Some(4)),
        (buffers(&[".."]), None),
    ] {
        let (count, list): (usize, Vec<Vec<u8>>) = h.readv(list, position).await.unwrap();
        let texts: Vec<_> = list
            .iter()
            .map(|one| String::from_utf8_lossy(one))
            .collect();
        log(format!("readv {count} {}", texts.join("|")));
    }
    h.chmod(0o600).await.unwrap();
    h.utimes(time(1000), time(2000)).await.unwrap();
    let s = h.stat().await.unwrap();
    log(format!("handle {:o} {}", s.mode() & 0o777, s.mtime_ms()));
    h.close().await.unwrap();
    let reason = h.readv(buffers(&[".."]), None).await.unwrap_err();
    let error = reason.downcast_ref::<Error>().unwrap();
    log(format!("{} {}", error.code().unwrap(), error.message()));
}

fn ended(name: &'static str, stream: &Readable<Vec<u8>>) -> Promise<()> {
    Promise::new(|deferred| {
        stream.on_data(move |d| log(format!("{name} data {}", String::from_utf8_lossy(d))));
        stream.on(END, move |()| log(format!("{name} end")));
        stream.on(ERROR, move |e: &Error| {
            log(format!("{name} error {} {}", e.name(), e.code().unwrap()));
        });
        if name == "kept" {
            stream.once(END, move |()| {
                phaseloop_node::set_timeout(50, move || deferred.resolve(()));
            });
        } else {
            stream.once(CLOSE, move |()| {
                log(format!("{name} close"));
                deferred.resolve(());
            });
        }
    })
}

async fn handle_streams() {
    let contents = || fs::read_to_string(scratch("file")).unwrap();
    let reading = ReadStreamOptions::default;
    let writing = WriteStreamOptions::default;
    fs::write(scratch("file"), "0123456789").unwrap();
    let h = p::open(scratch("file"), "r").await.unwrap();
    let part = ReadStreamOptions {
        start: 2,
        end: 5,
        ..reading()
    };
    ended("read", &h.create_read_stream(part)).await.unwrap();
    log(format!("fd {}", h.fd().unwrap_or(-1)));
    let h = p::open(scratch("file"), "r").await.unwrap();
    let part = ReadStreamOptions {
        auto_close: false,
        end: 2,
        ..reading()
    };
    ended("kept", &h.create_read_stream(part)).await.unwrap();
    let rest = h.read(3, Some(7)).await.unwrap();
    log(format!(
        "fd {} {}",
        h.fd().is_some(),
        String::from_utf8(rest).unwrap()
    ));
    h.close().await.unwrap();
    let h = p::open(scratch("file"), "r+").await.unwrap();
    let w = h.create_write_stream(WriteStreamOptions {
        start: 3,
        ..writing()
    });
    w.end("abc");
    once(&w, CLOSE).await.unwrap();
    log("write close");
    log(format!("fd {} {}", h.fd().unwrap_or(-1), contents()));
    let h = p::open(scratch("file"), "r+").await.unwrap();
    let kept = WriteStreamOptions {
        auto_close: false,
        start: 8,
        ..writing()
    };
    let k = h.create_write_stream(kept);
    k.end("Z");
    once(&k, FINISH).await.unwrap();
    log("kept finish");
    sleep(50).await.unwrap();
    log(format!(
        "fd {} {} {}",
        h.fd().is_some(),
        k.destroyed(),
        contents()
    ));
    k.destroy(None);
    once(&k, CLOSE).await.unwrap();
    log("kept close");
    let controller = AbortController::new();
    let signal = Some(controller.signal());
    let aborted = files::create_read_stream_with(
        scratch("file"),
        ReadStreamOptions {
            signal,
            ..reading()
        },
    );
    let end = ended("aborted", &aborted);
    controller.abort();
    end.await.unwrap();
    let signal = Some(controller.signal());
    let before = files::create_read_stream_with(
        scratch("file"),
        ReadStreamOptions {
            signal,
            ..reading()
        },
    );
    ended("before", &before).await.unwrap();
    let signal = Some(AbortSignal::timeout(50));
    let written = files::create_write_stream_with(
        scratch("other"),
        WriteStreamOptions {
            signal,
            ..writing()
        },
    );
    written.on(ERROR, |e| log(format!("written error {}", e.name())));
    once(&written, CLOSE).await.unwrap();
    log("written close");
}

/// A path of the program as Node's has it, without its directory.
fn clean(text: &str) -> String {
    let root = scratch("x");
    let root = root.parent().unwrap().to_str().unwrap();
    text.replace(root, "")
}

async fn copied(name: &str, from: &str, to: &str, options: CpOptions) {
    match p::cp_with(scratch(from), scratch(to), options).await {
        Ok(()) => log(format!("{name} ok")),
        Err(reason) => {
            let e = reason.downcast_ref::<Error>().unwrap();
            let (code, syscall) = (e.code().unwrap(), e.syscall().unwrap());
            let text = format!("{name}|{}|{code}|{syscall}|{}", e.name(), e.message());
            log(clean(&text));
        }
    }
}

fn names(path: &str) -> String {
    let entries = fs::read_dir(scratch(path)).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names.join(" ")
}

async fn cp() {
    let default = CpOptions::default;
    let recursive = || CpOptions {
        recursive: true,
        ..default()
    };
    let text = |name: &str| {
        log(format!(
            "{name} {}",
            fs::read_to_string(scratch(name)).unwrap()
        ))
    };
    fs::create_dir_all(scratch("src/deep")).unwrap();
    fs::write(scratch("src/m"), "m").unwrap();
    fs::write(scratch("src/deep/o"), "o").unwrap();
    fs::set_permissions(scratch("src/deep/o"), fs::Permissions::from_mode(0o604)).unwrap();
    std::os::unix::fs::symlink("src", scratch("link")).unwrap();
    fs::create_dir(scratch("dst")).unwrap();
    fs::write(scratch("file"), "1").unwrap();
    fs::write(scratch("other"), "22").unwrap();
    copied("missing", "no", "q", default()).await;
    copied("dir", "src", "copy", default()).await;
    copied("recursive", "src", "copy", recursive()).await;
    let mode = fs::metadata(scratch("copy/deep/o"))
        .unwrap()
        .permissions()
        .mode()
        & 0o777;
    let tree = names("copy").replace("deep", &format!("deep deep/{}", names("copy/deep")));
    log(format!("{tree} {mode:o}"));
    copied("again", "src", "copy", recursive()).await;
    let strict = || CpOptions {
        force: false,
        error_on_exist: true,
        ..recursive()
    };
    copied("again exists", "src", "copy", strict()).await;
    copied("self", "src", "src", recursive()).await;
    copied("below", "src", "src/deep/x", recursive()).await;
    copied("dir to file", "src", "file", recursive()).await;
    copied("file to dir", "file", "dst", default()).await;
    copied("exists", "file", "other", strict()).await;
    copied(
        "kept",
        "file",
        "other",
        CpOptions {
            force: false,
            ..default()
        },
    )
    .await;
    text("other");
    copied("forced", "file", "other", default()).await;
    text("other");
    copied("parents", "file", "q/w/e", default()).await;
    text("q/w/e");
    let target = |name: &str| {
        fs::read_link(scratch(name))
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    copied("link", "link", "link2", default()).await;
    log(clean(&target("link2")));
    copied(
        "verbatim",
        "link",
        "link3",
        CpOptions {
            verbatim_symlinks: true,
            ..default()
        },
    )
    .await;
    log(target("link3"));
    copied(
        "dereference",
        "link",
        "link4",
        CpOptions {
            dereference: true,
            ..recursive()
        },
    )
    .await;
    log(fs::symlink_metadata(scratch("link4"))
        .unwrap()
        .is_dir()
        .to_string());
    copied("link again", "link", "link2", default()).await;
    let filter = |keeps: fn(&Path, &Path) -> bool| CpOptions {
        filter: Some(Rc::new(keeps)),
        ..recursive()
    };
    copied(
        "filter",
        "src",
        "f",
        filter(|from, _| !from.ends_with("deep")),
    )
    .await;
    log(names("f"));
    copied("filter all", "src", "g", filter(|_, _| false)).await;
    log(scratch("g").exists().to_string());
    fifo("fifo");
    copied("fifo", "fifo", "fo", default()).await;
    for (place, target) in [("l1", "../src"), ("l2", "../src/deep")] {
        fs::create_dir(scratch(place)).unwrap();
        std::os::unix::fs::symlink(target, scratch(place).join("s")).unwrap();
    }
    copied("link below", "l1", "l2", recursive()).await;
    copied("link above", "l2", "l1", recursive()).await;
    p::utimes(scratch("file"), time(1000), time(1_600_000_000_000))
        .await
        .unwrap();
    copied(
        "times",
        "file",
        "times",
        CpOptions {
            preserve_timestamps: true,
            ..default()
        },
    )
    .await;
    log(p::stat(scratch("times"))
        .await
        .unwrap()
        .mtime_ms()
        .to_string());
    let called = Promise::new(|deferred| {
        files::cp(scratch("no"), scratch("q"), move |result| {
            deferred.resolve(result.unwrap_err())
        });
    });
    log(format!("cb {}", called.await.unwrap().code().unwrap()));
    let called = Promise::new(|deferred| {
        files::cp(scratch("file"), scratch("cb"), move |result| {
            deferred.resolve(result.is_ok())
        });
    });
    assert!(called.await.unwrap());
    log("cb null");
}

async fn glob() {
    for name in [
        "a.js",
        "b.ts",
        ".hid.js",
        "src/m.js",
        "src/n.txt",
        "src/deep/o.js",
        "src/deep/.p/q.js",
        "z/x1.js",
        "A.JS",
    ] {
        fs::create_dir_all(scratch(name).parent().unwrap()).unwrap();
        fs::write(scratch(name), "").unwrap();
    }
    std::os::unix::fs::symlink("src", scratch("link")).unwrap();
    let options = || GlobOptions::default().cwd(scratch(""));
    let sorted = |found: Vec<std::path::PathBuf>| {
        let mut found: Vec<_> = found
            .iter()
            .map(|path| path.to_str().unwrap().to_owned())
            .collect();
        found.sort();
        found.join(" ")
    };
    for pattern in [
        "*.js",
        "**/*.js",
        "**",
        "src/*",
        "src/**",
        "{a,b}.*",
        "*.{js,ts}",
        "[ab].*",
        "[!a].*",
        "[a-c].*",
        "?.ts",
        "src/**/o.js",
        "**/deep",
        "./*.js",
        "src/../*.js",
        "*/",
        "**/",
        ".*",
        "nothing*",
        "src",
        "no",
        "link/**",
        "src/deep/",
        "src/m.js/",
        "**/.p/**",
        "**/**/*.js",
        "src/**/**",
        "{src,z}/*.{js,txt}",
        "*/*/*",
    ] {
        let found = p::glob_with([pattern], options()).await.unwrap();
        log(format!("{pattern} {}", sorted(found)));
    }
    let exclude = options().exclude(|name| name.ends_with("deep"));
    log(sorted(p::glob_with(["**/*.js"], exclude).await.unwrap()));
    log(sorted(
        p::glob_with(["*.js", "*.ts", "a.*"], options())
            .await
            .unwrap(),
    ));
    let called = Promise::new(|deferred| {
        files::glob_with(["*.ts"], options(), move |found| {
            deferred.resolve(found.unwrap())
        });
    });
    log(format!("cb null {}", sorted(called.await.unwrap())));
}
