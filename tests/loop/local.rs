//! `Local`: `Send` for the type system, used and dropped on its own thread.

use std::cell::Cell;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use futures::StreamExt;
use phaseloop::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use phaseloop::time::sleep;
use phaseloop::{Builder, Local};

use crate::util::panics::{panic_of, text_of};

fn sendable<T: Send + Sync>(value: T) -> T {
    value
}

/// Counts its drops, and is not `Send`.
struct Counted(Rc<Cell<u32>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[phaseloop::test]
async fn a_local_is_what_it_holds() {
    let mut number = sendable(Local::new(Rc::new(7)));
    assert_eq!(**number, 7);
    *Rc::make_mut(&mut number) += 1;
    let twin = number.clone();
    assert_eq!((**twin, Rc::strong_count(&twin)), (8, 2));
    assert_eq!(*number.into_inner(), 8);
    assert_eq!(format!("{:?}", Local::new(3)), "Local(3)");

    let future = async {
        sleep(Duration::from_millis(1)).await;
        Rc::new(5)
    };
    assert_eq!(*sendable(Local::new(future)).await, 5);

    let stream = Local::new(futures::stream::iter([Rc::new(1), Rc::new(2)]));
    assert_eq!(stream.collect::<Vec<_>>().await.len(), 2);
}

#[cfg(unix)]
#[phaseloop::test]
async fn a_local_stream_is_read_and_written() {
    let (near, far) = phaseloop::net::UnixStream::pair().unwrap();
    let (mut near, mut far) = (sendable(Local::new(near)), sendable(Local::new(far)));
    near.write_all(b"hello").await.unwrap();
    near.close().await.unwrap();
    let mut text = String::new();
    far.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hello");
}

/// As the sockets of the loop are, for callers that share one stream.
#[cfg(unix)]
#[phaseloop::test]
async fn a_local_stream_is_read_and_written_through_references() {
    async fn send(mut stream: impl AsyncWrite + Unpin) {
        stream.write_all(b"hello").await.unwrap();
        stream.close().await.unwrap();
    }
    async fn receive(mut stream: impl AsyncRead + Unpin) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }
    let (near, far) = phaseloop::net::UnixStream::pair().unwrap();
    let (near, far) = (Local::new(near), Local::new(far));
    let ((), text) = futures::future::join(send(&near), receive(&far)).await;
    assert_eq!(text, "hello");
    assert_eq!(
        futures::future::join(receive(&near), send(&far)).await.0,
        "hello"
    );
}

#[test]
fn on_another_thread_a_local_refuses_and_names_its_line() {
    let mut local = Local::new(Rc::new(1));
    let line = line!() - 1;
    let refused = thread::spawn(move || {
        assert!(local.try_get().is_none() && !local.is_home());
        let text = panic_of(|| Rc::strong_count(&local));
        let cloned = panic_of(|| drop(local.clone()));
        let pinned = panic_of(|| _ = local.as_pin_mut());
        assert_eq!(format!("{local:?}"), "Local(<on another thread>)");
        // Without a loop it cannot be sent home: the value of this test owns memory, and leaks.
        std::mem::forget(local);
        [text, cloned, pinned]
    });
    for text in refused.join().unwrap() {
        assert!(text.contains(&format!("local.rs:{line}")), "{text}");
        assert!(text.contains("another thread"), "{text}");
    }
}

#[test]
fn a_future_that_is_polled_on_another_thread_panics() {
    let future = Local::new(async { Rc::new(1) });
    let panic = thread::spawn(move || {
        let mut future = std::mem::ManuallyDrop::new(future);
        drop(tokio_test::task::spawn(&mut *future).poll());
    });
    let payload = panic.join().unwrap_err();
    assert!(text_of(&*payload).contains("another thread"));
}

#[test]
fn a_local_dropped_elsewhere_is_dropped_by_its_loop_at_home() {
    let event_loop = Builder::new().build().unwrap();
    let drops = Rc::new(Cell::new(0));
    event_loop.block_on(async {
        let local = Local::new(Counted(drops.clone()));
        thread::spawn(move || drop(local)).join().unwrap();
        assert_eq!(drops.get(), 0, "not on the other thread");
        while drops.get() == 0 {
            phaseloop::phase::check().await;
        }
    });
    let local = event_loop.enter(|| Local::new(Counted(drops.clone())));
    drop(local);
    assert_eq!(drops.get(), 2, "at once at home");
}
