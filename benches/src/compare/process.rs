//! One cell: the process that is measured, under a tool or not, and the client that it may need.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::catalogue::{OURS, Workload};
use crate::compare::Failure;
use crate::compare::alone;
use crate::compare::perf;
use crate::compare::watchdog::{Watchdog, Watched};
use crate::latency::Latencies;

/// How much slower a process is when every instruction or system call is watched.
const SLOWDOWN: u32 = 12;

/// Where the programs of the suite are.
#[derive(Debug)]
pub struct Programs {
    pub costs: PathBuf,
    pub allocs: PathBuf,
    /// The workloads for Node.
    pub node: PathBuf,
}

/// Runs the programs, each for a limited time.
#[derive(Debug)]
pub(crate) struct Runner {
    programs: Programs,
    /// What runs phaseloop, if those above were built with what changes it.
    ours: Option<Programs>,
    limit: Duration,
}

/// Under what the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Nothing,
    /// An allocator that counts.
    Allocator,
    Callgrind,
    /// The kernel counts system calls, which hardly slows the threads.
    Perf,
    /// Stops the process at each system call.
    Strace,
}

/// What a process reported about itself.
#[derive(Default)]
pub(crate) struct Output {
    /// By name, for all operations together.
    pub(crate) values: BTreeMap<String, f64>,
    pub(crate) latencies: Latencies,
    /// From before its start until after its end.
    pub(crate) lifetime: f64,
    stderr: String,
}

impl Output {
    pub(crate) fn get(&self, name: &str) -> Result<f64, Failure> {
        let value = self.values.get(name).copied();
        Ok(value.ok_or_else(|| format!("the process printed no {name}"))?)
    }

    /// How many operations there were: a client like `wrk` runs for a time, and counts them.
    pub(crate) fn operations(&self, asked: u64) -> f64 {
        let counted = self.values.get("operations").copied();
        counted.unwrap_or(asked as f64)
    }

    /// Lines of a name and a value; a latency has two.
    fn read_line(&mut self, line: &str) -> Option<()> {
        let (name, value) = line.split_once(' ')?;
        if name == "latency" {
            return self.latencies.read(value);
        }
        self.values
            .insert(name.to_owned(), value.trim().parse().ok()?);
        Some(())
    }

    /// The total that callgrind prints at its end.
    pub(crate) fn instructions(&self) -> Result<f64, Failure> {
        let mut lines = self.stderr.lines();
        let total = lines.find_map(|line| line.split_once("Collected :"));
        let (_, total) = total.ok_or("callgrind printed no total")?;
        Ok(total.trim().parse()?)
    }

    /// How often each system call was made.
    pub(crate) fn calls(&self, tool: Tool) -> BTreeMap<String, f64> {
        match tool {
            Tool::Perf => perf::calls(&self.stderr),
            _ => strace_calls(&self.stderr),
        }
    }
}

/// Reads the table that strace prints at its end.
fn strace_calls(text: &str) -> BTreeMap<String, f64> {
    let rows = text.lines().filter_map(|line| {
        // % time, seconds, usecs/call, calls, errors (or nothing), name
        let columns: Vec<_> = line.split_whitespace().collect();
        let (calls, name) = (columns.get(3)?, columns.last()?);
        let calls = calls.parse().ok()?;
        (columns.len() >= 5 && *name != "total").then(|| ((*name).to_owned(), calls))
    });
    rows.collect()
}

impl Runner {
    pub(crate) fn new(programs: Programs, limit: Duration) -> Self {
        Self {
            programs,
            ours: None,
            limit,
        }
    }

    /// From now on phaseloop runs in programs of its own, if that makes a difference.
    pub(crate) fn build_ours_alone(&mut self) -> Result<(), Failure> {
        if alone::IS_NEEDED {
            self.ours = Some(alone::build(&self.programs.node)?);
        }
        Ok(())
    }

    fn programs_of(&self, runtime: &str) -> &Programs {
        match &self.ours {
            Some(ours) if runtime.starts_with(OURS) && runtime != "phaseloop-std" => ours,
            _ => &self.programs,
        }
    }

    /// Runs `n` operations of a workload on a runtime.
    pub(crate) fn run(
        &self,
        tool: Tool,
        workload: &Workload,
        runtime: &str,
        n: u64,
    ) -> Result<Output, Failure> {
        let watched = Watched::default();
        let watchdog = Watchdog::start(&watched, self.limit);
        let output = self.try_run(tool, workload, runtime, n, &watched);
        if output.is_err() {
            watched.end_all();
        }
        let failure = match (watchdog.stop(), output) {
            (false, Ok(output)) => return Ok(output),
            (false, Err(failure)) => failure,
            (true, _) => format!("over the limit of {} s", self.limit.as_secs()).into(),
        };
        Err(format!("{} on {runtime}: {failure}", workload.name).into())
    }

