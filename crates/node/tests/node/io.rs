//! Sockets, files, names, datagrams and children with callbacks and events, N90–N103, beyond what
//! the ported programs show: failures, names, what waits for a connection, bytes that are not read.

use crate::run_to_end;
use crate::util::trace::paused;
use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use phaseloop::net::TcpSocket;
#[cfg(unix)]
use phaseloop::signal::SignalKind;
#[cfg(unix)]
use phaseloop_node::child_process::{EXIT, spawn, spawn_command};
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::net::{self, CONNECT, LISTENING, Server, Socket};
use phaseloop_node::stream::{CLOSE, END, FINISH, Readable, finished, pipeline};
use phaseloop_node::{
    Emitter, call, catch, dgram, dns, fs, next_tick, process, run, set_immediate,
};

/// Labels in the order in which they were logged.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<String>>>);

impl Log {
    fn say(&self, what: impl ToString) {
        self.0.borrow_mut().push(what.to_string());
    }

    fn take(&self) -> String {
        self.0.take().join(" ")
    }
}

const ANY: (&str, u16) = ("127.0.0.1", 0);

/// A server that sends back what it gets, and ends with its clients.
fn echo() -> Server {
    net::create_server(|socket| {
        socket.on_data_this(|socket, bytes| _ = socket.write(bytes));
        socket.on(ERROR, |_| ());
    })
}

#[test]
fn listeners_that_are_given_their_server_and_sockets_keep_neither() {
    let held = Rc::new(());
    let [on_server, on_client, at_listen, at_connect] = [(); 4].map(|()| held.clone());
    let exit = run(async move {
        let server = echo();
        server.on_this(net::CONNECTION, move |server, _| {
            server.close();
            drop(on_server.clone());
        });
        server.listen_this(ANY, move |server| {
            let client = net::connect_with(server.address().unwrap(), move |client| {
                client.write("through");
                drop(at_connect);
            });
            client.on_data_this(move |client, bytes| {
                assert_eq!(bytes, b"through");
                drop(on_client.clone());
                client.end(());
            });
            drop(at_listen);
        });
    });
    assert_eq!((exit.code(), Rc::strong_count(&held)), (0, 1));
}

/// Runs a program with a client of the echo server.
fn with_client(program: impl Fn(&Socket, &Log) + 'static) -> String {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        let server = echo();
        let listening = server.clone();
        server.listen_with(ANY, move || {
            let client = net::connect(listening.address().unwrap());
            let server = listening.clone();
            program(&client, &said);
            client.on(CLOSE, move |()| server.close());
        });
    });
    assert_eq!(exit.code(), 0);
    log.take()
}

#[test]
fn n096_what_is_written_before_the_connection_waits_for_it() {
    let log = with_client(|client, log| {
        assert!(client.connecting());
        let said = log.clone();
        client.write_with("early", move |_| said.say("written"));
        let said = log.clone();
        client.on(CONNECT, move |()| said.say("connect"));
        let (said, this) = (log.clone(), client.clone());
        client.on_data(move |bytes| {
            said.say(String::from_utf8_lossy(bytes));
            this.end(());
        });
    });
    // The write has waited among the listeners of 'connect', and was there first.
    assert_eq!(log, "written connect early");
}

/// Reads what a peer has written before it closed, and returns the order of the events. `peer`
/// writes in the callback of `connect`.
fn read_after_close(address: impl Into<net::Address>, peer: impl FnOnce() + 'static) -> String {
    let (log, address) = (Log::default(), address.into());
    let said = log.clone();
    run_to_end(async move {
        let client = net::connect_with(address, |_| peer());
        for event in [END, CLOSE] {
            let said = said.clone();
            client.on(event, move |()| said.say(event.name()));
        }
        client.on_data(move |bytes| {
            said.say(bytes.len());
            let tick = said.clone();
            next_tick(move || tick.say("tick"));
            let immediate = said.clone();
            set_immediate(move || immediate.say("immediate"));
        });
    });
    log.take()
}

/// The kernel says that the peer is gone together with the data: full buffers, the rest and the end
/// come in one phase. Only epoll reports the hang-up with the data.
#[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
#[test]
fn n096_a_local_socket_is_read_to_its_end_in_one_phase() {
    let name = format!("phaseloop-node-io-{}.socket", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let log = read_after_close(path.as_path(), move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&[7; 100_000]).unwrap();
    });
    std::fs::remove_file(&path).unwrap();
    assert_eq!(log, "65536 tick 34464 tick end immediate immediate close");
}

