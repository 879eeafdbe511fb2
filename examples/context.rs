//! A log that names the request of each line, though no function has it as a parameter.
//!
//! ```text
//! cargo run --release --example context
//! ```

use std::time::Duration;

use phaseloop::context::{Snapshot, Variable};
use phaseloop::time::sleep;
use phaseloop::{JoinHandle, next_tick, set_immediate, spawn};

/// The number of the request that runs.
static REQUEST: Variable<u32> = Variable::new();

fn log(text: &str) {
    match REQUEST.get() {
        Some(request) => println!("request {request}: {text}"),
        None => println!("server: {text}"),
    }
}

/// Work that a request starts, three calls below the line that has set the number.
async fn query(name: &str, milliseconds: u64) {
    log(&format!("asks for {name}"));
    sleep(Duration::from_millis(milliseconds)).await;
    log(&format!("got {name}"));
}

fn serve(request: u32) -> JoinHandle<()> {
    // The task and all that it starts have the number, whatever wakes them.
    REQUEST.run(request, || {
        next_tick(|| log("begins"));
        spawn(async move {
            let user = spawn(query("the user", 30 - 10 * u64::from(request)));
            query("the page", 5).await;
            user.await.expect("a query does not panic");
            set_immediate(|| log("is logged after the answer"));
            log("is answered");
        })
    })
}

fn main() {
    phaseloop::block_on(async {
        log("starts");
        let requests = [1, 2].map(serve);
        for request in requests {
            request.await.expect("a request does not panic");
        }
        // For what the loop does not see, such as a queue, a snapshot keeps the values.
        let queued = REQUEST.run(3, Snapshot::new);
        queued.run(|| log("was queued"));
        phaseloop::phase::check().await;
        log("ends");
    });
}
