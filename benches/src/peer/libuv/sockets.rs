//! TCP and UDP echo, as libuv's own examples do it: one read buffer for all, writes tried at once.

use std::ffi::{c_char, c_uint};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::time::Duration;

use libuv_sys2::{
    sockaddr, uv_accept, uv_buf_init, uv_buf_t, uv_close, uv_handle_t, uv_listen, uv_loop_t,
    uv_read_start, uv_stop, uv_stream_t, uv_tcp_init, uv_tcp_open, uv_tcp_t, uv_try_write,
    uv_udp_init, uv_udp_open, uv_udp_recv_start, uv_udp_recv_stop, uv_udp_t, uv_udp_try_send,
};

use super::{check, run_loop};
use crate::meter::{Meter, Reading};
use crate::workload::sockets::{BUFFER, announced_datagrams, announced_listener};

struct Server {
    buffer: Vec<u8>,
    listener: uv_tcp_t,
    to_accept: u64,
    /// What is done when the last connection is there.
    when_all_are_there: fn(&mut Self),
    meter: Option<Meter>,
}

impl Server {
    fn listen(
        uv: *mut uv_loop_t,
        connections: u64,
        buffer: usize,
        when_all_are_there: fn(&mut Self),
    ) -> Box<Self> {
        let listener: TcpListener = announced_listener();
        let mut server = Box::new(Self {
            buffer: vec![0; buffer],
            // SAFETY: a handle of zeroes is overwritten by its initialization.
            listener: unsafe { std::mem::zeroed() },
            to_accept: connections,
            when_all_are_there,
            meter: None,
        });
        let handle = &raw mut server.listener;
        // SAFETY: the server is boxed, and outlives the run.
        unsafe {
            check(uv_tcp_init(uv, handle));
            (*handle).data = (&raw mut *server).cast();
            check(uv_tcp_open(handle, listener.into_raw_fd()));
            check(uv_listen(handle.cast(), 4096, Some(connected)));
        }
        server
    }
}

// SAFETY of the callbacks: `data` of every handle is the server, which outlives the run;
// connections are boxed, and freed by the callback of their close.

extern "C" fn connected(listener: *mut uv_stream_t, status: i32) {
    check(status);
    // SAFETY: see above.
    unsafe {
        let server = (*listener).data.cast::<Server>();
        let stream = Box::into_raw(Box::new(std::mem::zeroed::<uv_tcp_t>()));
        check(uv_tcp_init((*listener).loop_, stream));
        (*stream).data = server.cast();
        check(uv_accept(listener, stream.cast()));
        check(uv_read_start(stream.cast(), Some(give_buffer), Some(echo)));
        (*server).to_accept -= 1;
        if (*server).to_accept == 0 {
            uv_close(listener.cast(), None);
            ((*server).when_all_are_there)(&mut *server);
        }
    }
}

extern "C" fn give_buffer(handle: *mut uv_handle_t, _: usize, buffer: *mut uv_buf_t) {
    // SAFETY: see above.
    unsafe {
        let server = (*handle).data.cast::<Server>();
        let bytes = &mut (*server).buffer;
        // As C would: `uv_buf_init` is a call.
        (*buffer).base = bytes.as_mut_ptr().cast::<c_char>();
        (*buffer).len = bytes.len();
    }
}

extern "C" fn echo(stream: *mut uv_stream_t, read: isize, buffer: *const uv_buf_t) {
    if read == 0 {
        return;
    }
    // SAFETY: see above.
    unsafe {
        if read < 0 {
            uv_close(stream.cast(), Some(free));
            return;
        }
        let mut rest = uv_buf_t {
            base: (*buffer).base,
            len: read as usize,
        };
        loop {
            let written = uv_try_write(stream, &raw const rest, 1);
            if written == rest.len as i32 {
                return;
            }
            if written > 0 {
                rest.base = rest.base.offset(written as isize);
                rest.len -= written as usize;
            } else if written != libuv_sys2::uv_errno_t_UV_EAGAIN {
                check(written);
            }
        }
    }
}

extern "C" fn free(handle: *mut uv_handle_t) {
    // SAFETY: see above.
    drop(unsafe { Box::from_raw(handle.cast::<uv_tcp_t>()) });
}

pub(super) fn tcp_echo(uv: *mut uv_loop_t, connections: u64, buffer: usize) -> Reading {
    let mut server = Server::listen(uv, connections, buffer, |server| {
        server.meter = Some(Meter::start());
    });
    run_loop(uv);
    let meter = server.meter.take().expect("all have connected");
    meter.stop()
}

/// From the first connection to the end of the last.
pub(super) fn connections(uv: *mut uv_loop_t, n: u64) -> Reading {
    let _server = Server::listen(uv, n, BUFFER, |_| ());
    let meter = Meter::start();
    run_loop(uv);
    meter.stop()
}

pub(super) fn idle_connection(uv: *mut uv_loop_t, n: u64) -> Reading {
    let server = Server::listen(uv, n, BUFFER, |server| {
        // SAFETY: the handle was initialized with its loop.
        unsafe { uv_stop(server.listener.loop_) };
    });
    let meter = Meter::start();
    run_loop(uv);
    std::thread::sleep(Duration::from_millis(20));
    let reading = meter.stop();
    // The connections end with the process.
    std::mem::forget(server);
    reading
}

pub(super) fn udp_echo(uv: *mut uv_loop_t) -> Reading {
    let socket: UdpSocket = announced_datagrams();
    let mut buffer = vec![0_u8; BUFFER];
    // SAFETY: a handle of zeroes is overwritten by its initialization; handle and buffer outlive
    // the run.
    unsafe {
        let mut handle: uv_udp_t = std::mem::zeroed();
        check(uv_udp_init(uv, &raw mut handle));
        handle.data = (&raw mut buffer).cast();
        check(uv_udp_open(&raw mut handle, socket.as_raw_fd()));
        let meter = Meter::start();
        check(uv_udp_recv_start(
            &raw mut handle,
            Some(give_datagram_buffer),
            Some(echo_datagram),
        ));
        run_loop(uv);
        meter.stop()
    }
}

extern "C" fn give_datagram_buffer(handle: *mut uv_handle_t, _: usize, buffer: *mut uv_buf_t) {
    // SAFETY: `data` is the buffer of the workload.
    unsafe {
        let bytes = &mut *(*handle).data.cast::<Vec<u8>>();
        *buffer = uv_buf_init(bytes.as_mut_ptr().cast::<c_char>(), bytes.len() as c_uint);
    }
}

extern "C" fn echo_datagram(
    handle: *mut uv_udp_t,
    received: isize,
    buffer: *const uv_buf_t,
    from: *const sockaddr,
    _: c_uint,
) {
    // Without an address: nothing more to receive now.
    if from.is_null() {
        return;
    }
    // SAFETY: the buffer holds that many bytes, and the address is valid during the call.
    unsafe {
        if received == 0 {
            uv_udp_recv_stop(handle);
            return;
        }
        let answer = uv_buf_init((*buffer).base, received as c_uint);
        check(uv_udp_try_send(handle, &raw const answer, 1, from));
    }
}
