//! Unix sockets with other programs at the other end, by path and by abstract name: Python's
//! standard library, `nc`, `socat` and `curl`. Each test says so and passes where the program is
//! missing.
#![cfg(all(target_os = "linux", feature = "net"))]

use crate::util::files::Directory;
use crate::util::peers::{answer_in_capitals, output, serve, start, start_with};
use crate::util::tcp::run;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{SocketName, UnixDatagram, UnixListener, UnixStream};

/// A path and an abstract name, for us and as Python writes them: there, an abstract name begins
/// with a zero, which no argument can, and so with an `@` here.
fn names(directory: &Directory, test: &str) -> [(SocketName, String); 2] {
    let path = directory.path("socket");
    let name = format!("phaseloop-peers-{}-{test}", std::process::id());
    [
        (SocketName::from(&path), path.display().to_string()),
        (SocketName::abstract_name(name.as_str()), format!("@{name}")),
    ]
}

/// What the programs below begin with.
const NAME: &str = "
import socket, sys
def name(text):
    return '\\0' + text[1:] if text[0] == '@' else text
";

#[test]
fn a_python_client_is_served() {
    const CLIENT: &str = "
blob = bytes(range(256)) * 4096
with socket.socket(socket.AF_UNIX) as peer:
    peer.connect(name(sys.argv[1]))
    peer.sendall(blob)
    peer.shutdown(socket.SHUT_WR)
    answer = b''
    while part := peer.recv(65536):
        answer += part
import os
print(answer == blob[::-1], len(answer), os.getpid())
";
    let directory = Directory::new("python-client");
    run(async {
        for (name, text) in names(&directory, "client") {
            let listener = UnixListener::bind(name).unwrap();
            let program = format!("{NAME}{CLIENT}");
            let Some(client) = start("python3", &["-c", &program, &text]) else {
                return;
            };
            let (mut stream, _) = listener.accept().await.unwrap();
            let process = stream.peer_credentials().unwrap().process;
            let mut blob = Vec::new();
            stream.read_to_end(&mut blob).await.unwrap();
            blob.reverse();
            stream.write_all(&blob).await.unwrap();
            drop(stream);
            let expected = format!("True 1048576 {process}\n");
            assert_eq!(output(client).await, expected, "{text}");
        }
    });
}

#[test]
fn a_python_server_serves() {
    const SERVER: &str = "
import socketserver
class Upper(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper())
with socketserver.UnixStreamServer(name(sys.argv[1]), Upper) as server:
    print('ready', flush=True)
    server.serve_forever()
";
    let directory = Directory::new("python-server");
    run(async {
        for (name, text) in names(&directory, "server") {
            let program = format!("{NAME}{SERVER}");
            let Some((_server, _)) = serve("python3", &["-c", &program, &text]) else {
                return;
            };
            for round in 0..5 {
                let mut stream = UnixStream::connect(name.clone()).await.unwrap();
                let line = format!("line {round}\n");
                stream.write_all(line.as_bytes()).await.unwrap();
                stream.close().await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                assert_eq!(answer, line.to_uppercase(), "{text}");
            }
        }
    });
}

