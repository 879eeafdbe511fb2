//! Errors of sockets name the operation and the address, and keep the kind and the number of the OS
//! error.

use crate::util::errno::Errno;
use crate::util::files::Directory;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};

#[cfg(unix)]
use phaseloop::net::{SocketName, UnixDatagram, UnixListener, UnixStream};
use phaseloop::net::{TcpListener, TcpSocket, TcpStream, UdpOptions, UdpSocket};
use phaseloop::{OsError, block_on, fs, os_error};

/// An address without a listener.
const UNUSED: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

#[track_caller]
fn assert_error<T>(result: io::Result<T>, start: &str, number: Errno) -> io::Error {
    let error = result.err().expect("it fails");
    let system = io::Error::from(number);
    assert_eq!(error.to_string(), format!("{start}: {system}"));
    assert_eq!(error.kind(), system.kind());
    assert_eq!(os_error(&error), Some(number.raw_os_error()));
    error
}

#[test]
fn tcp_errors_name_the_operation_and_the_address() {
    block_on(async {
        let refused = TcpStream::connect(UNUSED).await;
        let error = assert_error(refused, "connect 127.0.0.1:1", Errno::CONNREFUSED);
        let inner = OsError::of(&error).unwrap();
        assert_eq!(
            (inner.operation(), inner.address()),
            ("connect", Some(UNUSED))
        );
        assert_eq!(inner.path(), None);
        let socket = TcpSocket::new_v4().unwrap();
        let refused = socket.connect(UNUSED).await;
        assert_error(refused, "connect 127.0.0.1:1", Errno::CONNREFUSED);

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let start = format!("bind {address}");
        assert_error(TcpListener::bind(address).await, &start, Errno::ADDRINUSE);
        let socket = TcpSocket::new_v4().unwrap();
        assert_error(socket.bind(address), &start, Errno::ADDRINUSE);
    });
}

/// Of several addresses, the error is about the last.
#[test]
fn the_error_of_several_addresses_names_the_last() {
    block_on(async {
        let others = [SocketAddr::from(([127, 0, 0, 1], 2)), UNUSED];
        let refused = TcpStream::connect(&others[..]).await;
        assert_error(refused, "connect 127.0.0.1:1", Errno::CONNREFUSED);
    });
}

#[test]
fn udp_errors_name_the_operation_and_the_address() {
    block_on(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let start = format!("bind {address}");
        assert_error(UdpSocket::bind(address).await, &start, Errno::ADDRINUSE);
        let taken = UdpSocket::bind_with(address, UdpOptions::new());
        assert_error(taken, &start, Errno::ADDRINUSE);

        let other_family: SocketAddr = "[::1]:1".parse().unwrap();
        let connected = socket.connect(other_family).await;
        // Wine has another number for it.
        if cfg!(unix) {
            assert_error(connected, "connect [::1]:1", Errno::AFNOSUPPORT);
        } else {
            connected.unwrap_err();
        }
        let too_long = vec![0; 65_536];
        let sent = socket.send_to(&too_long, UNUSED).await;
        assert_error(sent, "send_to 127.0.0.1:1", Errno::MSGSIZE);
        let sent = socket.try_send_to(&too_long, UNUSED);
        assert_error(sent, "send_to 127.0.0.1:1", Errno::MSGSIZE);
    });
}

#[cfg(unix)]
#[test]
fn unix_errors_name_the_operation_and_the_name() {
    let directory = Directory::new("os-errors");
    let path = directory.path("socket");
    block_on(async {
        let start = format!("connect {path:?}");
        let error = assert_error(UnixStream::connect(&path).await, &start, Errno::NOENT);
        assert_eq!(OsError::of(&error).unwrap().path(), Some(&*path));
        let socket = UnixDatagram::unbound().unwrap();
        assert_error(socket.connect(&path), &start, Errno::NOENT);
        let sent = socket.send_to(b"x", &path).await;
        assert_error(sent, &format!("send_to {path:?}"), Errno::NOENT);

        let _listener = UnixListener::bind(&path).unwrap();
        let start = format!("bind {path:?}");
        assert_error(UnixListener::bind(&path), &start, Errno::ADDRINUSE);
        assert_error(UnixDatagram::bind(&path), &start, Errno::ADDRINUSE);

        let unused = SocketName::abstract_name(*b"phaseloop unused\x01");
        let refused = UnixStream::connect(unused).await;
        let start = "connect \"@phaseloop unused\\x01\"";
        assert_error(refused, start, Errno::CONNREFUSED);
    });
}

