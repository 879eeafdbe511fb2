//! 310–319: files and directories with options.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::SystemTime;

use futures::StreamExt;
use phaseloop_node::fs::promises as p;
use phaseloop_node::fs::{
    self, Access, CopyOptions, FileHandle, Flags, MkdirOptions, ReadFileOptions, ReaddirOptions,
    RmOptions, WriteFileOptions,
};
use phaseloop_node::string_decoder::Encoding;
use phaseloop_node::{AbortController, Deferred, Error, Reason};

use crate::support::{log, scratch as tmp};

super::ports! {
    Real "430-fs-words" => words,
    Real "431-fs-directories" => directories,
    Real "432-fs-file-handle" => file_handle,
}

/// Without the scratch directory.
fn cut(text: impl Display) -> String {
    let root = tmp("");
    let root = root.to_str().unwrap().trim_end_matches('/');
    text.to_string().replace(root, "")
}

fn error_of(reason: &Reason) -> &Error {
    reason.error().unwrap().downcast_ref().unwrap()
}

/// `name|code|message`.
fn said(name: &str, error: &Error) {
    let code = error.code().unwrap();
    log(cut(format!("{name}|{code}|{}", error.message())));
}

/// Logs how a promise ends, then how the function with a callback does.
macro_rules! try_both {
    ($name:expr, $function:ident($($argument:expr),*)) => {
        match p::$function($($argument),*).await {
            Ok(_) => log(format!("{}|undefined", $name)),
            Err(reason) => said($name, error_of(&reason)),
        }
        let called = Deferred::new();
        let promise = called.promise();
        fs::$function($($argument,)* move |result| {
            let name = format!("{}.cb", $name);
            match result {
                Ok(_) => log(format!("{name}|undefined")),
                Err(error) => said(&name, &error),
            }
            called.resolve(());
        });
        promise.await.unwrap();
    };
}

async fn words() {
    std::fs::write(tmp("file"), "abc").unwrap();
    std::fs::create_dir(tmp("dir")).unwrap();
    let rm = RmOptions::default();
    let forced = RmOptions { force: true, ..rm };
    let exclusive = || WriteFileOptions {
        flag: "wx".into(),
        ..Default::default()
    };
    let then = SystemTime::UNIX_EPOCH;
    try_both!("access", access(tmp("no"), Access::EXISTS));
    try_both!("lstat", lstat(tmp("no")));
    try_both!("readlink", readlink(tmp("no")));
    try_both!("readlinkFile", readlink(tmp("file")));
    try_both!("chmod", chmod(tmp("no"), 0o600));
    try_both!("truncate", truncate(tmp("no"), 1));
    try_both!("truncateDir", truncate(root(), 1));
    try_both!("mkdir", mkdir(tmp("file")));
    try_both!("mkdirDeep", mkdir_with(tmp("a/b"), MkdirOptions::default()));
    try_both!("rm", rm(tmp("no"), rm));
    try_both!("rmForce", rm(tmp("no"), forced));
    try_both!("rmDir", rm(tmp("dir"), rm));
    try_both!("rmUnder", rm(tmp("file/x"), rm));
    try_both!("rmdir", rmdir(tmp("file")));
    try_both!("readdir", readdir(tmp("no")));
    try_both!(
        "readdirFile",
        readdir_with(tmp("file"), ReaddirOptions::default())
    );
    try_both!("opendir", opendir(tmp("no")));
    try_both!("opendirFile", opendir(tmp("file")));
    try_both!("open", open(tmp("no"), "r"));
    try_both!("openExclusive", open(tmp("file"), "wx"));
    try_both!("openDir", open_with_mode(root(), "w", 0o600));
    try_both!("writeFile", write_file(tmp("no/x"), "a"));
    try_both!(
        "writeFileExclusive",
        write_file_with(tmp("file"), "a", exclusive())
    );
    try_both!("appendFile", append_file(tmp("no/x"), "a"));
    try_both!("readFile", read_file(tmp("no")));
    try_both!("readFileDir", read_file_text(root(), Encoding::Utf8));
    try_both!("unlink", unlink(tmp("no")));
    try_both!("utimes", utimes(tmp("no"), then, then));
    try_both!("symlink", symlink(tmp("no"), tmp("file")));
    try_both!("link", link(tmp("no"), tmp("q")));
    try_both!("rename", rename(tmp("no"), tmp("q")));
    try_both!("copyFile", copy_file(tmp("no"), tmp("q")));
    said(
        "realpath",
        error_of(&p::realpath(tmp("no")).await.unwrap_err()),
    );
    let stopped = AbortController::new();
    stopped.abort();
    let signal = || Some(stopped.signal());
    let options = ReadFileOptions {
        signal: signal(),
        ..Default::default()
    };
    aborted(p::read_file_with(tmp("file"), options).await.unwrap_err());
    let options = WriteFileOptions {
        signal: signal(),
        ..Default::default()
    };
    aborted(
        p::write_file_with(tmp("file"), "x", options)
            .await
            .unwrap_err(),
    );
}