    fn try_run(
        &self,
        tool: Tool,
        workload: &Workload,
        runtime: &str,
        n: u64,
        watched: &Watched,
    ) -> Result<Output, Failure> {
        let slowdown = match tool {
            Tool::Nothing | Tool::Allocator | Tool::Perf => 1,
            Tool::Callgrind | Tool::Strace => SLOWDOWN,
        };
        let line = self.command_line(tool, workload, runtime, n, slowdown);
        let start = Instant::now();
        let mut process = spawn(&line)?;
        watched.add(process.id());
        let mut output = Output::default();
        let mut client = None;
        let stdout = process.stdout.take().ok_or("no output")?;
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            match (line.strip_prefix("address "), workload.load(n)) {
                (Some(address), Some(load)) => {
                    let mut command = vec![
                        self.programs.costs.clone().into(),
                        "load".into(),
                        address.into(),
                    ];
                    command.extend(load.split(' ').map(OsString::from));
                    client = Some(Client::start(&command, process.id(), watched)?);
                }
                _ => output
                    .read_line(&line)
                    .ok_or_else(|| format!("unexpected output: {line}"))?,
            }
        }
        let ended = end(process, &line[0], watched);
        output.lifetime = start.elapsed().as_nanos() as f64;
        if let Some(client) = client {
            let text = client.end()?;
            text.lines()
                .try_for_each(|line| output.read_line(line))
                .ok_or("strange client")?;
        }
        output.stderr = ended?;
        Ok(output)
    }

    fn command_line(
        &self,
        tool: Tool,
        workload: &Workload,
        runtime: &str,
        n: u64,
        slowdown: u32,
    ) -> Vec<OsString> {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect();
        let mut line: Vec<OsString> = match tool {
            Tool::Nothing | Tool::Allocator => Vec::new(),
            Tool::Callgrind => words(&[
                "valgrind",
                "--tool=callgrind",
                "--callgrind-out-file=/dev/null",
                // tokio's pool has 512 threads; valgrind ends at 500, and hangs there.
                "--max-threads=1000",
            ]),
            Tool::Perf => perf::command_line(),
            Tool::Strace => words(&["strace", "-f", "-c"]),
        };
        let programs = self.programs_of(runtime);
        match (runtime, tool) {
            ("node", _) => {
                // The others stay on the server's core by themselves.
                if workload.is_pinned() {
                    line.extend(["taskset", "-c", "0"].map(OsString::from));
                }
                line.extend(["node".into(), programs.node.clone().into()]);
            }
            (_, Tool::Allocator) => line.push(programs.allocs.clone().into()),
            _ => line.push(programs.costs.clone().into()),
        }
        line.extend([workload.name.into(), runtime.into()]);
        line.extend([n.to_string().into(), slowdown.to_string().into()]);
        line
    }
}

/// The other end. If it fails, the server is ended: it would wait for ever.
struct Client(JoinHandle<Result<String, Failure>>);

impl Client {
    fn start(line: &[OsString], server: u32, watched: &Watched) -> Result<Self, Failure> {
        let mut client = spawn(line)?;
        watched.add(client.id());
        let (name, watched) = (line[0].clone(), watched.clone());
        Ok(Self(thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut stdout) = client.stdout.take() {
                stdout.read_to_string(&mut text)?;
            }
            end(client, &name, &watched).inspect_err(|_| watched.end(server))?;
            Ok(text)
        })))
    }

    fn end(self) -> Result<String, Failure> {
        self.0.join().expect("it does not panic")
    }
}

fn spawn(line: &[OsString]) -> Result<Child, Failure> {
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let tool = line[0].to_string_lossy();
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("`{tool}` is missing: install the package `{tool}`"),
        _ => format!("cannot run {tool}: {error}"),
    })?;
    Ok(child)
}

/// Waits for the end of a process that has closed its output. What it said on the error stream.
fn end(mut process: Child, name: &OsString, watched: &Watched) -> Result<String, Failure> {
    let mut text = String::new();
    if let Some(mut stderr) = process.stderr.take() {
        stderr.read_to_string(&mut text)?;
    }
    watched.remove(process.id());
    let status = process.wait()?;
    if !status.success() {
        return Err(format!("{}: {status}\n{text}", name.to_string_lossy()).into());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_strace_is_read() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n \
                    60.00    0.000012           1        12           epoll_pwait\n \
                    40.00    0.000008           2         4         1 futex\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    100.00    0.000020           1        16         1 total\n";
        let calls = strace_calls(text);
        assert_eq!(calls.len(), 2);
        assert_eq!(calls["epoll_pwait"], 12.0);
        assert_eq!(calls["futex"], 4.0);
    }
}
