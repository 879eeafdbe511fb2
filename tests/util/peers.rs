//! Other programs at the other end. Tests say so and pass where a program is missing.
#![allow(dead_code, reason = "the binaries use a part each")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use phaseloop::spawn_blocking;

/// A program that ends with the test, also when that fails.
pub(crate) struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

/// Reads all that the other end says, says it in capitals, and closes.
pub(crate) async fn answer_in_capitals(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let answer = text.to_uppercase();
    stream.write_all(answer.as_bytes()).await.unwrap();
}

/// Whether the program is there.
fn is_there(program: &str) -> bool {
    // How each of them says what it is.
    let question = match program {
        "nc" => "-h",
        "socat" => "-V",
        "wrk" => "-v",
        _ => "--version",
    };
    let found = Command::new(program)
        .arg(question)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // `wrk` says what it is, and fails.
    let is_there = found.is_ok_and(|status| status.success() || program == "wrk");
    if !is_there {
        eprintln!("skipped: no {program} here");
    }
    is_there
}

/// Starts a program, if it is there, with `input` as its standard input.
pub(crate) fn start_with(program: &str, args: &[&str], input: &str) -> Option<Child> {
    if !is_there(program) {
        return None;
    }
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    // It is short, and fits into the pipe.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    Some(child)
}

/// Starts a program without input.
pub(crate) fn start(program: &str, args: &[&str]) -> Option<Child> {
    start_with(program, args, "")
}

/// Starts a program that prints a line when it is ready; returns that line.
pub(crate) fn serve(program: &str, args: &[&str]) -> Option<(Server, String)> {
    let mut server = Server(start(program, args)?);
    let line = first_line(&mut server);
    Some((server, line))
}

/// Waits, on the pool, for the first line that a program prints; then ends it.
pub(crate) async fn first_line_of(child: Child) -> String {
    let mut server = Server(child);
    spawn_blocking(move || first_line(&mut server))
        .await
        .unwrap()
}

fn first_line(server: &mut Server) -> String {
    let mut line = String::new();
    let stdout = server.0.stdout.as_mut().unwrap();
    if BufReader::new(stdout).read_line(&mut line).unwrap() == 0 {
        let mut error = String::new();
        let stderr = server.0.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut error).unwrap();
        panic!("{error}");
    }
    line.trim().to_owned()
}

/// Waits for the end of the program on the pool, and returns what it printed.
pub(crate) async fn output(child: Child) -> String {
    let output = spawn_blocking(move || child.wait_with_output()).await;
    let output = output.unwrap().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}
