//! One connection of a server, from its handshake to its end.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures::io::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBuf};
use hyper::server::conn::{http1, http2};

use super::io::HyperIo;
use super::link::{Due, Link, Stage};
use super::runtime::HyperExecutor;
use super::serve_error::ServeError;
use super::service::{Counted, IntoService};
use crate::site::Site;
use crate::time::Sleep;

/// The versions of HTTP that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    Both,
    Http1,
    Http2,
}

/// The settings of HTTP.
pub(super) struct Http {
    pub(super) versions: Versions,
    pub(super) http1: http1::Builder,
    pub(super) http2: http2::Builder<HyperExecutor>,
}

/// Why a connection has ended before its peer or hyper ended it.
enum Ended {
    /// It was idle, or not needed any more.
    Closed,
    Failed(ServeError),
}

/// Serves one connection until it ends, or becomes something else by an upgrade.
pub(super) async fn serve_connection<Stream, Kind, Service>(
    opening: impl Future<Output = io::Result<(Stream, Service)>>,
    http: Rc<Http>,
    link: Rc<Link>,
    site: Site,
) -> Result<(), ServeError>
where
    Stream: AsyncRead + AsyncWrite + Unpin + 'static,
    Service: IntoService<Kind>,
{
    match run(opening, http, link, site).await {
        Ok(()) | Err(Ended::Closed) => Ok(()),
        Err(Ended::Failed(error)) => Err(error),
    }
}

async fn run<Stream, Kind, Service>(
    opening: impl Future<Output = io::Result<(Stream, Service)>>,
    http: Rc<Http>,
    link: Rc<Link>,
    site: Site,
) -> Result<(), Ended>
where
    Stream: AsyncRead + AsyncWrite + Unpin + 'static,
    Service: IntoService<Kind>,
{
    let broken = |error| Ended::Failed(ServeError::Handshake(error));
    let failed = |error| Ended::Failed(ServeError::Connection(error));
    let close = |_: Pin<&mut _>| Err(Ended::Closed);
    let opened = watched(&link, site, opening, close).await?;
    let (stream, service) = opened.map_err(broken)?;
    let service = Counted::new(service.into_service(), link.clone());
    let mut io = HyperIo::with_link(stream, Some(link.clone()));
    let is_http2 = match http.versions {
        Versions::Http1 => false,
        Versions::Http2 => true,
        Versions::Both => {
            let close = |_: Pin<&mut _>| Err(Ended::Closed);
            let is_http2 = watched(&link, site, asks_for_http2(&mut io), close).await?;
            is_http2.map_err(broken)?
        }
    };
    if is_http2 {
        link.is_http2();
        // In a box: it is large, and most connections do not need it.
        let connection = Box::pin(http.http2.serve_connection(io, service));
        let drain = |connection: Pin<&mut Pin<Box<http2::Connection<_, _, _>>>>| {
            connection.get_mut().as_mut().graceful_shutdown();
            Ok(())
        };
        return watched(&link, site, connection, drain)
            .await?
            .map_err(failed);
    }
    let connection = http.http1.serve_connection(io, service).with_upgrades();
    let drain = |connection: Pin<&mut http1::UpgradeableConnection<_, _>>| {
        connection.graceful_shutdown();
        Ok(())
    };
    watched(&link, site, connection, drain)
        .await?
        .map_err(failed)
}

/// What a client of HTTP/2 sends first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads until it is clear which version the peer speaks, and puts the bytes back.
async fn asks_for_http2<S: AsyncRead + Unpin>(io: &mut HyperIo<S>) -> io::Result<bool> {
    let mut bytes = [0; PREFACE.len()];
    let mut length = 0;
    let is_http2 = loop {
        let read = poll_fn(|cx| poll_read(io, cx, &mut bytes[length..])).await?;
        length += read;
        if read == 0 || bytes[..length] != PREFACE[..length] {
            break false;
        }
        if length == PREFACE.len() {
            break true;
        }
    };
    io.put_back(&bytes[..length]);
    Ok(is_http2)
}

fn poll_read<S: AsyncRead + Unpin>(
    io: &mut HyperIo<S>,
    cx: &mut Context<'_>,
    bytes: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(bytes);
    ready!(Pin::new(io).poll_read(cx, buffer.unfilled()))?;
    Poll::Ready(Ok(buffer.filled().len()))
}

/// Runs `work` within the limits of the connection.
///
/// When the server shuts down, or no request has come for too long, `drain` is called once. It ends
/// the work, or says how.
async fn watched<W: Future>(
    link: &Link,
    site: Site,
    work: W,
    mut drain: impl FnMut(Pin<&mut W>) -> Result<(), Ended>,
) -> Result<W::Output, Ended> {
    let mut work = pin!(work);
    let mut is_draining = false;
    let mut alarm = Alarm::default();
    poll_fn(|cx| {
        loop {
            match link.stage() {
                Stage::Abandoned => return Poll::Ready(Err(Ended::Closed)),
                Stage::OutOfTime => {
                    return Poll::Ready(Err(Ended::Failed(ServeError::ShutdownTimeout)));
                }
                Stage::Serving | Stage::Draining => {}
            }
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            link.keep_waker(cx.waker());
            let due = alarm.poll(link, site, cx);
            let must_drain = match due {
                Ok(()) => link.stage() == Stage::Draining && !link.is_within_head(),
                Err(Due::Idle) => true,
                Err(Due::Fault(error)) => return Poll::Ready(Err(Ended::Failed(error))),
            };
            match (must_drain, is_draining) {
                (false, _) => return Poll::Pending,
                // Its end was requested, and it has not ended.
                (true, true) if due.is_err() => return Poll::Ready(Err(Ended::Closed)),
                (true, true) => return Poll::Pending,
                (true, false) => {
                    is_draining = true;
                    link.is_closing();
                    drain(work.as_mut())?;
                }
            }
        }
    })
    .await
}

/// Wakes the task of a connection when a limit may have passed.
#[derive(Default)]
struct Alarm {
    sleep: Option<Sleep>,
    /// When it is set to, in the loop's time.
    at: u64,
}

impl Alarm {
    #[inline]
    fn poll(&mut self, link: &Link, site: Site, cx: &mut Context<'_>) -> Result<(), Due> {
        match link.now() < self.at {
            true => Ok(()),
            false => self.check(link, site, cx),
        }
    }

    fn check(&mut self, link: &Link, site: Site, cx: &mut Context<'_>) -> Result<(), Due> {
        self.at = link.next_check()?;
        let mut sleep = Sleep::new(link.handle().clone(), self.at, site).unref();
        // It is armed by this poll, and so not over.
        let _ = Pin::new(&mut sleep).poll(cx);
        self.sleep = Some(sleep);
        Ok(())
    }
}
