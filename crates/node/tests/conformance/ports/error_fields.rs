//! 920: the fields of the errors of sockets, processes, files and datagram sockets.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use phaseloop_node::child_process::{Shell, SpawnOptions, spawn, spawn_with};
use phaseloop_node::dgram;
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::fs::{self, Access, FileHandle, RmOptions, promises};
use phaseloop_node::net::{self, Address, CONNECT, ConnectOptions, LISTENING, Server, Socket};
use phaseloop_node::{Deferred, Emitter, Error, Promise, catch};

use crate::support::{log, scratch};

super::ports! {
    Real "920-error-fields" => error_fields,
}

const ELSEWHERE: [u8; 4] = [1, 2, 3, 4];

/// Replaces each run of characters that begins behind `head` and has at least `least`.
fn replaced(text: &str, head: &str, least: usize, is_part: fn(char) -> bool, by: &str) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(head) {
        let start = at + head.len();
        let tail = &rest[start..];
        let size = tail.find(|c| !is_part(c)).unwrap_or(tail.len());
        done += &rest[..start];
        done += match size >= least {
            true => by,
            false => &tail[..size],
        };
        rest = &tail[size..];
    }
    done + rest
}

fn plain(text: &str) -> String {
    let directory = scratch("x").parent().unwrap().display().to_string();
    let text = text.replace(&directory, "DIR");
    let text = replaced(&text, ":", 5, |c| c.is_ascii_digit(), "PORT");
    let text = replaced(&text, "/tmp/", 50, |c| c == 'x', "LONG");
    replaced(&text, "/nx", 6, |c| c.is_ascii_alphanumeric(), "RANDOM")
}

fn show(name: &str, e: &Error) {
    let text = |known: Option<String>| known.unwrap_or_else(|| "-".to_owned());
    let path = |known: Option<&Path>| known.map(|path| path.display().to_string());
    let (address, at) = match e.address() {
        // As in Node, any port is none.
        Some(address) if address.port() == 0 => (None, Some(address.ip().to_string())),
        Some(address) => {
            let port = match address.port() {
                10_000.. => "PORT".to_owned(),
                port => port.to_string(),
            };
            (Some(format!("{}!{port}", address.ip())), None)
        }
        None => (None, path(e.path())),
    };
    let fields = [
        e.name().to_owned(),
        text(e.code().map(str::to_owned)),
        text(e.errno().map(|errno| errno.to_string())),
        text(e.syscall().map(str::to_owned)),
        text(address),
        text(at),
        text(path(e.target())),
        e.message().to_owned(),
    ];
    log(plain(&format!("{name} {}", fields.join("|"))));
}

fn failed(emitter: &impl Emitter) -> Promise<Error> {
    Promise::new(|deferred| {
        emitter.once(ERROR, move |error: &Error| deferred.resolve(error.clone()));
    })
}

async fn shows(name: &str, emitter: impl Emitter) {
    show(name, &failed(&emitter).await.unwrap());
}

/// Shows the error that a callback gets.
async fn called<T: 'static>(name: &str, call: impl FnOnce(Box<dyn FnOnce(Result<T, Error>)>)) {
    let deferred = Deferred::new();
    let promise = deferred.promise();
    call(Box::new(move |result| {
        deferred.resolve(result.err().unwrap());
    }));
    show(name, &promise.await.unwrap());
}

fn thrown<T>(name: &str, f: impl FnOnce() -> T) {
    match catch(f) {
        Ok(_) => log(format!("{name} fine")),
        Err(reason) => show(name, reason.downcast_ref().unwrap()),
    }
}

async fn rejected<T: Clone + 'static>(name: &str, promise: Promise<T>) {
    let reason = promise.await.err().unwrap();
    show(name, reason.downcast_ref().unwrap());
}

