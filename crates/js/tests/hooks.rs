//! A server of Rust with a script per route, under limits: what a script does wrong costs its own
//! request only.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use phaseloop_js::{Engine, Error, Files, Modules};
use phaseloop_node::http::{self, ServerResponse};
use phaseloop_node::{call, process, run};

/// What the routes answer: a value, or a promise of one.
const ROUTES: [(&str, &str); 8] = [
    ("/hello", "(query) => `hello ${query}`"),
    (
        "/later",
        "async (query) => { await null; return `later ${query}`; }",
    ),
    (
        "/timer",
        "(query) => new Promise((f) => setTimeout(f, 1, `timer ${query}`))",
    ),
    ("/endless", "() => { for (;;); }"),
    ("/endless-job", "async () => { await null; for (;;); }"),
    (
        "/full",
        "() => { const all = []; for (;;) all.push(new Array(1000).fill(1)); }",
    ),
    ("/deep", "() => (function f() { return f() + 1; })()"),
    ("/throws", "() => { throw new TypeError('thrown'); }"),
];

fn answer(response: &ServerResponse, result: Result<String, Error>) {
    match result {
        Ok(text) => response.end(text),
        Err(error) => {
            response.set_status(500);
            response.end(error.message().to_owned())
        }
    };
}

/// Runs a server while `client` runs on another thread; returns what it returns.
fn with_server<T: Send + 'static>(client: impl FnOnce(SocketAddr) -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let exit = run(async move {
        // The jobs of an interrupted script end with a report, not with an answer.
        process::on_uncaught_exception(|_, _| ());
        process::on_unhandled_rejection(|_| ());
        let engine = Engine::builder()
            .time_limit(Duration::from_millis(20))
            .memory_limit(8 << 20)
            .stack_limit(256 << 10)
            .modules(Modules::Core)
            .files(Files::None)
            .build()
            .unwrap();
        let routes = ROUTES.map(|(path, script)| (path, engine.run(path, script).unwrap()));
        let server = http::create_server(move |request, response| {
            let url = request.url().to_owned();
            let (path, query) = url.split_once('?').unwrap_or((&url, ""));
            let Some((_, script)) = routes.iter().find(|(known, _)| *known == path) else {
                response.set_status(404);
                response.end("");
                return;
            };
            let value = script.call((query,));
            let response = response.clone();
            call(async move {
                let result = async { value?.into_promise().await?.to::<String>() };
                answer(&response, result.await);
            });
        });
        let kept: Rc<Engine> = Rc::new(engine);
        let (done, ended) = futures(sender);
        server.listen_this(("127.0.0.1", 0), move |server| {
            let address = server.address().unwrap();
            let address = SocketAddr::from(([127, 0, 0, 1], address.port()));
            thread::spawn(move || done(client(address)));
        });
        ended.await;
        server.close();
        server.close_all_connections();
        drop(kept);
    });
    assert_eq!(exit.code(), 0);
    receiver.recv().unwrap()
}

/// Returns what ends a wait from another thread, and the wait.
fn futures<T: Send + 'static>(
    sender: mpsc::Sender<T>,
) -> (impl FnOnce(T) + Send + 'static, impl Future<Output = ()>) {
    let wake = Arc::new(Mutex::new((false, None::<Waker>)));
    let other = wake.clone();
    let done = move |value: T| {
        sender.send(value).unwrap();
        let mut state = other.lock().unwrap();
        state.0 = true;
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    };
    let ended = poll_fn(move |cx| {
        let mut state = wake.lock().unwrap();
        state.1 = Some(cx.waker().clone());
        match state.0 {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    });
    (done, ended)
}

/// Asks for a path on a connection of its own; returns status and body.
fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head[9..12].parse().unwrap();
    // The body of a chunked answer has its length before it.
    let body = match head.contains("chunked") {
        true => body.split("\r\n").nth(1).unwrap_or_default(),
        false => body,
    };
    (status, body.to_owned())
}

/// Starts a request whose answer never comes, since its script is ended in a job.
fn left(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    stream
}

// J18, J19, J20: on one engine that all routes share.
#[test]
fn a_script_at_fault_costs_its_request_only() {
    with_server(|address| {
        for round in 0..5 {
            let peers: Vec<_> = (0..4)
                .map(|at| {
                    thread::spawn(move || {
                        for n in 0..10 {
                            let query = format!("{round}-{at}-{n}");
                            for (path, text) in
                                [("hello", "hello"), ("later", "later"), ("timer", "timer")]
                            {
                                // A loaded machine may take longer than the limit for a good script.
                                let url = format!("/{path}?{query}");
                                let answer =
                                    (0..50).map(|_| get(address, &url)).find(|it| it.0 == 200);
                                assert_eq!(answer, Some((200, format!("{text} {query}"))));
                            }
                        }
                    })
                })
                .collect();
            assert_eq!(
                get(address, "/endless"),
                (500, "Script execution timed out".into())
            );
            let job = left(address, "/endless-job");
            assert_eq!(get(address, "/deep").0, 500);
            assert_eq!(get(address, "/throws").0, 500);
            let full = get(address, "/full");
            assert_eq!(full.0, 500, "{}", full.1);
            for peer in peers {
                peer.join().unwrap();
            }
            drop(job);
        }
        assert_eq!(get(address, "/nothing").0, 404);
    });
}

/// Prints the latency of good requests without and with an endless script on the side: `cargo test
/// --release -p phaseloop-js --test hooks -- --ignored --nocapture`.
#[test]
#[ignore = "it prints times, and asserts none"]
fn the_latency_beside_an_endless_script() {
    let percentiles = |mut times: Vec<Duration>| {
        times.sort();
        let at = |part: usize| times[times.len() * part / 1000];
        format!("p50 {:?}, p99 {:?}, p99.9 {:?}", at(500), at(990), at(999))
    };
    let (plain, beside) = with_server(move |address| {
        let measure = move || {
            (0..5000)
                .map(|_| {
                    let start = Instant::now();
                    assert_eq!(get(address, "/hello?a").0, 200);
                    start.elapsed()
                })
                .collect::<Vec<_>>()
        };
        let plain = measure();
        let (end, ended) = mpsc::channel::<()>();
        let endless = thread::spawn(move || {
            // One endless request a second: it holds the loop for 20 ms.
            while ended.recv_timeout(Duration::from_secs(1)).is_err() {
                assert_eq!(get(address, "/endless").0, 500);
            }
        });
        let beside = measure();
        end.send(()).unwrap();
        endless.join().unwrap();
        (plain, beside)
    });
    println!("alone:                        {}", percentiles(plain));
    println!("one endless script a second:  {}", percentiles(beside));
}
