//! `hyper::serve`: what it serves, and how it ends. The module `peers` has those that mean no good.

mod made;
mod peers;

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Ready, pending, ready};
use std::io;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use futures::channel::oneshot;
use futures::{AsyncReadExt, AsyncWriteExt};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use phaseloop::hyper::{
    HyperExecutor, HyperIo, HyperTimer, Listener, Serve, ServeError, serve, serve_with,
};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::{Handle, JoinHandle, Local, block_on, spawn, task, time};
use tokio_test::assert_pending;

const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
const SECOND: Duration = Duration::from_secs(1);

async fn listener() -> (TcpListener, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

type Answer = Result<Response<Full<Bytes>>, Infallible>;

fn answer(text: impl Into<Bytes>) -> Answer {
    Ok(Response::new(Full::new(text.into())))
}

/// A client that speaks bytes.
struct Client {
    stream: TcpStream,
}

impl Client {
    async fn connect(address: std::net::SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self { stream }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Reads one answer with a `Content-Length`, and returns its body.
    async fn answer(&mut self) -> String {
        let mut text = Vec::new();
        loop {
            let whole = String::from_utf8_lossy(&text);
            if let Some((head, body)) = whole.split_once("\r\n\r\n") {
                let length = head.to_lowercase();
                let (_, length) = length.split_once("content-length: ").unwrap();
                let length: usize = length.lines().next().unwrap().parse().unwrap();
                if body.len() >= length {
                    return body[..length].to_owned();
                }
            }
            let mut byte = [0];
            self.stream.read_exact(&mut byte).await.unwrap();
            text.push(byte[0]);
        }
    }

    /// Reads one answer, and returns its status.
    async fn status(&mut self) -> u16 {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).await.unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.to_lowercase().contains("content-length: 0"), "{head}");
        head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    async fn ask(&mut self) -> String {
        self.send(ASK).await;
        self.answer().await
    }

    /// Whether the server has closed the connection, with or without a reset.
    async fn is_closed(&mut self) -> bool {
        !matches!(self.stream.read(&mut [0]).await, Ok(1..))
    }
}

/// Lets everything happen that needs no time.
async fn settle() {
    for _ in 0..20 {
        task::yield_now_immediate().await;
    }
}

/// A running server, how to end it, and what went wrong.
struct Running {
    task: JoinHandle<io::Result<()>>,
    stop: oneshot::Sender<()>,
    errors: Rc<RefCell<Vec<ServeError>>>,
}

fn start<L: Listener>(server: Serve<L>) -> Running {
    let (stop, stopped) = oneshot::channel();
    let errors = Rc::new(RefCell::new(Vec::new()));
    let kept = errors.clone();
    let server = server
        .with_graceful_shutdown(async { _ = stopped.await })
        .on_error(move |error| kept.borrow_mut().push(error));
    Running {
        task: spawn(server),
        stop,
        errors,
    }
}

impl Running {
    async fn end(self) -> Vec<ServeError> {
        let _ = self.stop.send(());
        self.task.await.unwrap().unwrap();
        self.errors.take()
    }
}

fn counting() -> impl hyper::service::Service<
    Request<Incoming>,
    Response = Response<Full<Bytes>>,
    Error = Infallible,
    Future = Ready<Answer>,
> + Clone {
    let count = Rc::new(Cell::new(0));
    service_fn(move |_| {
        count.set(count.get() + 1);
        ready(answer(format!("{}", count.get())))
    })
}

#[test]
fn a_service_with_an_rc_is_shared_by_all_connections() {
    block_on(async {
        let (listener, address) = listener().await;
        let server = start(serve(listener, counting()));
        let mut one = Client::connect(address).await;
        let mut other = Client::connect(address).await;
        assert_eq!(one.ask().await, "1");
        assert_eq!(other.ask().await, "2");
        assert_eq!(one.ask().await, "3", "the connection stays open");
        assert!(server.end().await.is_empty());
    });
}

#[test]
fn an_axum_router_is_served_by_one_line() {
    type Hits = Local<Rc<Cell<u32>>>;
    async fn hit(State(hits): State<Hits>) -> String {
        Local::new(time::sleep(Duration::from_millis(1))).await;
        hits.set(hits.get() + 1);
        hits.get().to_string()
    }

    block_on(async {
        let (listener, address) = listener().await;
        let hits = Local::new(Rc::new(Cell::new(0)));
        let router = Router::new().route("/", get(hit)).with_state(hits);
        let server = start(serve(listener, router));
        assert_eq!(Client::connect(address).await.ask().await, "1");
        assert_eq!(Client::connect(address).await.ask().await, "2");
        assert!(server.end().await.is_empty());
    });
}

/// A tower service that is ready only at the second question is asked again before it is called.
#[test]
fn a_tower_service_is_called_when_it_is_ready() {
    use std::task::{Context, Poll};

    #[derive(Clone, Default)]
    struct Late {
        was_asked: bool,
    }

    impl tower_service::Service<Request<Incoming>> for Late {
        type Response = Response<Full<Bytes>>;
        type Error = Infallible;
        type Future = Ready<Answer>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            if std::mem::replace(&mut self.was_asked, true) {
                return Poll::Ready(Ok(()));
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }

        fn call(&mut self, _: Request<Incoming>) -> Ready<Answer> {
            assert!(self.was_asked);
            ready(answer("at last"))
        }
    }

    block_on(async {
        let (listener, address) = listener().await;
        let server = start(serve(listener, Late::default()));
        assert_eq!(Client::connect(address).await.ask().await, "at last");
        assert!(server.end().await.is_empty());
    });
}

async fn http2_client(
    address: std::net::SocketAddr,
) -> hyper::client::conn::http2::SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let builder = hyper::client::conn::http2::Builder::new(HyperExecutor);
    let (sender, connection) = builder.handshake(HyperIo::new(stream)).await.unwrap();
    spawn(connection).detach();
    sender
}