/// A connection whose other direction is open is read again for its end, in the next phase.
#[test]
fn n096_the_end_of_a_connection_that_is_half_open_comes_a_turn_after_the_data() {
    let listener = std::net::TcpListener::bind(ANY).unwrap();
    let log = read_after_close(listener.local_addr().unwrap(), move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&[7; 1000]).unwrap();
    });
    assert_eq!(log, "1000 tick immediate end close");
}

/// A peer that never stops: a phase reads 32 times, then the others have their turn.
#[test]
fn n096_a_source_that_always_has_more_is_read_32_times_a_phase() {
    let counts: Rc<RefCell<Vec<usize>>> = Rc::default();
    let said = counts.clone();
    run_to_end(async move {
        let endless = Readable::from_reader(futures::io::repeat(7));
        let count = Rc::new(Cell::new(0));
        let counted = count.clone();
        endless.on_data(move |_| counted.set(counted.get() + 1));
        set_immediate(move || {
            count.set(0);
            set_immediate(move || {
                said.borrow_mut().push(count.get());
                endless.destroy(None);
            });
        });
    });
    assert_eq!(*counts.borrow(), [32]);
}

/// What waits to read is not kept for a connection that is gone.
#[test]
fn n098_a_socket_that_is_destroyed_lets_go_of_its_listeners() {
    let log = with_client(|client, log| {
        let held = Rc::new(());
        let (weak, said) = (Rc::downgrade(&held), log.clone());
        client.on_data(move |_| drop(held.clone()));
        client.once_this(CONNECT, move |client, ()| {
            let client = client.clone();
            set_immediate(move || {
                client.destroy(None);
                drop(client);
                set_immediate(move || {
                    set_immediate(move || said.say(weak.strong_count()));
                });
            });
        });
    });
    assert_eq!(log, "0");
}

#[test]
fn n096_a_socket_that_ends_finishes_ends_and_closes() {
    let log = with_client(|client, log| {
        for (event, name) in [(FINISH, "finish"), (END, "end"), (CLOSE, "close")] {
            let said = log.clone();
            client.on(event, move |()| said.say(name));
        }
        client.resume();
        client.end("bye");
    });
    assert_eq!(log, "finish end close");
}

#[test]
fn n100_a_refused_connection_is_an_error_then_a_close() {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        // A socket that does not listen: it refuses connections, and no other test gets its port.
        let silent = TcpSocket::new_v4().unwrap();
        silent.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let client = net::connect(silent.local_addr().unwrap());
        let error = said.clone();
        client.on(ERROR, move |what| error.say(what.code().unwrap()));
        let this = client.clone();
        client.on(CLOSE, move |()| {
            said.say(this.had_error());
            let _ = &silent;
        });
        client.write_with("never", |result| assert!(result.is_err()));
    });
    assert_eq!(exit.code(), 0);
    assert_eq!(log.take(), "ECONNREFUSED true");
}

#[test]
fn n098_a_socket_may_be_destroyed_while_it_is_connected() {
    let log = with_client(|client, log| {
        let said = log.clone();
        client.on(CONNECT, |()| unreachable!("it was destroyed before"));
        client.on(CLOSE, move |()| said.say("close"));
        client.destroy(None);
        let said = log.clone();
        next_tick(move || said.say("tick"));
        let said = log.clone();
        set_immediate(move || said.say("immediate"));
    });
    assert_eq!(log, "tick immediate close");
}

#[test]
fn n095_an_address_in_use_is_an_error_by_a_tick() {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        let taken = std::net::TcpListener::bind(ANY).unwrap();
        let server = Server::new();
        let error = said.clone();
        server.on(ERROR, move |what| error.say(what.code().unwrap()));
        server.on(LISTENING, |()| unreachable!("the address is taken"));
        server.listen(taken.local_addr().unwrap());
        said.say("sync");
        drop(taken);
    });
    assert_eq!((exit.code(), log.take().as_str()), (0, "sync EADDRINUSE"));
}

#[test]
fn n097_a_server_that_is_closed_before_it_says_so_does_not_listen() {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        let server = Server::new();
        server.on(LISTENING, |()| unreachable!("it is closed"));
        // The address is looked up by a tick: the server does not run yet.
        server.listen(ANY);
        assert!(!server.is_listening());
        let early = said.clone();
        server.close_with_result(move |result| {
            early.say(result.unwrap_err().code().unwrap());
        });
        server.listen(0);
        assert!(server.is_listening());
        server.close_with_result(move |result| {
            assert!(result.is_ok());
            said.say("closed");
        });
        assert!(!server.is_listening());
    });
    let said = "ERR_SERVER_NOT_RUNNING closed";
    assert_eq!((exit.code(), log.take().as_str()), (0, said));
}

