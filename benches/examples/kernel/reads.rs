//! Reads of 4 KiB that the page cache answers.

use std::fs::File as StdFile;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phaseloop::fs::File;

use crate::ring::Ring;
use crate::{ROUNDS, Rounds, micros, thread_cpu};

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

/// Reads by tasks of a loop, each with its own pages.
fn on_loop<F: AsyncFn(&File, u64) + 'static>(
    path: &Path,
    in_flight: usize,
    read: F,
) -> (Duration, Duration) {
    phaseloop::block_on(async move {
        let shared = Rc::new((File::open(path).await.unwrap(), read));
        let (before, start) = (thread_cpu(), Instant::now());
        let tasks: Vec<_> = (0..in_flight)
            .map(|first| {
                let shared = shared.clone();
                phaseloop::spawn(async move {
                    let (file, read) = &*shared;
                    for index in (first..READS).step_by(in_flight) {
                        read(file, offset(index)).await;
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

/// What the page cache has is read on the loop's thread.
fn by_loop(path: &Path, in_flight: usize) -> (Duration, Duration) {
    on_loop(path, in_flight, async |file: &File, offset| {
        let mut buffer = [0; PAGE];
        file.read_exact_at(&mut buffer, offset).await.unwrap();
    })
}

/// Each read is a job, as one that the page cache does not answer.
fn by_pool(path: &Path, in_flight: usize) -> (Duration, Duration) {
    let file = Arc::new(StdFile::open(path).unwrap());
    on_loop(path, in_flight, async move |_: &File, offset| {
        let file = file.clone();
        let read = move || {
            let mut buffer = vec![0; PAGE];
            file.read_exact_at(&mut buffer, offset).map(|()| buffer)
        };
        phaseloop::spawn_blocking(read).await.unwrap().unwrap();
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

/// Each read is an entry of a ring on the loop.
fn by_loop_ring(path: &Path, in_flight: usize) -> Option<(Duration, Duration)> {
    let file = StdFile::open(path).unwrap();
    phaseloop::block_on(async { Ring::new() })?;
    let ring = std::cell::OnceCell::new();
    Some(on_loop(path, in_flight, async move |_: &File, offset| {
        let ring = ring.get_or_init(|| Ring::new().expect("there was one before"));
        let mut buffer = [0; PAGE];
        ring.read_at(&file, &mut buffer, offset).await;
    }))
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

/// Node, if `PHASELOOP_NODE` or the path has one with this count of CPU time.
fn by_node(path: &Path, in_flight: usize, usage: &str) -> Option<(Duration, Duration)> {
    let script = format!(
        "const f = await (await import('node:fs/promises')).open('{}');
         const n = {READS}, k = {in_flight}, t = process.hrtime.bigint(), c = process.{usage}();
         await Promise.all(Array.from({{ length: k }}, async (_, first) => {{
           const b = Buffer.alloc({PAGE});
           for (let i = first; i < n; i += k) await f.read(b, 0, {PAGE}, (i * 40503 % {PAGES}) * {PAGE});
         }}));
         const d = process.{usage}(c);
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

/// The workload `read_pages` of the suite on each runtime, as CPU time of all threads.
pub(crate) fn run_peers(folder: &Path) {
    let path = pages(folder);
    for in_flight in [1, 64] {
        let mut rounds = Rounds::new(["CPU of all threads", "time"]);
        for _ in 0..ROUNDS {
            for runtime in ["phaseloop", "tokio", "smol", "compio", "std"] {
                let output = Command::new(std::env::current_exe().unwrap())
                    .args(["cell", &format!("read_pages/{in_flight}"), runtime])
                    .arg(READS.to_string())
                    .output()
                    .unwrap();
                let text = String::from_utf8(output.stdout).unwrap();
                let figure = |name: &str| {
                    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
                    let nanos = line.trim().parse().expect("it prints a number");
                    Some(micros(Duration::from_nanos(nanos), READS))
                };
                if let Some(figures) = figure("cpu ").zip(figure("wall ")) {
                    rounds.push(runtime, figures.into());
                }
            }
            if let Some((cpu, wall)) = by_node(&path, in_flight, "cpuUsage") {
                rounds.push("Node", [micros(cpu, READS), micros(wall, READS)]);
            }
        }
        let title = format!("a read of 4 KiB, {in_flight} in flight; µs");
        rounds.print(&title, Some("std"));
    }
}

/// A file that the page cache has.
fn pages(folder: &Path) -> PathBuf {
    let path = folder.join("pages");
    std::fs::write(&path, vec![b'x'; PAGE * PAGES]).unwrap();
    path
}

pub(crate) fn run(folder: &Path) {
    let path = pages(folder);
    let file = StdFile::open(&path).unwrap();
    for in_flight in [1, 64] {
        let mut rounds = Rounds::new(["CPU of the waiting thread", "time"]);
        for _ in 0..ROUNDS {
            let mut note = |name: &str, times: Option<(Duration, Duration)>| {
                if let Some((cpu, wall)) = times {
                    rounds.push(name, [micros(cpu, READS), micros(wall, READS)]);
                }
            };
            note(POOL, Some(by_pool(&path, in_flight)));
            note("phaseloop, `read_at`", Some(by_loop(&path, in_flight)));
            note("phaseloop, a ring", by_loop_ring(&path, in_flight));
            note("a bare ring, no loop", by_ring(&file, in_flight));
            let clone = file.try_clone().unwrap();
            note("tokio, `spawn_blocking`", Some(by_tokio(clone, in_flight)));
            note("Node", by_node(&path, in_flight, "threadCpuUsage"));
            if in_flight == 1 {
                note("`std`, `pread`", Some(measured(|| by_std(&file))));
            }
        }
        let title = format!("a read of 4 KiB, {in_flight} in flight; µs");
        rounds.print(&title, Some(POOL));
    }
}

const POOL: &str = "phaseloop, a job of the pool";
