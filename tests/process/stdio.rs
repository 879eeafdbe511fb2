//! Standard streams of every kind, R215 and R209: read and written without blocking the loop, their
//! mode left alone.
#![cfg(target_os = "linux")]

use crate::util::child::path_of;
use crate::util::pty::open_pty;
use crate::util::screen::read_until;
use crate::util::trace::{finish, ms, paused};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use futures::future::{Either, select};
use futures::{AsyncReadExt, AsyncWriteExt, FutureExt};
use phaseloop::io::{StdioKind, copy, stderr, stdin, stdout};
use phaseloop::{Handle, block_on, phase, time};
use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;

/// Starts the test named `test` once more in a process with these standard streams, where it runs
/// `body` and does not return.
fn child(test: &str, stdin: Stdio, stdout: Stdio, body: impl FnOnce()) -> Child {
    const MARK: &str = "PHASELOOP_STDIO_CHILD";
    if std::env::var_os(MARK).is_some() {
        body();
        std::process::exit(0);
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &path_of(test), "--nocapture", "-q"])
        .env(MARK, "1")
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn();
    child.unwrap()
}

/// What the test runner of the child prints before the test runs.
const PREAMBLE: &str = "\nrunning 1 test\n";

fn check(child: Child) -> Vec<u8> {
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    output.stdout
}

fn is_nonblocking(descriptor: impl AsFd) -> bool {
    let flags = rustix::fs::fcntl_getfl(descriptor).unwrap();
    flags.contains(OFlags::NONBLOCK)
}

fn system_pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap()
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// A file with this content, which is removed from its directory at once.
fn file(test: &str, content: &[u8]) -> File {
    let path = path(test);
    fs::write(&path, content).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file
}

fn path(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("phaseloop-{}-stdio-{test}", std::process::id()))
}

#[test]
fn r215_what_a_descriptor_is() {
    let of = |descriptor: &OwnedFd| StdioKind::of(descriptor);
    let (reader, writer) = system_pipe();
    assert_eq!([of(&reader), of(&writer)], [StdioKind::Pipe; 2]);
    let (controller, terminal) = open_pty();
    assert_eq!(StdioKind::of(&controller), StdioKind::Terminal);
    assert_eq!(of(&terminal), StdioKind::Terminal);
    let file = file("r215", b"");
    assert_eq!(StdioKind::of(&file), StdioKind::File);
    let null = File::open("/dev/null").unwrap();
    assert_eq!(StdioKind::of(&null), StdioKind::Device);
    let (one, _other) = UnixStream::pair().unwrap();
    assert_eq!(StdioKind::of(&one), StdioKind::Unix);
    let (client, _server) = tcp_pair();
    assert_eq!(StdioKind::of(&client), StdioKind::Tcp);
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(StdioKind::of(&udp), StdioKind::Udp);
    let directory = File::open("/").unwrap();
    assert_eq!(StdioKind::of(&directory), StdioKind::Unknown);
    let counter = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
    assert_eq!(of(&counter), StdioKind::Unknown);
}

/// Copies standard input to standard output, byte by byte the same whatever they are.
fn cat(kind: StdioKind) {
    block_on(async {
        let (stdin, stdout) = (stdin().unwrap(), stdout().unwrap());
        assert_eq!(stdin.kind(), kind);
        assert_eq!(stdin.is_terminal(), kind == StdioKind::Terminal);
        copy(&stdin, &stdout).await.unwrap();
        stdin.close().await;
        stdout.close_now().await;
        stderr().unwrap().write_all(b"done").await.unwrap();
    });
}

fn large() -> Vec<u8> {
    (0..300_000_u32).map(|n| (n % 251) as u8).collect()
}

fn after_preamble(output: &[u8]) -> &[u8] {
    output.strip_prefix(PREAMBLE.as_bytes()).unwrap()
}

#[test]
fn from_a_file_to_a_pipe() {
    let stdin = file("from_a_file", &large());
    let child = child(
        "from_a_file_to_a_pipe",
        stdin.into(),
        Stdio::piped(),
        || cat(StdioKind::File),
    );
    assert!(after_preamble(&check(child)) == large());
}

#[test]
fn from_a_pipe_to_a_file() {
    let output = file("from_a_pipe", b"");
    let mut child = child(
        "from_a_pipe_to_a_file",
        Stdio::piped(),
        output.try_clone().unwrap().into(),
        || cat(StdioKind::Pipe),
    );
    child.stdin.take().unwrap().write_all(&large()).unwrap();
    check(child);
    let mut written = Vec::new();
    // The offset is shared with the child: from the beginning.
    let mut again = File::open(format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&output)
    ))
    .unwrap();
    again.read_to_end(&mut written).unwrap();
    assert!(after_preamble(&written) == large());
}

