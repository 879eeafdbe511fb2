//! Files of 1 MiB by HTTP, on one connection.

use std::convert::Infallible;
use std::fs::File as StdFile;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use futures::io::{AsyncReadExt, AsyncWriteExt};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::service::service_fn;
use phaseloop::fs::File;
use phaseloop::net::TcpStream;

use crate::{MIB, ROUNDS, Rounds, micros, process_cpu, thread_cpu};

const REQUESTS: usize = 2000;
const FILE: &str = "megabyte";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n";

/// Asks for the file again and again, on one connection. Returns the CPU time that this took here.
fn ask(address: SocketAddr) -> Duration {
    let before = thread_cpu();
    let mut stream = StdStream::connect(address).unwrap();
    let mut buffer = vec![0; 256 * 1024];
    for _ in 0..REQUESTS {
        let request = format!("GET /{FILE} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut count = stream.read(&mut buffer).unwrap();
        let head = buffer
            .windows(4)
            .position(|end| end == b"\r\n\r\n")
            .unwrap()
            + 4;
        while count < head + MIB {
            count += stream.read(&mut buffer).unwrap();
        }
        assert_eq!(count, head + MIB);
    }
    thread_cpu() - before
}

/// Runs a server with its client, and returns the CPU time of the server, that of both, and how
/// long it took. The loopback interface does part of the work of either end for the other.
fn serve(server: impl FnOnce(StdListener)) -> [Duration; 3] {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (before, start) = (process_cpu(), Instant::now());
    let client = thread::spawn(move || ask(address));
    server(listener);
    let of_client = client.join().unwrap();
    let all = process_cpu() - before;
    [all - of_client, all, start.elapsed()]
}

/// A thread that blocks: the floor, without a runtime.
fn bare(listener: StdListener, path: &Path, is_sent: bool) {
    let mut stream = listener.accept().unwrap().0;
    stream.set_nodelay(true).unwrap();
    let (mut request, mut room) = ([0; 1024], vec![0; MIB]);
    while stream.read(&mut request).unwrap() > 0 {
        let mut file = StdFile::open(path).unwrap();
        if !is_sent {
            file.read_exact(&mut room).unwrap();
        }
        stream.write_all(HEAD.as_bytes()).unwrap();
        if !is_sent {
            stream.write_all(&room).unwrap();
            continue;
        }
        let mut offset = 0;
        while offset < MIB as libc::off_t {
            let rest = MIB - offset as usize;
            // SAFETY: both descriptors are open, and the kernel moves the offset.
            let sent =
                unsafe { libc::sendfile(stream.as_raw_fd(), file.as_raw_fd(), &mut offset, rest) };
            assert!(sent > 0, "{}", std::io::Error::last_os_error());
        }
    }
}

async fn on_loop(listener: StdListener, path: PathBuf, is_sent: bool) {
    let mut stream = TcpStream::from_std(listener.accept().unwrap().0).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut request = [0; 1024];
    while stream.read(&mut request).await.unwrap() > 0 {
        if is_sent {
            let file = File::open(&path).await.unwrap();
            stream.write_all(HEAD.as_bytes()).await.unwrap();
            let sent = stream.send_file(&file, 0..MIB as u64).await.unwrap();
            assert_eq!(sent, MIB as u64);
        } else {
            let bytes = phaseloop::fs::read(&path).await.unwrap();
            stream.write_all(HEAD.as_bytes()).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
        }
    }
}

fn on_tokio(listener: StdListener, path: PathBuf) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async move {
        let stream = listener.accept().unwrap().0;
        stream.set_nonblocking(true).unwrap();
        stream.set_nodelay(true).unwrap();
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        let service = service_fn(move |_| {
            let path = path.clone();
            async move {
                let bytes = tokio::fs::read(path).await.unwrap();
                Ok::<_, Infallible>(hyper::Response::new(Full::new(Bytes::from(bytes))))
            }
        });
        let io = hyper_util::rt::TokioIo::new(stream);
        let http = hyper::server::conn::http1::Builder::new();
        // The client hangs up without a farewell.
        let _ = http.serve_connection(io, service).await;
    });
}

/// nginx with one worker, if it is installed.
struct Nginx {
    master: Child,
    worker: u32,
    address: SocketAddr,
}

impl Nginx {
    fn start(folder: &Path, sendfile: &str) -> Option<Self> {
        let free = StdListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let config = folder.join("nginx.conf");
        let place = folder.display();
        // SAFETY: a query.
        let is_root = unsafe { libc::geteuid() } == 0;
        let user = if is_root { "user root;" } else { "" };
        let text = format!(
            "{user} daemon off; worker_processes 1; error_log {place}/error; pid {place}/pid;
             events {{ }} http {{ access_log off; client_body_temp_path {place}/body;
             sendfile {sendfile}; tcp_nopush on; keepalive_requests 1000000;
             output_buffers 1 1m; server {{ listen {address}; root {place}; }} }}"
        );
        std::fs::write(&config, text).unwrap();
        let master = Command::new("nginx")
            .arg("-p")
            .arg(folder)
            .arg("-c")
            .arg(&config)
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let children = format!("/proc/{0}/task/{0}/children", master.id());
        for _ in 0..200 {
            thread::sleep(Duration::from_millis(10));
            let list = std::fs::read_to_string(&children).unwrap_or_default();
            let worker = list.split_whitespace().next().map(str::parse);
            if let Some(Ok(worker)) = worker
                && StdStream::connect(address).is_ok()
            {
                return Some(Self {
                    master,
                    worker,
                    address,
                });
            }
        }
        None
    }

    /// The CPU time of the worker.
    fn cpu(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.worker)).unwrap();
        let nanos = text.split(' ').next().unwrap().parse().unwrap();
        Duration::from_nanos(nanos)
    }

    fn measure(self) -> [Duration; 3] {
        let (before, start) = (self.cpu(), Instant::now());
        let of_client = ask(self.address);
        let server = self.cpu() - before;
        [server, server + of_client, start.elapsed()]
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // SAFETY: it is a child that was not waited for.
        unsafe { libc::kill(self.master.id() as _, libc::SIGTERM) };
        let _ = self.master.wait();
    }
}

pub(crate) fn run(folder: &Path) {
    let path = folder.join(FILE);
    std::fs::write(&path, vec![b'x'; MIB]).unwrap();
    let mut rounds = Rounds::new(["CPU of the server", "of both ends", "time"]);
    for _ in 0..ROUNDS {
        let mut note = |name: &str, times: [Duration; 3]| {
            rounds.push(name, times.map(|time| micros(time, REQUESTS)));
        };
        for (name, is_sent) in [(BARE, false), ("no runtime: `open`, `sendfile`", true)] {
            note(name, serve(|listener| bare(listener, &path, is_sent)));
        }
        for (name, is_sent) in [
            ("phaseloop: `fs::read`, `write_all`", false),
            ("phaseloop: `File::open`, `send_file`", true),
        ] {
            let path = path.clone();
            note(
                name,
                serve(|listener| phaseloop::block_on(on_loop(listener, path, is_sent))),
            );
        }
        note(
            "hyper on tokio: `tokio::fs::read`",
            serve(|listener| on_tokio(listener, path.clone())),
        );
        for sendfile in ["off", "on"] {
            if let Some(nginx) = Nginx::start(folder, sendfile) {
                note(&format!("nginx: `sendfile {sendfile}`"), nginx.measure());
            }
        }
    }
    let title = format!("a file of 1 MiB, {REQUESTS} requests; µs a request");
    rounds.print(&title, Some(BARE));
}

const BARE: &str = "no runtime: `open`, `read`, `write`";
