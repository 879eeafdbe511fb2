//! UDP with other programs at the other end, over IPv4 and IPv6: Python's standard library, `nc`
//! and `socat`. Each test says so and passes where the program is missing.
#![cfg(all(unix, feature = "net"))]

use crate::util::peers::{first_line_of, output, serve, start, start_with};
use crate::util::tcp::run;
use crate::util::udp::{address, both_protocols, receive};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use phaseloop::net::{Batch, UdpSocket};
use phaseloop::{JoinHandle, spawn};

/// Answers in batches, in upper case.
fn upper(socket: UdpSocket) -> JoinHandle<()> {
    spawn(async move {
        let mut batch = Batch::new(16, 2048);
        loop {
            socket.recv_batch(&mut batch).await.unwrap();
            for mut datagram in &mut batch {
                datagram.bytes_mut().make_ascii_uppercase();
            }
            socket.send_batch(&mut batch).await.unwrap();
        }
    })
}

/// Datagrams of all lengths from nothing on, some at once.
#[test]
fn a_python_client_is_served_in_batches() {
    const CLIENT: &str = "
import socket, sys
host, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ':' in host else socket.AF_INET
peer = socket.socket(family, socket.SOCK_DGRAM)
peer.settimeout(30)
peer.connect((host, port))
right = 0
for first in range(0, 400, 20):
    for length in range(first, first + 20):
        peer.send(b'a' * length)
    for length in range(first, first + 20):
        right += peer.recv(2048) == b'A' * length
print(right)
";
    run(async {
        for [socket, _] in both_protocols().await {
            let here = address(&socket);
            let args = [&here.ip().to_string(), &here.port().to_string()];
            let Some(client) = start("python3", &["-c", CLIENT, args[0], args[1]]) else {
                return;
            };
            let server = upper(socket);
            assert_eq!(output(client).await, "400\n", "{here}");
            server.abort();
        }
    });
}

#[test]
fn a_python_server_answers() {
    const SERVER: &str = "
import socket, socketserver, sys
class Reverse(socketserver.BaseRequestHandler):
    def handle(self):
        data, peer = self.request
        peer.sendto(data[::-1], self.client_address)
class Server(socketserver.UDPServer):
    address_family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
with Server((sys.argv[1], 0), Reverse) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
";
    run(async {
        for [client, _] in both_protocols().await {
            let ip = address(&client).ip();
            let Some((_server, port)) = serve("python3", &["-c", SERVER, &ip.to_string()]) else {
                return;
            };
            let to = SocketAddr::new(ip, port.parse().unwrap());
            let mut batch = Batch::new(8, 16);
            for text in ["one", "two", ""] {
                batch.push(text.as_bytes(), to).unwrap();
            }
            client.send_batch(&mut batch).await.unwrap();
            for expected in ["eno", "owt", ""] {
                assert_eq!(receive(&client).await, (expected.to_owned(), to));
            }
        }
    });
}

/// They send what they read as a datagram and print what comes back. There is no end, so they are
/// ended.
#[test]
fn nc_and_socat_are_answered() {
    run(async {
        for [socket, _] in both_protocols().await {
            let here = address(&socket);
            let (host, port) = (here.ip().to_string(), here.port().to_string());
            let target = format!("UDP:{here}");
            let server = upper(socket);
            for (program, args) in [
                ("nc", &["-u", "-w30", &host, &port][..]),
                ("socat", &["-t30", "-", &target]),
            ] {
                let Some(client) = start_with(program, args, "hello\n") else {
                    continue;
                };
                let answer = first_line_of(client).await;
                assert_eq!(answer, "HELLO", "{program} to {here}");
            }
            server.abort();
        }
    });
}

/// Joins a group at an interface and answers each datagram; for each command, it sends to the
/// group itself.
const MEMBER: &str = "
import socket, struct, sys
group, interface, index = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ':' in group else socket.AF_INET
member = socket.socket(family, socket.SOCK_DGRAM)
member.settimeout(30)
member.bind(('', 0))
if family == socket.AF_INET6:
    member.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
    name = socket.inet_pton(family, group) + struct.pack('@I', index)
    member.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, name)
else:
    member.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
    name = socket.inet_aton(group) + socket.inet_aton(interface)
    member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, name)
print(member.getsockname()[1], flush=True)
while True:
    data, peer = member.recvfrom(2048)
    if data.startswith(b'to the group at '):
        member.sendto(b'for all', (group, int(data[16:])))
    else:
        member.sendto(b'received ' + data, peer)
";

#[test]
fn groups_are_shared_with_python() {
    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 77);
    let here = Ipv4Addr::LOCALHOST;
    let args = [&GROUP.to_string(), &here.to_string()];
    let Some((_member, port)) = serve("python3", &["-c", MEMBER, args[0], args[1], "0"]) else {
        return;
    };
    let group = SocketAddr::from((GROUP, port.parse().unwrap()));
    run(async {
        let ours = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
        ours.set_multicast_interface_v4(&here).unwrap();
        ours.send_to(b"us", group).await.unwrap();
        let (text, python) = receive(&ours).await;
        assert_eq!(text, "received us");
        // And the other way round.
        ours.join_multicast_v4(&GROUP, &here).unwrap();
        let question = format!("to the group at {}", address(&ours).port());
        ours.send_to(question.as_bytes(), python).await.unwrap();
        let (text, from) = receive(&ours).await;
        assert_eq!((text.as_str(), from.port()), ("for all", group.port()));
    });
}

/// Over an interface that has link-local addresses, if there is one: the loopback interface has no
/// route for groups.
#[test]
fn groups_of_ipv6_are_shared_with_python() {
    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0x1234, 0x77);
    let interfaces = phaseloop::os::network_interfaces().unwrap();
    let index = interfaces
        .iter()
        .find_map(|interface| match interface.address {
            IpAddr::V6(ip) if ip.is_unicast_link_local() => Some(interface.scope_id),
            _ => None,
        });
    let Some(index) = index else {
        eprintln!("skipped: no interface with a link-local address");
        return;
    };
    let args = [&GROUP.to_string(), "", &index.to_string()];
    let args = ["-c", MEMBER, args[0], args[1], args[2]];
    let Some((_member, port)) = serve("python3", &args) else {
        return;
    };
    let group = SocketAddrV6::new(GROUP, port.parse().unwrap(), 0, index);
    run(async {
        let ours = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await.unwrap();
        ours.set_multicast_interface_v6(index).unwrap();
        ours.send_to(b"us", group.into()).await.unwrap();
        let (text, python) = receive(&ours).await;
        assert_eq!(text, "received us");
        ours.join_multicast_v6(&GROUP, index).unwrap();
        let question = format!("to the group at {}", address(&ours).port());
        ours.send_to(question.as_bytes(), python).await.unwrap();
        let (text, from) = receive(&ours).await;
        assert_eq!((text.as_str(), from.port()), ("for all", group.port()));
    });
}
