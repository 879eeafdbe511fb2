//! The open descriptors of a child, R261–R264, and its user, R267: standard descriptors,
//! descriptors at chosen numbers, users and groups.
//!
//! Ours differs: standard descriptors that are not set are inherited, as with the standard library,
//! and pipes are pipes.
#![cfg(all(target_os = "linux", feature = "process"))]

use crate::util::child::{in_child, path_of};
use crate::util::panics::panic_of;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::Output;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream, UnixStream};
use phaseloop::process::{Command, Stdio};
use phaseloop::{block_on, fs, io, spawn};
use rustix::pipe::PipeFlags;

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// A pipe for blocking use: its reading end and its writing end.
fn pipe() -> (File, File) {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    (reader.into(), writer.into())
}

fn read(mut file: File) -> String {
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    text
}

async fn text_of(command: &mut Command) -> String {
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("phaseloop-{name}-{}", std::process::id()))
}

/// What became of a test that runs in a process of its own.
#[track_caller]
fn assert_passed(child: std::process::Child) -> Output {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    output
}

// The standard ones.

#[test]
fn r261_libuv_spawn_ignored_stdio() {
    block_on(async {
        let status = sh("read line && exit 1; echo out; echo err >&2")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.await.unwrap().success());
        let text = text_of(&mut sh("readlink /proc/self/fd/0")).await;
        assert_eq!(text, "/dev/null\n", "`output` leaves the input empty");
    });
}

#[test]
fn libuv_spawn_stdout_to_file_and_both_to_one_file() {
    let path = temporary("both");
    block_on(async {
        let file = File::create(&path).unwrap();
        let both = file.try_clone().unwrap();
        let mut command = sh("echo out; echo err >&2");
        let status = command.stdout(file).stderr(both).status();
        assert!(status.await.unwrap().success());
    });
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "out\nerr\n");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn libuv_spawn_same_stdout_stderr() {
    block_on(async {
        let (mut reader, writer) = io::pipe().unwrap();
        let writer = writer.into_owned_fd().unwrap();
        let twin = writer.try_clone().unwrap();
        let mut command = sh("echo out; echo err >&2");
        let mut child = command.stdout(writer).stderr(twin).spawn().unwrap();
        // The command holds what it was given.
        drop(command);
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "out\nerr\n");
        assert!(child.wait().await.unwrap().success());
    });
}

/// The test's own standard error is a pipe; its child's output goes there, its errors to where the
/// test's output goes.
#[test]
fn r263_libuv_spawn_stdout_and_stderr_to_file_swap_and_file2() {
    let test = "r263_libuv_spawn_stdout_and_stderr_to_file_swap_and_file2";
    let child = in_child(&[], test, || {
        block_on(async {
            let status = sh("echo inherited >&2").status().await;
            assert!(status.unwrap().success());
            let mut command = sh("echo swapped; echo lost >&2");
            let status = command
                .stdout(std::io::stderr())
                .stderr(std::io::stdout())
                .status();
            assert!(status.await.unwrap().success());
        });
    });
    if let Some(child) = child {
        let output = assert_passed(child);
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "inherited\nswapped\n"
        );
    }
}

#[test]
fn libuv_spawn_closed_process_io() {
    let wrapper = ["sh", "-c", "exec \"$@\" <&-", "sh"];
    let child = in_child(&wrapper, "libuv_spawn_closed_process_io", || {
        block_on(async {
            let mut command = Command::new("cat");
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            drop(child.stdin.take());
            assert!(child.wait().await.unwrap().success());
        });
    });
    child.map(assert_passed);
}

#[test]
fn libuv_spawn_inherit_streams() {
    block_on(async {
        // A socket of the loop's is the child's input, one end of a pipe of the loop's its output.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let theirs = theirs.into_std();
        theirs.set_nonblocking(false).unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let mut command = Command::new("cat");
        command
            .stdin(OwnedFd::from(theirs))
            .stdout(writer.into_owned_fd().unwrap());
        let mut child = command.spawn().unwrap();
        drop(command);
        AsyncWriteExt::write_all(&mut &ours, b"through")
            .await
            .unwrap();
        ours.shutdown(net::Shutdown::Write).unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "through");
        assert!(child.wait().await.unwrap().success());
    });
}

/// The child accepts on a listener that is its standard input.
#[test]
fn libuv_spawn_tcp_server() {
    const MARK: &str = "PHASELOOP_TEST_SERVER";
    let test = "libuv_spawn_tcp_server";
    if std::env::var_os(MARK).is_some() {
        let listener = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
        let (mut stream, _) = net::TcpListener::from(listener).accept().unwrap();
        stream.write_all(b"served by a child").unwrap();
        return;
    }
    block_on(async {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", &path_of(test)])
            .env(MARK, "1")
            .stdin(OwnedFd::from(listener));
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "served by a child");
        assert!(child.wait().await.unwrap().success());
    });
}

