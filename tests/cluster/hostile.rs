//! What programs do that a cluster does not expect.

use std::future::{Future, pending};
use std::io::Read as _;
use std::net;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Context;
use std::time::Duration;

use futures::FutureExt as _;
use phaseloop::cluster::{self, Builder, TryRecvError, TrySendError};
use phaseloop::net::TcpListener;
use phaseloop::spawn;
use phaseloop::time::sleep;
use waker_fn::waker_fn;

use crate::util::child::in_child;
use crate::util::panics::panic_of;

// C19: who waits for a message of the member that panics does not keep the cluster from its end.
#[test]
fn a_member_panics_while_others_wait_for_its_message() {
    let run = || {
        Builder::new().loops(3).block_on(async {
            let (to_first, mut from_second) = cluster::channel::<u32>(1);
            let (to_third, mut for_third) = cluster::channel::<u32>(1);
            let cluster = cluster::current();
            let third = cluster.remote(2).spawn(move || async move {
                for_third.recv().await;
            });
            let holds = cluster.remote(1).spawn(move || async move {
                let _senders = (to_first, to_third);
                pending::<()>().await;
            });
            let panics = || panic!("loop 1 is done");
            cluster.remote(1).call(panics).unwrap();
            from_second.recv().await;
            drop((third, holds));
            pending::<()>().await;
        })
    };
    assert_eq!(panic_of(run), "loop 1 is done");
}

// C5: a root may start roots, on its own loop, too.
#[test]
fn each_inside_each() {
    let run = Builder::new().loops(3).block_on(async {
        let outer = cluster::current().each(|from| async move {
            let inner = cluster::current().each(move |to| async move { 10 * from + to });
            inner.await.into_iter().map(Result::unwrap).sum::<usize>()
        });
        outer.await.into_iter().map(Result::unwrap).collect()
    });
    let sums: Vec<usize> = run.unwrap();
    assert_eq!(sums, [3, 33, 63]);
}

// C1: a thread runs one loop. The threads of the second cluster are joined all the same.
#[test]
fn a_cluster_on_a_thread_that_runs_a_loop_panics() {
    let text =
        panic_of(|| phaseloop::block_on(async { Builder::new().loops(2).block_on(async {}) }));
    assert!(text.contains("loop"), "{text}");
    Builder::new().loops(2).block_on(async {}).unwrap();
}

// C18: the shutdown begins before the other loops have made a turn.
#[test]
fn a_shutdown_during_the_start() {
    for _ in 0..20 {
        let run = Builder::new().loops(4).block_on(async {
            let all = cluster::current();
            let roots = all.each(|_| async { cluster::stopping().cancelled().await });
            let listeners = cluster::listen("127.0.0.1:0").await.unwrap();
            let stopped = all.shutdown(Duration::from_secs(10)).await;
            assert!(stopped.is_clean(), "{stopped}");
            drop(listeners);
            roots.await.into_iter().for_each(|root| root.unwrap());
        });
        run.unwrap();
    }
}

// C11: the loop of the senders has ended, and that of a receiver.
#[test]
fn a_channel_ends_with_its_loop() {
    let run = Builder::new().loops(2).block_on(async {
        let (to_first, mut from_second) = cluster::channel(2);
        let (to_second, mut from_first) = cluster::channel(1);
        let second = cluster::current().remote(1).spawn(move || async move {
            to_first
                .send(from_first.recv().await.unwrap())
                .await
                .unwrap();
            pending::<()>().await;
            drop((to_first, from_first));
        });
        to_second.send(7).await.unwrap();
        assert_eq!(from_second.recv().await, Some(7));
        // One message fits; the next send waits until the loop has ended.
        to_second.send(8).await.unwrap();
        let waits = to_second.clone();
        let waits = spawn(async move { waits.send(9).await.unwrap_err().0 });
        let stopped = cluster::current().shutdown(Duration::ZERO).await;
        assert!(!stopped.is_clean(), "the root hangs");
        assert_eq!(from_second.recv().await, None);
        assert_eq!(waits.await.unwrap(), 9);
        assert!(to_second.is_closed());
        assert!(second.unwrap().await.unwrap_err().is_cancelled());
    });
    run.unwrap();
}

// C13: a socket that is on its way to a loop which ends is closed.
#[test]
fn a_socket_on_its_way_to_a_loop_that_ends_is_closed() {
    let run = Builder::new().loops(2).block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (to_second, from_first) = cluster::channel(1);
        let holds = cluster::current().remote(1).spawn(move || async move {
            pending::<()>().await;
            drop(from_first);
        });
        let (server, _) = listener.accept_detached().await.unwrap();
        to_second.send(server).await.unwrap();
        drop(holds);
        client
    });
    let mut client = run.unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    assert_eq!(client.read(&mut [0; 8]).unwrap(), 0, "EOF");
}

