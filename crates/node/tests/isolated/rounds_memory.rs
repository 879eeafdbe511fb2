//! What a program that runs for long makes again and again, beside what lives as long as itself: one
//! signal, one agent, one promise, one server. Each test is in a process of its own.
#![cfg(all(target_os = "linux", feature = "tls"))]

use crate::left::{closing, isolated, leaves_nothing, until};
use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::pin::pin;
use std::rc::Rc;

use futures::StreamExt as _;
use phaseloop::phase;
use phaseloop::signal::SignalKind;
use phaseloop_node::async_hooks::{AsyncLocalStorage, AsyncResource, Callbacks, create_hook};
use phaseloop_node::diagnostics_channel::channel;
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{self, Agent, RequestOptions};
use phaseloop_node::net::{self, LISTENING, Server};
use phaseloop_node::stream::{CLOSE, END, Readable, Writable, finished, pipeline};
use phaseloop_node::tls::{ClientContext, ServerContext};
use phaseloop_node::{
    AbortController, AbortSignal, Deferred, Emitter, Error, any, async_generator, call,
    clear_timeout_by_id, fetch, https, next_tick, process, queue_microtask, race, set_immediate,
    set_interval, set_timeout, sleep,
};

/// Returns the numbers below `count` in turn.
fn next(number: &Cell<usize>, count: usize) -> usize {
    number.replace(number.get() + 1) % count
}

const CA: &[u8] = include_bytes!("../../../../tests/util/certificates/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../../tests/util/certificates/server.pem");
const KEY: &[u8] = include_bytes!("../../../../tests/util/certificates/server.key");

async fn listening(server: &http::Server) -> SocketAddr {
    let listens = once(server, LISTENING);
    server.listen(("127.0.0.1", 0));
    listens.await.unwrap();
    server.address().unwrap()
}

#[test]
fn fetches_with_one_signal_leave_nothing() {
    isolated("fetches_with_one_signal_leave_nothing", || async {
        let server = http::create_server(|request, response| match request.url() {
            "/silent" => {}
            "/half" => drop(response.write("half")),
            "/cut" => {
                response.write("half");
                let response = response.clone();
                set_timeout(5, move || response.destroy(None));
            }
            "/away" => {
                response.set_status(302);
                response.set_header("Location", "/");
                response.end(());
            }
            _ => response.end("hello"),
        });
        let address = listening(&server).await;
        let (number, controller) = (Cell::new(0), AbortController::new());
        leaves_nothing(500, async || {
            let stage = next(&number, 9);
            let own = AbortController::new();
            let both = AbortSignal::any([&controller.signal(), &own.signal()]);
            let to = |path: &str| fetch(format!("http://{address}{path}"));
            let shared = |path: &str| to(path).signal(&controller.signal());
            match stage {
                0 => drop(shared("/").send().await.unwrap().text().await.unwrap()),
                1 => drop(shared("/").send().await.unwrap()),
                2 => drop(shared("/half").send().await.unwrap()),
                3 => drop(shared("/cut").send().await.unwrap().text().await),
                4 => drop(shared("/away").send().await.unwrap().text().await.unwrap()),
                5 => {
                    let answer = to("/silent").signal(&both).send();
                    sleep(1).await.unwrap();
                    own.abort();
                    answer.await.unwrap_err();
                }
                6 => {
                    let answer = to("/half").signal(&both).send().await.unwrap();
                    let text = answer.text();
                    own.abort();
                    text.await.unwrap_err();
                }
                7 => {
                    let response = shared("/").send().await.unwrap();
                    let twin = response.clone_body().unwrap();
                    drop(response);
                    assert_eq!(twin.text().await.unwrap(), "hello");
                }
                _ => {
                    let stream = Readable::bytes().build();
                    stream.push(b"hello".to_vec());
                    let answer = to("/silent").method("POST").body(&stream).signal(&both);
                    let answer = answer.send();
                    sleep(1).await.unwrap();
                    own.abort();
                    answer.await.unwrap_err();
                }
            }
        })
        .await;
        server.close_all_connections();
        server.close();
    });
}