// At chosen numbers.

#[test]
fn libuv_spawn_stdio_greater_than_3() {
    block_on(async {
        let (reader, writer) = pipe();
        let (input, mut feed) = pipe();
        feed.write_all(b"fed").unwrap();
        drop(feed);
        let mut command = sh("cat <&4 >&3");
        let status = command.fd(3, writer).fd(4, input).status();
        assert!(status.await.unwrap().success());
        drop(command);
        assert_eq!(read(reader), "fed");
    });
}

/// Each under the number that the other has in this process.
#[test]
fn r263_descriptors_that_swap_their_numbers() {
    block_on(async {
        let ((one, to_one), (two, to_two)) = (pipe(), pipe());
        let (at_one, at_two) = (to_one.as_raw_fd(), to_two.as_raw_fd());
        let script =
            format!("echo one > /proc/self/fd/{at_one}; echo two > /proc/self/fd/{at_two}");
        let mut command = sh(&script);
        command.fd(at_two, to_one).fd(at_one, to_two);
        for _ in 0..2 {
            assert!(command.status().await.unwrap().success());
        }
        drop(command);
        assert_eq!(read(one), "two\ntwo\n");
        assert_eq!(read(two), "one\none\n");
    });
}

#[test]
fn a_descriptor_at_its_own_number_and_one_at_a_number_that_is_taken() {
    block_on(async {
        let ((one, to_one), (two, to_two)) = (pipe(), pipe());
        let taken = File::open("/dev/null").unwrap();
        let (own, other) = (to_one.as_raw_fd(), taken.as_raw_fd());
        let script = format!("echo own > /proc/self/fd/{own}; echo other > /proc/self/fd/{other}");
        let mut command = sh(&script);
        assert!(
            command
                .fd(own, to_one)
                .fd(other, to_two)
                .status()
                .await
                .unwrap()
                .success()
        );
        drop(command);
        assert_eq!(read(one), "own\n");
        assert_eq!(read(two), "other\n");
        // Nothing has changed here.
        assert!(taken.metadata().is_ok());
    });
}

#[test]
fn bad_numbers() {
    block_on(async {
        for number in [-1, 0, 2] {
            let file = File::open("/dev/null").unwrap();
            let text = panic_of(|| {
                Command::new("true")
                    .fd(number, file)
                    .as_std()
                    .get_args()
                    .len()
            });
            assert!(text.contains(&number.to_string()), "{text}");
        }
        let file = File::open("/dev/null").unwrap();
        let error = Command::new("true").fd(i32::MAX, file).spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    });
}

/// A program that cannot be loaded is reported although the numbers are those that the report would
/// have got.
#[test]
fn a_failed_start_is_reported_with_every_low_number_chosen() {
    let test = "a_failed_start_is_reported_with_every_low_number_chosen";
    let child = in_child(&[], test, || {
        block_on(async {
            let files: Vec<_> = (0..8).map(|_| File::open("/dev/null").unwrap()).collect();
            let twins: Vec<_> = files.iter().map(|file| file.try_clone().unwrap()).collect();
            // Free as soon as the twins are closed.
            let numbers: Vec<_> = twins.iter().map(AsRawFd::as_raw_fd).collect();
            drop(twins);
            let mut command = Command::new("/no/such/program");
            for (number, file) in numbers.into_iter().zip(files) {
                command.fd(number, file);
            }
            assert_eq!(command.spawn().unwrap_err().kind(), ErrorKind::NotFound);
        });
    });
    child.map(assert_passed);
}

