//! The paused clock beside peers outside of the loop: it waits for them in real time, up to a limit,
//! and does not wait for peers inside the loop.

use std::future::Future;
use std::io::{Read, Write};
#[cfg(unix)]
use std::os::unix::net::UnixStream as StdUnixStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::util::sockets::local_pair;
use crate::util::trace::ms;
use futures::channel::oneshot;
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use phaseloop::fs::watch;
#[cfg(unix)]
use phaseloop::io::pipe;
use phaseloop::io::{PollEvents, PollHandle, Source};
use phaseloop::net::{TcpListener, TcpStream, UdpSocket};
#[cfg(unix)]
use phaseloop::net::{UnixListener, UnixStream};
#[cfg(unix)]
use phaseloop::process::{Command, Stdio};
#[cfg(unix)]
use phaseloop::signal::{SignalKind, Signals};
use phaseloop::time::{Timer, advance, auto_advance, now, sleep, timeout};
use phaseloop::{Builder, Handle, LoopHandle, spawn};

const TEN_SECONDS: Duration = Duration::from_secs(10);
/// How long a peer outside takes to answer, in real time.
const ANSWER: Duration = Duration::from_millis(300);

/// Runs on a paused clock. The limits of the tests are for the outside; a hang fails them.
fn run<T>(limit: Duration, future: impl Future<Output = T>) -> T {
    let builder = Builder::new().start_paused(true);
    let event_loop = builder.outside_timeout(limit).build().unwrap();
    event_loop.block_on(future)
}

/// Awaits what comes from outside, with a time-out on the paused clock that would be over at once.
async fn in_time<T>(answer: impl Future<Output = T>) -> T {
    let start = now();
    let answer = timeout(TEN_SECONDS, answer).await;
    assert_eq!(now() - start, Duration::ZERO, "the clock stands meanwhile");
    answer.expect("the answer comes before the clock jumps")
}

/// A thread that accepts one connection, reads a request, and answers it late.
fn slow_server() -> (std::net::SocketAddr, thread::JoinHandle<()>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let mut request = [0; 8];
        while let Ok(count @ 1..) = peer.read(&mut request) {
            thread::sleep(ANSWER);
            // A client that does not wait may be gone.
            if peer.write_all(&request[..count]).is_err() {
                break;
            }
        }
    });
    (address, server)
}

#[test]
fn a_read_gets_the_answer_of_a_thread_that_takes_its_time() {
    let (address, server) = slow_server();
    run(Duration::MAX, async {
        let mut stream = in_time(TcpStream::connect(address)).await.unwrap();
        for _ in 0..2 {
            stream.write_all(b"question").await.unwrap();
            let mut answer = [0; 8];
            in_time(stream.read_exact(&mut answer)).await.unwrap();
            assert_eq!(&answer, b"question");
        }
    });
    server.join().unwrap();
}

#[test]
fn an_accept_gets_the_connection_of_a_thread_that_takes_its_time() {
    run(Duration::MAX, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = thread::spawn(move || {
            thread::sleep(ANSWER);
            std::net::TcpStream::connect(address).unwrap()
        });
        in_time(listener.accept()).await.unwrap();
        client.join().unwrap();
    });
}

#[cfg(unix)]
#[test]
fn a_child_process_is_awaited_and_so_is_what_it_writes() {
    run(Duration::MAX, async {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 0.3; echo written; sleep 0.3"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut line = [0; 8];
        in_time(output.read_exact(&mut line)).await.unwrap();
        assert_eq!(&line, b"written\n");
        assert!(in_time(child.wait()).await.unwrap().success());
    });
}

#[test]
fn datagrams_of_a_thread_are_awaited_with_and_without_a_peer() {
    run(Duration::MAX, async {
        for is_connected in [true, false] {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            if is_connected {
                socket.connect(peer.local_addr().unwrap()).await.unwrap();
            }
            let address = socket.local_addr().unwrap();
            let sender = thread::spawn(move || {
                thread::sleep(ANSWER);
                peer.send_to(b"late", address).unwrap();
            });
            let mut buffer = [0; 8];
            let (length, _) = in_time(socket.recv_from(&mut buffer)).await.unwrap();
            assert_eq!(&buffer[..length], b"late");
            sender.join().unwrap();
        }
    });
}

#[cfg(unix)]
#[test]
fn the_other_end_of_a_pair_or_of_a_pipe_in_a_thread_is_awaited() {
    run(Duration::MAX, async {
        let (near, mut far) = StdUnixStream::pair().unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        let peer = thread::spawn(move || {
            thread::sleep(ANSWER);
            far.write_all(b"pair").unwrap();
            thread::sleep(ANSWER);
            writer.write_all(b"pipe").unwrap();
        });
        let mut bytes = [0; 4];
        let mut near = UnixStream::from_std(near).unwrap();
        in_time(near.read_exact(&mut bytes)).await.unwrap();
        let reader = phaseloop::io::PipeReader::from_fd(reader).unwrap();
        in_time((&reader).read_exact(&mut bytes)).await.unwrap();
        assert_eq!(&bytes, b"pipe");
        peer.join().unwrap();
    });
}

