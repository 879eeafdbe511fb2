//! Channels, locks, compression, retries and limits: generic crates that need no runtime.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use backon::Retryable as _;
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::{block_on, spawn, time};

#[test]
fn channels_carry_an_rc() {
    block_on(async {
        let (sender, receiver) = async_channel::bounded(1);
        let task = spawn(async move { receiver.recv().await.unwrap() });
        sender.send(Rc::new(1)).await.unwrap();
        assert_eq!(*task.await.unwrap(), 1);

        let (sender, receiver) = flume::bounded(0);
        let task = spawn(async move { receiver.recv_async().await.unwrap() });
        sender.send_async(Rc::new(2)).await.unwrap();
        assert_eq!(*task.await.unwrap(), 2);

        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let task = spawn(async move { receiver.recv().await.unwrap() });
        sender.send(Rc::new(3)).await.unwrap();
        assert_eq!(*task.await.unwrap(), 3);
    });
}

#[test]
fn locks_select_and_streams() {
    block_on(async {
        let lock = Rc::new(async_lock::Mutex::new(0));
        let tasks = (0..10).map(|_| {
            let lock = lock.clone();
            spawn(async move {
                let mut count = lock.lock().await;
                phaseloop::task::yield_now().await;
                *count += 1;
            })
        });
        futures::future::join_all(tasks).await;
        assert_eq!(*lock.lock().await, 10);

        let first = tokio::select! {
            () = time::sleep(Duration::from_secs(60)) => "the sleep",
            () = phaseloop::task::yield_now() => "the yield",
        };
        assert_eq!(first, "the yield");

        let numbers = async_stream::stream! {
            for number in 0..3 {
                time::sleep(Duration::from_millis(1)).await;
                yield Rc::new(number);
            }
        };
        let sum = numbers.fold(0, |sum, number| async move { sum + *number });
        assert_eq!(sum.await, 3);
    });
}

#[test]
fn events_and_combined_futures() {
    use futures_concurrency::prelude::*;

    block_on(async {
        let event = event_listener::Event::new();
        let listener = event.listen();
        let task = spawn(listener);
        event.notify(1);
        task.await.unwrap();

        let slow = async {
            time::sleep(Duration::from_secs(60)).await;
            Rc::new("slow")
        };
        let quick = async {
            time::sleep(Duration::from_millis(1)).await;
            Rc::new("quick")
        };
        assert_eq!(*(slow, quick).race().await, "quick");
        let both = [1, 2].map(|number| async move {
            phaseloop::task::yield_now().await;
            number
        });
        assert_eq!(both.join().await, [1, 2]);
    });
}

/// The sockets have tokio's traits by the feature `tokio-io`.
#[test]
fn tokio_utils_codecs_on_our_sockets() {
    use futures::SinkExt;
    use tokio_util::codec::{Framed, LinesCodec};

    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (mut sink, lines) = Framed::new(stream, LinesCodec::new()).split();
            let mut lines = lines.map(|line| line.map(|line| line.to_uppercase()));
            sink.send_all(&mut lines).await.unwrap();
        });
        let stream = TcpStream::connect(address).await.unwrap();
        let mut lines = Framed::new(stream, LinesCodec::new());
        for line in ["one", "two"] {
            lines.send(line).await.unwrap();
            assert_eq!(lines.next().await.unwrap().unwrap(), line.to_uppercase());
        }
        drop(lines);
        server.await.unwrap();
    });
}

/// smol's reactor and executor have threads of their own, and wake tasks of the loop.
#[test]
fn smols_timers_and_executor() {
    block_on(async {
        async_io::Timer::after(Duration::from_millis(1)).await;
        let there = async_global_executor::spawn(async { std::thread::current().id() });
        assert_ne!(there.await, std::thread::current().id());
    });
}

#[test]
fn compression_over_a_socket() {
    use async_compression::futures::bufread::GzipDecoder;
    use async_compression::futures::write::GzipEncoder;

    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sender = spawn(async move {
            let stream = TcpStream::connect(address).await.unwrap();
            let mut packed = GzipEncoder::new(stream);
            packed.write_all(&[b'x'; 100_000]).await.unwrap();
            packed.close().await.unwrap();
        });
        let (stream, _) = listener.accept().await.unwrap();
        let mut unpacked = GzipDecoder::new(futures::io::BufReader::new(stream));
        let mut text = Vec::new();
        unpacked.read_to_end(&mut text).await.unwrap();
        assert_eq!(text, [b'x'; 100_000]);
        sender.await.unwrap();
    });
}

#[test]
fn retries_and_rates() {
    block_on(async {
        let attempts = Cell::new(0);
        let attempt = || {
            attempts.set(attempts.get() + 1);
            std::future::ready(if attempts.get() < 3 {
                Err("no")
            } else {
                Ok("yes")
            })
        };
        let backoff = backon::ConstantBuilder::default().with_delay(Duration::from_millis(1));
        let result = attempt.retry(backoff).sleep(time::sleep).await;
        assert_eq!((result, attempts.get()), (Ok("yes"), 3));

        let quota = governor::Quota::per_second(NonZeroU32::new(100).unwrap());
        let limiter = governor::RateLimiter::direct(quota);
        for _ in 0..3 {
            limiter.until_ready().await;
        }
    });
}
