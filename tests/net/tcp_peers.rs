//! TCP with other programs at the other end, over IPv4 and IPv6: Python's standard library, `curl`,
//! `nc` and `socat`. Each test says so and passes where the program is missing.
#![cfg(unix)]

use crate::util::peers::{answer_in_capitals, output, serve, start, start_with};
use crate::util::tcp::{listener, run};
use futures::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::spawn;

#[test]
fn a_python_client_is_served() {
    const CLIENT: &str = "
import socket, sys
blob = bytes(range(256)) * 8192
with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as peer:
    peer.sendall(len(blob).to_bytes(4, 'big') + blob)
    peer.shutdown(socket.SHUT_WR)
    answer = b''
    while part := peer.recv(65536):
        answer += part
print(answer == blob[::-1], len(answer))
";
    run(async {
        let (listener, address) = listener().await;
        let port = address.port().to_string();
        let Some(client) = start("python3", &["-c", CLIENT, &port]) else {
            return;
        };
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).await.unwrap();
        let mut blob = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut blob).await.unwrap();
        assert_eq!(
            stream.read(&mut length).await.unwrap(),
            0,
            "it is shut down"
        );
        blob.reverse();
        stream.write_all(&blob).await.unwrap();
        drop(stream);
        assert_eq!(output(client).await.trim(), "True 2097152");
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
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
with Server(('127.0.0.1', 0), Upper) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
";
    let Some((_server, port)) = serve("python3", &["-c", SERVER]) else {
        return;
    };
    let port: u16 = port.parse().unwrap();
    run(async {
        let clients: Vec<_> = (0..20)
            .map(|number| {
                spawn(async move {
                    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    let mut lines = futures::io::BufReader::new(&stream);
                    for round in 0..20 {
                        let text = format!("line {round} of {number}\n");
                        (&stream).write_all(text.as_bytes()).await.unwrap();
                        let mut answer = String::new();
                        lines.read_line(&mut answer).await.unwrap();
                        assert_eq!(answer, text.to_uppercase());
                    }
                    (&stream).close().await.unwrap();
                    assert_eq!(lines.read(&mut [0]).await.unwrap(), 0);
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
    });
}

/// Listeners on the loopback addresses that the machine has.
async fn listeners() -> Vec<TcpListener> {
    let mut listeners = vec![listener().await.0];
    match TcpListener::bind("[::1]:0").await {
        Ok(listener) => listeners.push(listener),
        Err(error) => eprintln!("skipped: no IPv6 here: {error}"),
    }
    listeners
}

/// Two requests on one connection, as `curl` keeps it open.
#[test]
fn curl_gets_its_pages() {
    run(async {
        for listener in listeners().await {
            let address = listener.local_addr().unwrap();
            let urls = ["one", "two"].map(|page| format!("http://{address}/{page}"));
            let args = [
                "-sg",
                "--noproxy",
                "*",
                "--max-time",
                "30",
                &urls[0],
                &urls[1],
            ];
            let Some(curl) = start("curl", &args) else {
                return;
            };
            let (stream, _) = listener.accept().await.unwrap();
            serve_pages(&stream).await;
            assert_eq!(output(curl).await, "/one\n/two\n");
        }
    });
}

/// Answers each request with its path, until the client has gone.
async fn serve_pages(mut stream: &TcpStream) {
    let mut lines = futures::io::BufReader::new(stream);
    let mut path = String::new();
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).await.unwrap() == 0 {
            return;
        }
        if let Some(rest) = line.strip_prefix("GET ") {
            path = rest.split(' ').next().unwrap().to_owned();
        }
        if line == "\r\n" {
            let length = path.len() + 1;
            let page = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{path}\n");
            stream.write_all(page.as_bytes()).await.unwrap();
        }
    }
}

/// They send their standard input, end their direction, and print what comes until we end ours.
#[test]
fn nc_and_socat_are_answered() {
    run(async {
        for listener in listeners().await {
            let address = listener.local_addr().unwrap();
            let (host, port) = (address.ip().to_string(), address.port().to_string());
            let target = format!("TCP:{address}");
            for (program, args) in [
                ("nc", &["-N", &host, &port][..]),
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
