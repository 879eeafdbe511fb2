//! What an error that ends the program prints: the causes with their fields, and lines of the program.

use crate::util::child::in_child;

use phaseloop_node::{Deferred, Error, Promise, http, net, run, set_timeout};

/// Runs `program`, which an error ends, in a process of its own. Returns what it prints.
#[track_caller]
fn printed(test: &str, program: impl FnOnce()) -> Option<String> {
    let child = in_child(&[], test, program)?;
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    Some(text)
}

/// Checks that the lines are printed one after the other; `*` stands for any text.
#[track_caller]
fn assert_prints(text: &str, lines: &[&str]) {
    let mut found = text
        .lines()
        .skip_while(|line| !line.starts_with("phaseloop: "));
    for line in lines {
        let shown = found.next().unwrap_or_default();
        let mut rest = shown;
        for part in line.split('*') {
            let at = rest.find(part);
            rest = &rest[at.unwrap_or_else(|| panic!("{line}\n{text}")) + part.len()..];
        }
    }
}

#[test]
fn a_failed_listen_has_the_line_of_its_call() {
    let text = printed("a_failed_listen_has_the_line_of_its_call", || {
        let exit = run(async {
            let first = net::create_server(|_| ());
            first.listen_this(("127.0.0.1", 0), |first| {
                http::create_server(|_, _| ()).listen(first.address().unwrap());
            });
        });
        assert_eq!(exit.code(), 1);
    });
    if let Some(text) = text {
        let error = "phaseloop: uncaught: Error: listen EADDRINUSE: address already in use 127.0.0.1:*\
            { code: 'EADDRINUSE', syscall: 'listen', address: '127.0.0.1', port: * }";
        assert_prints(&text, &[error, "    at *uncaught.rs:39:48"]);
    }
}

#[test]
fn a_rejection_has_its_causes_and_the_line_of_its_promise() {
    let text = printed(
        "a_rejection_has_its_causes_and_the_line_of_its_promise",
        || {
            let exit = run(async {
                let reject = |deferred: Deferred<()>| {
                    let cause = Error::new("inner").coded("E_INNER");
                    let error = Error::type_error("outer").caused_by(cause);
                    set_timeout(1, move || deferred.reject(error));
                };
                drop(Promise::new(reject));
            });
            assert_eq!(exit.code(), 1);
        },
    );
    if let Some(text) = text {
        let lines = [
            "phaseloop: unhandled rejection: TypeError: outer",
            "  [cause]: Error: inner { code: 'E_INNER' }",
            "    of the promise at *uncaught.rs:62:22",
        ];
        assert_prints(&text, &lines);
    }
}

#[test]
fn a_refused_connection_has_the_line_that_connects() {
    let text = printed("a_refused_connection_has_the_line_that_connects", || {
        let exit = run(async {
            // Nothing listens on the port of a server that is closed.
            let server = net::create_server(|_| ());
            server.listen_this(("127.0.0.1", 0), |server| {
                let address = server.address().unwrap();
                server.close_with(move || drop(net::connect(address)));
            });
        });
        assert_eq!(exit.code(), 1);
    });
    if let Some(text) = text {
        let error = "phaseloop: uncaught: Error: connect ECONNREFUSED 127.0.0.1:*\
            { code: 'ECONNREFUSED', syscall: 'connect', address: '127.0.0.1', port: * }";
        assert_prints(&text, &[error, "    at *uncaught.rs:85:48"]);
    }
}