async fn body_of(answer: Response<Incoming>) -> Bytes {
    answer.into_body().collect().await.unwrap().to_bytes()
}

#[test]
fn both_versions_of_http_are_found_by_the_first_bytes() {
    block_on(async {
        let (listener, address) = listener().await;
        let service = service_fn(|request: Request<Incoming>| {
            ready(answer(format!("{:?}", request.version())))
        });
        let server = start(serve(listener, service));
        let mut sender = http2_client(address).await;
        let request = || Request::get("http://here/").body(Empty::new()).unwrap();
        let answers = futures::join!(
            sender.clone().send_request(request()),
            sender.send_request(request())
        );
        assert_eq!(body_of(answers.0.unwrap()).await, "HTTP/2.0");
        assert_eq!(body_of(answers.1.unwrap()).await, "HTTP/2.0");
        // Begins as the preface of HTTP/2 does, and comes byte by byte.
        let mut slow = Client::connect(address).await;
        for byte in b"PRO / HTTP/1.1\r\nHost: here\r\n\r\n" {
            slow.send(&[*byte]).await;
            settle().await;
        }
        assert_eq!(slow.answer().await, "HTTP/1.1");
        assert!(server.end().await.is_empty());
    });
}

#[test]
fn one_version_alone_refuses_the_other() {
    block_on(async {
        let (listener, address) = listener().await;
        let server = start(serve(listener, counting()).http1_only());
        let mut client = Client::connect(address).await;
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        let mut refusal = String::new();
        client.stream.read_to_string(&mut refusal).await.unwrap();
        assert!(
            refusal.is_empty() || refusal.starts_with("HTTP/1.1 4"),
            "{refusal}"
        );
        let errors = server.end().await;
        assert!(
            matches!(errors[..], [ServeError::Connection(_)]),
            "{errors:?}"
        );
    });
}

#[test]
fn small_answers_are_sent_at_once() {
    block_on(async {
        let (listener, address) = listener().await;
        let server = start(serve_with(listener, |stream: &TcpStream| {
            let nodelay = stream.nodelay().unwrap();
            service_fn(move |_| ready(answer(nodelay.to_string())))
        }));
        assert_eq!(Client::connect(address).await.ask().await, "true");
        assert!(server.end().await.is_empty());
    });
}

