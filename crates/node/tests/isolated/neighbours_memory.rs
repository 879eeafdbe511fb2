//! What pipes of children, datagrams, channels, ports, interfaces, files, agents, pipelines, signals
//! and timers leave behind when they are given up. Each test is in a process of its own.
#![cfg(all(target_os = "linux", feature = "tls"))]

use crate::left::{closing, descriptors, isolated, leaves_nothing, until};
use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::pin::pin;
use std::rc::Rc;

use futures::StreamExt as _;
use phaseloop::phase;
use phaseloop::signal::SignalKind;
use phaseloop_node::child_process::{self, fork, spawn};
use phaseloop_node::events::{self, ERROR, Event, EventEmitter, once};
use phaseloop_node::http::{self, Agent, RequestOptions};
use phaseloop_node::net::LISTENING;
use phaseloop_node::stream::{Readable, Transform, Writable, pipeline};
use phaseloop_node::timers::promises;
use phaseloop_node::tls::{self, ServerContext};
use phaseloop_node::worker_threads::{MessageChannel, Worker};
use phaseloop_node::{
    AbortController, AbortSignal, Deferred, Emitter, Error, dgram, fs, readline, set_timeout, sleep,
};

const CERTIFICATE: &[u8] = include_bytes!("../../../../tests/util/certificates/server.pem");
const KEY: &[u8] = include_bytes!("../../../../tests/util/certificates/server.key");

/// More than a pipe takes.
const LARGE: usize = 1 << 20;

#[test]
fn a_child_that_is_killed_frees_what_waits_for_its_stdin() {
    let test = "a_child_that_is_killed_frees_what_waits_for_its_stdin";
    isolated(test, || async {
        let (number, failed) = (Cell::new(0), Rc::new(Cell::new(0)));
        leaves_nothing(30, async || {
            let stage = number.replace(number.get() + 1) % 3;
            let child = spawn("sleep", ["1000"]);
            let closed = closing(&child);
            let stdin = child.stdin().unwrap();
            let held = child.clone();
            stdin.on(ERROR, move |_| drop(held.clone()));
            for _ in 0..2 {
                let (count, held) = (failed.clone(), child.clone());
                stdin.write_with(vec![b'x'; LARGE], move |result| {
                    assert!(result.is_err());
                    count.set(count.get() + usize::from(held.pid().is_some()));
                });
            }
            stdin.end(());
            phase::check().await;
            if stage == 1 {
                let open = descriptors();
                stdin.destroy(None);
                assert_eq!(
                    descriptors(),
                    open - 1,
                    "the pipe is closed inside the call"
                );
            }
            if stage == 2 {
                child.stdout().unwrap().destroy(None);
            }
            assert!(child.kill(SignalKind::KILL));
            closed.await.unwrap();
        })
        .await;
        assert_eq!(failed.get(), 2 * number.get());
    });
}

#[test]
fn a_channel_that_is_left_frees_its_messages() {
    isolated("a_channel_that_is_left_frees_its_messages", || async {
        let number = Cell::new(0);
        leaves_nothing(30, async || {
            let stage = number.replace(number.get() + 1) % 3;
            let child = fork("sleep", ["1000"]);
            let closed = closing(&child);
            child.on(ERROR, |_| ());
            for _ in 0..3 {
                let held = child.clone();
                child.send_with("x".repeat(LARGE), move |_| drop(held));
            }
            phase::check().await;
            if stage == 1 {
                child.disconnect();
            }
            child.kill(SignalKind::KILL);
            if stage == 2 {
                child.disconnect();
            }
            closed.await.unwrap();
        })
        .await;
    });
}

#[test]
fn sends_of_a_closed_datagram_socket_are_freed() {
    isolated("sends_of_a_closed_datagram_socket_are_freed", || async {
        let number = Cell::new(0);
        leaves_nothing(300, async || {
            let stage = number.replace(number.get() + 1) % 4;
            let (socket, to) = (dgram::Socket::new(), "127.0.0.1:9".parse().unwrap());
            let closed = closing(&socket);
            socket.on(ERROR, |_| ());
            let send = |socket: &dgram::Socket| {
                let held = socket.clone();
                socket.send_with(&[b'x'; 9000], to, move |_| drop(held));
            };
            match stage {
                0 => send(&socket),
                1 => socket.bind("127.0.0.1:0".parse().unwrap()),
                2 => {
                    socket.connect(to);
                    phase::check().await;
                    socket.send_to_peer_with(&[b'x'; 9000], |_| ());
                }
                _ => {
                    socket.bind("127.0.0.1:0".parse().unwrap());
                    phase::check().await;
                    send(&socket);
                    let open = descriptors();
                    socket.close();
                    assert_eq!(descriptors(), open - 1, "it is closed inside the call");
                }
            }
            if stage < 3 {
                socket.close();
            }
            closed.await.unwrap();
        })
        .await;
    });
}

