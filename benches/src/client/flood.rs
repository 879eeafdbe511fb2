//! Opens and closes connections in bursts, as fast as possible. Without the pauses between bursts,
//! a server that accepts until its queue is empty would never do anything else.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

const BURST: Duration = Duration::from_millis(50);
const REST: Duration = Duration::from_millis(5);

/// Goes on until the server is gone.
pub(super) fn run(address: SocketAddr) {
    loop {
        let start = Instant::now();
        while start.elapsed() < BURST {
            match TcpStream::connect(address) {
                Ok(stream) => reset(stream),
                Err(_) => return,
            }
        }
        thread::sleep(REST);
    }
}

/// Closes so that no port stays taken: there are fewer of them than connections in a flood.
fn reset(stream: TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let size = size_of::<libc::linger>() as u32;
    let (fd, option) = (stream.as_raw_fd(), (&raw const linger).cast());
    // SAFETY: the pointer is valid for the time of the call.
    unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, option, size) };
}