#[test]
fn a_large_transfer_goes_through_pipes_with_backpressure() {
    const SIZE: usize = 2_000_000;
    let received = Rc::new(Cell::new(0));
    let count = received.clone();
    let exit = run(async move {
        let server = net::create_server(|socket| {
            // Back where it came from.
            socket.readable().pipe(socket.writable());
        });
        let listening = server.clone();
        server.listen_with(ANY, move || {
            let client = net::connect(listening.address().unwrap());
            let count = count.clone();
            client.on_data(move |bytes| count.set(count.get() + bytes.len()));
            for _ in 0..20 {
                client.write(vec![7; SIZE / 20]);
            }
            assert!(client.writable().need_drain());
            client.end(());
            let server = listening.clone();
            client.on(CLOSE, move |()| server.close());
        });
    });
    assert_eq!((exit.code(), received.get()), (0, SIZE));
}

#[test]
fn a_socket_can_be_piped_and_awaited() {
    let log = with_client(|client, log| {
        let (client, said) = (client.clone(), log.clone());
        client.write("x");
        client.end(());
        let text = Rc::new(RefCell::new(Vec::new()));
        let sink = text.clone();
        let sink = phaseloop_node::stream::Writable::bytes(move |bytes: Vec<u8>, done| {
            sink.borrow_mut().extend(bytes);
            done.ok();
        })
        .build();
        let row = pipeline(client.readable()).into(&sink);
        let over = finished(client.duplex());
        call(async move {
            row.await.unwrap();
            over.await.unwrap();
            said.say(String::from_utf8_lossy(&text.take()));
        });
    });
    assert_eq!(log, "x");
}

#[test]
fn sockets_go_with_their_loop() {
    let (mut event_loop, _, _) = paused();
    let address: Rc<Cell<Option<SocketAddr>>> = Rc::default();
    let held = Rc::new(());
    let (server, keeper) = (event_loop.enter(echo), held.clone());
    let on_server = held.clone();
    event_loop.enter(|| {
        server.on(net::CONNECTION, move |socket| {
            let on_socket = on_server.clone();
            let itself = socket.clone();
            socket.on_data(move |_| drop((itself.clone(), on_socket.clone())));
        });
        server.listen(ANY);
        let client = net::connect(server.address().unwrap());
        client.on_data(move |_| drop(keeper.clone()));
        address.set(server.address());
    });
    phaseloop::EventLoop::run(&mut event_loop, phaseloop::RunMode::NoWait).unwrap();
    assert_eq!(Rc::strong_count(&held), 4, "the connection is accepted");
    drop(server);
    drop(event_loop);
    assert_eq!(
        Rc::strong_count(&held),
        1,
        "both ends and the server are gone"
    );
    let refused = std::net::TcpStream::connect(address.get().unwrap());
    assert!(refused.is_err(), "the server has closed");
}

#[test]
fn n090_files_call_back_with_node_s_codes() {
    let log = Log::default();
    let said = log.clone();
    let directory = std::env::temp_dir().join(format!("phaseloop-node-io-{}", std::process::id()));
    let exit = run(async move {
        fs::promises::mkdir(&directory).await.unwrap();
        let (one, two) = (directory.join("one"), directory.join("two"));
        fs::promises::write_file(&one, "hello").await.unwrap();
        fs::promises::append_file(&one, ", world").await.unwrap();
        assert_eq!(fs::promises::copy_file(&one, &two).await.unwrap(), 12);
        assert_eq!(
            fs::promises::read_file(&two).await.unwrap(),
            b"hello, world"
        );
        assert_eq!(fs::promises::stat(&two).await.unwrap().size(), 12);
        fs::promises::unlink(&one).await.unwrap();
        fs::promises::rename(&two, &one).await.unwrap();
        assert_eq!(fs::promises::readdir(&directory).await.unwrap(), ["one"]);
        let missing = fs::promises::read_file(&two).await.unwrap_err();
        let error: &phaseloop_node::Error = missing.error().unwrap().downcast_ref().unwrap();
        said.say(error.code().unwrap());
        assert!(
            error.message().contains("two"),
            "{error}: it names the path"
        );
        fs::promises::unlink(&one).await.unwrap();
        let said = said.clone();
        fs::rmdir(directory.clone(), move |result| {
            result.unwrap();
            said.say("callback");
            let (tick, micro) = (said.clone(), said.clone());
            phaseloop::queue_microtask(move || micro.say("microtask"));
            next_tick(move || tick.say("tick"));
        });
    });
    assert_eq!(exit.code(), 0);
    assert_eq!(log.take(), "ENOENT callback tick microtask");
}