#[test]
fn a_source_and_a_poll_handle_of_a_foreign_descriptor_are_awaited() {
    run(Duration::MAX, async {
        let (near, mut far) = local_pair();
        let polled = near.try_clone().unwrap();
        let peer = thread::spawn(move || {
            for _ in 0..2 {
                thread::sleep(ANSWER);
                far.write_all(b"x").unwrap();
            }
        });
        let handle = LoopHandle::current();
        {
            let source = Source::new(&handle, near).unwrap();
            in_time(source.readable()).await.unwrap();
            (&mut source.get_ref()).read_exact(&mut [0]).unwrap();
        }
        let (reported, is_readable) = oneshot::channel();
        let mut reported = Some(reported);
        let poll = PollHandle::new(&handle, polled).unwrap();
        poll.start(PollEvents::READABLE, move |poll, _| {
            poll.stop();
            reported.take().map(|reported| reported.send(()));
        })
        .unwrap();
        in_time(is_readable).await.unwrap();
        peer.join().unwrap();
    });
}

#[test]
fn a_peer_that_never_answers_ends_in_a_time_out_when_the_patience_is_used_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    run(ms(50), async {
        let mut stream = TcpStream::connect(silent.local_addr().unwrap())
            .await
            .unwrap();
        let (start, real) = (now(), Instant::now());
        let read = timeout(Duration::from_secs(86_400), stream.read(&mut [0; 8])).await;
        assert!(read.is_err());
        assert_eq!(now() - start, Duration::from_secs(86_400));
        assert!(real.elapsed() >= ms(50), "the loop was patient");
        // The limit has passed, and the reader below begins no wait: the loop asks the kernel
        // once a day, and not once more to wait.
        let reader = spawn(async move { stream.read(&mut [0; 8]).await });
        sleep(ms(1)).await;
        let before = LoopHandle::current().metrics();
        for _ in 0..365 {
            sleep(Duration::from_secs(86_400)).await;
        }
        let polls = LoopHandle::current().metrics().since(&before).kernel_polls;
        assert!(polls < 2 * 365, "{polls} waits");
        reader.abort();
    });
}

#[test]
fn every_answer_and_every_request_renews_the_patience() {
    let (address, server) = slow_server();
    run(ms(2000), async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        assert!(
            timeout(TEN_SECONDS, stream.read(&mut [0; 8]))
                .await
                .is_err()
        );
        // Together longer than the limit.
        for _ in 0..8 {
            stream.write_all(b"question").await.unwrap();
            in_time(stream.read_exact(&mut [0; 8])).await.unwrap();
        }
    });
    server.join().unwrap();
}

#[test]
fn no_patience_lets_the_clock_jump_at_once() {
    let (address, server) = slow_server();
    run(Duration::ZERO, async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"question").await.unwrap();
        assert!(
            timeout(TEN_SECONDS, stream.read(&mut [0; 8]))
                .await
                .is_err()
        );
    });
    server.join().unwrap();
}

/// Sleeps on the paused clock. A loop that waits meanwhile makes the test hang: its limit has no
/// end, and a year is longer than any test takes.
async fn long_sleep() {
    const YEAR: Duration = Duration::from_secs(365 * 86_400);
    let start = now();
    sleep(YEAR).await;
    assert_eq!(now() - start, YEAR);
}

#[test]
fn peers_inside_the_loop_do_not_hold_the_clock() {
    run(Duration::MAX, async {
        let directory = std::env::temp_dir();
        let path = directory.join(format!("phaseloop-outside-{}", std::process::id()));
        let mut readers = Vec::new();
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address).await else {
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let host = if address.starts_with('[') {
                "::1"
            } else {
                "127.0.0.1"
            };
            let client = TcpStream::connect((host, port)).await.unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            // The next connection is not accepted yet.
            let waiting = TcpStream::connect((host, port)).await.unwrap();
            for mut stream in [client, accepted, waiting] {
                readers.push(spawn(async move { drop(stream.read(&mut [0; 8]).await) }));
            }
            let listener = spawn(async move {
                let _one = listener.accept().await;
                drop(listener.accept().await);
            });
            readers.push(listener);
        }
        #[cfg(unix)]
        let held = {
            let listener = UnixListener::bind(&path).unwrap();
            for _ in 0..2 {
                let client = UnixStream::connect(&path).await.unwrap();
                let (accepted, _) = listener.accept().await.unwrap();
                for mut stream in [client, accepted] {
                    readers.push(spawn(async move { drop(stream.read(&mut [0; 8]).await) }));
                }
            }
            let (one, other) = UnixStream::pair().unwrap();
            for mut stream in [one, other] {
                readers.push(spawn(async move { drop(stream.read(&mut [0; 8]).await) }));
            }
            let (reader, writer) = pipe().unwrap();
            readers.push(spawn(
                async move { drop((&reader).read(&mut [0; 8]).await) },
            ));
            (listener, writer)
        };
        let (here, there) = (
            UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        );
        here.connect(there.local_addr().unwrap()).await.unwrap();
        for socket in [here, there] {
            readers.push(spawn(
                async move { drop(socket.recv_from(&mut [0; 8]).await) },
            ));
        }
        long_sleep().await;
        assert!(readers.iter().all(|reader| !reader.is_finished()));
        readers.iter().for_each(|reader| reader.abort());
        #[cfg(unix)]
        drop(held);
        drop(std::fs::remove_file(path));
    });
}

