//! What the kernel offers beyond readiness, in one run: files sent without a copy, UDP segments,
//! reads by a ring, waits below a millisecond.
//!
//! ```text
//! cargo run --release --manifest-path benches/Cargo.toml --features libuv --example kernel [files|udp|reads|sleeps]
//! ```
//!
//! CPU times include the kernel's. Those of a server are of the whole process, less the thread of
//! its client; those of reads are of the thread that waits for them.

use std::convert::Infallible;
use std::fs::File as StdFile;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use futures::io::{AsyncReadExt, AsyncWriteExt};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::service::service_fn;
use phaseloop::fs::File;
use phaseloop::net::{Batch, TcpStream, UdpSocket};

const MIB: usize = 1024 * 1024;
const ROUNDS: usize = 5;

fn main() {
    let only = std::env::args().nth(1);
    let folder = std::env::temp_dir().join(format!("phaseloop-kernel-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    for (name, part) in [
        ("files", send_files as fn(&Path)),
        ("udp", udp),
        ("reads", reads),
        ("sleeps", sleeps),
    ] {
        if only.as_deref().is_none_or(|only| only == name) {
            part(&folder);
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn cpu(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one time.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(result, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn thread_cpu() -> Duration {
    cpu(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

// Files of 1 MiB by HTTP.

const REQUESTS: usize = 2000;

/// Asks for the file again and again, on one connection. Returns the CPU time that this took here.
fn ask(address: SocketAddr) -> Duration {
    let before = thread_cpu();
    let mut stream = StdStream::connect(address).unwrap();
    let mut buffer = vec![0; 256 * 1024];
    for _ in 0..REQUESTS {
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
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
    let (before, start) = (cpu(libc::CLOCK_PROCESS_CPUTIME_ID), Instant::now());
    let client = thread::spawn(move || ask(address));
    server(listener);
    let of_client = client.join().unwrap();
    let all = cpu(libc::CLOCK_PROCESS_CPUTIME_ID) - before;
    [all - of_client, all, start.elapsed()]
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n";

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

fn send_files(folder: &Path) {
    let path = folder.join("megabyte");
    std::fs::write(&path, vec![b'x'; MIB]).unwrap();
    println!(
        "a file of 1 MiB, {REQUESTS} requests: µs of CPU of the server, of both ends, µs a request"
    );
    for _ in 0..ROUNDS {
        let report = |name: &str, times: [Duration; 3]| {
            let [cpu, both, wall] = times.map(|time| micros(time, REQUESTS));
            println!("  {name:28} {cpu:8.1} {both:8.1} {wall:8.1}");
        };
        for (name, is_sent) in [("send_file", true), ("fs::read, write_all", false)] {
            let path = path.clone();
            report(
                name,
                serve(|listener| phaseloop::block_on(on_loop(listener, path, is_sent))),
            );
        }
        report(
            "hyper on tokio, tokio::fs",
            serve(|listener| on_tokio(listener, path.clone())),
        );
    }
}

// UDP.

const DATAGRAM: usize = 1200;
const DATAGRAMS: usize = 540_000;
const AT_ONCE: usize = 54;

#[derive(Clone, Copy)]
enum How {
    Alone,
    Batch,
    Segments,
}

/// Receives until a datagram of one byte comes. Returns the number of datagrams, and CPU time.
fn receive(gro: bool, address: std::sync::mpsc::Sender<SocketAddr>) -> (usize, Duration) {
    phaseloop::block_on(async move {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.set_recv_buffer_size(8 * MIB).unwrap();
        socket.set_gro(gro).unwrap();
        address.send(socket.local_addr().unwrap()).unwrap();
        let mut batch = Batch::new(16, 65_535);
        let (mut count, before) = (0, thread_cpu());
        loop {
            socket.recv_batch(&mut batch).await.unwrap();
            for datagram in &batch {
                if datagram.bytes().len() == 1 {
                    return (count, thread_cpu() - before);
                }
                count += datagram.segments().count();
            }
        }
    })
}

async fn send(to: SocketAddr, how: How) -> Duration {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(to).await.unwrap();
    let bytes = vec![7; DATAGRAM * AT_ONCE];
    let mut batch = match how {
        How::Segments => Batch::new(1, bytes.len()),
        _ => Batch::new(AT_ONCE, DATAGRAM),
    };
    let before = thread_cpu();
    for _ in 0..DATAGRAMS / AT_ONCE {
        match how {
            How::Alone => {
                for one in bytes.chunks(DATAGRAM) {
                    socket.send(one).await.unwrap();
                }
            }
            How::Batch => {
                for one in bytes.chunks(DATAGRAM) {
                    batch.push_to_peer(one).unwrap();
                }
                socket.send_batch(&mut batch).await.unwrap();
            }
            How::Segments => {
                batch.push_segments_to_peer(&bytes, DATAGRAM).unwrap();
                socket.send_batch(&mut batch).await.unwrap();
            }
        }
    }
    let spent = thread_cpu() - before;
    // The receiver has dropped what it had no room for: it gets the end when it has room again.
    for _ in 0..100 {
        socket.send(&[0]).await.unwrap_or(0);
        phaseloop::time::sleep(Duration::from_millis(1)).await;
    }
    spent
}

fn udp(_: &Path) {
    println!(
        "{DATAGRAMS} datagrams of {DATAGRAM} bytes: thousands a second of CPU: sent, received; share received"
    );
    for _ in 0..ROUNDS {
        for (name, how, gro) in [
            ("send, one by one", How::Alone, false),
            ("Batch", How::Batch, false),
            ("Batch with segments", How::Segments, false),
            ("Batch with segments, GRO", How::Segments, true),
        ] {
            let (sender, address) = std::sync::mpsc::channel();
            let receiver = thread::spawn(move || receive(gro, sender));
            let spent = phaseloop::block_on(send(address.recv().unwrap(), how));
            let (count, received) = receiver.join().unwrap();
            let rate = |count: usize, time: Duration| count as f64 / time.as_secs_f64() / 1e3;
            let (sent, got) = (rate(DATAGRAMS, spent), rate(count, received));
            let share = count as f64 / DATAGRAMS as f64;
            println!("  {name:28} {sent:8.0} {got:8.0} {share:8.2}");
        }
    }
}

// Reads of 4 KiB.

const READS: usize = 64_000;
const PAGE: usize = 4096;
const PAGES: usize = 4096;

fn offset(index: usize) -> u64 {
    (index.wrapping_mul(0x9e37_79b1) % PAGES * PAGE) as u64
}

fn measured(read: impl FnOnce()) -> (Duration, Duration) {
    let (before, start) = (thread_cpu(), Instant::now());
    read();
    (thread_cpu() - before, start.elapsed())
}

fn by_std(file: &StdFile) {
    let mut buffer = [0; PAGE];
    for index in 0..READS {
        file.read_exact_at(&mut buffer, offset(index)).unwrap();
    }
}

fn by_pool(path: &Path, in_flight: usize) -> (Duration, Duration) {
    phaseloop::block_on(async move {
        let file = Rc::new(File::open(path).await.unwrap());
        let (before, start) = (thread_cpu(), Instant::now());
        let tasks: Vec<_> = (0..in_flight)
            .map(|first| {
                let file = file.clone();
                phaseloop::spawn(async move {
                    let mut buffer = [0; PAGE];
                    for index in (first..READS).step_by(in_flight) {
                        let count = file.read_at(&mut buffer, offset(index)).await.unwrap();
                        assert_eq!(count, PAGE);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        (thread_cpu() - before, start.elapsed())
    })
}

fn by_tokio(file: StdFile, in_flight: usize) -> (Duration, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let file = Arc::new(file);
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime.unwrap(), async move {
        let (before, start) = (thread_cpu(), Instant::now());
        let tasks: Vec<_> = (0..in_flight)
            .map(|first| {
                let file = file.clone();
                tokio::task::spawn_local(async move {
                    for index in (first..READS).step_by(in_flight) {
                        let file = file.clone();
                        let read = move || {
                            let mut buffer = vec![0; PAGE];
                            file.read_exact_at(&mut buffer, offset(index))
                                .map(|()| buffer)
                        };
                        tokio::task::spawn_blocking(read).await.unwrap().unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        (thread_cpu() - before, start.elapsed())
    })
}

/// A bare ring without a loop around it: the least that reads by a ring can cost.
fn by_ring(file: &StdFile, in_flight: usize) -> Option<(Duration, Duration)> {
    use io_uring::{IoUring, opcode, types};
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_coop_taskrun()
        .setup_defer_taskrun()
        .build(128)
        .ok()?;
    let mut buffers = vec![[0_u8; PAGE]; in_flight];
    let file = types::Fd(file.as_raw_fd());
    let mut entry = |slot: usize, index: usize| {
        opcode::Read::new(file, buffers[slot].as_mut_ptr(), PAGE as u32)
            .offset(offset(index))
            .build()
            .user_data(slot as u64)
    };
    Some(measured(|| {
        let (mut begun, mut done) = (0, 0);
        let mut free: Vec<usize> = (0..in_flight).collect();
        while done < READS {
            while let Some(slot) = (begun < READS).then(|| free.pop()).flatten() {
                // SAFETY: the buffer of a slot belongs to one entry until that is completed, and
                // all are before the buffers are dropped.
                unsafe { ring.submission().push(&entry(slot, begun)).unwrap() };
                begun += 1;
            }
            ring.submit_and_wait(1).unwrap();
            for end in ring.completion() {
                assert_eq!(end.result(), PAGE as i32);
                free.push(end.user_data() as usize);
                done += 1;
            }
        }
    }))
}

/// Node, if `PHASELOOP_NODE` or the path has one that counts the CPU time of a thread.
fn by_node(path: &Path, in_flight: usize) -> Option<(Duration, Duration)> {
    let script = format!(
        "const f = await (await import('node:fs/promises')).open('{}');
         const n = {READS}, k = {in_flight}, t = process.hrtime.bigint(), c = process.threadCpuUsage();
         await Promise.all(Array.from({{ length: k }}, async (_, first) => {{
           const b = Buffer.alloc({PAGE});
           for (let i = first; i < n; i += k) await f.read(b, 0, {PAGE}, (i * 40503 % {PAGES}) * {PAGE});
         }}));
         const d = process.threadCpuUsage(c);
         console.log((d.user + d.system) * 1000, String(process.hrtime.bigint() - t)); await f.close();",
        path.display()
    );
    let node = std::env::var("PHASELOOP_NODE").unwrap_or_else(|_| "node".to_owned());
    let output = Command::new(node)
        .args(["--input-type=module", "-e", &script])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text
        .split_whitespace()
        .map(|number| number.parse::<f64>().ok());
    let mut next = || {
        numbers
            .next()
            .flatten()
            .map(|nanos| Duration::from_nanos(nanos as u64))
    };
    Some((next()?, next()?))
}

fn reads(folder: &Path) {
    let path = folder.join("pages");
    std::fs::write(&path, vec![b'x'; PAGE * PAGES]).unwrap();
    let file = StdFile::open(&path).unwrap();
    println!(
        "{READS} cached reads of 4 KiB: µs of CPU of the thread that waits, µs of time, a read"
    );
    for _ in 0..ROUNDS {
        let report = |name: &str, times: Option<(Duration, Duration)>| match times {
            Some((cpu, wall)) => {
                let (cpu, wall) = (micros(cpu, READS), micros(wall, READS));
                println!("  {name:28} {cpu:8.2} {wall:8.2}");
            }
            None => println!("  {name:28} not here"),
        };
        report("std, pread", Some(measured(|| by_std(&file))));
        for in_flight in [1, 64] {
            let name = |what: &str| format!("{what}, {in_flight} in flight");
            report(&name("phaseloop, pool"), Some(by_pool(&path, in_flight)));
            report(&name("bare ring"), by_ring(&file, in_flight));
            let clone = file.try_clone().unwrap();
            report(
                &name("tokio, spawn_blocking"),
                Some(by_tokio(clone, in_flight)),
            );
            report(&name("node"), by_node(&path, in_flight));
        }
    }
}

// Sleeps.

const SLEEPS: usize = 2000;
const TENTH: Duration = Duration::from_micros(100);

/// Prints how late sleeps of 100 µs were: the median, and the 99th of a hundred.
fn report_late(name: &str, mut late: Vec<Duration>) {
    late.sort();
    let at = |share: usize| late[late.len() * share / 100].as_secs_f64() * 1e6;
    println!("  {name:28} {:8.0} {:8.0}", at(50), at(99));
}

async fn sleep_often<F: Future<Output = ()>>(sleep: impl Fn(Duration) -> F) -> Vec<Duration> {
    let mut late = Vec::with_capacity(SLEEPS);
    for _ in 0..SLEEPS {
        let start = Instant::now();
        sleep(TENTH).await;
        late.push(
            start
                .elapsed()
                .checked_sub(TENTH)
                .expect("no sleep is early"),
        );
    }
    late
}

fn sleeps(_: &Path) {
    println!("{SLEEPS} sleeps of 100 µs: µs late in the median, and of the 99th of a hundred");
    for _ in 0..ROUNDS {
        let std = sleep_often(|duration| async move { thread::sleep(duration) });
        report_late("std::thread::sleep", phaseloop::block_on(std));
        let phaseloop = async { sleep_often(phaseloop::time::sleep).await };
        report_late("phaseloop", phaseloop::block_on(phaseloop));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let tokio = async { sleep_often(tokio::time::sleep).await };
        report_late("tokio", runtime.unwrap().block_on(tokio));
    }
}
