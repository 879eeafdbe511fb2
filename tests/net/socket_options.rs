//! Options are returned as they were set.
#![cfg(feature = "net")]

use crate::util::tcp::{has_ipv6, run};
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::time::Duration;

use phaseloop::net::{Keepalive, TcpSocket, TcpStream, UdpSocket};

#[test]
fn a_tcp_socket_returns_its_options() {
    run(async {
        let socket = TcpSocket::new_v4().unwrap();
        for on in [true, false] {
            socket.set_nodelay(on).unwrap();
            assert_eq!(socket.nodelay().unwrap(), on);
            socket.set_reuseaddr(on).unwrap();
            assert_eq!(socket.reuseaddr().unwrap(), on);
        }
        #[cfg(unix)]
        for on in [true, false] {
            socket.set_reuseport(on).unwrap();
            assert_eq!(socket.reuseport().unwrap(), on);
        }
        assert!(!socket.keepalive().unwrap());
        socket
            .set_keepalive(Some(Keepalive::after(Duration::from_secs(9))))
            .unwrap();
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.linger().unwrap(), None);
        for linger in [Some(Duration::from_secs(3)), Some(Duration::ZERO), None] {
            socket.set_linger(linger).unwrap();
            assert_eq!(socket.linger().unwrap(), linger);
        }
        socket.set_zero_linger().unwrap();
        assert_eq!(socket.linger().unwrap(), Some(Duration::ZERO));
        socket.set_recv_buffer_size(40_000).unwrap();
        assert!(socket.recv_buffer_size().unwrap() >= 40_000);
        socket.set_send_buffer_size(40_000).unwrap();
        assert!(socket.send_buffer_size().unwrap() >= 40_000);
        assert!(socket.take_error().unwrap().is_none());
        #[cfg(target_os = "linux")]
        {
            socket.set_tos(0x10).unwrap();
            assert_eq!(
                (socket.tos().unwrap(), socket.tos_v4().unwrap()),
                (0x10, 0x10)
            );
            socket.set_tos_v4(0x08).unwrap();
            assert_eq!(socket.tos().unwrap(), 0x08);
        }
    });
}

/// What is set before it connects is set of the stream.
#[test]
fn a_stream_has_the_options_of_its_socket() {
    run(async {
        let listener = TcpSocket::new_v4().unwrap();
        listener.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let listener = listener.listen(8).unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_zero_linger().unwrap();
        socket.set_nodelay(true).unwrap();
        let stream = socket
            .connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        assert_eq!(stream.linger().unwrap(), Some(Duration::ZERO));
        assert!(stream.nodelay().unwrap());
    });
}

#[cfg(unix)]
#[test]
fn binding_reuses_an_address_unless_the_caller_has_decided() {
    run(async {
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        let plain = TcpSocket::new_v4().unwrap();
        assert!(!plain.reuseaddr().unwrap());
        plain.bind(any).unwrap();
        assert!(plain.reuseaddr().unwrap());
        let decided = TcpSocket::new_v4().unwrap();
        decided.set_reuseaddr(false).unwrap();
        decided.bind(any).unwrap();
        assert!(!decided.reuseaddr().unwrap());
    });
}

#[cfg(target_os = "linux")]
#[test]
fn ipv6_has_a_traffic_class() {
    run(async {
        if !has_ipv6() {
            return;
        }
        let socket = TcpSocket::new_v6().unwrap();
        assert!(!socket.only_v6().unwrap());
        socket.set_only_v6(true).unwrap();
        assert!(socket.only_v6().unwrap());
        socket.set_tos(0x20).unwrap();
        assert_eq!(socket.tos().unwrap(), 0x20);
        let udp = UdpSocket::bind("[::1]:0").await.unwrap();
        udp.set_ttl(9).unwrap();
        assert_eq!(udp.ttl().unwrap(), 9);
        udp.set_tos(0x20).unwrap();
        assert_eq!(udp.tos().unwrap(), 0x20);
        udp.set_multicast_loop_v6(false).unwrap();
        assert!(!udp.multicast_loop_v6().unwrap());
        let v4 = TcpSocket::new_v4().unwrap();
        assert!(v4.only_v6().is_err(), "there is no such option");
    });
}

#[test]
fn a_udp_socket_returns_its_options() {
    run(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        for on in [true, false] {
            socket.set_broadcast(on).unwrap();
            assert_eq!(socket.broadcast().unwrap(), on);
            socket.set_multicast_loop_v4(on).unwrap();
            assert_eq!(socket.multicast_loop_v4().unwrap(), on);
        }
        for ttl in [1, 64, 255] {
            socket.set_ttl(ttl).unwrap();
            assert_eq!(socket.ttl().unwrap(), ttl);
            socket.set_multicast_ttl_v4(ttl).unwrap();
            assert_eq!(socket.multicast_ttl_v4().unwrap(), ttl);
        }
        let refused = socket.set_multicast_ttl_v4(256).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        socket.set_multicast_ttl(7).unwrap();
        assert_eq!(socket.multicast_ttl_v4().unwrap(), 7);
        socket.set_multicast_loop(false).unwrap();
        assert!(!socket.multicast_loop_v4().unwrap());
        #[cfg(target_os = "linux")]
        {
            socket.set_tos(0x10).unwrap();
            assert_eq!(socket.tos_v4().unwrap(), 0x10);
        }
    });
}

#[test]
fn an_attempt_that_fails_names_the_address() {
    run(async {
        let (_kept, address) = crate::util::tcp::closed_port("127.0.0.1:0");
        let error = TcpSocket::new_v4()
            .unwrap()
            .connect(address)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        let error = TcpStream::connect(&[address, address][..])
            .await
            .unwrap_err();
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    });
}