/// Python sends the writing end of a pipe and gets the reading end of another.
#[test]
fn descriptors_are_passed_to_and_from_python() {
    const CLIENT: &str = "
import os
with socket.socket(socket.AF_UNIX) as peer:
    peer.connect(name(sys.argv[1]))
    reader, writer = os.pipe()
    socket.send_fds(peer, [b'take'], [writer])
    os.close(writer)
    text, descriptors, _, _ = socket.recv_fds(peer, 16, 4)
    print(text, os.read(descriptors[0], 16), os.read(reader, 16))
";
    let directory = Directory::new("python-descriptors");
    run(async {
        let [(name, text), _] = names(&directory, "descriptors");
        let listener = UnixListener::bind(name).unwrap();
        let program = format!("{NAME}{CLIENT}");
        let Some(client) = start("python3", &["-c", &program, &text]) else {
            return;
        };
        let (stream, _) = listener.accept().await.unwrap();
        let (mut buffer, mut descriptors) = ([0; 16], Vec::new());
        let count = stream.recv_with(&mut buffer, &mut descriptors).await;
        assert_eq!(&buffer[..count.unwrap()], b"take");
        assert_eq!(descriptors.len(), 1);
        File::from(descriptors.remove(0))
            .write_all(b"ours")
            .unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        File::from(writer).write_all(b"yours").unwrap();
        stream.send_with(b"here", &[reader.as_fd()]).await.unwrap();
        let printed = output(client).await;
        assert_eq!(printed, "b'here' b'yours' b'ours'\n");
        // Ours is still open, and empty.
        assert_eq!(File::from(reader).read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn python_answers_datagrams() {
    const SERVER: &str = "
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as here:
    here.bind(name(sys.argv[1]))
    print('ready', flush=True)
    while True:
        data, peer = here.recvfrom(2048)
        here.sendto(data[::-1], peer)
";
    let directory = Directory::new("python-datagrams");
    run(async {
        for (number, (name, text)) in names(&directory, "datagrams").into_iter().enumerate() {
            let program = format!("{NAME}{SERVER}");
            let Some((_server, _)) = serve("python3", &["-c", &program, &text]) else {
                return;
            };
            let [_, other] = names(&directory, &format!("datagrams-{number}-back"));
            let path = SocketName::from(directory.path(format!("back-{number}")).as_path());
            for ours in [path, other.0] {
                let socket = UnixDatagram::bind(ours).unwrap();
                for sent in ["one", "", "three"] {
                    socket.send_to(sent.as_bytes(), name.clone()).await.unwrap();
                    let mut buffer = [0; 16];
                    let (count, from) = socket.recv_from(&mut buffer).await.unwrap();
                    let expected: String = sent.chars().rev().collect();
                    assert_eq!(&buffer[..count], expected.as_bytes());
                    assert_eq!(from.as_ref(), Some(&name), "{text}");
                }
            }
        }
    });
}

/// They send their standard input, end their direction, and print what comes until we end ours.
#[test]
fn nc_and_socat_are_answered() {
    let directory = Directory::new("socat");
    run(async {
        for (name, text) in names(&directory, "socat") {
            let listener = UnixListener::bind(name).unwrap();
            let target = match text.strip_prefix('@') {
                Some(name) => format!("ABSTRACT-CONNECT:{name}"),
                None => format!("UNIX-CONNECT:{text}"),
            };
            for (program, args) in [
                ("nc", &["-NU", &text][..]),
                ("socat", &["-t30", "-", &target]),
            ] {
                let Some(client) = start_with(program, args, "one\ntwo\n") else {
                    continue;
                };
                let (stream, _) = listener.accept().await.unwrap();
                answer_in_capitals(stream).await;
                assert_eq!(output(client).await, "ONE\nTWO\n", "{program}");
            }
        }
    });
}

#[test]
fn curl_gets_its_page() {
    let directory = Directory::new("curl");
    run(async {
        for (name, text) in names(&directory, "curl") {
            let listener = UnixListener::bind(name).unwrap();
            let (option, text) = match text.strip_prefix('@') {
                Some(name) => ("--abstract-unix-socket", name),
                None => ("--unix-socket", &*text),
            };
            let args = ["-s", "--max-time", "30", option, text, "http://host/page"];
            let Some(curl) = start("curl", &args) else {
                return;
            };
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).await.unwrap();
                request.push(byte[0]);
            }
            assert!(request.starts_with(b"GET /page HTTP/1.1\r\nHost: host\r\n"));
            let page = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage";
            stream.write_all(page).await.unwrap();
            assert_eq!(output(curl).await, "page", "{text}");
        }
    });
}
