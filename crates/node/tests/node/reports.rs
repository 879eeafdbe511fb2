//! What a report of the loop names of Node's servers, requests and timers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use phaseloop::LoopHandle;
use phaseloop_node::http::{self, Agent, RequestOptions};
use phaseloop_node::{Emitter, events::ERROR, fetch::fetch, process, run, set_immediate};

/// Runs a server that two clients ask, and returns the report while they wait for their answers.
fn report_of_requests() -> String {
    let report = Rc::new(RefCell::new(String::new()));
    let reported = report.clone();
    let exit = run(async move {
        let asked = Cell::new(0);
        let server = http::create_server(move |_, _| {
            asked.set(asked.get() + 1);
            if asked.get() == 2 {
                let reported = reported.clone();
                set_immediate(move || {
                    reported.replace(LoopHandle::current().report().to_string());
                    process::exit(0);
                });
            }
        });
        server.listen_this(("127.0.0.1", 0), |server| {
            let address = server.address().unwrap();
            let agent = Agent::builder().timeout(9000).build();
            let options = RequestOptions::new(address).agent(&agent);
            let request = http::request(options);
            request.on(ERROR, |_| ());
            request.end(());
            drop(fetch(format!("http://{address}/")).send());
        });
    });
    assert_eq!(exit.code(), 0);
    report.take()
}

#[test]
fn what_the_http_modules_open_has_the_lines_of_the_program() {
    let report = report_of_requests();
    let of_program = report.matches(file!()).count();
    assert!(!report.contains("src/node/"), "{report}");
    // The listener, both ends of two connections, two timers at least.
    assert!(of_program >= 7, "{report}");
    for what in ["TcpListener 127.0.0.1:", "TcpStream 127.0.0.1:", "timer ("] {
        assert!(report.contains(what), "{what}: {report}");
    }
}

#[test]
fn a_callback_is_no_waker_of_what_was_polled_when_it_was_set() {
    let report = report_of_requests();
    assert!(!report.contains("a waker of"), "{report}");
}
