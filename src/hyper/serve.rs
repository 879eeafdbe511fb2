//! The server.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::{Either, select};
use hyper::server::conn::{http1, http2};
use slab::Slab;

use super::connection::{Http, Versions, serve_connection};
use super::link::{Limits, Link, Stage};
use super::listener::Listener;
use super::make_service::MakeService;
use super::runtime::{HyperExecutor, HyperTimer};
use super::serve_error::ServeError;
use super::service::IntoService;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys;
use crate::time;

/// Serves HTTP/1 and HTTP/2 on a listener: with a service of hyper, or one of tower, such as an
/// `axum::Router`, or with one that is [made for each connection](MakeService), such as axum's
/// `into_make_service_with_connect_info`.
///
/// The returned [`Serve`] is a future that begins with its first poll; its methods set options.
/// Each connection is a task of the loop, with a clone of the service. The version of HTTP is found
/// by the first bytes of the connection. Connections can be upgraded. `TCP_NODELAY` is set.
///
/// The service need not be `Send`. For handlers of axum, which must be, [`Local`](crate::Local)
/// wraps state and futures of the loop.
///
/// # Layers
///
/// A layer of tower or tower-http works on the bare loop unless it asks for a timer or a task of
/// tokio. These need [the runtime inside the loop](crate::tokio), feature `tokio-rt`; without it
/// they panic with "there is no reactor running".
///
/// | layer or service | needs | on the bare loop |
/// |---|---|---|
/// | `timeout` of tower and tower-http | a timer | [`TimeoutLayer`](super::TimeoutLayer) |
/// | `RequestBodyTimeoutLayer`, that of responses | a timer | [`timeout`](time::timeout) |
/// | `rate_limit`, `hedge`, backoff of `retry` | a timer | [`sleep`](time::sleep()) |
/// | `Sse::keep_alive` of axum | a timer | a stream with an [`interval`](time::interval) |
/// | `buffer`, `spawn_ready` | a task | `concurrency_limit`, and a clone of the service |
/// | `ServeDir`, `ServeFile` | threads for files | [`fs`](crate::fs) in a handler |
///
/// All others that tower and tower-http have need no runtime, among them `concurrency_limit`,
/// `load_shed`, `filter`, `map_*`, `catch_panic`, `compression`, `cors`, `limit`, `set_header`,
/// `sensitive_headers`, `trace` and `validate_request`.
///
/// # Errors
///
/// The error of a listener that cannot accept any more, such as one that was closed through a
/// [view](crate::Handle::any). Connections under way are answered first. All other errors concern
/// one connection; [`Serve::on_error`] reports them.
///
/// # Cancel safety
///
/// Dropping the future closes the listener and all its connections.
/// [`with_graceful_shutdown`](Serve::with_graceful_shutdown) answers what is under way.
///
/// # Panics
///
/// When the future is polled and no loop runs on this thread. A panic of the service ends its
/// connection; it is treated as that of any [task](crate::Builder::unhandled_panic).
///
/// # Examples
///
/// After `cargo add hyper`:
///
/// ```
/// use std::{cell::Cell, convert::Infallible, rc::Rc};
/// use hyper::{Response, service::service_fn};
/// use phaseloop::hyper::serve;
/// use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
/// use phaseloop::net::{TcpListener, TcpStream};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let hits = Rc::new(Cell::new(0));
///     let service = service_fn(move |_| {
///         hits.set(hits.get() + 1);
///         let text = format!("hit {}", hits.get());
///         async { Ok::<_, Infallible>(Response::new(text)) }
///     });
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let address = listener.local_addr()?;
///     let stop = async move {
///         let mut client = TcpStream::connect(address).await.unwrap();
///         let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
///         client.write_all(request).await.unwrap();
///         let mut answer = String::new();
///         client.read_to_string(&mut answer).await.unwrap();
///         assert!(answer.ends_with("\r\n\r\nhit 1"));
///     };
///     serve(listener, service).with_graceful_shutdown(stop).await
/// }
/// ```
///
/// axum asks for `Send` state; a [`Local`](crate::Local) is that:
///
/// ```ignore
/// let hits = Local::new(Rc::new(Cell::new(0)));
/// let router = Router::new()
///     .route("/", get(|State(hits): State<Local<Rc<Cell<u32>>>>| async move {
///         hits.set(hits.get() + 1);
///         format!("hit {}", hits.get())
///     }))
///     .with_state(hits);
/// serve(listener, router).await
/// ```
#[track_caller]
pub fn serve<L, S, Kind>(listener: L, service: S) -> Serve<L>
where
    L: Listener,
    S: MakeService<L, Kind>,
{
    let open = move |listener: &L, accepted: L::Accepted| {
        let service = service.make(listener, &accepted);
        let opening = listener.open(accepted);
        async move { Ok((opening.await?, service.await?)) }
    };
    Serve::new::<_, S::Service, S::Kind>(listener, open, Location::caller())
}

