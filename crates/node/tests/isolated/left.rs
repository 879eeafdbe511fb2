//! What a program leaves behind: bytes, counted by the allocator, and descriptors.
#![cfg(all(target_os = "linux", feature = "tls"))]

use crate::util::child::in_child;
use crate::util::memory::live;
use crate::util::trace::paused;
use std::time::Duration;

use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http;
use phaseloop_node::stream::CLOSE;
use phaseloop_node::worker_threads::BroadcastChannel;
use phaseloop_node::{Deferred, Emitter, Promise, run_on, sleep};

/// What caches and lists may keep. One of the large bodies is far more.
const KEPT: usize = 64 << 10;

/// Runs `program` in a process of its own.
#[track_caller]
pub(crate) fn isolated<F>(test: &str, program: impl FnOnce() -> F + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let child = in_child(&[], test, || {
        let (mut event_loop, _, _) = paused();
        let exit = run_on(&mut event_loop, async move { program().await });
        assert_eq!(exit.code(), 0);
    });
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
    }
}

pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits until `is_met`, for events that the kernel may deliver late.
pub(crate) async fn until(is_met: impl Fn() -> bool) -> bool {
    for _ in 0..5000 {
        if is_met() {
            return true;
        }
        sleep(1).await.unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    is_met()
}

/// Runs `round` often. All but the first ones, which fill caches, must leave nothing behind.
pub(crate) async fn leaves_nothing(rounds: usize, round: impl AsyncFn()) {
    for _ in 0..5 {
        round().await;
    }
    sleep(10).await.unwrap();
    let (bytes, open) = (live(), descriptors());
    for _ in 0..rounds {
        round().await;
    }
    let is_freed = || live() <= bytes + KEPT && descriptors() <= open;
    assert!(
        until(is_freed).await,
        "{} bytes and {} descriptors more",
        live().saturating_sub(bytes),
        descriptors().saturating_sub(open)
    );
}

/// Waits for 'close', also after an error.
pub(crate) fn closing(emitter: &impl Emitter) -> Promise<()> {
    let closed = Deferred::new();
    let promise = closed.promise();
    emitter.once(CLOSE, move |()| closed.resolve(()));
    promise
}

/// A value of a request that holds the request, and one that holds the response, are dropped when
/// the response is closed, also if the peer has gone.
#[test]
fn extensions_may_hold_their_request() {
    const TEST: &str = "extensions_may_hold_their_request";
    isolated(TEST, || async {
        let server = http::create_server(|request, response| {
            request.extensions_mut().insert(vec![0u8; 200_000]);
            request.extensions_mut().insert(request.clone());
            request.extensions_mut().insert(response.clone());
            match request.url() {
                "/gone" => request.socket().destroy(None),
                _ => response.end("fine"),
            }
        });
        server.listen(("127.0.0.1", 0));
        let address = server.address().unwrap();
        leaves_nothing(20, async || {
            for path in ["/", "/gone"] {
                let options = http::RequestOptions::new(address).path(path);
                let request = http::get(options);
                request.on_response(|response| _ = response.resume());
                request.on(ERROR, |_| {});
                once(&request, CLOSE).await.ok();
            }
        })
        .await;
        server.close_this(|server| assert!(!server.is_listening()));
    });
}

/// A broadcast channel whose listener holds it is freed by its close, and a channel that is dropped
/// without a listener leaves its name.
#[test]
fn broadcast_channels_leave_nothing() {
    const TEST: &str = "broadcast_channels_leave_nothing";
    isolated(TEST, || async {
        leaves_nothing(20, async || {
            let held = vec![0u8; 200_000];
            let channel = BroadcastChannel::<u32>::new("left");
            let this = channel.clone();
            channel.on_message(move |n| {
                assert_eq!((*n, held.len()), (7, 200_000));
                this.close();
            });
            BroadcastChannel::<u32>::new("left").post_message(7);
            sleep(1).await.unwrap();
        })
        .await;
    });
}