#[test]
fn one_agent_forgets_the_servers_that_have_gone() {
    let test = "one_agent_forgets_the_servers_that_have_gone";
    isolated(test, || async {
        let agent = Agent::builder().keep_alive(true).build();
        leaves_nothing(300, async || {
            let server = http::create_server(|_, response| response.end("hello"));
            let address = listening(&server).await;
            let request = http::get(RequestOptions::new(address).agent(&agent));
            let response = once(&request, http::RESPONSE).await.unwrap();
            let ended = closing(&request);
            response.resume();
            ended.await.unwrap();
            let closed = closing(&server);
            server.close();
            server.close_all_connections();
            closed.await.unwrap();
        })
        .await;
        agent.destroy();
    });
}

#[test]
fn sockets_that_are_handed_over_leave_nothing() {
    isolated("sockets_that_are_handed_over_leave_nothing", || async {
        let server = http::create_server(|_, response| response.end("hello"));
        let gone = Rc::new(Cell::new(0));
        for event in [http::UPGRADE, http::CONNECT] {
            let gone = gone.clone();
            server.on(event, move |handover| {
                let (socket, message, gone) = (
                    handover.socket.clone(),
                    handover.message.clone(),
                    gone.clone(),
                );
                socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
                socket.on(ERROR, |_| ());
                let held = socket.clone();
                socket.on_data(move |bytes| _ = held.write(bytes.to_vec()));
                let held = socket.clone();
                socket.on(END, move |()| held.end(()));
                socket.on(CLOSE, move |()| {
                    drop(message.clone());
                    gone.set(gone.get() + 1);
                });
            });
        }
        let address = listening(&server).await;
        let number = Cell::new(0);
        leaves_nothing(300, async || {
            number.set(number.get() + 1);
            let mut peer = TcpStream::connect(address).unwrap();
            let head: &[u8] = match number.get() % 2 {
                0 => b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nearly",
                _ => b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\nearly",
            };
            peer.write_all(head).unwrap();
            peer.set_nonblocking(true).unwrap();
            assert!(until(|| (&peer).read(&mut [0; 1024]).is_ok()).await);
            if number.get() % 3 == 0 {
                peer.write_all(b"more").unwrap();
                phase::check().await;
            }
            drop(peer);
            assert!(until(|| gone.get() == number.get()).await);
        })
        .await;
        server.close();
    });
}

#[test]
fn servers_that_listen_and_close_leave_nothing() {
    isolated("servers_that_listen_and_close_leave_nothing", || async {
        let path = std::env::temp_dir().join(format!("pl-rounds-{}", std::process::id()));
        let number = Cell::new(0);
        leaves_nothing(500, async || {
            let server = Server::new();
            server.on(net::CONNECTION, |socket| {
                socket.on(ERROR, |_| ());
                socket.resume();
            });
            let closed = closing(&server);
            match next(&number, 4) {
                0 => server.listen(("127.0.0.1", 0)),
                1 => server.listen(path.clone()),
                2 => {
                    server.listen(("127.0.0.1", 0));
                    let client = net::connect(server.address().unwrap());
                    let closed = closing(&client);
                    once(&client, net::CONNECT).await.unwrap();
                    client.reset_and_destroy();
                    closed.await.unwrap();
                }
                _ => {
                    server.listen(("127.0.0.1", 0));
                    set_immediate(|| ());
                    phase::check().await;
                }
            }
            server.close();
            closed.await.unwrap();
        })
        .await;
    });
}