#[test]
fn from_null_to_null() {
    let child = child("from_null_to_null", Stdio::null(), Stdio::null(), || {
        cat(StdioKind::Device);
    });
    assert_eq!(check(child), b"");
}

fn through_sockets(test: &str, kind: StdioKind, ours: OwnedFd, theirs: OwnedFd) {
    let child = child(
        test,
        theirs.try_clone().unwrap().into(),
        theirs.into(),
        || cat(kind),
    );
    let sender = thread::spawn({
        let ours = UnixStream::from(ours.try_clone().unwrap());
        move || {
            (&ours).write_all(&large()).unwrap();
            ours.shutdown(std::net::Shutdown::Write).unwrap();
        }
    });
    let mut received = Vec::new();
    File::from(ours).read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    check(child);
    assert!(after_preamble(&received) == large());
}

#[test]
fn through_a_unix_socket() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let test = "through_a_unix_socket";
    through_sockets(test, StdioKind::Unix, ours.into(), theirs.into());
}

#[test]
fn through_a_tcp_socket() {
    let (ours, theirs) = tcp_pair();
    let test = "through_a_tcp_socket";
    through_sockets(test, StdioKind::Tcp, ours.into(), theirs.into());
}

/// Two lines that are there before the first read: each read returns one, and the second needs no
/// event of its own.
#[test]
fn r209_a_terminal_is_opened_again_and_keeps_its_mode() {
    let (controller, terminal) = open_pty();
    let shared = terminal.try_clone().unwrap();
    (&controller).write_all(b"one\ntwo\n\x04").unwrap();
    let child = child(
        "r209_a_terminal_is_opened_again_and_keeps_its_mode",
        terminal.try_clone().unwrap().into(),
        terminal.into(),
        || cat(StdioKind::Terminal),
    );
    // The echo, the runner's words, then what the program copied.
    let text = read_until(&controller, "1 test\r\none\r\ntwo\r\n");
    assert!(text.starts_with("one\r\ntwo\r\n"), "{text:?}");
    check(child);
    assert!(!is_nonblocking(&shared));
}

/// While the child waits for input, its parent looks at the open files that they share.
#[test]
fn nobody_elses_mode_changes_and_the_loop_does_not_block() {
    let test = "nobody_elses_mode_changes_and_the_loop_does_not_block";
    let ends = || {
        let (pipe, pipe_writer) = system_pipe();
        let (unix, unix_writer) = UnixStream::pair().unwrap();
        let (controller, terminal) = open_pty();
        [
            (pipe, pipe_writer),
            (unix.into(), unix_writer.into()),
            (terminal, controller.into()),
        ]
    };
    for (stdin_end, writer) in ends() {
        let (mut report, report_writer) = {
            let (reader, writer) = system_pipe();
            (File::from(reader), writer)
        };
        let shared = [
            stdin_end.try_clone().unwrap(),
            report_writer.try_clone().unwrap(),
        ];
        let child = child(test, stdin_end.into(), report_writer.into(), || {
            block_on(async {
                let (stdin, stdout) = (stdin().unwrap(), stdout().unwrap());
                let mut buffer = [0; 16];
                let mut reader = &stdin;
                let read = reader.read(&mut buffer);
                let timer = time::sleep(ms(5));
                let Either::Right(((), read)) = select(read, timer).await else {
                    panic!("there is nothing to read yet");
                };
                (&stdout).write_all(b"waiting\n").await.unwrap();
                let count = read.await.unwrap();
                assert_eq!(&buffer[..count], b"go\n");
            });
        });
        let mut text = String::new();
        while !text.ends_with("waiting\n") {
            let mut byte = [0];
            report.read_exact(&mut byte).unwrap();
            text.push(byte[0].into());
        }
        assert!(!is_nonblocking(&shared[0]) && !is_nonblocking(&shared[1]));
        // Not closed yet: a terminal that hangs up drops what was not read.
        let writer = File::from(writer);
        (&writer).write_all(b"go\n").unwrap();
        check(child);
        assert!(!is_nonblocking(&shared[0]) && !is_nonblocking(&shared[1]));
    }
}