#[cfg(unix)]
#[test]
fn a_unix_listener_is_served() {
    use phaseloop::net::{UnixListener, UnixStream};

    block_on(async {
        let name = format!("phaseloop-serve-{}.socket", std::process::id());
        let path = std::env::temp_dir().join(name);
        let server = start(serve(UnixListener::bind(&path).unwrap(), counting()));
        let mut client = UnixStream::connect(&path).await.unwrap();
        client.write_all(ASK).await.unwrap();
        let mut text = [0; 15];
        client.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"HTTP/1.1 200 OK");
        assert!(server.end().await.is_empty());
        assert!(!path.exists());
    });
}

#[test]
fn a_served_connection_can_be_upgraded() {
    block_on(async {
        let (listener, address) = listener().await;
        let server = start(serve(
            listener,
            service_fn(|mut request: Request<Incoming>| {
                let upgrade = hyper::upgrade::on(&mut request);
                spawn(async move {
                    let parts = upgrade.await.unwrap().downcast::<HyperIo<TcpStream>>();
                    let mut stream = parts.unwrap().io.into_inner();
                    let mut word = [0; 4];
                    stream.read_exact(&mut word).await.unwrap();
                    word.reverse();
                    stream.write_all(&word).await.unwrap();
                })
                .detach();
                let answer = Response::builder().status(101);
                ready(answer.header("upgrade", "x").body(Empty::<Bytes>::new()))
            }),
        ));
        let mut client = Client::connect(address).await;
        client
            .send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
            .await;
        settle().await;
        // An upgraded connection is not the server's any more.
        assert!(server.end().await.is_empty());
        client.send(b"loop").await;
        let mut text = String::new();
        client.stream.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 101"), "{text}");
        assert!(text.ends_with("\r\n\r\npool"), "{text}");
    });
}

/// A server that is asked to end while one request is under way, one is half there, one connection
/// is idle, and one is new.
#[test]
fn a_graceful_end_answers_what_is_under_way_and_closes_the_rest() {
    block_on(async {
        let (listener, address) = listener().await;
        let (go, gone) = oneshot::channel::<()>();
        let gone = RefCell::new(Some(gone));
        let service = service_fn(move |request: Request<Incoming>| {
            let wait = (request.uri().path() == "/slow").then(|| gone.take().unwrap());
            async move {
                if let Some(wait) = wait {
                    wait.await.unwrap();
                }
                answer("done")
            }
        });
        // The service is made once and not cloned: it owns what it waits for.
        let service = Rc::new(service);
        let server = start(serve(listener, service));
        let mut busy = Client::connect(address).await;
        busy.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut half = Client::connect(address).await;
        half.send(b"GET / HTTP/1.1\r\nHo").await;
        let mut idle = Client::connect(address).await;
        assert_eq!(idle.ask().await, "done");
        let mut half_again = Client::connect(address).await;
        assert_eq!(half_again.ask().await, "done");
        half_again.send(b"GET / HTTP/1.1\r\nHo").await;
        let mut new = Client::connect(address).await;
        settle().await;

        server.stop.send(()).unwrap();
        assert!(idle.is_closed().await);
        assert!(new.is_closed().await);
        assert!(TcpStream::connect(address).await.is_err(), "refused");
        for mut half in [half, half_again] {
            half.send(b"st: a\r\n\r\n").await;
            assert_eq!(half.answer().await, "done");
            assert!(half.is_closed().await);
        }
        assert!(!server.task.is_finished());
        go.send(()).unwrap();
        assert_eq!(busy.answer().await, "done");
        assert!(busy.is_closed().await);
        server.task.await.unwrap().unwrap();
        assert!(server.errors.borrow().is_empty());
    });
}

#[test]
fn a_graceful_end_of_http2_answers_its_streams_and_closes() {
    block_on(async {
        let (listener, address) = listener().await;
        let (go, gone) = oneshot::channel::<()>();
        let gone = Rc::new(RefCell::new(Some(gone)));
        let service = service_fn(move |_| {
            let wait = gone.take();
            async move {
                if let Some(wait) = wait {
                    wait.await.unwrap();
                }
                answer("done")
            }
        });
        let server = start(serve(listener, service));
        let mut busy = http2_client(address).await;
        let request = || Request::get("http://here/").body(Empty::new()).unwrap();
        let under_way = spawn(busy.send_request(request()));
        settle().await;
        let mut idle = http2_client(address).await;
        idle.send_request(request()).await.unwrap();

        server.stop.send(()).unwrap();
        settle().await;
        assert!(idle.ready().await.is_err(), "closed");
        assert!(!server.task.is_finished());
        go.send(()).unwrap();
        assert_eq!(body_of(under_way.await.unwrap().unwrap()).await, "done");
        server.task.await.unwrap().unwrap();
        assert!(server.errors.borrow().is_empty());
    });
}

