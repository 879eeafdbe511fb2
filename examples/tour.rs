//! A tour in six chapters: the order of the lanes, a server and its clients, a file, a child, a
//! paused clock, and the report of a program that hangs.
//!
//! ```text
//! cargo run --example tour
//! ```

use std::cell::Cell;
use std::env;
use std::io::{self, IsTerminal};
use std::rc::Rc;
use std::time::Duration;

use phaseloop::fs;
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::process::{Command, Stdio};
use phaseloop::sync::Mutex;
use phaseloop::time::{self, Timer, sleep};
use phaseloop::{LoopHandle, next_tick, queue_microtask, run, set_immediate, spawn, task};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if env::args().nth(1).as_deref() == Some("child") {
        print!("{}", io::read_to_string(io::stdin())?.to_uppercase());
        return Ok(());
    }
    let started = std::time::Instant::now();
    chapter("1  Order: after each callback all ticks run, then all microtasks");
    run(lanes())??;
    chapter("2  A server and its clients, and an Rc that they share: one thread, no lock");
    run(server())??;
    chapter("3  A file, written and read by the thread pool");
    run(file())??;
    chapter("4  A child process, with its pipes on the loop");
    run(child())??;
    chapter("5  A paused clock: tests of long times take no time");
    run(paused_clock())?;
    chapter("6  Why does it hang? Two tasks take two locks in opposite order");
    run(circle())?;
    println!();
    line(&format!("The tour took {:.0?}.", started.elapsed()));
    Ok(())
}

/// The timer's callback queues one entry in each lane. Each line has the number of its turn.
async fn lanes() -> io::Result<()> {
    let timer = Timer::new(&LoopHandle::current());
    timer.start(Duration::from_millis(1), Duration::ZERO, |_| {
        set_immediate(|| line("7  immediate              check phase"));
        queue_microtask(|| {
            line("3  microtask              in the order of queueing");
            next_tick(|| line("6  tick of a microtask    when the microtasks are done"));
        });
        spawn(async {
            line("4  a new task             its first poll is a microtask");
            task::yield_microtask().await;
            line("5  the task again         at the back of the same lane");
        })
        .detach();
        next_tick(|| line("2  tick                   queued last, before all microtasks"));
        line("1  callback of a timer    timers phase; it queues all the others");
    })?;
    sleep(Duration::from_millis(5)).await;
    Ok(())
}

async fn server() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let served = Rc::new(Cell::new(0));
    let server = spawn({
        let served = served.clone();
        async move {
            while let Ok((mut stream, _peer)) = listener.accept().await {
                let served = served.clone();
                spawn(async move {
                    let mut name = String::new();
                    stream.read_to_string(&mut name).await?;
                    served.set(served.get() + 1);
                    let answer = format!("hello {name}, you are number {}", served.get());
                    stream.write_all(answer.as_bytes()).await
                })
                .detach();
            }
        }
    });
    for name in ["Ada", "Grace", "Barbara"] {
        let mut client = TcpStream::connect(address).await?;
        client.write_all(name.as_bytes()).await?;
        client.close().await?;
        let mut answer = String::new();
        client.read_to_string(&mut answer).await?;
        line(&format!("{name} got {answer:?}"));
    }
    server.abort();
    line(&format!("the server has counted {}", served.get()));
    Ok(())
}

async fn file() -> io::Result<()> {
    let folder = fs::mkdtemp(env::temp_dir().join("tour-XXXXXX")).await?;
    let path = folder.join("poem");
    fs::write(&path, "one\ntwo\nthree\n").await?;
    let text = fs::read_to_string(&path).await?;
    line(&format!("{} lines came back", text.lines().count()));
    // Errors name the operation and the file.
    match fs::read(path.with_extension("gone")).await {
        Ok(_) => line("not reached"),
        Err(error) => line(&error.to_string().replace(&*folder.to_string_lossy(), "…")),
    }
    fs::remove_dir_all(folder).await
}

/// This program again, which then turns its input into capital letters.
async fn child() -> io::Result<()> {
    let mut child = Command::new(env::current_exe()?)
        .arg("child")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"quiet words").await?;
    stdin.close().await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    let text = String::from_utf8_lossy(&output.stdout);
    line(&format!("it answered {text:?}: {}", output.status));
    Ok(())
}

async fn paused_clock() {
    time::pause();
    let (start, real) = (time::now(), std::time::Instant::now());
    let day = spawn(sleep(Duration::from_secs(24 * 60 * 60)));
    assert!(day.await.is_ok());
    let hours = start.elapsed().as_secs() / 3600;
    line(&format!(
        "{hours} h on the clock of the loop, {:.1?} on the wall",
        real.elapsed()
    ));
    time::resume();
}

/// Each task holds the lock that the other one waits for.
async fn circle() {
    let (left, right) = (Rc::new(Mutex::new(())), Rc::new(Mutex::new(())));
    let first = take_both(left.clone(), right.clone());
    let first = task::Builder::new().name("first").spawn(first);
    let second = task::Builder::new()
        .name("second")
        .spawn(take_both(right, left));
    sleep(Duration::from_millis(5)).await;
    let report = LoopHandle::current().report().to_string();
    report.lines().for_each(line);
    first.abort();
    second.abort();
}

async fn take_both(one: Rc<Mutex<()>>, other: Rc<Mutex<()>>) {
    let _one = one.lock().await;
    task::yield_now().await;
    let _other = other.lock().await;
}

fn chapter(title: &str) {
    if io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none() {
        println!("\n\x1b[1;36m{title}\x1b[0m");
    } else {
        println!("\n{title}");
    }
}

fn line(text: &str) {
    println!("   {text}");
}