// The kernel of Windows reports an event later than the call that has caused it.
#[test]
fn what_a_peer_inside_the_loop_sends_arrives_before_the_clock_jumps() {
    run(Duration::MAX, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for _ in 0..20 {
            let (client, server) = futures::future::join(
                in_time(TcpStream::connect(address)),
                in_time(listener.accept()),
            )
            .await;
            let (mut client, (mut server, _)) = (client.unwrap(), server.unwrap());
            for _ in 0..5 {
                client.write_all(b"question").await.unwrap();
                in_time(server.read_exact(&mut [0; 8])).await.unwrap();
                server.write_all(b"answer").await.unwrap();
                in_time(client.read_exact(&mut [0; 6])).await.unwrap();
            }
            drop(server);
            let end = in_time(client.read(&mut [0; 1])).await;
            assert_eq!(end.unwrap(), 0);
        }
    });
}

#[cfg(unix)]
#[test]
fn one_outside_client_among_inside_clients_of_a_unix_listener_is_awaited() {
    run(Duration::MAX, async {
        let name = format!("phaseloop-mixed-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listener = UnixListener::bind(&path).unwrap();
        let inside = UnixStream::connect(&path).await.unwrap();
        let _accepted = listener.accept().await.unwrap();
        let target = path.clone();
        let peer = thread::spawn(move || {
            let mut stream = StdUnixStream::connect(target).unwrap();
            thread::sleep(ANSWER);
            stream.write_all(b"outside").unwrap();
        });
        let (mut accepted, _) = listener.accept().await.unwrap();
        in_time(accepted.read_exact(&mut [0; 7])).await.unwrap();
        peer.join().unwrap();
        drop(inside);
        std::fs::remove_file(path).unwrap();
    });
}

#[test]
fn a_lone_listener_holds_the_clock_once() {
    run(ms(50), async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let real = Instant::now();
        assert!(timeout(TEN_SECONDS, listener.accept()).await.is_err());
        assert!(real.elapsed() >= ms(50), "a client may come");
        let before = LoopHandle::current().metrics();
        for _ in 0..200 {
            assert!(timeout(TEN_SECONDS, listener.accept()).await.is_err());
        }
        let polls = LoopHandle::current().metrics().since(&before).kernel_polls;
        assert!(polls < 2 * 200, "no client came in {polls} waits");
    });
}

#[cfg(unix)]
#[test]
fn signals_and_watches_and_unreferenced_handles_do_not_hold_the_clock() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    run(Duration::MAX, async {
        let mut signals = Signals::new([SignalKind::USR2]).unwrap();
        let signal = spawn(async move { signals.next().await });
        let mut watcher = watch(std::env::temp_dir().join("..")).unwrap();
        let change = spawn(async move { drop(watcher.next().await) });
        let mut stream = TcpStream::connect(silent.local_addr().unwrap())
            .await
            .unwrap();
        stream.unref();
        let reader = spawn(async move { drop(stream.read(&mut [0; 8]).await) });
        long_sleep().await;
        signal.abort();
        change.abort();
        reader.abort();
    });
}

#[test]
fn without_auto_advance_only_a_call_moves_the_clock() {
    let builder = Builder::new().start_paused(true).auto_advance(false);
    builder.build().unwrap().block_on(async {
        let (reported, by_timer) = oneshot::channel();
        let mut reported = Some(reported);
        let timer = Timer::new(&LoopHandle::current());
        let on_time = move |_: &Timer| _ = reported.take().map(|reported| reported.send(()));
        timer.start(TEN_SECONDS, Duration::ZERO, on_time).unwrap();
        let (sender, from_thread) = oneshot::channel();
        let peer = thread::spawn(move || {
            thread::sleep(ANSWER);
            sender.send(()).unwrap();
        });
        from_thread.await.unwrap();
        assert!(timer.is_active(), "the clock stood while the loop was idle");
        peer.join().unwrap();
        advance(TEN_SECONDS).await;
        by_timer.await.unwrap();
        auto_advance(true);
        long_sleep().await;
    });
}