#[test]
fn a_second_deadline_cuts_what_does_not_end() {
    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        let service = service_fn(|_| pending::<Answer>());
        let server = start(serve(listener, service).shutdown_timeout(5 * SECOND));
        let mut client = Client::connect(address).await;
        client.send(ASK).await;
        settle().await;
        server.stop.send(()).unwrap();
        settle().await;
        time::advance(4 * SECOND).await;
        settle().await;
        assert!(!server.task.is_finished());
        time::advance(SECOND).await;
        server.task.await.unwrap().unwrap();
        assert!(client.is_closed().await);
        let errors = server.errors.take();
        assert!(
            matches!(errors[..], [ServeError::ShutdownTimeout]),
            "{errors:?}"
        );
    });
}

#[test]
fn a_server_that_is_dropped_closes_its_connections() {
    block_on(async {
        let (listener, address) = listener().await;
        let guard = Rc::new(());
        let held = guard.clone();
        let service = service_fn(move |_| {
            let held = held.clone();
            async move {
                let answer = pending::<Answer>().await;
                drop(held);
                answer
            }
        });
        let server = spawn(serve(listener, service));
        let mut client = Client::connect(address).await;
        client.send(ASK).await;
        settle().await;
        server.abort();
        assert!(client.is_closed().await);
        settle().await;
        assert_eq!(Rc::strong_count(&guard), 1, "nothing is left");
    });
}

#[test]
fn connections_beyond_the_limit_wait_for_a_place() {
    block_on(async {
        let (listener, address) = listener().await;
        let server = start(serve(listener, counting()).max_connections(1));
        let mut first = Client::connect(address).await;
        assert_eq!(first.ask().await, "1");
        let mut second = Client::connect(address).await;
        second.send(ASK).await;
        settle().await;
        let read = second.stream.try_read(&mut [0]);
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        assert_eq!(second.answer().await, "2");
        assert!(server.end().await.is_empty());
    });
}

#[test]
fn the_error_of_a_service_ends_its_connection_and_is_reported() {
    block_on(async {
        let (listener, address) = listener().await;
        let service = service_fn(|request: Request<Incoming>| {
            ready(match request.uri().path() {
                "/bad" => Err(io::Error::other("not this")),
                _ => Ok(Response::new(Full::new(Bytes::from("good")))),
            })
        });
        let server = start(serve(listener, service));
        let mut bad = Client::connect(address).await;
        bad.send(b"GET /bad HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(bad.is_closed().await);
        assert_eq!(Client::connect(address).await.ask().await, "good");
        let errors = server.end().await;
        let [error] = &errors[..] else {
            panic!("{errors:?}");
        };
        let text = error.to_string();
        assert!(text.starts_with("a connection failed: "), "{text}");
    });
}

#[test]
fn a_service_that_panics_ends_its_connection_only() {
    let event_loop = phaseloop::Builder::new()
        .unhandled_panic(phaseloop::UnhandledPanic::Ignore)
        .build()
        .unwrap();
    event_loop.block_on(async {
        let (listener, address) = listener().await;
        let service = service_fn(|request: Request<Incoming>| async move {
            assert!(request.uri().path() != "/panic", "on purpose");
            answer("fine")
        });
        let server = start(serve(listener, service));
        let mut other = Client::connect(address).await;
        assert_eq!(other.ask().await, "fine");
        let mut bad = Client::connect(address).await;
        bad.send(b"GET /panic HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(bad.is_closed().await);
        assert_eq!(other.ask().await, "fine");
        server.end().await;
    });
}

#[test]
fn a_handshake_delays_and_fails_its_own_connection_only() {
    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        // The first byte says what the handshake does.
        let listener = listener.with_handshake(|mut stream: TcpStream| async move {
            let mut byte = [0];
            stream.read_exact(&mut byte).await?;
            match byte[0] {
                b'+' => Ok(stream),
                _ => Err(io::ErrorKind::InvalidData.into()),
            }
        });
        let server = start(serve(listener, counting()).header_timeout(10 * SECOND));
        let mut slow = Client::connect(address).await;
        let mut good = Client::connect(address).await;
        good.send(b"+").await;
        assert_eq!(good.ask().await, "1");
        let mut bad = Client::connect(address).await;
        bad.send(b"-").await;
        assert!(bad.is_closed().await);
        let errors = server.errors.take();
        assert!(
            matches!(errors[..], [ServeError::Handshake(_)]),
            "{errors:?}"
        );
        time::advance(10 * SECOND).await;
        assert!(slow.is_closed().await);
        let errors = server.end().await;
        assert!(
            matches!(errors[..], [ServeError::HeaderTimeout]),
            "{errors:?}"
        );
    });
}

