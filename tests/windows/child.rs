//! The program of the children: this binary, which runs one test that plays a part.

use std::io::{Read, Write};
use std::time::Duration;

/// The environment variable with the part.
const PART: &str = "PHASELOOP_TEST_PART";

/// Creates a command that plays a part. The test harness writes to standard output as well, and not
/// to standard error.
#[cfg(feature = "process")]
pub(crate) fn part(part: &str) -> phaseloop::process::Command {
    let program = std::env::current_exe().unwrap();
    let mut command = phaseloop::process::Command::new(program);
    command
        .args(["child::plays_its_part", "--exact", "--nocapture"])
        .env(PART, part)
        .stdout(phaseloop::process::Stdio::null());
    command
}

/// Without a part it has nothing to do. It asserts what a child needs: its standard streams.
#[test]
fn plays_its_part() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let (part, number) = part.split_once(' ').unwrap_or((&part, "0"));
    let number: usize = number.parse().unwrap();
    let mut input = Vec::new();
    let mut error = std::io::stderr();
    match part {
        "exit" => {}
        "sleep" => std::thread::sleep(Duration::from_secs(1000)),
        // Copies standard input to standard error.
        "copy" => {
            std::io::stdin().read_to_end(&mut input).unwrap();
            error.write_all(&input).unwrap();
        }
        // Reads late, and reports how much.
        "count" => {
            std::thread::sleep(Duration::from_millis(number as u64));
            std::io::stdin().read_to_end(&mut input).unwrap();
            write!(error, "{}", input.len()).unwrap();
        }
        // Copies standard input to standard error on a loop, and reports what they are.
        "loop" => phaseloop::block_on(async {
            use phaseloop::io::{AsyncReadExt, AsyncWriteExt, stderr, stdin};
            let (mut from, mut to) = (stdin().unwrap(), stderr().unwrap());
            let kinds = format!("{:?} {:?} ", from.kind(), to.kind());
            to.write_all(kinds.as_bytes()).await.unwrap();
            from.read_to_end(&mut input).await.unwrap();
            to.write_all(&input).await.unwrap();
        }),
        "fill" => error.write_all(&vec![b'x'; number]).unwrap(),
        other => panic!("no part: {other}"),
    }
    std::process::exit(if part == "exit" { number as i32 } else { 0 });
}