#[test]
fn n094_a_name_is_looked_up_by_the_pool() {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        let immediate = said.clone();
        set_immediate(move || immediate.say("immediate"));
        dns::lookup("localhost", move |address| {
            said.say(address.unwrap().is_loopback())
        });
    });
    assert_eq!(exit.code(), 0);
    let log = log.take();
    assert!(log == "immediate true" || log == "true immediate", "{log}");
}

/// Node prints the same for the same program.
#[test]
fn n103_a_connected_datagram_socket_sends_at_once_and_can_be_disconnected() {
    fn refused(log: &Log, f: impl FnOnce()) {
        let thrown = catch(f).unwrap_err();
        log.say(
            thrown
                .code()
                .unwrap()
                .trim_start_matches("ERR_SOCKET_DGRAM_"),
        );
    }
    let log = Log::default();
    let said = log.clone();
    run_to_end(async move {
        let (a, b) = (dgram::Socket::new(), dgram::Socket::new());
        let (noticed, from, at) = (said.clone(), a.clone(), b.clone());
        b.on_message(move |message| {
            let text = String::from_utf8_lossy(&message.bytes);
            noticed.say(format!("got-{text}"));
            if text == "last" {
                from.close();
                at.close();
                refused(&noticed, || from.disconnect());
            }
        });
        let bound = b.clone();
        b.bind_with(SocketAddr::from(([127, 0, 0, 1], 0)), move || {
            let to = bound.address().unwrap();
            refused(&said, || a.disconnect());
            a.connect(to);
            refused(&said, || a.disconnect());
            a.once_this(dgram::CONNECT, move |a, ()| {
                let log = said.clone();
                a.send_to_peer_with(b"one", move |sent| log.say(format!("{:?}", sent.ok())));
                let log = said.clone();
                refused(&log, || a.send_with(b"x", to, |_| ()));
                let log = said.clone();
                next_tick(move || log.say("tick"));
                let (log, this) = (said.clone(), a.clone());
                a.send_to_peer_with(b"xyz", move |sent| {
                    log.say(format!("{:?}", sent.ok()));
                    this.disconnect();
                    refused(&log, || _ = this.remote_address());
                    refused(&log, || this.disconnect());
                    let said = log.clone();
                    this.send_all_with(&[b"la", b"st"], to, move |sent| {
                        said.say(format!("{:?}", sent.ok()));
                    });
                });
            });
        });
    });
    assert_eq!(
        log.take(),
        "NOT_CONNECTED NOT_CONNECTED IS_CONNECTED Some(3) tick Some(3) NOT_CONNECTED NOT_CONNECTED Some(4) \
         got-one got-xyz got-last NOT_CONNECTED"
    );
}

#[test]
fn n103_several_buffers_are_one_datagram() {
    let got = Rc::new(RefCell::new(Vec::new()));
    let noticed = got.clone();
    run_to_end(async move {
        let (a, b) = (dgram::Socket::new(), dgram::Socket::new());
        let from = a.clone();
        b.on_message_this(move |b, message| {
            noticed.borrow_mut().push(message.bytes.clone());
            from.close();
            b.close();
        });
        let bound = b.clone();
        b.bind_with(SocketAddr::from(([127, 0, 0, 1], 0)), move || {
            a.send_all(&[b"one ", b"", b"two"], bound.address().unwrap());
        });
    });
    assert_eq!(*got.borrow(), [b"one two"]);
}

#[test]
fn n103_a_datagram_socket_that_is_not_bound_binds_itself() {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        let (receiver, sender) = (dgram::Socket::new(), dgram::Socket::new());
        let (this, other) = (receiver.clone(), sender.clone());
        receiver.on_message(move |datagram| {
            said.say(String::from_utf8_lossy(&datagram.bytes));
            assert_eq!(
                Some(datagram.from.port()),
                other.address().map(|own| own.port())
            );
            this.close();
            other.close();
        });
        receiver.bind("127.0.0.1:0".parse().unwrap());
        once(receiver.emitter(), LISTENING).await.unwrap();
        sender.send(b"hello", receiver.address().unwrap());
    });
    assert_eq!((exit.code(), log.take().as_str()), (0, "hello"));
}

#[cfg(unix)]
#[test]
fn n102_output_that_nobody_reads_does_not_keep_a_child_from_closing() {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        let child = spawn("sh", ["-c", "echo unread; echo unread >&2"]);
        assert!(child.pid().is_some());
        let exited = said.clone();
        child.on(EXIT, move |exit| exited.say(exit.code.unwrap()));
        let this = child.clone();
        child.on(CLOSE, move |()| {
            said.say(format_args!("closed {}", this.exit().is_some()))
        });
    });
    assert_eq!((exit.code(), log.take().as_str()), (0, "0 closed true"));
}