#[test]
fn messages_of_a_closed_port_are_freed() {
    isolated("messages_of_a_closed_port_are_freed", || async {
        let number = Cell::new(0);
        leaves_nothing(200, async || {
            let stage = number.replace(number.get() + 1) % 4;
            let channel = MessageChannel::<Vec<u8>, Vec<u8>>::new();
            let (one, two) = (channel.port1, channel.port2);
            let closed = closing(&two);
            for _ in 0..3 {
                one.post_message(vec![b'x'; 64 << 10]);
                two.post_message(vec![b'x'; 64 << 10]);
            }
            match stage {
                0 => {
                    two.on_message(|_| ());
                    one.close();
                }
                1 => {
                    let held = two.clone();
                    two.on_message(move |_| held.close());
                }
                2 => {
                    let detached = one.detach();
                    drop(detached);
                    two.close();
                }
                _ => two.close(),
            }
            closed.await.unwrap();
            drop(one);
        })
        .await;
    });
}

#[test]
fn messages_of_a_terminated_worker_are_freed() {
    isolated("messages_of_a_terminated_worker_are_freed", || async {
        let number = Cell::new(0);
        leaves_nothing(30, async || {
            let stage = number.replace(number.get() + 1) % 3;
            let worker = Worker::<Vec<u8>, Vec<u8>>::new(move |port| async move {
                for _ in 0..3 {
                    port.post_message(vec![b'x'; 64 << 10]);
                }
                let held = port.clone();
                port.on_message(move |_| drop(held.clone()));
                if stage != 2 {
                    sleep(1_000_000).await.unwrap();
                }
                port.close();
            })
            .unwrap();
            let held = worker.clone();
            worker.on_message(move |_| drop(held.clone()));
            for _ in 0..3 {
                worker.post_message(vec![b'x'; 64 << 10]);
            }
            if stage == 1 {
                once(&worker, phaseloop_node::worker_threads::ONLINE)
                    .await
                    .unwrap();
            }
            worker.terminate().await.unwrap();
        })
        .await;
    });
}

#[test]
fn an_interface_that_closes_frees_its_question() {
    isolated("an_interface_that_closes_frees_its_question", || async {
        let number = Cell::new(0);
        let controller = AbortController::new();
        leaves_nothing(500, async || {
            let stage = number.replace(number.get() + 1) % 6;
            let input = Readable::bytes().build();
            let rl = readline::create_interface(&input);
            let held = rl.clone();
            match stage {
                0 => rl.question("? ", move |_| drop(held)).unwrap(),
                1 => {
                    let signal = controller.signal();
                    rl.question_with_signal("? ", &signal, move |_| drop(held))
                        .unwrap();
                }
                2 => drop(readline::promises::question(&rl, "? ")),
                3 => {
                    let signal = controller.signal();
                    drop(readline::promises::question_with_signal(&rl, "? ", &signal));
                }
                4 => drop(rl.lines()),
                _ => {
                    let mut lines = pin!(rl.lines());
                    input.push(b"a\nb\nc".to_vec());
                    lines.next().await.unwrap().unwrap();
                }
            }
            phase::check().await;
            rl.close();
            input.destroy(None);
            phase::check().await;
        })
        .await;
    });
}

