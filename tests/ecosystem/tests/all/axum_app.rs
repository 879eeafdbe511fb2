//! axum: an `Rc` as state, handlers that await the loop, JSON; and `axum::serve` on the island.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use phaseloop::hyper::{Connector, serve};
use phaseloop::net::TcpListener;
use phaseloop::{Local, block_on, spawn, time};

type Names = Local<Rc<RefCell<Vec<String>>>>;

async fn add(State(names): State<Names>, Json(name): Json<String>) -> Json<usize> {
    Local::new(time::sleep(Duration::from_millis(1))).await;
    names.borrow_mut().push(name);
    Json(names.borrow().len())
}

async fn list(State(names): State<Names>) -> Json<Vec<String>> {
    let copy = spawn({
        let names = Rc::clone(&names);
        async move { names.borrow().clone() }
    });
    Json(Local::new(copy).await.unwrap())
}

#[test]
fn handlers_share_an_rc_and_await_the_loop() {
    block_on(async {
        let names = Names::new(Rc::default());
        let router = Router::new()
            .route("/names", post(add).get(list))
            .with_state(names);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(serve(listener, router));
        let client = Connector::new().client::<Full<Bytes>>();
        let uri = format!("http://{address}/names");
        for name in ["\"ada\"", "\"grace\""] {
            let request = Request::post(&uri).header("content-type", "application/json");
            let answer = client.request(request.body(name.into()).unwrap()).await;
            assert!(answer.unwrap().status().is_success());
        }
        let answer = client.get(uri.parse().unwrap()).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let names: Vec<String> = serde_json::from_slice(&body).unwrap();
        assert_eq!(names, ["ada", "grace"]);
        server.abort();
    });
}

#[test]
fn axums_own_server_on_the_island() {
    phaseloop::tokio::block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(async || "from tokio"));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let server =
            axum::serve(listener, router).with_graceful_shutdown(async move { _ = stopped.await });
        let server = tokio::spawn(server.into_future());
        // A client of the loop asks a server of tokio, on one thread.
        let client = Connector::new().client::<Full<Bytes>>();
        let answer = client.get(format!("http://{address}/").parse().unwrap());
        let body = answer.await.unwrap().into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), "from tokio");
        drop(client);
        stop.send(()).unwrap();
        server.await.unwrap().unwrap();
    });
}
