//! `wrk` as the client: a load generator that is not a part of the suite.

use std::error::Error;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// Connections that `wrk` makes, and closes, before those that it measures with.
pub(crate) const PROBES: u64 = 1;

/// How long `wrk` runs in place of so many requests.
pub(crate) fn seconds(requests: u64) -> u64 {
    (requests / 100_000).max(1)
}

pub(crate) fn is_installed() -> bool {
    let mut command = Command::new("wrk");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // It has no option that does nothing; without an address it shows its usage and fails.
    command.status().is_ok()
}

/// Prints how many requests were answered, and how long that took.
pub(super) fn run(
    address: SocketAddr,
    connections: &str,
    requests: u64,
) -> Result<(), Box<dyn Error>> {
    let seconds = seconds(requests);
    let duration = format!("-d{seconds}s");
    let connections = format!("-c{connections}");
    let output = Command::new("wrk")
        .args([
            "-t1",
            &connections,
            &duration,
            &format!("http://{address}/"),
        ])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let requests = answered(&text).ok_or_else(|| format!("wrk counted no requests:\n{text}"))?;
    println!("operations {requests}");
    println!("wall {}", 1_000_000_000 * seconds);
    Ok(())
}

/// From the line `  123456 requests in 2.00s, 15.00MB read`.
fn answered(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_requests_is_read() {
        let text =
            "Running 2s test\n  Thread Stats   Avg\n  268413 requests in 2.00s, 34.05MB read\n";
        assert_eq!(answered(text), Some(268_413));
        assert_eq!(answered("unable to connect"), None);
    }
}
