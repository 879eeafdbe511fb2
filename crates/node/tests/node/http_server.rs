//! A server of `node::http`: what the recorded programs do not show.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::thread;

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{self, CLIENT_ERROR, IncomingMessage, ServerResponse};
use phaseloop_node::net;
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::{Emitter, next_tick, process, run, set_timeout, throw};

/// Sends the pieces, each after an answer to the one before, and returns all that came. The peer
/// closes its side at the end.
fn exchange(
    handler: impl Fn(&IncomingMessage, &ServerResponse) + 'static,
    pieces: impl Into<Vec<&'static str>>,
) -> String {
    let pieces = pieces.into();
    let got = Rc::<RefCell<String>>::default();
    let all = got.clone();
    run(async move {
        let server = http::create_server(handler);
        server.listen_this(("127.0.0.1", 0), move |server| {
            let client = net::connect(server.address().unwrap());
            let left = RefCell::new(pieces.into_iter());
            client.write(left.borrow_mut().next().unwrap());
            client.on_data_this(move |client, bytes| {
                got.borrow_mut().push_str(&String::from_utf8_lossy(bytes));
                if got.borrow().ends_with("ok") {
                    let piece = left.borrow_mut().next();
                    let client = client.clone();
                    match piece {
                        Some(piece) => {
                            client.write(piece);
                        }
                        None => client.end(()),
                    }
                    if left.borrow().len() == 0 {
                        // The last piece may have no answer.
                        set_timeout(50, move || client.end(()));
                    }
                }
            });
            client.on(ERROR, |_| ());
            let server = server.clone();
            client.on(CLOSE, move |()| server.close());
        });
    });
    all.take()
}

/// The number of answers in a text.
fn answers(text: &str) -> usize {
    text.matches("HTTP/1.1 ").count()
}

const UPGRADE: &str = "GET /1 HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";

#[test]
fn h046_bytes_behind_an_unheard_upgrade_are_the_next_request() {
    let both = "GET /1 HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n\
                GET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let text = exchange(|_, res| res.end("ok"), [both]);
    assert_eq!(answers(&text), 2, "{text}");
}

#[test]
fn h046_faults_behind_an_unheard_upgrade_are_not_answered() {
    let text = exchange(|_, res| res.end("ok"), [UPGRADE, "BAD\r\n\r\n"]);
    assert_eq!(answers(&text), 1, "{text}");
    let next = "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n";
    let text = exchange(|_, res| res.end("ok"), [UPGRADE, next, "BAD\r\n\r\n"]);
    assert!(
        text.ends_with("400 Bad Request\r\nConnection: close\r\n\r\n"),
        "{text}"
    );
}

#[test]
fn h044_a_destroyed_socket_does_not_stop_the_handlers_of_its_read() {
    let seen = Rc::<RefCell<Vec<String>>>::default();
    let urls = seen.clone();
    let both = "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n";
    let handler = move |req: &IncomingMessage, res: &ServerResponse| {
        seen.borrow_mut().push(req.url().to_owned());
        req.socket().destroy(None);
        res.end("ok");
    };
    assert_eq!(exchange(handler, [both]), "");
    assert_eq!(*urls.borrow(), ["/1", "/2"]);
}

#[test]
fn h054_a_connection_whose_handler_has_panicked_is_refused_later() {
    let codes = Rc::<RefCell<Vec<String>>>::default();
    let seen = codes.clone();
    run(async move {
        process::on_uncaught_exception(|_, _| ());
        let server = http::create_server(|_, _| throw(phaseloop_node::Error::new("handler")));
        server.on(CLIENT_ERROR, move |failed| {
            let code = failed.error.code().unwrap_or_default().to_owned();
            seen.borrow_mut().push(code);
            failed.socket.destroy(None);
        });
        server.listen_this(("127.0.0.1", 0), |server| {
            let client = net::connect(server.address().unwrap());
            client.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            client.resume();
            let later = client.clone();
            set_timeout(50, move || {
                later.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            });
            client.on(ERROR, |_| ());
            let server = server.clone();
            client.on(CLOSE, move |()| server.close());
        });
    });
    assert_eq!(*codes.borrow(), ["HPE_CB_HEADERS_COMPLETE"]);
}

