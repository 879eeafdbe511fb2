//! The smallest server on each runtime: its size is that of the runtime. `examples/` has a program
//! for each.

use crate::peer;
use crate::runtime;
#[cfg(feature = "monoio")]
use crate::runtime::monoio::Monoio;
use crate::runtime::phaseloop::Phaseloop;
#[cfg(feature = "smol")]
use crate::runtime::smol::Smol;
use crate::runtime::tokio::{CURRENT_THREAD, LOCAL_RUNTIME, LOCAL_SET, Tokio};
use crate::workload::sockets::{self, BUFFER};

pub fn phaseloop() {
    sockets::tcp_echo(Phaseloop::default(), 1, BUFFER);
}

pub fn tokio() {
    sockets::tcp_echo(Tokio::<CURRENT_THREAD>, 1, BUFFER);
}

pub fn tokio_local_set() {
    sockets::tcp_echo(Tokio::<LOCAL_SET>, 1, BUFFER);
}

pub fn tokio_local_rt() {
    sockets::tcp_echo(Tokio::<LOCAL_RUNTIME>, 1, BUFFER);
}

pub fn tokio_threads() {
    runtime::tokio_threads::tcp_echo(1, BUFFER);
}

#[cfg(feature = "libuv")]
pub fn libuv() {
    peer::libuv::tcp_echo(1, BUFFER);
}

#[cfg(feature = "smol")]
pub fn smol() {
    sockets::tcp_echo(Smol::new(), 1, BUFFER);
}

#[cfg(feature = "monoio")]
pub fn monoio() {
    sockets::tcp_echo(Monoio, 1, BUFFER);
}

pub fn raw_epoll() {
    peer::raw_epoll::tcp_echo(1, BUFFER).expect("it is served");
}