fn loopback(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

async fn listening(address: impl Into<Address>) -> Server {
    let server = Server::new();
    let listens = once(&server, LISTENING);
    server.listen(address.into());
    listens.await.unwrap();
    server
}

fn listen(address: impl Into<Address>) -> Server {
    let server = Server::new();
    server.listen(address.into());
    server
}

fn connect_from(address: SocketAddr, local: impl Into<std::net::IpAddr>, port: u16) -> Socket {
    let socket = Socket::new();
    let options = ConnectOptions {
        local_address: Some(local.into()),
        local_port: port,
        ..ConnectOptions::default()
    };
    socket.connect_with_options(address, options);
    socket
}

async fn error_fields() {
    std::fs::write(scratch("file"), "").unwrap();
    sockets().await;
    processes().await;
    files().await;
    datagrams().await;
}

async fn sockets() {
    let long = PathBuf::from(format!("/tmp/{}", "x".repeat(200)));
    shows("refused", net::connect(loopback(1))).await;
    shows("refused-6", net::connect(("::1", 1))).await;
    shows("unreachable", net::connect(("255.255.255.255", 1))).await;
    let all = ([255, 255, 255, 255], 1).into();
    shows("from-loopback", connect_from(all, [127, 0, 0, 1], 0)).await;
    shows("missing", net::connect(scratch("x"))).await;
    shows("no-socket", net::connect(scratch("file"))).await;
    shows("too-long", net::connect(long.clone())).await;
    let (s, t) = (listening(scratch("s")).await, listening(loopback(0)).await);
    let port = t.address().unwrap().port();
    shows("in-use-path", listen(scratch("s"))).await;
    shows("no-directory", listen(scratch("no").join("s"))).await;
    shows("listen-too-long", listen(long)).await;
    shows("in-use", listen(loopback(port))).await;
    shows("not-ours", listen(("1.2.3.4", 1234))).await;
    shows("not-ours-any", listen(("1.2.3.4", 0))).await;
    thrown("listens-twice", || s.listen(scratch("s2")));
    thrown("listens-twice-tcp", || t.listen(loopback(0)));
    shows("local-port", connect_from(loopback(port), ELSEWHERE, 99)).await;
    let c = net::connect(loopback(port));
    c.on(ERROR, |_| ());
    once(&c, CONNECT).await.unwrap();
    c.end(());
    called("after-end", |done| _ = c.write_with("x", done)).await;
    c.destroy(None);
    let c = Socket::new();
    c.on(ERROR, |_| ());
    called("unconnected", |done| _ = c.write_with("x", done)).await;
    called("not-running", |done| Server::new().close_with_result(done)).await;
    s.close();
    t.close();
}

fn with(change: impl FnOnce(&mut SpawnOptions)) -> SpawnOptions {
    let mut options = SpawnOptions::default();
    change(&mut options);
    options
}

async fn processes() {
    shows("spawn-missing", spawn("xyz-none", ["a"])).await;
    shows("spawn-forbidden", spawn(scratch("file"), [])).await;
    let nowhere = with(|options| options.cwd = Some(scratch("no")));
    shows("spawn-nowhere", spawn_with("true", [], nowhere)).await;
    thrown("spawn-in-file", || spawn(scratch("file").join("x"), []));
    let big = "x".repeat(1 << 20);
    thrown("spawn-too-big", || spawn("true", [&*big]));
    let nul = "a\0b";
    thrown("spawn-nul", || spawn(nul, []));
    thrown("spawn-nul-argument", || spawn("true", ["x", nul]));
    let refused = |name, change: fn(&mut SpawnOptions)| {
        thrown(name, || spawn_with("true", [], with(change)));
    };
    refused("spawn-nul-cwd", |options| options.cwd = Some("a\0b".into()));
    refused("spawn-nul-env", |options| {
        options.env = Some(vec![("A".into(), "a\0b".into())]);
    });
    refused("spawn-nul-argv0", |options| {
        options.argv0 = Some("a\0b".into());
    });
    refused("spawn-nul-shell", |options| {
        options.shell = Some("a\0b".into());
    });
    thrown("spawn-empty", || spawn("", []));
    let shell = with(|options| options.shell = Some(Shell::System));
    thrown("spawn-empty-shell", || spawn_with("", [], shell));
}

async fn files() {
    let (file, no, other) = (scratch("file"), scratch("no"), scratch("n2"));
    let directory = file.parent().unwrap().to_owned();
    let second = UNIX_EPOCH + Duration::from_secs(1);
    rejected("open", promises::open(&no, "r")).await;
    rejected("open-in-file", promises::open(file.join("x"), "r")).await;
    rejected("open-new", promises::open(&file, "wx")).await;
    rejected("read-directory", promises::read_file(&directory)).await;
    rejected("write-directory", promises::append_file(&directory, "x")).await;
    rejected("mkdir", promises::mkdir(&directory)).await;
    rejected("rmdir", promises::rmdir(&directory)).await;
    rejected("unlink", promises::unlink(&no)).await;
    rejected("rename", promises::rename(&no, &other)).await;
    rejected("copy", promises::copy_file(&no, &other)).await;
    rejected("link", promises::link(&no, &other)).await;
    rejected("symlink", promises::symlink("x", &file)).await;
    rejected("readlink", promises::readlink(&file)).await;
    rejected("realpath", promises::realpath(&no)).await;
    rejected("readdir", promises::readdir(&file)).await;
    rejected("rm", promises::rm(&no, RmOptions::default())).await;
    rejected(
        "rm-directory",
        promises::rm(&directory, RmOptions::default()),
    )
    .await;
    rejected("cp-into-itself", promises::cp(&directory, &other)).await;
    rejected("utimes", promises::utimes(&no, second, second)).await;
    rejected("mkdtemp", promises::mkdtemp(no.join("nx"))).await;
    rejected("access", promises::access(&no, Access::EXISTS)).await;
    rejected("statfs", promises::statfs(&no)).await;
    let handle = promises::open(&file, "r").await.unwrap();
    rejected("write-readonly", handle.write("x", None)).await;
    rejected("truncate-readonly", handle.truncate(1)).await;
    handle.close().await.unwrap();
    closed_file(&handle).await;
    shows("read-stream", fs::create_read_stream(&no)).await;
    let stream = fs::create_read_stream(&directory);
    stream.resume();
    shows("read-stream-directory", stream).await;
    shows("write-stream", fs::create_write_stream(no.join("x"))).await;
}

async fn closed_file(handle: &FileHandle) {
    let second = UNIX_EPOCH + Duration::from_secs(1);
    rejected("closed-read", handle.read(1, Some(0))).await;
    rejected("closed-write", handle.write("x", None)).await;
    rejected("closed-stat", handle.stat()).await;
    rejected("closed-utimes", handle.utimes(second, second)).await;
    rejected("closed-truncate", handle.truncate(1)).await;
    rejected("closed-sync", handle.sync()).await;
    rejected("closed-datasync", handle.datasync()).await;
    rejected("closed-readfile", handle.read_file()).await;
    rejected("closed-writefile", handle.write_file("x")).await;
}

async fn datagrams() {
    let u = dgram::Socket::new();
    u.bind((ELSEWHERE, 1).into());
    shows("udp-not-ours", u.clone()).await;
    u.bind((ELSEWHERE, 0).into());
    shows("udp-not-ours-any", u.clone()).await;
    let bound = once(&u, LISTENING);
    u.bind(loopback(0));
    bound.await.unwrap();
    let v = dgram::Socket::new();
    v.bind(u.address().unwrap());
    shows("udp-in-use", v.clone()).await;
    thrown("udp-bound", || u.bind(loopback(0)));
    called("udp-too-big", |done| {
        u.send_with(&[0; 70_000], loopback(1), done)
    })
    .await;
    thrown("udp-port-0", || u.send(b"x", loopback(0)));
    thrown("udp-connect-port-0", || u.connect(loopback(0)));
    thrown("udp-not-connected", || u.disconnect());
    thrown("udp-ttl", || u.set_ttl(0));
    let group = ELSEWHERE.into();
    thrown("udp-member", || {
        u.add_membership(group, dgram::Interface::Any)
    });
    u.close();
    thrown("udp-closed", || u.send(b"x", loopback(1)));
    thrown("udp-closed-twice", || u.close());
    v.close();
}