fn root() -> PathBuf {
    tmp("dir").parent().unwrap().to_owned()
}

fn aborted(reason: Reason) {
    let error = error_of(&reason);
    let (name, code) = (error.name(), error.code().unwrap());
    log(format!("aborted|{name}|{code}|{}", error.message()));
}

async fn directories() {
    let deep = MkdirOptions {
        recursive: true,
        ..Default::default()
    };
    for path in ["a/b/c", "a/b/c", "a/b/./d//e/"] {
        let made = p::mkdir_with(tmp(path), deep).await.unwrap();
        let made = made.map_or("undefined".to_owned(), |path| cut(path.display()));
        log(format!("made|{made}"));
    }
    std::fs::write(tmp("a/file"), "x").unwrap();
    std::fs::write(tmp("a/b/1"), "").unwrap();
    std::os::unix::fs::symlink("file", tmp("a/link")).unwrap();
    said(
        "file",
        error_of(&p::mkdir_with(tmp("a/file"), deep).await.unwrap_err()),
    );
    said(
        "below",
        error_of(&p::mkdir_with(tmp("a/file/x/y"), deep).await.unwrap_err()),
    );
    let private = MkdirOptions {
        mode: 0o700,
        ..Default::default()
    };
    p::mkdir_with(tmp("m"), private).await.unwrap();
    log(format!("mode|{:o}", mode_of("m").await));
    let entries = p::readdir_with(tmp("a"), ReaddirOptions::default())
        .await
        .unwrap();
    for e in entries {
        let parent = cut(e.parent_path().display());
        log(format!(
            "entry|{}|{parent}|{}|{}|{}",
            e.name().to_string_lossy(),
            e.is_file(),
            e.is_directory(),
            e.is_symbolic_link()
        ));
    }
    let (read, all) = (Deferred::new(), ReaddirOptions { recursive: true });
    let promise = read.promise();
    fs::readdir_with(tmp("a"), all, move |all| {
        for e in all.unwrap() {
            log(format!(
                "deep|{}|{}",
                cut(e.parent_path().display()),
                e.name().to_string_lossy()
            ));
        }
        read.resolve(());
    });
    promise.await.unwrap();
    let rm = RmOptions {
        recursive: true,
        ..Default::default()
    };
    p::rm(tmp("a/link"), RmOptions::default()).await.unwrap();
    log(format!("link|{}", tmp("a/file").exists()));
    p::rm(tmp("a"), rm).await.unwrap();
    log(format!("gone|{}", !tmp("a").exists()));
    said("again", error_of(&p::rm(tmp("a"), rm).await.unwrap_err()));
    p::rm(tmp("a"), RmOptions { force: true, ..rm })
        .await
        .unwrap();
    let made = p::mkdtemp(tmp("t-")).await.unwrap();
    log(format!(
        "temp|{}|{}",
        cut(made.display()).len(),
        made.is_dir()
    ));
    let dir = p::opendir(tmp("m")).await.unwrap();
    let first = dir.read().await.unwrap();
    log(format!(
        "dir|{}|{}",
        cut(dir.path().display()),
        first.map_or("null", |_| "an entry")
    ));
    dir.close().await.unwrap();
    said("read", error_of(&dir.read().await.unwrap_err()));
    said("close", error_of(&dir.close().await.unwrap_err()));
    std::fs::write(tmp("m/one"), "").unwrap();
    let mut entries = p::opendir(tmp("m")).await.unwrap();
    while let Some(e) = entries.next().await {
        let e = e.unwrap();
        log(format!(
            "each|{}|{}",
            e.name().to_string_lossy(),
            e.is_file()
        ));
    }
    let real = p::realpath(tmp("m/../m/./one")).await.unwrap();
    log(format!("real|{}", cut(real.display())));
}

async fn mode_of(name: &str) -> u32 {
    let metadata = p::stat(tmp(name)).await.unwrap();
    metadata.mode() & 0o777
}