#[test]
fn promises_beside_one_that_stays_pending_leave_nothing() {
    let test = "promises_beside_one_that_stays_pending_leave_nothing";
    isolated(test, || async {
        let forever = Deferred::<u32>::new();
        let pending = forever.promise();
        let number = Cell::new(0);
        leaves_nothing(3000, async || match next(&number, 3) {
            0 => {
                let mut waits = pin!(pending.clone().into_future());
                assert!(futures::poll!(&mut waits).is_pending());
            }
            1 => {
                let (first, last) = (Deferred::new(), Deferred::<u32>::new());
                let won = race([first.promise(), last.promise()]);
                first.resolve(1);
                assert_eq!(won.await.unwrap(), 1);
            }
            _ => {
                let (first, last) = (Deferred::new(), Deferred::<u32>::new());
                let won = any([first.promise(), last.promise()]);
                first.resolve(1);
                assert_eq!(won.await.unwrap(), 1);
            }
        })
        .await;
        forever.resolve(1);
    });
}

#[test]
fn storages_hooks_and_channels_leave_nothing() {
    isolated("storages_hooks_and_channels_leave_nothing", || async {
        let number = Cell::new(0);
        leaves_nothing(3000, async || {
            let storage = AsyncLocalStorage::<Vec<u8>>::new();
            match next(&number, 6) {
                0 => {
                    let held = storage.clone();
                    storage.run(vec![0; 1000], || {
                        next_tick(|| ());
                        queue_microtask(|| ());
                        set_immediate(|| ());
                        set_timeout(1, move || assert!(held.get_store().is_some()));
                        set_timeout(1_000_000, || ()).close();
                        drop(call(async { sleep(1).await.unwrap() }));
                    });
                    sleep(2).await.unwrap();
                }
                1 => {
                    set_immediate(move || storage.enter_with(vec![0; 1000]));
                    phase::check().await;
                }
                2 => {
                    let bound = storage.run(vec![0; 1000], AsyncLocalStorage::<()>::snapshot);
                    bound.run(|| ());
                }
                3 => {
                    let hook = create_hook(Callbacks::new().init(|_, _, _| ()).destroy(|_| ()));
                    hook.enable();
                    drop(AsyncResource::new("TEST"));
                    set_timeout(1, || ());
                    sleep(2).await.unwrap();
                    hook.disable();
                }
                4 => {
                    let name = format!("channel {}", number.get());
                    let own = channel::<u32>(name);
                    let subscription = own.subscribe(|_, _| ());
                    own.publish(&1);
                    own.unsubscribe(subscription);
                }
                _ => {
                    let shared = channel::<u32>("shared");
                    shared.bind_store(&storage, |_| vec![0; 1000]);
                    shared.run_stores(&1, || ());
                    shared.unbind_store(&storage);
                }
            }
        })
        .await;
    });
}

#[test]
fn streams_that_are_left_by_their_readers_leave_nothing() {
    let test = "streams_that_are_left_by_their_readers_leave_nothing";
    isolated(test, || async {
        let (number, controller) = (Cell::new(0), AbortController::new());
        leaves_nothing(2000, async || {
            let source = Readable::<Vec<u8>>::bytes().build();
            source.push(vec![b'x'; 1000]);
            match next(&number, 8) {
                0 => {
                    let mut chunks = pin!(source.chunks());
                    chunks.next().await.unwrap().unwrap();
                }
                1 => drop(source.map(|bytes| bytes.len()).filter(|size| *size > 1)),
                2 => {
                    let some = source.map(|bytes| bytes.len()).take(1).to_array();
                    assert_eq!(some.await.unwrap(), [1000]);
                }
                3 => drop(finished(&source).signal(&controller.signal())),
                4 => {
                    let held = source.clone();
                    finished(&source).then(move |_| drop(held));
                    source.destroy(None);
                    phase::check().await;
                }
                5 => {
                    let sink = Writable::bytes(|_: Vec<u8>, done| done.ok()).build();
                    let end = pipeline(&source).into(&sink).signal(&controller.signal());
                    let ended = Deferred::new();
                    let promise = ended.promise();
                    end.then(move |_| ended.resolve(()));
                    source.push_end();
                    promise.await.unwrap();
                }
                6 => {
                    let numbers = async_generator(|yielder| async move {
                        for number in 0..3 {
                            yielder.yield_value(number).await;
                        }
                        Ok(())
                    });
                    let mut numbers = pin!(numbers);
                    let _ = numbers.next().await;
                }
                _ => {
                    let all = source.flat_map(|bytes| bytes.into_iter().take(3));
                    source.push_end();
                    assert_eq!(all.to_array().await.unwrap().len(), 3);
                }
            }
        })
        .await;
    });
}