#[test]
fn file_streams_that_are_destroyed_leave_nothing() {
    isolated("file_streams_that_are_destroyed_leave_nothing", || async {
        let path = std::env::temp_dir().join(format!("pl-file-{}", std::process::id()));
        std::fs::write(&path, vec![b'x'; LARGE]).unwrap();
        let number = Cell::new(0);
        leaves_nothing(300, async || {
            let stage = number.replace(number.get() + 1) % 6;
            if stage < 3 {
                let stream = fs::create_read_stream(&path);
                let closed = closing(&stream);
                let held = stream.clone();
                match stage {
                    0 => {}
                    1 => phase::check().await,
                    _ => {
                        let seen = Rc::new(Cell::new(false));
                        let see = seen.clone();
                        stream.on_data(move |_| {
                            see.set(true);
                            drop(held.clone());
                        });
                        assert!(until(|| seen.get()).await);
                    }
                }
                stream.destroy(None);
                return closed.await.unwrap();
            }
            let out = path.with_extension("out");
            let stream = fs::create_write_stream(&out);
            let closed = closing(&stream);
            let held = stream.clone();
            stream.write_with(vec![b'x'; LARGE], move |_| drop(held));
            let held = stream.clone();
            stream.write_with(vec![b'x'; LARGE], move |_| drop(held));
            match stage {
                3 => {}
                4 => phase::check().await,
                _ => sleep(1).await.unwrap(),
            }
            stream.destroy(None);
            closed.await.unwrap();
        })
        .await;
        std::fs::remove_file(path.with_extension("out")).unwrap();
        std::fs::remove_file(path).unwrap();
    });
}

#[test]
fn agents_free_their_sockets_and_the_requests_that_wait() {
    let test = "agents_free_their_sockets_and_the_requests_that_wait";
    isolated(test, || async {
        let server = http::create_server(|request, response| match request.url() {
            "/silent" => {}
            _ => response.end("hello"),
        });
        let address = listening(&server).await;
        let number = Cell::new(0);
        leaves_nothing(100, async || {
            let stage = number.replace(number.get() + 1) % 3;
            let agent = Agent::builder().keep_alive(true).max_sockets(1).build();
            let get = |path: &str| {
                let options = RequestOptions::new(address).agent(&agent).path(path);
                let request = http::get(options);
                let held = request.clone();
                request.on(ERROR, move |_| drop(held.clone()));
                request
            };
            let first = get("/");
            let response = once(&first, http::RESPONSE).await.unwrap();
            let ended = closing(&first);
            response.resume();
            ended.await.unwrap();
            let silent = get("/silent");
            let waiting: Vec<_> = (0..3).map(|_| get("/")).collect();
            let closed: Vec<_> = waiting.iter().chain([&silent]).map(closing).collect();
            phase::check().await;
            match stage {
                0 => {
                    waiting.iter().for_each(|request| request.destroy(None));
                    server.close_all_connections();
                }
                1 => {
                    agent.destroy();
                    waiting.iter().for_each(|request| request.destroy(None));
                    silent.destroy(None);
                }
                _ => {
                    silent.destroy(None);
                    waiting.iter().for_each(|request| request.destroy(None));
                }
            }
            drop(waiting);
            for closed in closed {
                closed.await.unwrap();
            }
            if stage == 2 {
                agent.destroy();
            }
        })
        .await;
        server.close();
        server.close_all_connections();
    });
}

async fn listening(server: &http::Server) -> SocketAddr {
    let listens = once(server, LISTENING);
    server.listen(("127.0.0.1", 0));
    listens.await.unwrap();
    server.address().unwrap()
}

#[test]
fn a_server_frees_the_handshakes_that_its_clients_leave() {
    let test = "a_server_frees_the_handshakes_that_its_clients_leave";
    isolated(test, || async {
        let identity = ServerContext::new(CERTIFICATE, KEY).unwrap();
        let server = tls::create_server(&identity, |_| ());
        let listens = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listens.await.unwrap();
        let address = server.address().unwrap();
        let number = Cell::new(0);
        leaves_nothing(60, async || {
            let stage = number.replace(number.get() + 1) % 3;
            let open = descriptors();
            let mut peer = TcpStream::connect(address).unwrap();
            assert!(until(|| descriptors() == open + 2).await);
            match stage {
                0 => {}
                1 => peer.write_all(b"\x16\x03\x01\x40\x00half a hello").unwrap(),
                _ => peer.write_all(b"\x16\x03\x01").unwrap(),
            }
            phase::check().await;
            drop(peer);
            assert!(until(|| descriptors() == open).await);
        })
        .await;
        server.close();
    });
}

