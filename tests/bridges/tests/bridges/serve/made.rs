//! Services that are made for each connection, and the limit of time around a service.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Ready, pending, poll_fn, ready};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::extract::connect_info::Connected;
use axum::routing::get;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, StatusCode};
use phaseloop::hyper::{Listener, ServeError, Timeout, TimeoutLayer, serve};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::{Local, block_on, spawn, time};
use tower_service::Service;

use super::{Answer, Client, answer, listener, start};

async fn whoami(ConnectInfo(peer): ConnectInfo<SocketAddr>) -> String {
    peer.to_string()
}

#[test]
fn axums_connect_info_is_the_address_of_the_peer() {
    block_on(async {
        let (listener, address) = listener().await;
        let router = Router::new().route("/", get(whoami));
        let made = router.into_make_service_with_connect_info::<SocketAddr>();
        let server = start(serve(listener, made));
        for _ in 0..3 {
            let mut client = Client::connect(address).await;
            let own = client.stream.local_addr().unwrap().to_string();
            assert_eq!(client.ask().await, own);
            assert_eq!(
                client.ask().await,
                own,
                "of the connection, not of the request"
            );
        }
        assert!(server.end().await.is_empty());
    });
}

#[derive(Clone)]
struct Port(u16);

impl Connected<SocketAddr> for Port {
    fn connect_info(address: SocketAddr) -> Self {
        Self(address.port())
    }
}

#[test]
fn information_of_ones_own_and_none_are_made_as_well_also_behind_a_handshake() {
    block_on(async {
        let (listener, address) = listener().await;
        let port = |ConnectInfo(port): ConnectInfo<Port>| async move { port.0.to_string() };
        let router = Router::new().route("/", get(port));
        let shaken = listener.with_handshake(|stream: TcpStream| async move { Ok(stream) });
        let made = router.into_make_service_with_connect_info::<Port>();
        let server = start(serve(shaken, made));
        let mut client = Client::connect(address).await;
        let own = client.stream.local_addr().unwrap().port().to_string();
        assert_eq!(client.ask().await, own);
        assert!(server.end().await.is_empty());

        let (listener, address) = super::listener().await;
        let router = Router::new().route("/", get(async || "plain"));
        let server = start(serve(listener, router.into_make_service()));
        assert_eq!(Client::connect(address).await.ask().await, "plain");
        assert!(server.end().await.is_empty());
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_unix_listener_knows_the_process_at_the_other_end() {
    use crate::util::files::Directory;
    use phaseloop::net::{PeerCredentials, UnixListener, UnixStream};

    #[derive(Clone)]
    struct Process(Option<u32>);

    impl Connected<Option<PeerCredentials>> for Process {
        fn connect_info(peer: Option<PeerCredentials>) -> Self {
            Self(peer.map(|peer| peer.process))
        }
    }

    block_on(async {
        let directory = Directory::new("connect-info");
        let path = directory.path("socket");
        let process = |ConnectInfo(process): ConnectInfo<Process>| async move {
            process.0.unwrap().to_string()
        };
        let router = Router::new().route("/", get(process));
        let made = router.into_make_service_with_connect_info::<Process>();
        let listener = UnixListener::bind(&path).unwrap();
        let server = start(serve(listener, made));
        let mut client = UnixStream::connect(&path).await.unwrap();
        futures::AsyncWriteExt::write_all(
            &mut client,
            b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n",
        )
        .await
        .unwrap();
        let mut text = String::new();
        futures::AsyncReadExt::read_to_string(&mut client, &mut text)
            .await
            .unwrap();
        assert!(text.ends_with(&std::process::id().to_string()), "{text}");
        assert!(server.end().await.is_empty());
    });
}

/// Makes services that are not `Send`. Every second one fails; each is ready in the second poll.
#[derive(Clone)]
struct Every {
    count: Rc<Cell<u32>>,
    is_ready: bool,
}

impl Service<SocketAddr> for Every {
    type Response = Numbered;
    type Error = io::Error;
    type Future = Ready<io::Result<Numbered>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if std::mem::replace(&mut self.is_ready, true) {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, _: SocketAddr) -> Self::Future {
        assert!(self.is_ready, "asked before");
        self.count.set(self.count.get() + 1);
        ready(match self.count.get() % 2 {
            0 => Err(io::Error::other("no service today")),
            _ => Ok(Numbered(Rc::new(self.count.get()))),
        })
    }
}

#[derive(Clone)]
struct Numbered(Rc<u32>);

impl Service<Request<Incoming>> for Numbered {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Answer>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Incoming>) -> Self::Future {
        ready(answer(self.0.to_string()))
    }
}

#[test]
fn a_service_that_cannot_be_made_closes_its_connection_and_no_other() {
    block_on(async {
        let (listener, address) = listener().await;
        let make = Every {
            count: Rc::default(),
            is_ready: false,
        };
        let server = start(serve(listener, make));
        let mut first = Client::connect(address).await;
        assert_eq!(first.ask().await, "1");
        let mut second = Client::connect(address).await;
        assert!(second.is_closed().await);
        let mut third = Client::connect(address).await;
        assert_eq!(third.ask().await, "3");
        assert_eq!(first.ask().await, "1");
        let errors = server.end().await;
        assert_eq!(errors.len(), 1);
        let ServeError::Handshake(error) = &errors[0] else {
            panic!("{errors:?}");
        };
        assert_eq!(error.to_string(), "no service today");
    });
}

/// A make service that never answers is bounded like a handshake.
#[test]
fn a_service_that_is_never_made_is_out_of_time_as_a_handshake_is() {
    #[derive(Clone)]
    struct Never;
    impl Service<SocketAddr> for Never {
        type Response = Numbered;
        type Error = Infallible;
        type Future = std::future::Pending<Result<Numbered, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: SocketAddr) -> Self::Future {
            pending()
        }
    }

    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        let server = start(serve(listener, Never));
        let mut client = Client::connect(address).await;
        let before = time::now();
        assert!(client.is_closed().await);
        assert!(time::now() - before >= Duration::from_secs(30));
        assert_eq!(server.end().await.len(), 1);
    });
}

