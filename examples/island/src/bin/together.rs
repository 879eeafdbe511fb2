//! Everything that needs a tokio runtime, at once, on one loop and one thread: `axum::serve` with a
//! graceful shutdown, axum's WebSockets on sockets of the loop, reqwest, sqlx, redis, tower's
//! middleware, `tokio::spawn` and a `LocalSet`, beside tasks that share an `Rc`.
//!
//! ```text
//! cargo run --manifest-path examples/island/Cargo.toml --bin together
//! ```
//!
//! The part for redis needs a `redis-server`, and says so if there is none.

use std::cell::Cell;
use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::routing::get;
use futures::{SinkExt, StreamExt};
use phaseloop::hyper::HyperIo;
use phaseloop::time::sleep;
use phaseloop::{JoinHandle, Local, spawn};
use tokio::sync::oneshot;
use tower::{Service, ServiceExt};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// The number of times that each part repeats its work.
const ROUNDS: usize = 20;

#[phaseloop::main(tokio)]
async fn main() -> Outcome {
    // Not `Send`: every part counts in it, from a task of the loop.
    let done = Rc::new(Cell::new(0));
    let (stop, stopped) = oneshot::channel();
    let (address, server) = serve(stopped).await?;
    let parts: [(&str, JoinHandle<Outcome>); 6] = [
        ("reqwest", spawn(count(done.clone(), reqwest(address)))),
        ("WebSocket", spawn(count(done.clone(), websocket()))),
        ("sqlx", spawn(count(done.clone(), sqlx()))),
        ("redis", spawn(count(done.clone(), redis()))),
        ("tower", spawn(count(done.clone(), tower()))),
        ("LocalSet", spawn(count(done.clone(), local_set()))),
    ];
    let expected = parts.len();
    for (name, part) in parts {
        part.await??;
        println!("{name}: done");
    }
    assert_eq!(done.get(), expected);
    // A request that is under way when the server stops is answered.
    let slow = spawn(reqwest::get(format!("http://{address}/slow")));
    sleep(Duration::from_millis(20)).await;
    stop.send(()).expect("the server waits for it");
    assert_eq!(slow.await??.text().await?, "slow");
    server.await?;
    println!("axum::serve: stopped");
    Ok(())
}

async fn count(done: Rc<Cell<usize>>, part: impl Future<Output = Outcome>) -> Outcome {
    part.await?;
    done.set(done.get() + 1);
    Ok(())
}

/// `axum::serve`, unmodified, in a task of tokio. Its handlers wait for timers of both.
async fn serve(
    stopped: oneshot::Receiver<()>,
) -> Outcome<(SocketAddr, tokio::task::JoinHandle<()>)> {
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Local::new(sleep(Duration::from_millis(50))).await;
        "slow"
    };
    let router = Router::new()
        .route("/", get(async || "hello"))
        .route("/slow", get(slow));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move {
        let server = axum::serve(listener, router);
        let server = server.with_graceful_shutdown(async { _ = stopped.await });
        server.await.expect("the server ends well");
    });
    Ok((address, server))
}

async fn reqwest(address: SocketAddr) -> Outcome {
    let client = reqwest::Client::new();
    for _ in 0..ROUNDS {
        let answer = client.get(format!("http://{address}/")).send().await?;
        assert_eq!(answer.text().await?, "hello");
    }
    Ok(())
}