/// An operation that fails without a system call has no number, but has the other parts.
#[cfg(unix)]
#[test]
fn a_refusal_of_our_own_has_no_number() {
    block_on(async {
        let error = UnixListener::bind("").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().starts_with("bind \"\": "), "{error}");
        assert_eq!(os_error(&error), None);
    });
}

#[test]
fn the_number_of_other_errors_is_their_own() {
    let plain = io::Error::from(Errno::PIPE);
    assert_eq!(os_error(&plain), Some(Errno::PIPE.raw_os_error()));
    assert!(OsError::of(&plain).is_none());
    assert_eq!(os_error(&io::Error::other("text")), None);
}

// Texts of errors that occur before any system call.

/// A loop whose pool cannot start a thread: no address space has room for such a stack.
#[cfg(unix)]
fn without_threads() -> phaseloop::EventLoop {
    let pool = phaseloop::pool::PoolBuilder::new()
        .stack_size(usize::MAX / 4 * 3)
        .build();
    phaseloop::Builder::new().pool(pool).build().unwrap()
}

#[cfg(unix)]
#[test]
fn files_without_a_thread_name_the_operation_the_path_and_what_to_do() {
    let check = |error: io::Error, begin: &str| {
        let text = error.to_string();
        assert!(text.starts_with(begin), "{text}");
        assert!(
            text.contains("no thread could be started for the blocking pool"),
            "{text}"
        );
        assert!(text.contains("RLIMIT_NPROC"), "{text}");
        assert_ne!(error.kind(), ErrorKind::WouldBlock, "{text}");
    };
    without_threads().block_on(async {
        check(
            fs::read("/some/file").await.unwrap_err(),
            "read \"/some/file\": ",
        );
        check(
            fs::write("/some/file", "").await.unwrap_err(),
            "write \"/some/file\": ",
        );
        check(fs::File::open("/f").await.unwrap_err(), "open \"/f\": ");
        check(
            fs::read_dir("/dir").await.unwrap_err(),
            "read_dir \"/dir\": ",
        );
        check(
            fs::rename("/a", "/b").await.unwrap_err(),
            "rename \"/a\" to \"/b\": ",
        );
        let lookup = phaseloop::net::lookup_host("some.host:1").await;
        check(
            lookup.map(|_| ()).unwrap_err(),
            "looking up \"some.host\": ",
        );
    });
}

#[test]
fn a_length_that_no_file_can_have_is_named() {
    let path = std::env::temp_dir().join(format!("phaseloop-length-{}", std::process::id()));
    block_on(async {
        let file = fs::File::create(&path).await.unwrap();
        for length in [u64::MAX, 1 << 63] {
            let error = file.set_len(length).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let text = error.to_string();
            assert!(text.starts_with(&format!("set_len {path:?}: ")), "{text}");
            assert!(text.contains(&length.to_string()), "{text}");
            assert!(text.contains("9223372036854775807 is the most"), "{text}");
        }
    });
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_batch_that_fails_names_the_address() {
    use phaseloop::net::Batch;
    block_on(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut batch = Batch::new(2, 8);
        // Nothing can be sent to the port 0.
        let to = "127.0.0.1:0".parse().unwrap();
        batch.push(b"x", to).unwrap();
        let error = socket.send_batch(&mut batch).await.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("send_batch 127.0.0.1:0: "), "{text}");
        assert_eq!(OsError::of(&error).unwrap().address(), Some(to));
        assert_eq!(batch.failed().unwrap().address(), Some(to));
    });
}
