//! Unix datagrams: each send is one receive, in order; a path ends with its socket (R193–R195 as
//! for listeners), and a send that finds no room waits for it.
#![cfg(all(target_os = "linux", feature = "net"))]

use crate::util::trace::{finish, paused, turn};
use std::cell::RefCell;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use futures::FutureExt;
use phaseloop::net::{SocketName, UnixDatagram};
use phaseloop::phase::Check;
use phaseloop::{Handle, LoopHandle, block_on};
use rustix::io::Errno;

/// A path for the socket of one test; removed in the end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Self {
        let name = format!("phaseloop-{}-{test}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn name(&self) -> SocketName {
        SocketName::Path(self.0.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn abstract_name(test: &str) -> SocketName {
    SocketName::abstract_name(format!("phaseloop-{}-{test}", std::process::id()))
}

/// Receives as text, with the name of the sender.
async fn receive(socket: &UnixDatagram) -> (String, Option<SocketName>) {
    let mut buffer = [0; 64];
    let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
    (
        String::from_utf8_lossy(&buffer[..length]).into_owned(),
        from,
    )
}

#[test]
fn libuv_udp_send_unix() {
    let place = Place::new("send");
    block_on(async {
        let server = UnixDatagram::bind(&place.0).unwrap();
        assert_eq!(server.local_name().unwrap(), Some(place.name()));
        let client = UnixDatagram::unbound().unwrap();
        assert_eq!(client.local_name().unwrap(), None);
        assert_eq!(client.send_to(b"hello", &place.0).await.unwrap(), 5);
        assert_eq!(receive(&server).await, ("hello".to_owned(), None));
        // With a name, it can be answered.
        let name = abstract_name("send");
        let client = UnixDatagram::bind(name.clone()).unwrap();
        client.connect(&place.0).unwrap();
        client.send(b"PING").await.unwrap();
        let (text, from) = receive(&server).await;
        assert_eq!((text.as_str(), &from), ("PING", &Some(name)));
        server.send_to(b"PONG", from.unwrap()).await.unwrap();
        assert_eq!(
            receive(&client).await,
            ("PONG".to_owned(), Some(place.name()))
        );
    });
}

#[test]
fn each_send_is_one_receive_in_order() {
    block_on(async {
        let (a, b) = UnixDatagram::pair().unwrap();
        for text in ["one", "", "three"] {
            assert_eq!(a.send(text.as_bytes()).await.unwrap(), text.len());
        }
        for text in ["one", "", "three"] {
            assert_eq!(receive(&b).await.0, text);
        }
        // Cut, and the rest lost.
        a.send(b"0123456789").await.unwrap();
        a.send(b"next").await.unwrap();
        let mut buffer = [0; 4];
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 4);
        assert_eq!(&buffer, b"0123");
        assert_eq!(receive(&b).await.0, "next");
    });
}

#[test]
fn r193_a_path_is_removed_when_its_socket_goes() {
    let place = Place::new("r193");
    block_on(async {
        let dropped = UnixDatagram::bind(&place.0).unwrap();
        assert!(fs::metadata(&place.0).unwrap().file_type().is_socket());
        let error = UnixDatagram::bind(&place.0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(place.0.exists(), "the failure has not removed it");
        drop(dropped);
        assert!(!place.0.exists());
        let close = UnixDatagram::bind(&place.0).unwrap().close();
        assert!(!place.0.exists(), "at once");
        close.await;
        // Not that of an adopted one.
        let foreign = net::UnixDatagram::bind(&place.0).unwrap();
        drop(UnixDatagram::from_std(foreign).unwrap());
        assert!(place.0.exists());
    });
}

/// A loop that is going takes no socket, and none is left behind.
#[test]
fn r193_a_path_is_removed_when_the_loop_refuses_its_socket() {
    struct Bind(Rc<Place>, Rc<RefCell<String>>);
    impl Drop for Bind {
        fn drop(&mut self) {
            let error = UnixDatagram::bind(&self.0.0).unwrap_err();
            self.1.replace(error.to_string());
        }
    }
    let place = Rc::new(Place::new("refused"));
    let error = Rc::new(RefCell::default());
    let (event_loop, handle, _) = paused();
    let bind = Bind(place.clone(), error.clone());
    drop(handle.spawn(async move {
        std::future::pending::<()>().await;
        drop(bind);
    }));
    drop(event_loop);
    assert_eq!(Rc::strong_count(&place), 1, "it was dropped");
    let refused = format!("bind {:?}: the event loop has been dropped", place.0);
    assert_eq!(*error.borrow(), refused);
    assert!(!place.0.exists());
}

#[test]
fn r194_r195_bad_names_are_refused() {
    block_on(async {
        let socket = UnixDatagram::unbound().unwrap();
        let long = "x".repeat(108);
        for path in ["", "a\0b", "\0abstract", &long].map(Path::new) {
            let bound = UnixDatagram::bind(path).unwrap_err();
            let connected = socket.connect(path).unwrap_err();
            let sent = socket.send_to(b"x", path).await.unwrap_err();
            for error in [bound, connected, sent] {
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path:?}");
            }
        }
        let missing = "/missing/phaseloop/socket";
        let error = UnixDatagram::bind(missing).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = socket.connect(missing).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(LoopHandle::current().handles().len(), 1);
    });
}

#[test]
fn errors_of_the_peer() {
    let place = Place::new("peer");
    block_on(async {
        let client = UnixDatagram::unbound().unwrap();
        let error = client.send(b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotConnected);
        // A path without its socket.
        drop(net::UnixDatagram::bind(&place.0).unwrap());
        let error = client.send_to(b"x", &place.0).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let (a, b) = UnixDatagram::pair().unwrap();
        let huge = vec![0; 16 << 20];
        let error = a.send(&huge).await.unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::MSGSIZE));
        drop(b);
        let error = a.send(b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_sender_waits_until_there_is_room() {
    let (mut event_loop, handle, trace) = paused();
    let (a, b) = event_loop.enter(|| UnixDatagram::pair().unwrap());
    let a = Rc::new(a);
    let (sender, log) = (a.clone(), trace.clone());
    drop(handle.spawn(async move {
        for number in 0..2000_u32 {
            sender.send(&number.to_ne_bytes()).await.unwrap();
        }
        log.log("sent");
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    // A send is a request: unref'd, it keeps the loop alive all the same.
    a.unref();
    assert!(handle.is_alive());
    let log = trace.clone();
    drop(handle.spawn(async move {
        for number in 0..2000_u32 {
            let mut buffer = [0; 8];
            assert_eq!(b.recv(&mut buffer).await.unwrap(), 4);
            assert_eq!(buffer[..4], number.to_ne_bytes());
        }
        log.log("received");
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "sent received");
}

#[test]
fn a_datagram_wakes_its_reader_in_the_poll_phase() {
    let (mut event_loop, handle, trace) = paused();
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    let (ours, theirs) = net::UnixDatagram::pair().unwrap();
    let socket = event_loop.enter(|| Rc::new(UnixDatagram::from_std(ours).unwrap()));
    // Given up: nothing is lost.
    event_loop.enter(|| assert!(receive(&socket).now_or_never().is_none()));
    let (reader, log) = (socket.clone(), trace.clone());
    let task = handle.spawn(async move { log.log(receive(&reader).await.0) });
    turn(&mut event_loop);
    assert!(socket.is_active());
    theirs.send(b"datagram").unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "check datagram check");
    assert!(task.is_finished() && !socket.is_active());
    let text = format!("{socket:?}");
    assert!(text.starts_with("UnixDatagram"), "{text}");
}

#[test]
fn readiness_is_reported() {
    block_on(async {
        let (a, b) = UnixDatagram::pair().unwrap();
        a.writable().await.unwrap();
        assert!(b.readable().now_or_never().is_none());
        a.get_ref().send(b"x").unwrap();
        b.readable().await.unwrap();
        assert_eq!(receive(&b).await.0, "x");
        let closed = a.close();
        closed.await;
        assert_eq!(LoopHandle::current().handles().len(), 1);
    });
}