/// axum's WebSocket on a socket of the loop: hyper drives it in a task of the loop, and axum runs
/// its handler in a task of tokio.
async fn websocket() -> Outcome {
    let listener = phaseloop::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let upgrade = async |upgrade: WebSocketUpgrade| {
        upgrade.on_upgrade(async |mut socket| {
            while let Some(Ok(message)) = socket.recv().await {
                if matches!(message, Message::Text(_)) && socket.send(message).await.is_err() {
                    break;
                }
            }
        })
    };
    let router = Router::new().route("/echo", get(upgrade));
    let server = spawn(async move {
        let (stream, _) = listener.accept().await.expect("accepts");
        let service = hyper::service::service_fn(move |request: hyper::Request<_>| {
            let router = router.clone();
            async move { router.oneshot(request.map(axum::body::Body::new)).await }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(HyperIo::new(stream), service)
            .with_upgrades();
        connection.await.expect("the connection ends well");
    });
    let url = format!("ws://{address}/echo");
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await?;
    for n in 0..ROUNDS {
        socket.send(format!("message {n}").into()).await?;
        let answer = socket.next().await.ok_or("closed")??;
        assert_eq!(answer.into_text()?.as_str(), format!("message {n}"));
    }
    socket.close(None).await?;
    server.await?;
    Ok(())
}

async fn sqlx() -> Outcome {
    let pool = sqlx::sqlite::SqlitePoolOptions::new()
        .max_connections(1)
        .connect("sqlite::memory:")
        .await?;
    sqlx::query("create table numbers (n integer)")
        .execute(&pool)
        .await?;
    for n in 0..ROUNDS {
        sqlx::query("insert into numbers values (?)")
            .bind(n as i64)
            .execute(&pool)
            .await?;
    }
    let sum: i64 = sqlx::query_scalar("select sum(n) from numbers")
        .fetch_one(&pool)
        .await?;
    assert_eq!(sum, (0..ROUNDS as i64).sum());
    pool.close().await;
    Ok(())
}

/// A server that ends with this value.
struct RedisServer(Child);

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn redis() -> Outcome {
    let directory = std::env::temp_dir();
    let socket = directory.join(format!("phaseloop-island-{}.sock", std::process::id()));
    let server = Command::new("redis-server")
        .args([
            "--port",
            "0",
            "--save",
            "",
            "--appendonly",
            "no",
            "--unixsocket",
        ])
        .arg(&socket)
        .stdout(Stdio::null())
        .spawn();
    let Ok(server) = server else {
        println!("redis: SKIPPED, there is no redis-server");
        return Ok(());
    };
    let _server = RedisServer(server);
    let client = redis::Client::open(format!("redis+unix://{}", socket.display()))?;
    let mut connection = loop {
        match client.get_multiplexed_async_connection().await {
            Ok(connection) => break connection,
            // The server has not opened its socket yet.
            Err(error) if error.is_io_error() => sleep(Duration::from_millis(20)).await,
            Err(error) => return Err(error.into()),
        }
    };
    for _ in 0..ROUNDS {
        let () = redis::cmd("INCR")
            .arg("n")
            .query_async(&mut connection)
            .await?;
    }
    let n: usize = redis::cmd("GET")
        .arg("n")
        .query_async(&mut connection)
        .await?;
    assert_eq!(n, ROUNDS);
    Ok(())
}

async fn tower() -> Outcome {
    let mut service = tower::ServiceBuilder::new()
        .buffer(8)
        .rate_limit(1_000, Duration::from_millis(1))
        .timeout(Duration::from_millis(20))
        .service_fn(async |wait: Duration| {
            Local::new(sleep(wait)).await;
            Ok::<_, Infallible>("in time")
        });
    for _ in 0..ROUNDS {
        let answer = service.ready().await?.call(Duration::ZERO).await?;
        assert_eq!(answer, "in time");
    }
    let late = service.ready().await?.call(Duration::from_secs(3600)).await;
    assert!(late.is_err_and(|error| error.is::<tower::timeout::error::Elapsed>()));
    Ok(())
}

async fn local_set() -> Outcome {
    let shared = Rc::new(Cell::new(0));
    let set = tokio::task::LocalSet::new();
    for _ in 0..ROUNDS {
        let shared = shared.clone();
        set.spawn_local(async move {
            let one = tokio::spawn(async { 1 }).await.expect("no panic");
            shared.set(shared.get() + one);
        });
    }
    set.await;
    assert_eq!(shared.get(), ROUNDS);
    Ok(())
}
