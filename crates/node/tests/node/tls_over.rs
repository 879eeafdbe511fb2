//! `tls` over a stream of the program, whose functions may do anything. The order is that of Node 26.
#![cfg(feature = "tls")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use phaseloop::LoopHandle;
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::net::{CONNECT, Socket};
use phaseloop_node::stream::{AsDuplex as _, CLOSE, Duplex, END, Readable, Writable, duplex_pair};
use phaseloop_node::tls::{self, ClientContext, ServerContext};
use phaseloop_node::{Emitter, Error, run_on, sleep};

use crate::util::trace::{ms, paused};

const CA: &[u8] = include_bytes!("../../../../tests/util/certificates/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../../tests/util/certificates/server.pem");
const KEY: &[u8] = include_bytes!("../../../../tests/util/certificates/server.key");

type Bytes = Duplex<Vec<u8>, Vec<u8>>;

#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<String>>>);

impl Log {
    fn add(&self, what: &str) {
        self.0.borrow_mut().push(what.to_owned());
    }

    fn text(&self) -> String {
        self.0.take().join(" ")
    }
}

/// A server and a client over a stream whose writes `write` sees first.
struct Over {
    log: Log,
    client: Socket,
    below: Bytes,
}

fn over(on_write: impl Fn(&Over, u32) + 'static) -> Rc<Over> {
    let (left, right) = duplex_pair::<Vec<u8>>();
    let identity = ServerContext::new(CERTIFICATE, KEY).unwrap();
    let server = tls::accept_over(&right, &identity);
    let log = Log::default();
    let seen = log.clone();
    server.on_data(move |bytes| seen.add(&format!("server-{}", bytes.len())));
    server.on(ERROR, |_| ());
    let known: Rc<RefCell<Option<Rc<Over>>>> = Rc::default();
    let (over, out, count) = (known.clone(), left.clone(), Cell::new(0));
    let write = move |bytes, done: phaseloop_node::stream::Done| {
        count.set(count.get() + 1);
        let over = over.borrow().clone().expect("a write has a socket");
        on_write(&over, count.get());
        out.writable().write(bytes);
        done.ok();
    };
    let (seen, end, gone) = (log.clone(), left.clone(), left.clone());
    let writes = Writable::bytes(write).end(move |done| {
        end.writable().end(());
        done.ok();
    });
    let reads = Readable::bytes().destroy(move |error, done| {
        seen.add("below-destroyed");
        gone.destroy(None);
        match error {
            Some(error) => done.fail(error),
            None => done.ok(),
        }
    });
    let below = Duplex::new(reads, writes);
    let (into, ended) = (below.clone(), below.clone());
    left.readable()
        .on_data(move |bytes| _ = into.readable().push(bytes.to_vec()));
    left.on(END, move |()| ended.readable().push_end());
    let trusted = ClientContext::with_ca(CA).unwrap();
    let client = tls::connect_over(&below, "localhost", &trusted);
    let seen = log.clone();
    client.on(CONNECT, move |()| seen.add("secure"));
    let seen = log.clone();
    client.on(ERROR, move |error| {
        seen.add(&format!("error-{}", error.message()))
    });
    let seen = log.clone();
    client.on(END, move |()| seen.add("end"));
    let seen = log.clone();
    client.on(CLOSE, move |()| seen.add("close"));
    let over = Rc::new(Over { log, client, below });
    known.replace(Some(over.clone()));
    over
}

fn run(program: impl Future<Output = ()> + 'static) {
    let (mut event_loop, _, _) = paused();
    assert_eq!(run_on(&mut event_loop, program).code(), 0);
}

#[test]
fn n161_a_write_function_below_may_destroy_the_socket() {
    for at in 1..=3 {
        run(async move {
            let over = over(move |over, count| {
                if count == at {
                    over.client.destroy(None);
                }
            });
            let client = over.client.clone();
            over.client.on(CONNECT, move |()| _ = client.write("hello"));
            sleep(50).await.unwrap();
            assert!(
                over.client.destroyed() && over.below.readable().destroyed(),
                "{at}"
            );
            let text = over.log.text();
            assert!(
                text.contains("below-destroyed") && text.ends_with("close"),
                "{at}: {text}"
            );
            assert!(!text.contains("error"), "{at}: {text}");
        });
    }
}

#[test]
fn n161_the_end_of_the_stream_below_is_that_of_the_socket() {
    type End = fn(&Over);
    let ends: [(End, &str); 4] = [
        (
            |over| over.below.destroy(None),
            "secure below-destroyed close",
        ),
        (
            |over| over.below.destroy(Some(Error::new("boom"))),
            "secure below-destroyed error-boom close",
        ),
        (
            |over| over.client.destroy(None),
            "secure below-destroyed close",
        ),
        (
            // What was written before a `destroy` is lost.
            |over| {
                over.client.write("hello");
                over.client.destroy(None);
            },
            "secure below-destroyed close",
        ),
    ];
    for (end, expected) in ends {
        run(async move {
            let over = over(|_, _| ());
            let known = over.clone();
            over.client.on(CONNECT, move |()| end(&known));
            sleep(50).await.unwrap();
            assert_eq!(over.log.text(), expected);
        });
    }
}

#[test]
fn n161_bytes_go_through_a_slow_stream_below() {
    run(async {
        let over = over(|_, _| ());
        once(&over.client, CONNECT).await.unwrap();
        over.log.text();
        let taken = over.client.write(vec![7; 300_000]);
        assert!(!taken);
        over.client.end(());
        sleep(50).await.unwrap();
        let text = over.log.text();
        let sizes = text
            .split(' ')
            .filter_map(|word| word.strip_prefix("server-"));
        let sizes: Vec<usize> = sizes.map(|size| size.parse().unwrap()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 300_000, "{text}");
    });
}

#[test]
fn n161_a_handshake_that_takes_two_minutes_is_an_error() {
    run(async {
        let (left, right) = duplex_pair::<Vec<u8>>();
        let identity = ServerContext::new(CERTIFICATE, KEY).unwrap();
        let socket = tls::accept_over(&right, &identity);
        let (start, seen) = (LoopHandle::current().now(), Rc::new(Cell::new(None)));
        let known = seen.clone();
        socket.on(ERROR, move |error| {
            let after = LoopHandle::current().now() - start;
            known.set(Some((
                after,
                error.code().map(str::to_owned),
                error.message().to_owned(),
            )));
        });
        left.writable().write(b"\x16\x03\x01".to_vec());
        sleep(119_000).await.unwrap();
        assert!(seen.take().is_none());
        sleep(2_000).await.unwrap();
        let (after, code, text) = seen.take().unwrap();
        assert!(after >= ms(120_000));
        assert_eq!(code.as_deref(), Some("ERR_TLS_HANDSHAKE_TIMEOUT"));
        assert_eq!(text, "TLS handshake timeout");
        assert!(right.as_duplex().readable().destroyed());
    });
}

#[test]
fn n161_the_limit_of_a_handshake_does_not_keep_the_loop_alive() {
    let (mut event_loop, _, _) = paused();
    let start = event_loop.handle().now();
    let program = async {
        let (left, right) = duplex_pair::<Vec<u8>>();
        let identity = ServerContext::new(CERTIFICATE, KEY).unwrap();
        tls::accept_over(&right, &identity).on(ERROR, |_| ());
        drop(left);
    };
    assert_eq!(run_on(&mut event_loop, program).code(), 0);
    assert!(event_loop.handle().now() - start < ms(120_000));
}