/// Serves with a service of its own for each connection; see [`serve`].
///
/// `make` gets the connection, whose address it can pass on, and is called once the handshake is
/// done.
///
/// # Errors
///
/// The errors of [`serve`].
///
/// # Cancel safety
///
/// As [`serve`].
///
/// # Panics
///
/// As [`serve`]. A panic of `make` ends its connection, too.
///
/// # Examples
///
/// After `cargo add hyper`:
///
/// ```no_run
/// use std::convert::Infallible;
/// use hyper::{Response, service::service_fn};
/// use phaseloop::{hyper::serve_with, net::{TcpListener, TcpStream}};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:8080").await?;
///     serve_with(listener, move |connection: &TcpStream| {
///         let peer = connection.peer_addr();
///         let peer = peer.map_or_else(|error| error.to_string(), |peer| peer.to_string());
///         service_fn(move |_| {
///             let answer = Response::new(peer.clone());
///             async { Ok::<_, Infallible>(answer) }
///         })
///     })
///     .await
/// }
/// ```
#[track_caller]
pub fn serve_with<L, F, S, Kind>(listener: L, make: F) -> Serve<L>
where
    L: Listener,
    F: Fn(&L::Stream) -> S + 'static,
    S: IntoService<Kind>,
    Kind: 'static,
{
    let make = Rc::new(make);
    let open = move |listener: &L, accepted: L::Accepted| {
        let (opening, make) = (listener.open(accepted), make.clone());
        async move {
            let stream = opening.await?;
            let service = make(&stream);
            Ok((stream, service))
        }
    };
    Serve::new::<_, S, Kind>(listener, open, Location::caller())
}

/// The future of [`serve`] and [`serve_with`], and its options.
///
/// # Panics
///
/// Every option panics once the future was polled.
#[must_use = "futures do nothing unless awaited"]
pub struct Serve<L: Listener> {
    state: State<L>,
}

enum State<L: Listener> {
    Configured(Box<Settings<L>>),
    Running(Pin<Box<dyn Future<Output = io::Result<()>>>>),
    Starting,
}

struct Settings<L: Listener> {
    listener: L,
    /// Spawns the task of a connection.
    start: Start<L>,
    http: Http,
    limits: Limits,
    most: usize,
    shutdown: Pin<Box<dyn Future<Output = ()>>>,
    shutdown_limit: Option<Duration>,
    observer: Observer,
    site: Site,
}

type Start<L> = Box<dyn Fn(&L, <L as Listener>::Accepted, Member, Rc<Http>, Observer)>;

type Observer = Rc<dyn Fn(ServeError)>;

impl<L: Listener> Serve<L> {
    /// `open` makes a connection and its service ready.
    fn new<Opening, S, Kind>(
        listener: L,
        open: impl Fn(&L, L::Accepted) -> Opening + 'static,
        site: Site,
    ) -> Self
    where
        Opening: Future<Output = io::Result<(L::Stream, S)>> + 'static,
        S: IntoService<Kind>,
        Kind: 'static,
    {
        let start = move |listener: &L, accepted, member: Member, http, observer: Observer| {
            let opening = open(listener, accepted);
            let connection = async move {
                let link = member.link.clone();
                let served = serve_connection(opening, http, link, site).await;
                drop(member);
                if let Err(error) = served {
                    observer(error);
                }
            };
            LoopHandle::spawn_current(connection, site).detach();
        };
        let mut http1 = http1::Builder::new();
        // The limits of a connection are its own; hyper's timer would be armed by each request.
        http1.timer(HyperTimer).header_read_timeout(None);
        let mut http2 = http2::Builder::new(HyperExecutor);
        // WebSockets over HTTP/2 need it.
        http2.timer(HyperTimer).enable_connect_protocol();
        let settings = Settings {
            listener,
            start: Box::new(start),
            http: Http {
                versions: Versions::Both,
                http1,
                http2,
            },
            limits: Limits::default(),
            most: usize::MAX,
            shutdown: Box::pin(pending()),
            shutdown_limit: None,
            observer: Rc::new(drop),
            site,
        };
        Self {
            state: State::Configured(Box::new(settings)),
        }
    }

