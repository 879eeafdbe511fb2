//! TCP with other programs at the other end: Python's standard library as a client and as a server, and `curl`. Each
//! says so and passes where the program is missing.
#![cfg(unix)]

mod tcp_util;
mod util;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use futures::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use phaseloop::net::TcpStream;
use phaseloop::{spawn, spawn_blocking};
use tcp_util::{listener, run};

/// Ends the program, also when the test fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Starts a program, if it is there.
fn start(program: &str, args: &[&str]) -> Option<Child> {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no {program} here");
        return None;
    }
    let child = Command::new(program)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    Some(child.unwrap())
}

/// Waits for the end of the program on the pool, and returns what it printed.
async fn output(child: Child) -> String {
    let output = spawn_blocking(move || child.wait_with_output()).await;
    let output = output.unwrap().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

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
    let Some(server) = start("python3", &["-c", SERVER]) else {
        return;
    };
    let mut server = Server(server);
    let mut line = String::new();
    let stdout = BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line);
    if stdout.unwrap() == 0 {
        let mut error = String::new();
        server
            .0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut error)
            .unwrap();
        panic!("{error}");
    }
    let port: u16 = line.trim().parse().unwrap();
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

/// Two requests on one connection, as `curl` keeps it open.
#[test]
fn curl_gets_its_pages() {
    run(async {
        let (listener, address) = listener().await;
        let urls = ["one", "two"].map(|page| format!("http://{address}/{page}"));
        let args = [
            "-s",
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
        let mut lines = futures::io::BufReader::new(&stream);
        let mut path = String::new();
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).await.unwrap() == 0 {
                break;
            }
            if let Some(rest) = line.strip_prefix("GET ") {
                path = rest.split(' ').next().unwrap().to_owned();
            }
            if line == "\r\n" {
                let length = path.len() + 1;
                let page = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{path}\n");
                (&stream).write_all(page.as_bytes()).await.unwrap();
            }
        }
        assert_eq!(output(curl).await, "/one\n/two\n");
    });
}