/// R264, libuv's `spawn_fs_open`: nothing that is open here is open there, while other threads open
/// and start as well.
#[test]
fn r264_libuv_spawn_fs_open_nothing_is_inherited_by_accident() {
    fn numbers(text: &str) -> BTreeSet<i32> {
        text.lines().map(|line| line.parse().unwrap()).collect()
    }
    // What this process was itself given by accident, and the directory that `ls` reads.
    let plain = std::process::Command::new("ls")
        .arg("/proc/self/fd")
        .output()
        .unwrap();
    let plain = numbers(&String::from_utf8(plain.stdout).unwrap());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let plain = plain.clone();
            std::thread::spawn(move || {
                block_on(async {
                    for _ in 0..15 {
                        let _pipe = io::pipe().unwrap();
                        let _pair = UnixStream::pair().unwrap();
                        let _socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
                        let _read = spawn(fs::read("/proc/self/stat"));
                        for fork in [false, true] {
                            let mut command = Command::new("ls");
                            let text = text_of(command.arg("/proc/self/fd").setsid(fork)).await;
                            assert_eq!(numbers(&text), plain);
                        }
                        let (_reader, writer) = pipe();
                        let mut command = Command::new("ls");
                        let text = text_of(command.arg("/proc/self/fd").fd(99, writer)).await;
                        let mut expected = plain.clone();
                        expected.insert(99);
                        assert_eq!(numbers(&text), expected);
                    }
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

// The pipes of one child as the descriptors of another.

#[test]
fn the_output_of_a_child_is_the_input_of_the_next() {
    block_on(async {
        // More than a pipe holds: the reader blocks, and so must its descriptor.
        let script = "i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done; sleep 0.1";
        let mut first = sh(script).stdout(Stdio::piped()).spawn().unwrap();
        let output: Stdio = first.stdout.take().unwrap().try_into().unwrap();
        let mut count = Command::new("wc");
        assert_eq!(
            text_of(count.arg("-c").stdin(output)).await.trim(),
            "220000"
        );
        assert!(first.wait().await.unwrap().success());
    });
}

#[test]
fn the_error_and_the_input_of_a_child_go_to_others() {
    block_on(async {
        let mut first = sh("echo oops >&2").stderr(Stdio::piped()).spawn().unwrap();
        let error = Stdio::try_from(first.stderr.take().unwrap()).unwrap();
        assert_eq!(text_of(Command::new("cat").stdin(error)).await, "oops\n");
        first.wait().await.unwrap();

        let mut last = Command::new("cat");
        let mut last = last
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = Stdio::try_from(last.stdin.take().unwrap()).unwrap();
        let status = sh("echo hello").stdout(input).status().await.unwrap();
        assert!(status.success());
        let output = last.wait_with_output().await.unwrap();
        assert_eq!(
            output.stdout, b"hello\n",
            "EOF came with the end of the writer"
        );
    });
}

#[test]
fn what_was_read_is_gone_and_what_was_not_is_passed_on() {
    block_on(async {
        let (reader, writer) = io::pipe().unwrap();
        assert_eq!(writer.try_write(b"0123456789").unwrap(), 10);
        let mut start = [0; 4];
        assert_eq!(reader.try_read(&mut start).unwrap(), 4);
        drop(writer);
        let rest = Stdio::try_from(reader).unwrap();
        assert_eq!(text_of(Command::new("cat").stdin(rest)).await, "456789");
    });
}

#[test]
fn a_writer_that_was_closed_is_no_descriptor_for_a_child() {
    block_on(async {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.close().await.unwrap();
        let error = Stdio::try_from(writer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        // One without a reader is passed on: its child meets the end.
        let (_, writer) = io::pipe().unwrap();
        drop(reader);
        let no_reader = Stdio::try_from(writer).unwrap();
        let status = sh("trap '' PIPE; echo hello 2>/dev/null")
            .stdout(no_reader)
            .status()
            .await
            .unwrap();
        assert!(!status.success());
    });
}

#[test]
fn a_pipe_that_is_passed_on_leaves_no_descriptor_here() {
    let test = "a_pipe_that_is_passed_on_leaves_no_descriptor_here";
    let child = in_child(&[], test, || {
        block_on(async {
            let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
            let before = open();
            for _ in 0..10 {
                let mut first = sh("echo hello").stdout(Stdio::piped()).spawn().unwrap();
                let output = Stdio::try_from(first.stdout.take().unwrap()).unwrap();
                assert_eq!(text_of(Command::new("cat").stdin(output)).await, "hello\n");
                first.wait().await.unwrap();
            }
            assert_eq!(open(), before);
        });
    });
    child.map(assert_passed);
}

// Users and groups.

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn r267_libuv_spawn_setuid_setgid() {
    if !is_root() {
        return;
    }
    block_on(async {
        let script = "echo $(id -u) $(id -g) $(id -G)";
        let text = text_of(sh(script).uid(65534).gid(12345)).await;
        assert_eq!(text, "65534 12345 12345\n", "further groups are dropped");
        let text = text_of(sh(script).gid(12345)).await;
        assert_eq!(text, "0 12345 12345\n");
        let text = text_of(sh(script).uid(65534).gid(12345).groups(&[7, 8])).await;
        assert_eq!(text, "65534 12345 12345 7 8\n");
    });
}

#[test]
fn r267_libuv_spawn_setuid_fails_and_setgid_fails() {
    let body = || {
        block_on(async {
            let change: [fn(&mut Command) -> &mut Command; 3] =
                [|c| c.uid(0), |c| c.gid(0), |c| c.groups(&[0])];
            for change in change {
                let error = change(&mut Command::new("true")).spawn().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
            }
        });
    };
    if !is_root() {
        return body();
    }
    let wrapper = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let child = in_child(
        &wrapper,
        "r267_libuv_spawn_setuid_fails_and_setgid_fails",
        body,
    );
    child.map(assert_passed);
}