// C3: more loops than the process may have descriptors for end in an error, and nothing is left.
#[cfg(target_os = "linux")]
#[test]
fn a_thousand_loops_run_or_are_refused() {
    let name = "a_thousand_loops_run_or_are_refused";
    let command = ["sh", "-c", "ulimit -n 256; exec \"$@\"", "sh"];
    let child = in_child(&command, name, || {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        // The first cluster opens what the process has once.
        Builder::new().loops(2).block_on(async {}).unwrap();
        let before = open();
        let error = Builder::new().loops(1_000).block_on(async {}).unwrap_err();
        assert_eq!(
            error.raw_os_error(),
            Some(24),
            "too many open files: {error}"
        );
        assert_eq!(open(), before);
        let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
        assert!(threads < 10, "{threads} threads are left");
        Builder::new().loops(8).block_on(async {}).unwrap();
    });
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
    }
}

/// The senders are woken together, when half of the capacity is free.
#[test]
fn a_waker_that_panics_keeps_no_other_sender_from_its_wake() {
    let body = async {
        let (sender, mut receiver) = cluster::channel::<u32>(1);
        sender.try_send(1).unwrap();
        let hostile = waker_fn(|| panic!("a waker"));
        let (mut first, mut second) = (pin!(sender.send(2)), pin!(sender.send(3)));
        let polled = first.as_mut().poll(&mut Context::from_waker(&hostile));
        assert!(polled.is_pending());
        let mut second = tokio_test::task::spawn(second.as_mut());
        assert!(second.poll().is_pending());
        assert_eq!(panic_of(|| receiver.try_recv()), "a waker");
        assert!(second.is_woken());
    };
    Builder::new().loops(1).block_on(body).unwrap();
}

/// The message that was about to be received is the next one again, and counts once.
#[test]
fn a_message_outlives_the_waker_of_a_sender_that_panics() {
    let body = async {
        for way in [Way::Try, Way::Poll] {
            let (sender, mut receiver) = cluster::channel(2);
            sender.try_send(1).unwrap();
            sender.try_send(2).unwrap();
            let hostile = waker_fn(|| panic!("a waker"));
            let mut full = Box::pin(sender.send(3));
            let polled = full.as_mut().poll(&mut Context::from_waker(&hostile));
            assert!(polled.is_pending());
            let receive = || match way {
                Way::Try => receiver.try_recv().ok(),
                Way::Poll => receiver.recv().now_or_never().flatten(),
            };
            assert_eq!(panic_of(receive), "a waker");
            drop(full);
            assert_eq!(sender.try_send(4), Err(TrySendError::Full(4)));
            assert_eq!(receiver.try_recv(), Ok(1));
            sender.try_send(4).unwrap();
            assert_eq!(sender.try_send(5), Err(TrySendError::Full(5)));
            assert_eq!(
                (receiver.try_recv(), receiver.recv().await),
                (Ok(2), Some(4))
            );
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        }
    };
    Builder::new().loops(1).block_on(body).unwrap();
}

/// How a message is received.
enum Way {
    Try,
    Poll,
}

#[test]
fn a_message_whose_drop_panics_ends_no_drop_of_a_receiver() {
    struct Hostile(Arc<AtomicUsize>);
    impl Drop for Hostile {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("a message");
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let (sender, mut receiver) = cluster::channel(4);
    for _ in 0..4 {
        assert!(sender.try_send(Hostile(drops.clone())).is_ok());
    }
    let hostile = waker_fn(|| panic!("a waker"));
    let mut full = Box::pin(sender.send(Hostile(drops.clone())));
    let polled = full.as_mut().poll(&mut Context::from_waker(&hostile));
    assert!(polled.is_pending());
    std::mem::forget(receiver.try_recv());
    assert_eq!(panic_of(|| drop(receiver)), "a waker");
    assert_eq!(drops.load(Ordering::Relaxed), 3);
    std::mem::forget(full);
}

// C18: those that await the end are woken together.
#[test]
fn a_waker_that_panics_keeps_no_other_from_the_end_of_a_cluster() {
    let body = async {
        let cluster = cluster::current();
        let hostile = waker_fn(|| panic!("a waker"));
        let mut end = Box::pin(cluster.shutdown(Duration::ZERO));
        let polled = end.as_mut().poll(&mut Context::from_waker(&hostile));
        assert!(polled.is_pending());
        let mut other = tokio_test::task::spawn(cluster.shutdown(Duration::ZERO));
        assert!(other.poll().is_pending());
        while cluster.shutdown(Duration::ZERO).now_or_never().is_none() {
            sleep(Duration::from_millis(1)).await;
        }
        assert!(other.is_woken());
    };
    Builder::new().loops(1).block_on(body).unwrap();
}