// The limit of time.

fn is_send<T: Send>(value: T) -> T {
    value
}

#[test]
fn a_handler_that_is_out_of_time_is_dropped_and_answered_for() {
    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        let dropped = Local::new(Rc::new(Cell::new(0)));
        let log = dropped.clone();
        let slow = move || {
            let guard = OnDrop(log.clone());
            async move {
                pending::<()>().await;
                drop(guard);
            }
        };
        let nap = || Local::new(async { time::sleep(Duration::from_secs(9)).await });
        let router = Router::new()
            .route("/", get(slow))
            .route("/nap", get(nap))
            .layer(is_send(TimeoutLayer::new(Duration::from_secs(10))));
        let server = start(serve(listener, router));
        let mut client = Client::connect(address).await;
        let before = time::now();
        client.send(super::ASK).await;
        assert_eq!(client.status().await, 408);
        assert_eq!(time::now() - before, Duration::from_secs(10));
        assert_eq!(dropped.get(), 1);
        // The connection goes on, and what is in time is not touched.
        let before = time::now();
        client
            .send(b"GET /nap HTTP/1.1\r\nHost: here\r\n\r\n")
            .await;
        assert_eq!(client.status().await, 200);
        assert_eq!(time::now() - before, Duration::from_secs(9));
        assert!(server.end().await.is_empty());
    });
}

struct OnDrop(Local<Rc<Cell<u32>>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// A service that need not be `Send`, and is ready when it likes.
#[derive(Clone)]
struct Slow {
    answers_after: Option<Duration>,
    _local: Rc<()>,
}

impl Service<Request<()>> for Slow {
    type Response = Response<String>;
    type Error = io::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = io::Result<Response<String>>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match self.answers_after {
            None => Err(io::Error::other("not ready")),
            Some(_) => Ok(()),
        })
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let after = self.answers_after.unwrap();
        Box::pin(async move {
            time::sleep(after).await;
            match after.is_zero() {
                true => Err(io::Error::other("an error of its own")),
                false => Ok(Response::new("in time".to_owned())),
            }
        })
    }
}

#[test]
fn errors_pass_and_an_answer_at_the_last_moment_wins() {
    let limit = Duration::from_secs(1);
    let layer = TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, limit);
    let service = |answers_after| -> Timeout<Slow> {
        let slow = Slow {
            answers_after,
            _local: Rc::default(),
        };
        tower_layer::Layer::layer(&layer, slow)
    };
    block_on(async {
        time::pause();
        let mut not_ready = service(None);
        let error = poll_fn(|cx| not_ready.poll_ready(cx)).await.unwrap_err();
        assert_eq!(error.to_string(), "not ready");
        let error = service(Some(Duration::ZERO)).call(Request::new(())).await;
        assert_eq!(error.unwrap_err().to_string(), "an error of its own");
        // Both sleeps end in one turn; the answer is asked first.
        let answer = service(Some(limit)).call(Request::new(())).await.unwrap();
        assert_eq!(
            (answer.status(), &**answer.body()),
            (StatusCode::OK, "in time")
        );
        let late = service(Some(limit + Duration::from_millis(1)));
        let late = late.clone().call(Request::new(())).await.unwrap();
        assert_eq!(late.status(), StatusCode::GATEWAY_TIMEOUT);
        assert!(late.body().is_empty());
        // A limit that never ends a request, and one that does at once.
        let endless = TimeoutLayer::new(Duration::MAX);
        let slow = Slow {
            answers_after: Some(limit),
            _local: Rc::default(),
        };
        let mut service = tower_layer::Layer::layer(&endless, slow.clone());
        assert_eq!(service.call(Request::new(())).await.unwrap().status(), 200);
        let none = TimeoutLayer::new(Duration::ZERO);
        let mut service = tower_layer::Layer::layer(&none, slow);
        assert_eq!(service.call(Request::new(())).await.unwrap().status(), 408);
    });
}

/// What is dropped before its time leaves no timer.
#[test]
fn a_call_that_is_given_up_leaves_nothing_on_the_loop() {
    let finished = phaseloop::run(async {
        let layer = TimeoutLayer::new(Duration::from_secs(3600));
        let slow = Slow {
            answers_after: Some(Duration::from_secs(3600)),
            _local: Rc::default(),
        };
        let mut service = tower_layer::Layer::layer(&layer, slow);
        let task = spawn(service.call(Request::new(())));
        phaseloop::phase::check().await;
        task.abort();
        task.await.unwrap_err().is_cancelled()
    });
    assert!(finished.unwrap());
}

#[allow(dead_code, reason = "it is compiled, not run")]
fn a_listener_of_tcp_names_its_address(listener: TcpListener) {
    fn address_of<L: phaseloop::hyper::Addressed<Address = SocketAddr>>(_: L) {}
    address_of(listener);
}
