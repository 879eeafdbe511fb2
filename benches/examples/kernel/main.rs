//! What the kernel offers beyond readiness, in one run: files sent without a copy, UDP segments,
//! files and sockets by a ring, waits below a millisecond.
//!
//! ```text
//! cargo run --release --manifest-path benches/Cargo.toml --example kernel [files|udp|reads|peers|sockets|sleeps]
//! ```
//!
//! CPU times include the kernel's. Those of a server are of the whole process, less the thread of
//! its client; those of reads are of the thread that waits for them.

mod files;
mod reads;
mod ring;
mod sleeps;
mod sockets;
mod udp;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

const MIB: usize = 1024 * 1024;
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let only = arguments.first().cloned();
    if only.as_deref() == Some("cell") {
        // A workload of the suite, or its client, in a process of its own.
        return phaseloop_benches::cell::run(&arguments.split_off(1));
    }
    let folder = std::env::temp_dir().join(format!("phaseloop-kernel-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    println!("load average: {}", load());
    for (name, part) in [
        ("files", files::run as fn(&Path)),
        ("udp", udp::run),
        ("reads", reads::run),
        ("peers", reads::run_peers),
        ("sockets", sockets::run),
        ("sleeps", sleeps::run),
    ] {
        if only.as_deref().is_none_or(|only| only == name) {
            part(&folder);
        }
    }
    println!("\nload average: {}", load());
    std::fs::remove_dir_all(folder).unwrap();
    ExitCode::SUCCESS
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("").to_owned()
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

fn process_cpu() -> Duration {
    cpu(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn thread_cpu() -> Duration {
    cpu(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

/// The figures of rounds in which all take turns.
struct Rounds<const N: usize> {
    columns: [&'static str; N],
    /// In the order of the first round.
    rows: Vec<(String, Vec<[f64; N]>)>,
}

impl<const N: usize> Rounds<N> {
    fn new(columns: [&'static str; N]) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    fn push(&mut self, name: impl Into<String>, figures: [f64; N]) {
        let name = name.into();
        match self.rows.iter_mut().find(|(other, _)| *other == name) {
            Some((_, rounds)) => rounds.push(figures),
            None => self.rows.push((name, vec![figures])),
        }
    }

    /// Prints a table in Markdown: the median of the rounds, the least and the most, and the median
    /// divided by that of the row `base`, if there is one.
    fn print(&self, title: &str, base: Option<&str>) {
        let median = |name: &str, column: usize| -> Option<[f64; 3]> {
            let (_, rounds) = self.rows.iter().find(|(row, _)| row == name)?;
            let mut figures: Vec<_> = rounds.iter().map(|round| round[column]).collect();
            figures.sort_by(f64::total_cmp);
            let last = figures.len() - 1;
            Some([figures[0], figures[last / 2], figures[last]])
        };
        println!("\n| {title} | {} |", self.columns.join(" | "));
        println!("|---|{}", "---|".repeat(N));
        for (name, _) in &self.rows {
            let cells = (0..N).map(|column| {
                let [least, middle, most] = median(name, column).expect("the row is there");
                let digits = usize::from(most < 100.0) + usize::from(most < 10.0);
                let ratio = base.and_then(|base| median(base, column));
                let ratio =
                    ratio.map_or(String::new(), |base| format!(", × {:.2}", middle / base[1]));
                format!("{middle:.digits$} ({least:.digits$}–{most:.digits$}){ratio}")
            });
            println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
}
