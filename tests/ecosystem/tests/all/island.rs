//! Everything at once: crates of tokio and tasks of the loop in one program, on one thread.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::{spawn, time};

#[test]
fn tokios_tasks_and_ours_share_a_thread() {
    phaseloop::tokio::block_on(async {
        let thread = std::thread::current().id();
        let turns = Rc::new(Cell::new(0));
        let ours = spawn({
            let turns = turns.clone();
            async move {
                for _ in 0..10 {
                    time::sleep(Duration::from_millis(1)).await;
                    turns.set(turns.get() + 1);
                }
            }
        });
        let theirs = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            std::thread::current().id()
        });
        assert_eq!(theirs.await.unwrap(), thread);
        ours.await.unwrap();
        assert_eq!(turns.get(), 10);
    });
}

#[cfg(feature = "heavy")]
#[test]
fn reqwest_asks_our_server() {
    use phaseloop::hyper::serve;
    use phaseloop::net::TcpListener;

    phaseloop::tokio::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().route("/", axum::routing::get(async || "hello"));
        let server = spawn(serve(listener, router));
        let client = Rc::new(reqwest::Client::new());
        let tasks = (0..10).map(|_| {
            let client = client.clone();
            spawn(async move {
                let answer = client.get(format!("http://{address}/")).send().await;
                answer.unwrap().text().await.unwrap()
            })
        });
        for text in futures::future::join_all(tasks).await {
            assert_eq!(text.unwrap(), "hello");
        }
        server.abort();
    });
}
