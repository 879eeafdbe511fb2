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
