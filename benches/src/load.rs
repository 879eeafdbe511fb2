//! The other end of the socket workloads: `load <address> <kind> <arguments>`, started by the driver.
//!
//! | kind | |
//! |---|---|
//! | `echo <connections> <bytes> <n>` | each connection has one message under way, until `n` are back |
//! | `http <connections> <n>` | the same with GET requests |
//! | `datagrams <clients> <bytes> <n>` | the same with datagrams, at the end an empty one |
//! | `rate <connections> <bytes> <per second> <n>` | `n` messages at fixed times, whatever became of those before |
//! | `hold <connections>` | connects and waits until the server ends |
//! | `flood` | connects and disconnects, in bursts, until the server ends |

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match phaseloop_benches::client::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}