    #[track_caller]
    fn set(mut self, set: impl FnOnce(&mut Settings<L>)) -> Self {
        match &mut self.state {
            State::Configured(settings) => set(settings),
            _ => panic!("the server runs already: set its options before it is polled"),
        }
        self
    }

    /// Shuts the server down when `signal` completes.
    ///
    /// The listener is closed, and connections without a request are closed. Requests under way
    /// are answered, also those whose head has come in part only; then their connections are
    /// closed. The future completes when all connections have ended. Connections that were upgraded
    /// are not waited for.
    pub fn with_graceful_shutdown(self, signal: impl Future<Output = ()> + 'static) -> Self {
        self.set(|settings| settings.shutdown = Box::pin(signal))
    }

    /// Sets how long a graceful shutdown may take. Then the remaining connections are cut, each
    /// with a [`ServeError::ShutdownTimeout`]. Without a limit, which is the default, the server
    /// waits for its requests.
    pub fn shutdown_timeout(self, limit: impl Into<Option<Duration>>) -> Self {
        self.set(|settings| settings.shutdown_limit = limit.into())
    }

    /// Sets how long a peer may take for its handshake and for the head of a request, from its
    /// first byte to its last; 30 seconds by default.
    pub fn header_timeout(self, limit: impl Into<Option<Duration>>) -> Self {
        self.set(|settings| settings.limits.set_header(limit.into()))
    }

    /// Sets how long a connection may wait for its next request; 75 seconds by default. Then it is
    /// closed, which is no error.
    pub fn idle_timeout(self, limit: impl Into<Option<Duration>>) -> Self {
        self.set(|settings| settings.limits.set_idle(limit.into()))
    }

    /// Sets how long a peer may take no byte of an answer; 30 seconds by default.
    ///
    /// The body of a request has no limit of its own: give the handler one, as with
    /// [`timeout`](crate::time::timeout).
    pub fn write_timeout(self, limit: impl Into<Option<Duration>>) -> Self {
        self.set(|settings| settings.limits.set_write(limit.into()))
    }

    /// Sets how many connections may be open at a time. Further ones wait in the queue of the
    /// listener.
    pub fn max_connections(self, most: usize) -> Self {
        self.set(|settings| settings.most = most.max(1))
    }

    /// Speaks HTTP/1 only, without a look at the first bytes.
    pub fn http1_only(self) -> Self {
        self.set(|settings| settings.http.versions = Versions::Http1)
    }

    /// Speaks HTTP/2 only, without a look at the first bytes.
    pub fn http2_only(self) -> Self {
        self.set(|settings| settings.http.versions = Versions::Http2)
    }

    /// Changes hyper's options of HTTP/1.
    pub fn configure_http1(self, change: impl FnOnce(&mut http1::Builder)) -> Self {
        self.set(|settings| change(&mut settings.http.http1))
    }

    /// Changes hyper's options of HTTP/2.
    pub fn configure_http2(self, change: impl FnOnce(&mut http2::Builder<HyperExecutor>)) -> Self {
        self.set(|settings| change(&mut settings.http.http2))
    }

    /// Calls `observer` with every [`ServeError`]. By default they are ignored.
    pub fn on_error(self, observer: impl Fn(ServeError) + 'static) -> Self {
        self.set(|settings| settings.observer = Rc::new(observer))
    }
}

impl<L: Listener> Unpin for Serve<L> {}

impl<L: Listener> Future for Serve<L> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let State::Running(server) = &mut self.state {
            return server.as_mut().poll(cx);
        }
        let settings = std::mem::replace(&mut self.state, State::Starting);
        let State::Configured(settings) = settings else {
            panic!("the server has panicked");
        };
        let server = self.state.insert_running(run(*settings));
        server.as_mut().poll(cx)
    }
}