#[test]
fn pipelines_that_are_left_midway_leave_nothing() {
    isolated("pipelines_that_are_left_midway_leave_nothing", || async {
        let (number, controller) = (Cell::new(0), AbortController::new());
        leaves_nothing(300, async || {
            let stage = number.replace(number.get() + 1) % 5;
            let source = Readable::bytes().build();
            let same = Transform::<Vec<u8>, Vec<u8>>::pass_through();
            // A sink that never reports the end of its first write.
            let waits = RefCell::new(None);
            let sink = Writable::bytes(move |_: Vec<u8>, done| drop(waits.replace(Some(done))));
            let sink = sink.build();
            for _ in 0..4 {
                source.push(vec![b'x'; 64 << 10]);
            }
            let end = pipeline(&source).through(&same).into(&sink);
            let own = AbortController::new();
            let end = match stage {
                3 => end.signal(&own.signal()),
                4 => end.signal(&controller.signal()),
                _ => end,
            };
            let ended = Deferred::new();
            let promise = ended.promise();
            let held = sink.clone();
            end.then(move |result| {
                assert!(result.is_err());
                drop(held);
                ended.resolve(());
            });
            phase::check().await;
            match stage {
                0 => source.destroy(None),
                1 => sink.destroy(Some(Error::new("gone"))),
                3 => own.abort(),
                _ => same.readable().destroy(None),
            }
            promise.await.unwrap();
        })
        .await;
    });
}

const TEST: Event<u32> = Event::new("test");

#[test]
fn what_is_dropped_leaves_no_listener_of_a_signal_or_an_emitter() {
    let test = "what_is_dropped_leaves_no_listener_of_a_signal_or_an_emitter";
    isolated(test, || async {
        let (controller, emitter) = (AbortController::new(), EventEmitter::new());
        let (_listener, address) = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            (listener, address)
        };
        let number = Cell::new(0);
        leaves_nothing(3000, async || {
            let signal = controller.signal();
            match number.replace(number.get() + 1) % 12 {
                0 => drop(once(&emitter, TEST)),
                1 => drop(events::on(&emitter, TEST)),
                2 => drop(events::once_with_signal(&emitter, TEST, &signal)),
                3 => drop(events::on_with_signal(&emitter, TEST, &signal)),
                4 => {
                    let any = AbortSignal::any([&signal, &AbortSignal::timeout(1_000_000)]);
                    any.on_abort(|| ());
                }
                5 => drop(signal.guard(std::future::pending::<()>())),
                6 => {
                    let mut waits = pin!(signal.guard(std::future::pending::<()>()));
                    let polled = futures::poll!(&mut waits);
                    assert!(polled.is_pending());
                }
                7 => {
                    let options = promises::Options::new().signal(&signal);
                    let ticks = promises::set_interval_with(1000, (), &options);
                    let mut ticks = pin!(ticks);
                    let _ = futures::poll!(ticks.next());
                }
                8 => {
                    let options = promises::Options::new().signal(&signal);
                    promises::set_timeout_with(1, (), &options).await.unwrap();
                }
                9 => {
                    let stream = Readable::<Vec<u8>>::bytes().build();
                    phaseloop_node::stream::add_abort_signal(&signal, &stream);
                    let closed = closing(&stream);
                    stream.destroy(None);
                    closed.await.unwrap();
                }
                10 => {
                    let listener = signal.on_abort(|| ());
                    assert!(signal.off(listener));
                    drop(Deferred::<u32>::new().promise().then(|_| ()));
                    set_timeout(1000, || ()).close();
                }
                _ => {
                    let options = RequestOptions::new(address).signal(&signal);
                    let request = http::get(options);
                    let closed = closing(&request);
                    request.on(ERROR, |_| ());
                    request.destroy(None);
                    closed.await.unwrap();
                }
            }
        })
        .await;
        assert_eq!(emitter.listener_count(TEST), 0);
    });
}

#[test]
fn programs_that_are_aborted_leave_nothing() {
    isolated("programs_that_are_aborted_leave_nothing", || async {
        let controller = AbortController::new();
        let number = Cell::new(0);
        leaves_nothing(30, async || {
            let options = child_process::ExecOptions {
                signal: Some(controller.signal()),
                ..Default::default()
            };
            if number.replace(number.get() + 1) % 2 == 0 {
                child_process::promises::exec("true", options)
                    .await
                    .unwrap();
            } else {
                let own = AbortController::new();
                let options = child_process::ExecOptions {
                    signal: Some(own.signal()),
                    ..options
                };
                let output = child_process::promises::exec("sleep 1000", options);
                phase::check().await;
                own.abort();
                output.await.unwrap_err();
            }
        })
        .await;
    });
}