#[cfg(unix)]
#[test]
fn n102_a_child_reads_its_input_and_can_be_killed() {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        let cat = spawn("cat", []);
        let output = said.clone();
        let stdout = cat.stdout().unwrap();
        stdout.on_data(move |bytes| output.say(String::from_utf8_lossy(bytes)));
        cat.stdin().unwrap().end("through");
        let asleep = spawn("sleep", ["60"]);
        let killed = said.clone();
        asleep.on(EXIT, move |exit| killed.say(exit.signal.unwrap()));
        let closed = once(cat.emitter(), CLOSE);
        closed.await.unwrap();
        assert!(asleep.kill(SignalKind::TERM));
    });
    assert_eq!((exit.code(), log.take().as_str()), (0, "through SIGTERM"));
}

#[cfg(unix)]
#[test]
fn a_child_that_outlives_its_loop_is_let_go_of() {
    let held = Rc::new(());
    let keeper = held.clone();
    let pid = Rc::new(Cell::new(0));
    let known = pid.clone();
    let exit = run(async move {
        let mut command = phaseloop::process::Command::new("sleep");
        command.arg("60").kill_on_drop(true);
        command.stdin(phaseloop::process::Stdio::piped());
        command.stdout(phaseloop::process::Stdio::piped());
        let child = spawn_command(&mut command);
        known.set(child.pid().unwrap());
        let this = child.clone();
        child.on(EXIT, move |_| drop((this.clone(), keeper.clone())));
        process::exit(0);
    });
    assert_eq!(exit.code(), 0);
    assert_eq!(Rc::strong_count(&held), 1);
    // Killed and reaped: a zombie would still have its number.
    let pid = pid.get().to_string();
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_there = || {
        let mut kill = std::process::Command::new("kill");
        kill.args(["-0", &pid]).stderr(std::process::Stdio::null());
        kill.status().unwrap().success()
    };
    while is_there() {
        assert!(Instant::now() < deadline, "it is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
#[test]
fn a_child_that_nobody_holds_is_closed_after_its_end() {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        // The one that is started in the background keeps the pipe open after the end of its
        // parent.
        let child = spawn("sh", ["-c", "sleep 0.05 & exit 3"]);
        let exited = said.clone();
        child.on(EXIT, move |exit| exited.say(exit.code.unwrap()));
        child.on(CLOSE, move |()| said.say("closed"));
    });
    assert_eq!((exit.code(), log.take().as_str()), (0, "3 closed"));
}

#[test]
fn a_bare_port_is_listened_to_on_both_families() {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        let server = net::create_server(|socket| socket.end(()));
        server.listen(0);
        once(server.emitter(), LISTENING).await.unwrap();
        let port = server.address().unwrap().port();
        let client = net::connect(("127.0.0.1", port));
        once(client.emitter(), CONNECT).await.unwrap();
        client.destroy(None);
        said.say("4");
        if std::net::TcpListener::bind("[::1]:0").is_ok() {
            let client = net::connect(("::1", port));
            once(client.emitter(), CONNECT).await.unwrap();
            client.destroy(None);
        }
        said.say("6");
        server.close();
    });
    assert_eq!((exit.code(), log.take().as_str()), (0, "4 6"));
}

#[test]
fn a_server_looks_a_name_up_and_a_close_comes_first() {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        let server = Server::new();
        server.listen(("localhost", 0));
        assert!(!server.is_listening());
        once(server.emitter(), LISTENING).await.unwrap();
        assert!(server.address().unwrap().ip().is_loopback());
        server.close();
        let closed = Server::new();
        closed.on(LISTENING, move |()| said.say("too late"));
        closed.listen(("localhost", 0));
        closed.close();
    });
    assert_eq!((exit.code(), log.take().as_str()), (0, ""));
}

#[test]
fn a_name_that_is_not_known_has_nodes_code() {
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        let server = Server::new();
        server.on(ERROR, |error| {
            let code = error.code().unwrap();
            assert!(["ENOTFOUND", "EAI_AGAIN"].contains(&code), "{code}");
        });
        server.listen(("nothing.invalid", 0));
        dns::lookup("nothing.invalid", move |found| {
            said.say(found.unwrap_err().code().unwrap())
        });
    });
    let code = log.take();
    // The second where no resolver can be asked.
    assert!(["ENOTFOUND", "EAI_AGAIN"].contains(&&*code), "{code}");
    assert_eq!(exit.code(), 0);
}