impl<L: Listener> State<L> {
    fn insert_running(
        &mut self,
        server: impl Future<Output = io::Result<()>> + 'static,
    ) -> &mut Pin<Box<dyn Future<Output = io::Result<()>>>> {
        *self = Self::Running(Box::pin(server));
        match self {
            Self::Running(server) => server,
            _ => unreachable!("it was set above"),
        }
    }
}

impl<L: Listener> fmt::Debug for Serve<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_running = matches!(self.state, State::Running(_));
        f.debug_struct("Serve")
            .field("is_running", &is_running)
            .finish_non_exhaustive()
    }
}

/// After so many errors in a row, the server rests before it accepts again, whatever the listener
/// does.
const ERRORS_IN_A_ROW: u32 = 16;
const REST: Duration = Duration::from_millis(10);

/// Accepts until the shutdown, then waits for the connections.
async fn run<L: Listener>(settings: Settings<L>) -> io::Result<()> {
    let Settings {
        listener,
        start,
        http,
        observer,
        site,
        ..
    } = settings;
    let server = Rc::new(Server::default());
    let _abandon = AbandonOnDrop(server.clone());
    let (handle, http) = (LoopHandle::current(), Rc::new(http));
    let mut shutdown = settings.shutdown;
    let mut errors = 0;
    let ended = loop {
        let must_rest = errors >= ERRORS_IN_A_ROW;
        let accepted = async {
            server.until(|count| count < settings.most).await;
            if must_rest {
                time::sleep(REST).await;
            }
            listener.accept(site).await
        };
        // The shutdown is polled first: it wins over a connection that arrives with it.
        match select(shutdown.as_mut(), pin!(accepted)).await {
            Either::Left(_) => break Ok(()),
            Either::Right((Ok(accepted), _)) => {
                errors = 0;
                let member = server.admit(Link::new(handle.clone(), settings.limits));
                start(&listener, accepted, member, http.clone(), observer.clone());
            }
            Either::Right((Err(error), _)) if sys::socket::is_of_listener(&error) => {
                break Err(error);
            }
            Either::Right((Err(error), _)) => {
                errors += 1;
                observer(ServeError::Accept(error));
            }
        }
    };
    drop(listener);
    server.close(settings.shutdown_limit).await;
    ended
}

/// The connections of a server.
#[derive(Default)]
struct Server {
    links: RefCell<Slab<Rc<Link>>>,
    /// The task of the server, while it waits for connections to end.
    waker: RefCell<Option<Waker>>,
}

impl Server {
    fn admit(self: &Rc<Self>, link: Rc<Link>) -> Member {
        let place = self.links.borrow_mut().insert(link.clone());
        Member {
            server: self.clone(),
            place,
            link,
        }
    }

    /// Waits until the number of connections fits.
    async fn until(&self, fits: impl Fn(usize) -> bool) {
        poll_fn(|cx| {
            if fits(self.links.borrow().len()) {
                self.waker.take();
                return Poll::Ready(());
            }
            // The drop of a waker may be user code: it does not run under the borrow.
            let before = self.waker.replace(Some(cx.waker().clone()));
            drop(before);
            Poll::Pending
        })
        .await;
    }

    fn set_stage(&self, stage: Stage) {
        // The wake of a connection may be user code, which ends another one.
        let clone = |(_, link): (usize, &Rc<Link>)| link.clone();
        let links: Vec<_> = self.links.borrow().iter().map(clone).collect();
        for link in links {
            link.set_stage(stage);
        }
    }

    /// Waits until all connections have ended, and cuts those that are out of time.
    async fn close(&self, limit: Option<Duration>) {
        self.set_stage(Stage::Draining);
        let all_ended = self.until(|count| count == 0);
        let Some(limit) = limit else {
            return all_ended.await;
        };
        if time::timeout(limit, all_ended).await.is_err() {
            self.set_stage(Stage::OutOfTime);
            self.until(|count| count == 0).await;
        }
    }
}

/// The place of a connection among those of its server.
struct Member {
    server: Rc<Server>,
    place: usize,
    link: Rc<Link>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.server.links.borrow_mut().remove(self.place);
        if let Some(waker) = self.server.waker.take() {
            waker.wake();
        }
    }
}

struct AbandonOnDrop(Rc<Server>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.set_stage(Stage::Abandoned);
    }
}
