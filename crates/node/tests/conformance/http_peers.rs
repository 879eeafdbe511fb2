//! What the ports of the http programs share, as the programs share `_http.js`. Nothing here queues
//! ticks, microtasks or immediates.
#![allow(dead_code, reason = "the ports that use it come one by one")]

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use phaseloop_node::events::{ERROR, Event};
use phaseloop_node::net::{self, Socket};
use phaseloop_node::stream::CLOSE;
use phaseloop_node::{Emitter, set_timeout};

/// Emitted by the socket of [`raw`] with all that has come so far.
pub(crate) const MORE: Event<str> = Event::new("more");

/// The address that servers listen on: a free port.
pub(crate) const FREE: (&str, u16) = ("127.0.0.1", 0);

/// `String(bytes)` of bytes in latin1.
pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// Bytes as one line of ASCII: backslash, CR, LF, TAB and other characters escaped, the value of
/// `Date` replaced by `*`.
pub(crate) fn show(text: &str) -> String {
    let mut shown = String::new();
    for char in without_dates(text).chars() {
        match char {
            '\\' => shown += "\\\\",
            '\r' => shown += "\\r",
            '\n' => shown += "\\n",
            '\t' => shown += "\\t",
            ' '..='~' => shown.push(char),
            other => shown += &format!("\\x{:02x}", u32::from(other)),
        }
    }
    shown
}

fn without_dates(text: &str) -> String {
    const DATE: &str = "\r\ndate: ";
    let (mut rest, mut kept) = (text, String::new());
    // Lower case does not move a byte of latin1 text.
    while let Some(at) = rest.to_ascii_lowercase().find(DATE) {
        let (before, value) = rest.split_at(at + DATE.len());
        kept += &before[..at];
        kept += "\r\nDate: *";
        rest = value.find('\r').map_or("", |end| &value[end..]);
    }
    kept + rest
}

/// A peer that speaks bytes: connects, writes `first`, and gathers what comes. `done` gets all of it
/// 50 ms after the connection has closed, when the server is done with the close.
pub(crate) fn raw(port: u16, first: &str, done: impl FnOnce(&str) + 'static) -> Socket {
    let c = net::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let got = Rc::<RefCell<String>>::default();
    let all = got.clone();
    c.on_data_this(move |c, bytes| {
        got.borrow_mut().push_str(&latin1(bytes));
        let so_far = got.borrow().clone();
        c.emit(MORE, so_far);
    });
    c.on(ERROR, |_| ());
    c.once(CLOSE, move |()| {
        set_timeout(50, move || done(&all.borrow()));
    });
    if !first.is_empty() {
        c.write(first.chars().map(|char| char as u8).collect::<Vec<u8>>());
    }
    c
}

/// A port that refuses connections as long as the descriptor is open: bound, but not listening. The
/// port of a server that was closed would not do: a process that another thread forks meanwhile
/// has it open until it executes its program.
pub(crate) fn refusing() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.expect("there is a descriptor left");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    socket.bind(&any.into()).expect("there is a free port");
    let address = socket.local_addr().expect("the socket is bound");
    let address = address.as_socket().expect("it is an IPv4 socket");
    (socket, address)
}