async fn file_handle() {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    p::write_file(tmp("f"), "abcdef").await.unwrap();
    let h = p::open(tmp("f"), "r+").await.unwrap();
    for (size, position) in [(2, None), (2, None), (2, Some(1)), (9, None)] {
        log(format!(
            "read|{}",
            text(h.read(size, position).await.unwrap())
        ));
    }
    log(format!("end|{}", h.read(9, None).await.unwrap().len()));
    log(format!("wrote|{}", h.write("XY", Some(1)).await.unwrap()));
    log(format!("wrote|{}", h.write("!", None).await.unwrap()));
    log(format!("size|{}", h.stat().await.unwrap().size()));
    h.truncate(3).await.unwrap();
    log(format!(
        "file|{}",
        p::read_file_text(tmp("f"), Encoding::Utf8).await.unwrap()
    ));
    h.chmod(0o640).await.unwrap();
    log(format!("mode|{:o}", mode_of("f").await));
    h.sync().await.unwrap();
    h.datasync().await.unwrap();
    h.close().await.unwrap();
    said("closed", error_of(&h.read(1, Some(0)).await.unwrap_err()));
    said("closed", error_of(&h.stat().await.unwrap_err()));
    h.close().await.unwrap();
    log("closed twice");
    let r = p::open(tmp("f"), "r").await.unwrap();
    said("write", error_of(&r.write("x", None).await.unwrap_err()));
    said("cut", error_of(&r.truncate(1).await.unwrap_err()));
    log(format!("all|{}", text(r.read_file().await.unwrap())));
    r.close().await.unwrap();
    let w = p::open(tmp("f"), "w").await.unwrap();
    said("read", error_of(&w.read(1, Some(0)).await.unwrap_err()));
    w.write_file("one").await.unwrap();
    w.write_file("two").await.unwrap();
    w.close().await.unwrap();
    log(format!(
        "file|{}",
        p::read_file_text(tmp("f"), Encoding::Latin1).await.unwrap()
    ));
    for flag in ["a", "a+", "ax", "w+", "wx", "r+", "as", "rs+"] {
        let options = WriteFileOptions {
            flag: flag.into(),
            ..Default::default()
        };
        match p::write_file_with(tmp("f"), flag, options).await {
            Ok(()) => log(format!("ok|{flag}")),
            Err(reason) => log(format!("{}|{flag}", error_of(&reason).code().unwrap())),
        }
    }
    log(format!(
        "file|{}",
        p::read_file_text(tmp("f"), Encoding::Utf8).await.unwrap()
    ));
    for flag in ["ax", "wx", "ax+", "wx+", "a", "r+"] {
        let options = WriteFileOptions {
            flag: flag.into(),
            mode: 0o600,
            ..Default::default()
        };
        let name = format!("n{flag}");
        match p::write_file_with(tmp(&name), flag, options).await {
            Ok(()) => log(format!("ok|{flag}|{:o}", mode_of(&name).await)),
            Err(reason) => log(format!("{}|{flag}", error_of(&reason).code().unwrap())),
        }
    }
    said("bad", &"zz".parse::<Flags>().unwrap_err());
    p::append_file(tmp("f"), "+").await.unwrap();
    p::copy_file(tmp("f"), tmp("g")).await.unwrap();
    let exclusive = CopyOptions::new().exclusive(true);
    let copied = p::copy_file_with(tmp("f"), tmp("g"), exclusive).await;
    log(format!(
        "copy|{}",
        error_of(&copied.unwrap_err()).code().unwrap()
    ));
    p::link(tmp("g"), tmp("h")).await.unwrap();
    p::symlink("h", tmp("l")).await.unwrap();
    log(format!(
        "link|{}|{}|{}",
        p::readlink(tmp("l")).await.unwrap().display(),
        p::lstat(tmp("l")).await.unwrap().is_symbolic_link(),
        p::stat(tmp("l")).await.unwrap().nlink()
    ));
    p::access(tmp("l"), Access::READ | Access::WRITE)
        .await
        .unwrap();
    p::chmod(tmp("h"), 0).await.unwrap();
    log(format!("mode|{}", mode_of("g").await));
    fs::open(tmp("f"), "r", |file| read_and_close(file.unwrap()));
}

fn read_and_close(file: FileHandle) {
    fs::read(&file.clone(), 2, Some(0), move |bytes| {
        log(format!("cb|{}", String::from_utf8(bytes.unwrap()).unwrap()));
        fs::close(&file, |closed| {
            closed.unwrap();
            log("cb|null");
        });
    });
}