/// A listener whose accepts fail.
struct Failing {
    accepts: Rc<Cell<u32>>,
    kind: Option<io::ErrorKind>,
}

impl Listener for Failing {
    type Accepted = TcpStream;
    type Stream = TcpStream;
    type Opening = Ready<io::Result<TcpStream>>;

    async fn accept(&self, site: &'static Location<'static>) -> io::Result<TcpStream> {
        assert!(site.file().ends_with("serve.rs"), "{site}");
        self.accepts.set(self.accepts.get() + 1);
        Err(self.kind.unwrap().into())
    }

    fn open(&self, stream: TcpStream) -> Self::Opening {
        ready(Ok(stream))
    }
}

/// A listener that never rests must not take the whole processor.
#[test]
fn errors_of_accept_are_reported_and_the_server_rests() {
    block_on(async {
        time::pause();
        let accepts = Rc::new(Cell::new(0));
        let listener = Failing {
            accepts: accepts.clone(),
            kind: Some(io::ErrorKind::OutOfMemory),
        };
        let server = start(serve(listener, counting()));
        time::sleep(SECOND).await;
        let count = accepts.get();
        assert!((50..=200).contains(&count), "{count} in a second");
        let errors = server.end().await;
        let all = errors
            .iter()
            .all(|error| matches!(error, ServeError::Accept(_)));
        assert!(all && errors.len() as u32 == count, "{count}");
    });
}

#[cfg(unix)]
#[test]
fn a_listener_that_was_closed_ends_the_server_with_an_error() {
    block_on(async {
        let (listener, address) = listener().await;
        let view = listener.any();
        let server = spawn(serve(listener, counting()));
        let mut client = Client::connect(address).await;
        assert_eq!(client.ask().await, "1");
        view.close().await;
        let error = server.await.unwrap().unwrap_err();
        assert_eq!(
            phaseloop::os_error(&error),
            Some(libc_ecanceled()),
            "{error}"
        );
        assert!(client.is_closed().await);
    });
}

#[cfg(unix)]
fn libc_ecanceled() -> i32 {
    rustix::io::Errno::CANCELED.raw_os_error()
}

#[test]
#[should_panic(expected = "set its options before it is polled")]
fn options_come_before_the_first_poll() {
    block_on(async {
        let (listener, _) = listener().await;
        let mut server = serve(listener, counting());
        assert_pending!(futures::poll!(&mut server));
        drop(server.http1_only());
    });
}

/// hyper's own time limits run on the loop as well, if they are asked for.
#[test]
fn hypers_options_can_be_changed() {
    block_on(async {
        let (listener, address) = listener().await;
        let server = serve(listener, counting())
            .configure_http1(|http| _ = http.timer(HyperTimer).keep_alive(false))
            .configure_http2(|http| _ = http.max_concurrent_streams(1));
        let server = start(server);
        let mut client = Client::connect(address).await;
        assert_eq!(client.ask().await, "1");
        assert!(client.is_closed().await);
        assert!(server.end().await.is_empty());
    });
}

/// A server keeps the loop alive; one that has ended does not.
#[test]
fn a_loop_runs_until_its_server_has_ended() {
    let finished = phaseloop::run(async {
        let (listener, address) = listener().await;
        let server = start(serve(listener, counting()));
        assert_eq!(Client::connect(address).await.ask().await, "1");
        server.end().await.len()
    });
    assert_eq!(finished.unwrap(), 0);
}
