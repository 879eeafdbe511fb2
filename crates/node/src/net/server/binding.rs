//! The listening sockets of servers.

use std::io;
use std::net::SocketAddr;

use crate::error::Error;
use crate::net::connection::Listener;
use crate::net::options::ListenOptions;
use crate::site::Site;
use phaseloop::LoopHandle;
use phaseloop::net::TcpSocket;

#[track_caller]
pub(super) fn bind(
    address: SocketAddr,
    options: &ListenOptions,
    site: Site,
) -> Result<Box<dyn Listener>, Error> {
    bind_now(address, options, site).map_err(|error| Error::of_listen(error, Some(address)))
}

#[track_caller]
fn bind_now(
    address: SocketAddr,
    options: &ListenOptions,
    site: Site,
) -> io::Result<Box<dyn Listener>> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        let socket = TcpSocket::new_v6()?;
        // The unspecified IPv6 address also accepts IPv4 connections.
        if address.ip().is_unspecified() {
            socket.set_only_v6(options.ipv6_only)?;
        }
        socket
    };
    if options.reuse_port {
        socket.set_reuse_port(true)?;
    }
    socket.bind(address)?;
    let handle = LoopHandle::current();
    Ok(Box::new(socket.listen_on(
        &handle,
        options.backlog,
        site,
    )?))
}