#[test]
fn requests_on_one_connection_leave_nothing() {
    isolated("requests_on_one_connection_leave_nothing", || async {
        let server = http::create_server(|request, response| {
            let held = request.clone();
            request.on(END, move |()| drop(held.clone()));
            request.resume();
            response.write_processing();
            response.end("hello");
        });
        let accepted = Rc::new(Cell::new(0));
        let count = accepted.clone();
        server.on(net::CONNECTION, move |_| count.set(count.get() + 1));
        let address = listening(&server).await;
        let agent = Agent::builder().keep_alive(true).max_sockets(1).build();
        let number = Cell::new(0);
        leaves_nothing(1500, async || {
            let stage = next(&number, 4);
            let options = RequestOptions::new(address).agent(&agent);
            let request = match stage {
                0 => http::get(options),
                1 => http::get(options.method("HEAD")),
                2 => http::request(options.method("POST")),
                _ => http::request(options.method("POST").headers([("Expect", "100-continue")])),
            };
            let held = request.clone();
            request.on(http::CONTINUE, move |()| drop(held.clone()));
            let held = request.clone();
            request.on(http::INFORMATION, move |_| drop(held.clone()));
            if stage >= 2 {
                request.write("some");
                request.end("body");
            }
            let response = once(&request, http::RESPONSE).await.unwrap();
            let ended = closing(&request);
            response.resume();
            ended.await.unwrap();
        })
        .await;
        // As in Node, the connection of a HEAD is not used again.
        assert!(accepted.get() < number.get() / 2);
        agent.destroy();
        server.close();
    });
}

#[test]
fn handshakes_with_one_context_leave_nothing() {
    isolated("handshakes_with_one_context_leave_nothing", || async {
        let identity = ServerContext::new(CERTIFICATE, KEY).unwrap();
        let server = https::create_server(&identity, |_, response| response.end("hello"));
        let address = listening(&server).await;
        let agent = https::agent(&ClientContext::with_ca(CA).unwrap()).build();
        leaves_nothing(60, async || {
            let request = https::get(RequestOptions::new(address).agent(&agent));
            let response = once(&request, http::RESPONSE).await.unwrap();
            let ended = closing(&request);
            response.resume();
            ended.await.unwrap();
        })
        .await;
        server.close();
    });
}

#[test]
fn timers_and_listeners_of_the_process_leave_nothing() {
    let test = "timers_and_listeners_of_the_process_leave_nothing";
    isolated(test, || async {
        let number = Cell::new(0);
        let kept = process::on_unhandled_rejection(|_| ());
        leaves_nothing(3000, async || match next(&number, 7) {
            0 => {
                let timer = set_timeout(1, || ());
                let _ = timer.id();
                sleep(2).await.unwrap();
            }
            1 => clear_timeout_by_id(set_timeout(1_000_000, || ()).id()),
            2 => {
                let timer = set_interval(1, |timer| _ = timer.close());
                let _ = timer.id();
                sleep(2).await.unwrap();
            }
            3 => {
                let listener = process::on_signal(SignalKind::USR2, |_| ()).unwrap();
                assert!(listener.remove());
            }
            4 => {
                process::on_exit(|_| ()).remove();
                process::once_exit(|_| ()).remove();
                process::on_warning(|_| ()).remove();
                process::on_uncaught_exception(|_, _| ()).remove();
            }
            5 => {
                let failed = Deferred::<u32>::new();
                let promise = failed.promise();
                failed.reject(Error::new("late"));
                sleep(1).await.unwrap();
                promise.await.unwrap_err();
            }
            _ => {
                let failed = Deferred::<u32>::new();
                failed.reject(Error::new("never handled"));
                sleep(1).await.unwrap();
            }
        })
        .await;
        kept.remove();
    });
}