#[test]
fn h032_hints_that_could_split_a_head_are_refused() {
    let text = exchange(
        |_, res| {
            let refused = |link: &str| {
                let error = res.write_early_hints([("link", link)]).unwrap_err();
                error.code().unwrap_or_default().to_owned()
            };
            assert_eq!(refused("/style.css"), "ERR_INVALID_ARG_VALUE");
            assert_eq!(refused("</a>; rel=\"x; y"), "ERR_INVALID_ARG_VALUE");
            assert_eq!(refused("</a>\r\nx: y"), "ERR_INVALID_CHAR");
            let hints = [("link", "</a>; rel=preload"), ("x\n", "y")];
            assert!(res.write_early_hints(hints).is_err());
            res.write_early_hints([("x", "no link")]).unwrap();
            res.end("ok");
        },
        ["GET / HTTP/1.1\r\nHost: h\r\n\r\n"],
    );
    assert_eq!(answers(&text), 1, "{text}");
}

#[test]
fn a_dropped_response_sends_nothing() {
    let got = Rc::<RefCell<Vec<u8>>>::default();
    let all = got.clone();
    run(async move {
        let server = http::create_server(|_, _| ());
        server.listen_this(("127.0.0.1", 0), move |server| {
            let client = net::connect(server.address().unwrap());
            client.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            client.on_data(move |bytes| got.borrow_mut().extend_from_slice(bytes));
            let (server, last) = (server.clone(), client.clone());
            set_timeout(50, move || last.end(()));
            client.on(CLOSE, move |()| server.close());
        });
    });
    assert_eq!(*all.borrow(), b"");
}

#[test]
fn servers_of_several_threads_do_not_know_each_other() {
    let threads: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(|| {
                let get = ["GET / HTTP/1.1\r\nHost: h\r\n\r\n"];
                answers(&exchange(|_, res| res.end("ok"), get))
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 1);
    }
}

