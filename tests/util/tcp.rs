//! What the tests of TCP share: connected pairs, a run that fails instead of hanging, sockets of a
//! known state.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{self, SocketAddr};
use std::process::Child;
use std::time::Duration;

use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::time::timeout;
use phaseloop::{EventLoop, LoopHandle};

/// Longer than anything here takes, however busy the machine is. Nothing waits for it unless a test
/// fails.
const HANGS: Duration = Duration::from_secs(if cfg!(windows) { 120 } else { 30 });

/// Runs `future` on a loop of its own; a future that hangs fails.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    run_on(&mut EventLoop::new().unwrap(), future)
}

/// Runs a future on a given loop, and fails if it hangs.
pub(crate) fn run_on<F: Future>(event_loop: &mut EventLoop, future: F) -> F::Output {
    event_loop.block_on(async { timeout(HANGS, future).await.expect("it hangs") })
}

/// A listener on a free port, and its address.
pub(crate) async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Both ends of a connection, both on the loop.
pub(crate) async fn pair() -> (TcpStream, TcpStream) {
    let (listener, address) = listener().await;
    let ours = TcpStream::connect(address).await.unwrap();
    let (theirs, peer) = listener.accept().await.unwrap();
    assert_eq!(peer, ours.local_addr().unwrap());
    (ours, theirs)
}

/// Both ends of a connection, neither on a loop; they block, but not for ever.
pub(crate) fn std_pair() -> (net::TcpStream, net::TcpStream) {
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, peer) = listener.accept().unwrap();
    assert_eq!(peer, ours.local_addr().unwrap());
    for end in [&ours, &theirs] {
        end.set_read_timeout(Some(HANGS)).unwrap();
        end.set_write_timeout(Some(HANGS)).unwrap();
    }
    (ours, theirs)
}

/// One end on the running loop, the other with blocking calls: small writes to it are there when
/// they return.
pub(crate) fn half_std_pair() -> (TcpStream, net::TcpStream) {
    let (ours, theirs) = std_pair();
    (TcpStream::from_std(ours).unwrap(), theirs)
}

/// An address without a listener: the returned socket is bound to it and does not listen. The
/// address is reserved as long as the socket lives.
pub(crate) fn closed_port(address: &str) -> (socket2::Socket, SocketAddr) {
    let address: SocketAddr = address.parse().unwrap();
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None).unwrap();
    socket.bind(&address.into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, address)
}

/// Writes until there is no room; returns how many bytes went.
pub(crate) async fn fill(stream: &TcpStream) -> usize {
    let chunk = [7; 1 << 16];
    let mut total = 0;
    // The peer's buffer takes its part from ours in the background, so that there may be room once
    // more.
    for _ in 0..50 {
        loop {
            match stream.try_write(&chunk) {
                Ok(count) => total += count,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        phaseloop::phase::check().await;
    }
    total
}

/// What the kernel has of a stream.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "no test outside of Unix waits for some of them")]
pub(crate) enum Has {
    Data,
    DataAndEnd,
    DataAndRoom,
    Urgent,
    DataAndUrgent,
    Reset,
}

/// Blocks until the kernel has all of this: the loop sees it in one event then.
#[cfg(unix)]
pub(crate) fn settle(stream: &TcpStream, has: Has) {
    use rustix::event::{PollFd, PollFlags, poll};
    #[cfg(target_os = "linux")]
    const END: PollFlags = PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    const END: PollFlags = PollFlags::empty();
    let flags = match has {
        Has::Data => PollFlags::IN,
        Has::DataAndEnd => PollFlags::IN | END,
        Has::DataAndRoom => PollFlags::IN | PollFlags::OUT,
        Has::Urgent => PollFlags::PRI,
        Has::DataAndUrgent => PollFlags::IN | PollFlags::PRI,
        Has::Reset => PollFlags::HUP,
    };
    let start = std::time::Instant::now();
    loop {
        let mut all = [PollFd::new(stream.get_ref(), flags)];
        poll(&mut all, None).unwrap();
        if all[0].revents().contains(flags) {
            return;
        }
        assert!(start.elapsed() < HANGS, "it never is {flags:?}");
        std::thread::yield_now();
    }
}

/// Blocks until the stream can be read from. No call reports the rest, which comes at the same time
/// over the loopback interface, and gets a moment.
#[cfg(not(unix))]
pub(crate) fn settle(stream: &TcpStream, has: Has) {
    let start = std::time::Instant::now();
    while kind(stream.get_ref().peek(&mut [0])) == Some(ErrorKind::WouldBlock) {
        assert!(start.elapsed() < HANGS, "it never has {has:?}");
        std::thread::yield_now();
    }
    if !matches!(has, Has::Data) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// How many sources the loop has.
pub(crate) fn sources() -> usize {
    LoopHandle::current().handles().len()
}

/// Whether there is an IPv6 loopback; says so if not.
pub(crate) fn has_ipv6() -> bool {
    let has = net::TcpListener::bind("[::1]:0").is_ok();
    if !has {
        eprintln!("skipped: no IPv6 here");
    }
    has
}

/// Waits for the end of a child that [`in_child`](super::child::in_child) has started, and shows
/// what it said if it failed.
pub(crate) fn expect_success(child: Option<Child>) {
    let Some(child) = child else { return };
    let child = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{stderr}");
    if stderr.contains("skipped") {
        eprint!("{stderr}");
    }
}

/// A wrapper for [`in_child`](super::child::in_child): a process that may open 10,000 descriptors.
pub(crate) const MANY_DESCRIPTORS: [&str; 4] = [
    "sh",
    "-c",
    "ulimit -n 10000 2>/dev/null || { echo 'skipped: too few descriptors allowed' >&2; exit 0; }; exec \"$@\"",
    "sh",
];

/// The kind of an error, for comparisons.
pub(crate) fn kind<T>(result: io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}
