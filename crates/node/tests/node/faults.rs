//! A server of `node::net` while the kernel refuses its connections. The tests run themselves under
//! `strace`; where there is none, they say so and pass.
#![cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]

use crate::util::faults::with_faults;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop::LoopHandle;
use phaseloop_node as node;
use phaseloop_node::events::ERROR;
use phaseloop_node::net::{self, CONNECTION, LISTENING};
use phaseloop_node::{Emitter, process, set_timeout};

/// How long a listener rests after an error that stays, in milliseconds.
const REST: u128 = 10;

/// Listens while every accept fails with `error`, and returns the texts of the errors that were
/// emitted in 100 ms. Checks that the server has rested in between.
fn errors_of_a_server() -> Vec<String> {
    let errors = Rc::new(RefCell::new(Vec::new()));
    let seen = errors.clone();
    let exit = node::run(async move {
        let server = net::Server::new();
        server.on(ERROR, move |error| {
            assert_eq!(error.syscall(), Some("accept"));
            seen.borrow_mut().push(error.to_string());
        });
        server.on(CONNECTION, |_| panic!("none is accepted"));
        let this = server.clone();
        server.on(LISTENING, move |()| {
            let client = net::connect(this.address().unwrap());
            client.on(ERROR, |_| ());
            let (server, turns, start) = (this.clone(), turns(), LoopHandle::current().now());
            set_timeout(100, move || {
                let passed = (LoopHandle::current().now() - start).as_millis();
                let made = u128::from(self::turns() - turns);
                assert!(
                    made <= 4 * (passed / REST + 8),
                    "{made} turns in {passed} ms"
                );
                client.destroy(None);
                server.close();
            });
        });
        server.listen(SocketAddr::from(([127, 0, 0, 1], 0)));
    });
    assert_eq!(exit.code(), 0);
    errors.take()
}

fn turns() -> u64 {
    LoopHandle::current().turns()
}

fn emits_under(test: &str, code: &str) {
    // musl makes an `accept4` that fails with EINVAL once more, as `accept`.
    let fault = format!("accept4,accept:error={code}");
    with_faults(test, &[&fault], || {
        let errors = errors_of_a_server();
        assert!(!errors.is_empty());
        assert!(
            errors.iter().all(|text| *text == format!("accept {code}")),
            "{errors:?}"
        );
    });
}

#[test]
fn a_server_emits_that_there_are_no_buffers_and_rests() {
    emits_under(
        "a_server_emits_that_there_are_no_buffers_and_rests",
        "ENOBUFS",
    );
}

#[test]
fn a_server_emits_that_there_is_no_memory_and_rests() {
    emits_under("a_server_emits_that_there_is_no_memory_and_rests", "ENOMEM");
}

#[test]
fn a_server_emits_that_accepting_is_forbidden_and_rests() {
    emits_under(
        "a_server_emits_that_accepting_is_forbidden_and_rests",
        "EPERM",
    );
}

#[test]
fn a_server_emits_that_its_socket_does_not_listen_and_rests() {
    emits_under(
        "a_server_emits_that_its_socket_does_not_listen_and_rests",
        "EINVAL",
    );
}

/// Not even the spare descriptor helps: the connections that wait cannot be turned away.
#[test]
fn a_server_emits_that_there_is_no_descriptor_at_all_and_rests() {
    emits_under(
        "a_server_emits_that_there_is_no_descriptor_at_all_and_rests",
        "EMFILE",
    );
}

#[test]
fn a_server_says_nothing_of_connections_that_were_aborted() {
    let test = "a_server_says_nothing_of_connections_that_were_aborted";
    with_faults(test, &["accept4:error=ECONNABORTED"], || {
        assert_eq!(errors_of_a_server(), [""; 0]);
    });
}

#[test]
fn an_accept_error_without_a_listener_is_uncaught_and_the_server_goes_on() {
    let test = "an_accept_error_without_a_listener_is_uncaught_and_the_server_goes_on";
    with_faults(test, &["accept4:error=ENOBUFS:when=1..2"], || {
        let uncaught = Rc::new(Cell::new(0));
        let seen = uncaught.clone();
        let exit = node::run(async move {
            process::on_uncaught_exception(move |uncaught, _| {
                assert_eq!(uncaught.to_string(), "accept ENOBUFS");
                seen.set(seen.get() + 1);
            });
            let server = net::Server::new();
            let closes = server.clone();
            server.on(CONNECTION, move |socket| {
                socket.destroy(None);
                closes.close();
            });
            let this = server.clone();
            server.on(LISTENING, move |()| {
                net::connect(this.address().unwrap()).resume()
            });
            server.listen(SocketAddr::from(([127, 0, 0, 1], 0)));
        });
        assert_eq!((exit.code(), uncaught.get()), (0, 2));
    });
}
