//! Bodies whose reader gives up: a loop that is left, a pipeline that fails. Each trace is what the
//! same program prints on Node.

use crate::util::trace::{Trace, paused};

use futures::StreamExt as _;
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{self, ABORTED, RESPONSE, RequestOptions, Server};
use phaseloop_node::net::LISTENING;
use phaseloop_node::stream::{CLOSE, Writable, pipeline};
use phaseloop_node::{Emitter, Error, call, run_on, set_interval, sleep};

/// Runs a program with a listening server on the paused clock, and returns what it logs.
fn traced<F>(
    server: impl FnOnce(Trace) -> Server + 'static,
    program: impl FnOnce(Trace, Server) -> F + 'static,
) -> String
where
    F: Future<Output = ()> + 'static,
{
    let (mut event_loop, _, trace) = paused();
    let log = trace.clone();
    let exit = run_on(&mut event_loop, async move {
        let server = server(log.clone());
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        program(log, server.clone()).await;
        server.close_all_connections();
        server.close();
    });
    assert_eq!(exit.code(), 0);
    trace.take()
}

fn to(server: &Server) -> RequestOptions {
    RequestOptions::new(server.address().unwrap())
}

/// Sends a body in two parts, some time apart, and logs the answer.
async fn post(trace: &Trace, server: &Server) {
    let request = http::request(to(server).method("POST"));
    let response = once(&request, RESPONSE);
    request.write("one");
    sleep(30).await.unwrap();
    request.end("two");
    let response = response.await.unwrap();
    let text = response.readable().to_array().await.unwrap().concat();
    let status = response.status_code().unwrap();
    trace.log(format!("{status} {}", String::from_utf8(text).unwrap()));
}

#[test]
fn a_handler_that_leaves_the_loop_over_the_body_still_answers() {
    let server = |trace: Trace| {
        http::create_server(move |req, res| {
            let [aborted, failed, closed, left, gone] = [(); 5].map(|()| trace.clone());
            req.on(ABORTED, move |()| aborted.log("aborted"));
            req.on(ERROR, move |error| failed.log(error.code().unwrap()));
            req.on(CLOSE, move |()| closed.log("req.close"));
            res.on(CLOSE, move |()| gone.log("res.close"));
            let (req, res) = (req.clone(), res.clone());
            call(async move {
                drop(req.readable().chunks().next().await);
                left.log("left");
                res.end("early");
            });
        })
    };
    let said = traced(server, |trace, server| async move {
        post(&trace, &server).await;
        // The rest of the body was dropped: the next request on the connection is read.
        post(&trace, &server).await;
        assert_eq!(server.connections(), 1);
    });
    let once = "aborted left ABORT_ERR req.close res.close 200 early";
    assert_eq!(said, format!("{once} {once}"));
}

#[test]
fn a_handler_whose_pipeline_fails_still_answers() {
    let server = |_| {
        http::create_server(|req, res| {
            let full = Writable::bytes(|_: Vec<u8>, done| done.fail(Error::new("full"))).build();
            let res = res.clone();
            pipeline(req.readable()).into(&full).then(move |result| {
                res.set_status(507);
                res.end(result.unwrap_err().to_string());
            });
        })
    };
    let said = traced(server, |trace, server| async move {
        post(&trace, &server).await;
        post(&trace, &server).await;
    });
    assert_eq!(said, "507 full 507 full");
}

#[test]
fn a_client_that_leaves_the_loop_over_an_answer_ends_its_request_without_an_error() {
    let server = |trace: Trace| {
        http::create_server(move |_, res| {
            let (writes, gone) = (res.clone(), trace.clone());
            let timer = set_interval(10, move |_| _ = writes.write("x"));
            res.on(CLOSE, move |()| {
                timer.close();
                gone.log("res.close");
            });
        })
    };
    let said = traced(server, |trace, server| async move {
        let request = http::get(to(&server));
        let [failed, closed, aborted, broken, ended] = [(); 5].map(|()| trace.clone());
        let response = once(&request, RESPONSE).await.unwrap();
        request.on(ERROR, move |_| failed.log("req.error"));
        request.on(CLOSE, move |()| closed.log("req.close"));
        response.on(ABORTED, move |()| aborted.log("aborted"));
        response.on(ERROR, move |error| broken.log(error.code().unwrap()));
        response.on(CLOSE, move |()| ended.log("client.close"));
        let mut chunks = response.readable().chunks();
        for _ in 0..2 {
            chunks.next().await.unwrap().unwrap();
        }
        drop(chunks);
        trace.log("left");
        sleep(50).await.unwrap();
    });
    assert_eq!(
        said,
        "left aborted req.close ECONNRESET client.close res.close"
    );
}

#[test]
fn a_client_whose_pipeline_fails_ends_its_request_without_an_error() {
    let server = |_| http::create_server(|_, _| ());
    let said = traced(server, |trace, server| async move {
        let request = http::request(to(&server).method("PUT"));
        let [failed, closed] = [(); 2].map(|()| trace.clone());
        request.on(ERROR, move |error| {
            failed.log(error.code().unwrap_or("none"))
        });
        request.on(CLOSE, move |()| closed.log("close"));
        let source = phaseloop_node::stream::Readable::bytes().build();
        source.push(b"begun".to_vec());
        let ended = pipeline(&source).into(request.writable());
        let sent = call(async move { ended.await.unwrap_err().to_string() });
        sleep(10).await.unwrap();
        source.destroy(Some(Error::new("broken")));
        trace.log(sent.await.unwrap());
        sleep(10).await.unwrap();
    });
    assert_eq!(said, "ECONNRESET close broken");
}
