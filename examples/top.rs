//! A live view of a server in its own terminal: how busy its loop is, how late, and with what.
//!
//! ```text
//! cargo run --release --example top          # until ctrl-c; three seconds without a terminal
//! cargo run --release --example top -- 10    # for ten seconds
//! ```
//!
//! The figures are those of the last second: the difference of two copies of the loop's metrics,
//! and the newest records of a recorder. There is no protocol and no port: the view is a task of
//! the loop that it shows.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::observe::{Metrics, Record, Recorder, What};
use phaseloop::time::{interval, sleep};
use phaseloop::{Builder, LoopHandle, spawn, task};

/// The number of subjects that the view lists.
const BUSIEST: usize = 5;

/// Who has used the time of the loop, and how.
#[derive(Default)]
struct Used {
    times: u32,
    took: u64,
    longest: u64,
}

/// Sums the time of each subject over the records that end after `since`. The time of what ran
/// inside of another activity is not the time of the latter.
fn busiest(records: &[Record], since: u64) -> Vec<(String, Used)> {
    let tasks = LoopHandle::current().tasks();
    let name = |record: &Record| match record.what {
        What::Poll => {
            let number = record.id.to_string();
            let task = tasks.iter().find(|task| task.id().to_string() == number);
            task.map_or_else(|| ended_task(record), ToString::to_string)
        }
        What::Main => "the main future".to_owned(),
        _ => {
            let what = record
                .kind
                .map_or_else(|| format!("{:?}", record.what), |kind| kind.to_string());
            record
                .site
                .map_or(what.clone(), |site| format!("{what} ({site})"))
        }
    };
    let is_activity = |record: &&Record| {
        use What::{Callback, Main, Microtask, Poll, Tick};
        matches!(record.what, Callback | Poll | Main | Tick | Microtask)
    };
    let mut used: HashMap<String, Used> = HashMap::new();
    // The time of the activities inside of the one that has not ended yet, by depth.
    let mut inside = [0; 257];
    for record in records.iter().filter(is_activity) {
        let depth = usize::from(record.depth);
        let whole = record.end - record.start;
        let own = whole.saturating_sub(std::mem::take(&mut inside[depth + 1]));
        inside[depth] += whole;
        if depth == 0 {
            inside[0] = 0;
        }
        if record.end > since {
            let entry = used.entry(name(record)).or_default();
            entry.times += 1;
            entry.took += own;
            entry.longest = entry.longest.max(own);
        }
    }
    let mut used: Vec<_> = used.into_iter().collect();
    used.sort_by_key(|(_, used)| std::cmp::Reverse(used.took));
    used.truncate(BUSIEST);
    used
}

/// Tasks that have ended share the line of their spawn.
fn ended_task(record: &Record) -> String {
    match record.site {
        Some(site) => format!("tasks that have ended ({site})"),
        None => "tasks that have ended".to_owned(),
    }
}

/// Draws the figures of one second.
fn draw(metrics: &Metrics, tasks: usize, busiest: &[(String, Used)]) -> String {
    let share = metrics.utilization();
    let bar = "#".repeat((share * 40.0).round() as usize);
    let delay = metrics.delay();
    let mut text = String::new();
    let _ = writeln!(text, "utilization {:5.1} %  [{bar:40}]", share * 100.0);
    let _ = writeln!(
        text,
        "delay       half of the time below {:.1?}, 99 % below {:.1?}, at most {:.1?}",
        delay.quantile(0.5),
        delay.quantile(0.99),
        delay.max(),
    );
    let _ = writeln!(
        text,
        "tasks       {tasks}, {} spawned; {} turns, {} polls, {} events",
        metrics.spawned, metrics.turns, metrics.polls, metrics.events
    );
    let _ = writeln!(
        text,
        "\n{:>8} {:>8} {:>9}  busiest",
        "times", "took", "longest"
    );
    for (name, used) in busiest {
        let ms = |nanoseconds: u64| format!("{:.1?}", Duration::from_nanos(nanoseconds));
        let (took, longest) = (ms(used.took), ms(used.longest));
        let _ = writeln!(text, "{:>8} {took:>8} {longest:>9}  {name}", used.times);
    }
    text
}

/// Shows the view once a second, in place on a terminal.
async fn view(recorder: Recorder) {
    let handle = LoopHandle::current();
    let is_terminal = io::stdout().is_terminal();
    let mut seconds = interval(Duration::from_secs(1));
    seconds.tick().await;
    let mut before = handle.metrics();
    loop {
        seconds.tick().await;
        let now = handle.metrics();
        let records = recorder.records();
        let last = records.last().map_or(0, |record| record.end);
        let busiest = busiest(&records, last.saturating_sub(1_000_000_000));
        let text = draw(&now.since(&before), now.tasks, &busiest);
        before = now;
        // Clears the screen, and begins at its upper left corner.
        let clear = if is_terminal { "\x1b[H\x1b[2J" } else { "" };
        println!("{clear}top of process {}\n\n{text}", std::process::id());
        let _ = io::stdout().flush();
    }
}

/// A server that echoes, and works a little for each message.
async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let connection = async move {
            let mut buffer = [0; 1024];
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                work(Duration::from_micros(200));
                if stream.write_all(&buffer[..read]).await.is_err() {
                    break;
                }
            }
        };
        task::Builder::new()
            .name("connection")
            .spawn(connection)
            .detach();
    }
}

/// Uses the processor, as a computation would.
fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

/// A client that sends a message, waits for the answer, and rests.
async fn client(address: std::net::SocketAddr, rest: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let mut buffer = [0; 5];
    loop {
        stream.write_all(b"hello").await?;
        stream.read_exact(&mut buffer).await?;
        sleep(rest).await;
    }
}

/// The culprit: it blocks the loop now and then.
async fn hash() {
    loop {
        sleep(Duration::from_millis(300)).await;
        work(Duration::from_millis(25));
    }
}

fn main() -> io::Result<()> {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let seconds = seconds.or_else(|| (!io::stdout().is_terminal()).then_some(3));
    // The view shows slow periods; a line for each would disturb it.
    let recorder = Recorder::new().on_slow(|_| ());
    let event_loop = Builder::new().record(recorder.clone()).build()?;
    event_loop.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        task::Builder::new()
            .name("server")
            .spawn(serve(listener))
            .detach();
        for number in 0..8 {
            spawn(client(address, Duration::from_millis(5 + number))).detach();
        }
        task::Builder::new().name("hash").spawn(hash()).detach();
        let view = task::Builder::new().name("view").spawn(view(recorder));
        match seconds {
            None => drop(view.await),
            Some(seconds) => {
                let end = sleep(Duration::from_secs(seconds) + Duration::from_millis(100));
                if let Either::Left(_) = select(Box::pin(end), view).await {
                    println!("the end");
                }
            }
        }
        Ok(())
    })
}