#[cfg(unix)]
#[test]
fn h001_a_server_listens_on_a_unix_socket_as_on_a_port() {
    let path = std::env::temp_dir().join(format!("phaseloop-http-{}", std::process::id()));
    let got = Rc::<RefCell<Vec<u8>>>::default();
    let all = got.clone();
    run(async move {
        let server = http::create_server(|req, res| res.end(req.url()));
        let address = path.clone();
        server.listen_this(path, move |server| {
            let client = net::connect(address);
            client.write("GET /unix HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            client.on_data(move |bytes| got.borrow_mut().extend_from_slice(bytes));
            let server = server.clone();
            client.on(CLOSE, move |()| server.close());
        });
    });
    let text = String::from_utf8(all.take()).unwrap();
    assert!(
        text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("/unix"),
        "{text}"
    );
}

#[test]
fn a_request_is_piped_into_its_response() {
    const SIZE: usize = 3 << 20;
    let total = Rc::new(std::cell::Cell::new(0));
    let count = total.clone();
    run(async move {
        let server = http::create_server(|req, res| {
            req.readable().pipe(res.writable());
        });
        server.listen_this(("127.0.0.1", 0), move |server| {
            let client = net::connect(server.address().unwrap());
            client.write(format!(
                "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {SIZE}\r\n\r\n"
            ));
            client.write(vec![b'#'; SIZE]);
            client.on_data(move |bytes| {
                let body = bytes.iter().filter(|byte| **byte == b'#').count();
                count.set(count.get() + body);
            });
            let server = server.clone();
            client.on(CLOSE, move |()| server.close());
        });
    });
    assert_eq!(total.get(), SIZE);
}

const GETS: [&str; 3] = [
    "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /2 HTTP/1.1\r\nHost: h\r\nX: 2\r\n\r\n",
    "GET /3 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
];

type Touch = fn(&IncomingMessage, &ServerResponse);

/// What a program can do to messages without keeping them.
const TOUCHES: [Touch; 12] = [
    |_, _| (),
    |_, response| {
        response.set_status(404).set_status_message("Nowhere");
    },
    |_, response| _ = response.set_header("X-Id", ["1", "2"]),
    |_, response| response.remove_header("Date").unwrap(),
    |_, response| {
        response.send_date(false).set_keep_alive(true);
    },
    |_, response| response.add_trailers([("X-Trailer", "1")]).unwrap(),
    |_, response| response.strict_content_length(true),
    |_, response| response.cork(),
    |_, response| _ = response.set_header("Content-Length", 2),
    |request, _| {
        request.pause();
    },
    |request, response| {
        request.emitter().set_max_listeners(1);
        response.emitter().set_max_listeners(1);
    },
    |request, _| assert!(request.headers().contains("host")),
];

// Parts of a message are used again if the program has not kept it: each request is a new one.
#[test]
fn a_message_that_was_not_kept_leaves_nothing_to_the_next_one() {
    for touch in TOUCHES {
        let text = exchange(
            move |request, response| {
                assert_eq!(request.readable().flowing(), None);
                assert_eq!(request.emitter().max_listeners(), 10);
                assert_eq!(response.emitter().max_listeners(), 10);
                assert_eq!((response.status(), response.status_message()), (200, None));
                assert_eq!((response.corked(), response.header_names().len()), (0, 0));
                assert_eq!(request.headers().contains("x"), request.url() == "/2");
                match request.url() {
                    "/2" => _ = response.set_header("X", "2"),
                    _ => touch(request, response),
                }
                response.end("ok");
            },
            GETS,
        );
        let second = text.split("HTTP/1.1 ").nth(2).unwrap();
        let lines: Vec<_> = second
            .split("\r\n")
            .filter(|l| !l.starts_with("Date"))
            .collect();
        let expected = [
            "200 OK",
            "X: 2",
            "Connection: keep-alive",
            "Keep-Alive: timeout=5",
            "Content-Length: 2",
            "",
            "ok",
        ];
        assert!(second.contains("\r\nDate: "), "{text}");
        assert_eq!(lines, expected, "{text}");
    }
}

type Keep = fn(&IncomingMessage, &ServerResponse) -> Box<dyn Any>;

/// What a program can keep of messages.
const KEEPS: [Keep; 8] = [
    |request, _| Box::new(request.clone()),
    |request, _| Box::new(request.readable().clone()),
    |request, _| Box::new(request.emitter().clone()),
    |request, _| Box::new(request.emitter().downgrade()),
    |_, response| Box::new(response.clone()),
    |_, response| Box::new(response.writable().clone()),
    |_, response| Box::new((**response).clone()),
    |_, response| Box::new(response.emitter().downgrade()),
];

/// The messages whose parts are known to be in use: by a weak reference, or by a strong one.
#[test]
fn a_message_that_the_program_keeps_is_not_used_again() {
    for keep in KEEPS {
        let kept = Rc::<RefCell<Vec<Box<dyn Any>>>>::default();
        let all = kept.clone();
        exchange(
            move |request, response| {
                kept.borrow_mut().push(keep(request, response));
                response.end("ok");
            },
            GETS,
        );
        for (place, kept) in all.take().into_iter().enumerate() {
            if let Some(request) = kept.downcast_ref::<IncomingMessage>() {
                assert_eq!(request.url(), format!("/{}", place + 1));
                assert!(request.complete());
            }
            if let Some(response) = kept.downcast_ref::<ServerResponse>() {
                assert_eq!(response.request().url(), format!("/{}", place + 1));
                assert!(response.finished() && response.destroyed());
            }
        }
    }
}

// H6, H7: what is emitted behind the answer is received by a listener that is added late.
#[test]
fn a_kept_request_emits_its_end_and_close_behind_the_answer() {
    let log = Rc::<RefCell<Vec<String>>>::default();
    let seen = log.clone();
    exchange(
        move |request, response| {
            response.end("ok");
            let (request, log) = (request.clone(), log.clone());
            next_tick(move || {
                for event in [END, CLOSE] {
                    let (log, url) = (log.clone(), request.url().to_owned());
                    let name = event.name();
                    request.on(event, move |()| {
                        log.borrow_mut().push(format!("{url} {name}"))
                    });
                }
            });
        },
        GETS,
    );
    let expected = [
        "/1 end", "/1 close", "/2 end", "/2 close", "/3 end", "/3 close",
    ];
    assert_eq!(*seen.borrow(), expected);
}