/// A job of the pool that has begun cannot be taken back; what it reads is for the next reader, of
/// whatever handle.
#[test]
fn a_read_that_is_given_up_loses_nothing() {
    let test = "a_read_that_is_given_up_loses_nothing";
    let content = b"0123456789abcdef";
    let body = || {
        block_on(async {
            let mut read = Vec::new();
            loop {
                let stdin = stdin().unwrap();
                let mut buffer = [0; 4];
                let at_once = (&stdin).read(&mut buffer).now_or_never();
                // Bytes that an earlier job has left, or else the read is dropped.
                if let Some(count) = at_once {
                    read.extend_from_slice(&buffer[..count.unwrap()]);
                }
                for _ in 0..read.len() % 3 {
                    // So that the job ends before, while and after its reader goes.
                    phase::check().await;
                }
                drop(stdin);
                let again = self::stdin().unwrap();
                let mut buffer = [0; 3];
                let count = (&again).read(&mut buffer).await.unwrap();
                if count == 0 {
                    break;
                }
                read.extend_from_slice(&buffer[..count]);
            }
            assert_eq!(read, content);
        });
    };
    check(child(
        test,
        file("given_up", content).into(),
        Stdio::null(),
        body,
    ));
}

#[test]
fn two_handles_share_what_comes() {
    let test = "two_handles_share_what_comes";
    let content: Vec<u8> = (0..200).collect();
    let expected = content.clone();
    let (reader, writer) = system_pipe();
    File::from(writer).write_all(&content).unwrap();
    let inputs = [Stdio::from(file("two_handles", &content)), reader.into()];
    for input in inputs {
        let child = child(test, input, Stdio::null(), || {
            block_on(async {
                let (one, other) = (stdin().unwrap(), stdin().unwrap());
                let read_all = async |stdin: &phaseloop::io::Stdin| {
                    let mut read = Vec::new();
                    let mut byte = [0];
                    let mut reader = stdin;
                    while reader.read(&mut byte).await.unwrap() > 0 {
                        read.push(byte[0]);
                        phaseloop::task::yield_now().await;
                    }
                    read
                };
                let (mut all, rest) = futures::future::join(read_all(&one), read_all(&other)).await;
                all.extend(rest);
                all.sort_unstable();
                assert_eq!(all, expected);
            });
        });
        check(child);
    }
}

#[test]
fn a_full_pipe_does_not_block_the_loop() {
    let test = "a_full_pipe_does_not_block_the_loop";
    let mut child = child(test, Stdio::null(), Stdio::piped(), || {
        block_on(async {
            let stdout = stdout().unwrap();
            let bytes = large();
            let mut writer = &stdout;
            let write = std::pin::pin!(writer.write_all(&bytes));
            let Either::Right(((), write)) = select(write, time::sleep(ms(5))).await else {
                panic!("nothing reads yet");
            };
            stderr().unwrap().write_all(b"full").await.unwrap();
            write.await.unwrap();
        });
    });
    let mut full = [0; 4];
    child
        .stderr
        .as_mut()
        .unwrap()
        .read_exact(&mut full)
        .unwrap();
    assert_eq!(&full, b"full");
    assert!(after_preamble(&check(child)) == large());
}

#[test]
fn a_reader_that_goes_breaks_standard_output() {
    let test = "a_reader_that_goes_breaks_standard_output";
    let mut child = child(test, Stdio::piped(), Stdio::piped(), || {
        block_on(async {
            let (mut stdin, mut stdout) = (stdin().unwrap(), stdout().unwrap());
            stdin.read_to_end(&mut Vec::new()).await.unwrap();
            let error = stdout.write_all(b"x").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        });
    });
    let mut preamble = vec![0; PREAMBLE.len()];
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut preamble).unwrap();
    drop(output);
    drop(child.stdin.take());
    check(child);
}

/// A named pipe whose writer has closed it does not report EOF to a reader that opens it then.
#[test]
fn a_named_pipe_without_a_writer_is_at_its_end() {
    let test = "a_named_pipe_without_a_writer_is_at_its_end";
    let path = path("fifo");
    let in_child = std::env::var_os("PHASELOOP_STDIO_CHILD").is_some();
    let input = if in_child {
        Stdio::null()
    } else {
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, 0o600.into(), 0).unwrap();
        let mut both = File::options().read(true).write(true).open(&path).unwrap();
        let reader = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        both.write_all(b"last words").unwrap();
        reader.into()
    };
    let child = child(test, input, Stdio::piped(), || cat(StdioKind::Pipe));
    assert_eq!(after_preamble(&check(child)), b"last words");
}

#[test]
fn unrefd_standard_input_does_not_keep_the_loop() {
    let test = "unrefd_standard_input_does_not_keep_the_loop";
    let mut child = child(test, Stdio::piped(), Stdio::null(), || {
        let (mut event_loop, ..) = paused();
        let stdin = event_loop.enter(|| stdin().unwrap());
        let handle = event_loop.handle();
        let task = handle.spawn({
            let stdin = std::rc::Rc::new(stdin);
            stdin.unref();
            async move { (&*stdin).read(&mut [0; 8]).await }
        });
        finish(&mut event_loop);
        drop(task);
    });
    let keep = child.stdin.take();
    check(child);
    drop(keep);
}
