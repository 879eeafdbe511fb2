//! Runs a program, prints its output line by line with the time since its start, and exits with its
//! exit code.
//!
//! ```text
//! cargo run --release --example run_child                     # a program of its own
//! cargo run --release --example run_child -- ping -c 3 ::1    # any program
//! ```

#[cfg(unix)]
fn main() -> std::io::Result<()> {
    use std::os::unix::process::ExitStatusExt;
    use std::time::Instant;

    use futures::future::join;
    use phaseloop::io::{AsyncBufReadExt, AsyncRead, BufReader};
    use phaseloop::process::{Command, Stdio};
    use phaseloop::stream::StreamExt;

    const DEMO: [&str; 3] = [
        "sh",
        "-c",
        "for i in 1 2 3; do echo line $i; sleep 0.02; done; echo done >&2",
    ];

    async fn print(mark: char, output: impl AsyncRead + Unpin, start: Instant) {
        let mut lines = BufReader::new(output).lines();
        while let Some(line) = lines.next().await {
            let line = line.unwrap_or_else(|error| format!("({error})"));
            println!("{:9.3} {mark} {line}", start.elapsed().as_secs_f64());
        }
    }

    let mut line: Vec<_> = std::env::args().skip(1).collect();
    if line.is_empty() {
        line = DEMO.map(str::to_owned).to_vec();
    }
    let status = phaseloop::block_on(async {
        let start = Instant::now();
        let mut child = Command::new(&line[0])
            .args(&line[1..])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr) = (stdout.expect("piped"), stderr.expect("piped"));
        join(print('|', stdout, start), print('!', stderr, start)).await;
        child.wait().await
    })?;
    // The convention of shells: 128 plus the number of the signal.
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    std::process::exit(code.unwrap_or(1));
}

#[cfg(not(unix))]
fn main() {
    println!("Child processes are supported on Unix only.");
}
