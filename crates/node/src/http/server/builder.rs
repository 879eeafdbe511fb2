//! The options of a server.

use super::{Server, State};
use crate::delay::Delay;
use crate::error::Error;
use crate::net::{self, SocketOptions};

/// Builds a [`Server`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::Server;
///
/// fn main() {
///     let server = Server::builder().keep_alive_timeout(1_000).build().unwrap();
///     assert_eq!(server.keep_alive_timeout(), 1_000);
///     let refused = Server::builder().headers_timeout(2).request_timeout(1).build();
///     assert_eq!(refused.unwrap_err().code(), Some("ERR_OUT_OF_RANGE"));
/// }
/// ```
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct ServerBuilder {
    max_header_size: Option<usize>,
    headers_timeout: Option<Delay>,
    request_timeout: Option<Delay>,
    keep_alive_timeout: Option<Delay>,
    connections_checking_interval: Option<Delay>,
    requires_host: Option<bool>,
    joins_duplicates: bool,
    high_water_mark: Option<usize>,
}

impl ServerBuilder {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Sets the limit of the size of a head: URL, names and values. A larger head is refused with
    /// 431. Zero means the default, [`MAX_HEADER_SIZE`](crate::http::MAX_HEADER_SIZE).
    /// JavaScript: `{ maxHeaderSize }`.
    pub fn max_header_size(mut self, size: usize) -> Self {
        self.max_header_size = Some(size);
        self
    }

    /// Sets how long a head may take; see [`Server::set_headers_timeout`]. JavaScript: `{
    /// headersTimeout }`.
    pub fn headers_timeout(mut self, delay: impl Into<Delay>) -> Self {
        self.headers_timeout = Some(delay.into());
        self
    }

    /// Sets how long a message may take; see [`Server::set_request_timeout`]. JavaScript: `{
    /// requestTimeout }`.
    pub fn request_timeout(mut self, delay: impl Into<Delay>) -> Self {
        self.request_timeout = Some(delay.into());
        self
    }

    /// Sets how long a connection may be idle; see [`Server::set_keep_alive_timeout`]. JavaScript:
    /// `{ keepAliveTimeout }`.
    pub fn keep_alive_timeout(mut self, delay: impl Into<Delay>) -> Self {
        self.keep_alive_timeout = Some(delay.into());
        self
    }

    /// Sets how often the server looks for slow messages. The default is 30 s. JavaScript: `{
    /// connectionsCheckingInterval }`.
    pub fn connections_checking_interval(mut self, delay: impl Into<Delay>) -> Self {
        self.connections_checking_interval = Some(delay.into());
        self
    }

    /// Sets whether a request of HTTP/1.1 without `Host` is refused with 400. The default is
    /// `true`. JavaScript: `{ requireHostHeader }`.
    pub fn require_host_header(mut self, requires: bool) -> Self {
        self.requires_host = Some(requires);
        self
    }

    /// Sets whether repeated headers that make sense only once are joined by `, `. By default the
    /// first one counts. JavaScript: `{ joinDuplicateHeaders }`.
    pub fn join_duplicate_headers(mut self, joins: bool) -> Self {
        self.joins_duplicates = joins;
        self
    }

    /// Sets the high water mark of the sockets. JavaScript: `{ highWaterMark }`.
    pub fn high_water_mark(mut self, mark: usize) -> Self {
        self.high_water_mark = Some(mark);
        self
    }

    /// Creates the server.
    ///
    /// # Errors
    ///
    /// `ERR_OUT_OF_RANGE` if a head may take longer than its message.
    pub fn build(self) -> Result<Server, Error> {
        let limit = |delay: Option<Delay>, default| delay.map_or(Some(default), Delay::as_limit);
        let request = limit(self.request_timeout, 300_000);
        let headers = match self.headers_timeout {
            Some(headers) => headers.as_limit(),
            None => Some(60_000.min(request.unwrap_or(0))).filter(|headers| *headers > 0),
        };
        if let (Some(headers), Some(request)) = (headers, request) {
            if headers > request {
                let message = format!(
                    "The value of \"headersTimeout\" is out of range. It must be <= requestTimeout. Received {headers}"
                );
                return Err(Error::range_error(message).coded("ERR_OUT_OF_RANGE"));
            }
        }
        let options = SocketOptions {
            allow_half_open: true,
            high_water_mark: self.high_water_mark,
        };
        Ok(Server::with_net(
            net::Server::with_options(options),
            |emitter| {
                let state = State::new(emitter);
                state.request_timeout.set(request);
                state.headers_timeout.set(headers);
                let keep_alive = limit(self.keep_alive_timeout, 5_000);
                state.keep_alive_timeout.set(keep_alive);
                if let Some(interval) = self.connections_checking_interval {
                    state.checking_interval.set(interval);
                }
                if let Some(size) = self.max_header_size.filter(|size| *size > 0) {
                    // Offsets in a head have 32 bits.
                    state.max_header_size.set(size.min(u32::MAX as usize));
                }
                state.requires_host.set(self.requires_host.unwrap_or(true));
                state.joins_duplicates.set(self.joins_duplicates);
                state
            },
        ))
    }
}
