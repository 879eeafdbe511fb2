//! A source that stays ready leaves the rest of the loop its turn: one poll of a task does at most
//! so many operations.
#![cfg(feature = "net")]

use crate::util::panics::panic_of;
use crate::util::sockets::udp_pair;
use crate::util::tcp::{Has, half_std_pair, run, settle};
use crate::util::trace::{busy, finish, ms, paused, turn};
use std::cell::Cell;
use std::io::Write;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use futures::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use phaseloop::io::{Source, copy, copy_both_ways};
use phaseloop::net::{TcpStream, UdpSocket};
use phaseloop::phase::Check;
#[cfg(unix)]
use phaseloop::process::Channel;
use phaseloop::time::{Timer, sleep};
use phaseloop::{EventLoop, Handle, LoopHandle, block_on, spawn};
use socket2::SockRef;
use waker_fn::waker_fn;

/// How many operations one poll does at most.
const MOST: usize = 128;

/// Counts operations, and how many of them one turn saw at most.
#[derive(Clone)]
struct Counter {
    all: Rc<Cell<usize>>,
    most: Rc<Cell<usize>>,
    _turns: Rc<Check>,
}

impl Counter {
    fn new() -> Self {
        let (all, most) = (Rc::<Cell<usize>>::default(), Rc::<Cell<usize>>::default());
        let turns = Check::new(&LoopHandle::current());
        turns.unref();
        let (count, highest, before) = (all.clone(), most.clone(), Cell::new(0));
        turns
            .start(move |_| {
                let seen = count.get() - before.replace(count.get());
                highest.set(highest.get().max(seen));
            })
            .unwrap();
        Self {
            all,
            most,
            _turns: Rc::new(turns),
        }
    }

    fn add(&self) {
        self.all.set(self.all.get() + 1);
    }

    /// There were so many operations, and no turn had more of them than three polls may do: the one
    /// before it, one for an event, and one for the deferred operation.
    #[track_caller]
    fn expect(&self, all: usize) {
        self.expect_at_most(all, 3 * MOST);
    }

    #[track_caller]
    fn expect_at_most(&self, all: usize, most: usize) {
        assert_eq!(self.all.get(), all);
        assert!((1..=most).contains(&self.most.get()), "{}", self.most.get());
    }
}

/// How many messages wait in a stream.
const MESSAGES: usize = 1000;

/// As many datagrams or messages as a buffer of the largest size holds that every program may ask for.
const FEW: usize = 500;
const BUFFER: usize = 212_992;

/// A stream in which messages of 64 bytes wait, and its other end.
fn filled() -> (TcpStream, std::net::TcpStream) {
    let (ours, mut theirs) = half_std_pair();
    theirs.write_all(&[7; 64 * MESSAGES]).unwrap();
    settle(&ours, Has::Data);
    (ours, theirs)
}

/// Reads the messages that wait.
async fn read_all(stream: TcpStream, counter: Counter) {
    for _ in 0..MESSAGES {
        (&stream).read_exact(&mut [0; 64]).await.unwrap();
        counter.add();
    }
}

#[test]
fn reads_of_the_main_future_leave_others_their_turn() {
    run(async {
        let (stream, _theirs) = filled();
        let counter = Counter::new();
        read_all(stream, counter.clone()).await;
        counter.expect(MESSAGES);
    });
}

#[test]
fn reads_of_a_task_leave_others_their_turn() {
    run(async {
        let (stream, _theirs) = filled();
        let counter = Counter::new();
        spawn(read_all(stream, counter.clone())).await.unwrap();
        counter.expect(MESSAGES);
    });
}

#[test]
fn reads_of_many_streams_by_one_task_share_its_budget() {
    run(async {
        let (streams, _theirs): (Vec<_>, Vec<_>) = (0..8).map(|_| filled()).unzip();
        let counter = Counter::new();
        let mut reads: FuturesUnordered<_> = streams
            .into_iter()
            .map(|stream| read_all(stream, counter.clone()))
            .collect();
        while reads.next().await.is_some() {}
        // In the first turn, each of them has an event.
        counter.expect_at_most(8 * MESSAGES, 10 * MOST);
    });
}

#[test]
fn reads_in_turn_from_many_streams_share_the_budget() {
    run(async {
        let (streams, _theirs): (Vec<_>, Vec<_>) = (0..8).map(|_| filled()).unzip();
        let counter = Counter::new();
        for _ in 0..MESSAGES {
            for mut stream in &streams {
                stream.read_exact(&mut [0; 64]).await.unwrap();
                counter.add();
            }
        }
        counter.expect(8 * MESSAGES);
    });
}

#[test]
fn a_timer_waits_for_as_many_reads_as_one_poll_may_do() {
    let (event_loop, handle, _trace) = paused();
    let reads = Rc::new(Cell::new(0));
    let (count, before, most) = (reads.clone(), Cell::new(0), Rc::new(Cell::new(0)));
    let highest = most.clone();
    let timer = Timer::new(&handle);
    let tick = move |_: &Timer| {
        let seen = count.get() - before.replace(count.get());
        highest.set(highest.get().max(seen));
    };
    timer.start(ms(1), ms(1), tick).unwrap();
    event_loop.block_on(async {
        let (stream, _theirs) = filled();
        for _ in 0..MESSAGES {
            (&stream).read_exact(&mut [0; 64]).await.unwrap();
            reads.set(reads.get() + 1);
            busy(std::time::Duration::from_micros(20));
        }
    });
    // A millisecond is 50 reads.
    assert!((50..=MOST + 50).contains(&most.get()), "{}", most.get());
}

#[test]
fn waits_for_readiness_leave_others_their_turn() {
    run(async {
        let (stream, _theirs) = filled();
        let counter = Counter::new();
        for _ in 0..MESSAGES {
            stream.readable().await.unwrap();
            assert_eq!(stream.try_read(&mut [0; 64]).unwrap(), 64);
            counter.add();
        }
        counter.expect(MESSAGES);
    });
}

#[test]
fn polls_for_readiness_leave_others_their_turn() {
    run(async {
        let (ours, theirs) = udp_pair();
        let source = Source::new(&LoopHandle::current(), ours).unwrap();
        theirs.send(b"stays").unwrap();
        let counter = Counter::new();
        for _ in 0..MESSAGES {
            std::future::poll_fn(|cx| source.poll_readable(cx))
                .await
                .unwrap();
            counter.add();
        }
        counter.expect(MESSAGES);
    });
}

#[test]
fn writes_leave_others_their_turn() {
    run(async {
        let (mut stream, _theirs) = half_std_pair();
        let counter = Counter::new();
        for _ in 0..MESSAGES {
            stream.write_all(&[7; 64]).await.unwrap();
            counter.add();
        }
        counter.expect(MESSAGES);
    });
}

#[test]
fn datagrams_leave_others_their_turn() {
    run(async {
        let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        SockRef::from(receiver.get_ref())
            .set_recv_buffer_size(BUFFER)
            .unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = receiver.local_addr().unwrap();
        for _ in 0..FEW {
            sender.send_to(b"x", address).unwrap();
        }
        let counter = Counter::new();
        for _ in 0..FEW {
            receiver.recv_from(&mut [0; 8]).await.unwrap();
            counter.add();
        }
        counter.expect(FEW);

        let counter = Counter::new();
        for _ in 0..MESSAGES {
            receiver
                .send_to(b"x", sender.local_addr().unwrap())
                .await
                .unwrap();
            counter.add();
        }
        counter.expect(MESSAGES);
    });
}

/// Most of them are received together with others.
#[cfg(unix)]
#[test]
fn messages_of_a_channel_leave_others_their_turn() {
    run(async {
        let (sender, receiver) = Channel::pair().unwrap();
        SockRef::from(&sender).set_send_buffer_size(BUFFER).unwrap();
        for _ in 0..FEW {
            sender.send(b"x").await.unwrap();
        }
        let counter = Counter::new();
        for _ in 0..FEW {
            receiver.recv().await.unwrap().unwrap();
            counter.add();
        }
        counter.expect(FEW);
    });
}

/// Reads 64 bytes at a time, and counts that.
struct Small(TcpStream, Counter);

impl AsyncRead for Small {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<std::io::Result<usize>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.0).poll_read(cx, &mut buffer[..64]);
        if read.is_ready() {
            this.1.add();
        }
        read
    }
}

#[test]
fn copies_leave_others_their_turn() {
    run(async {
        let (stream, theirs) = filled();
        drop(theirs);
        let counter = Counter::new();
        copy(Small(stream, counter.clone()), futures::io::sink())
            .await
            .unwrap();
        counter.expect(MESSAGES + 1);
    });
}

#[test]
fn copies_both_ways_do_not_starve_one_another() {
    run(async {
        let (one, other) = (filled(), filled());
        for theirs in [&one.1, &other.1] {
            theirs.shutdown(std::net::Shutdown::Write).unwrap();
        }
        let copied = copy_both_ways(one.0, other.0).await.unwrap();
        assert_eq!(copied, (64 * MESSAGES as u64, 64 * MESSAGES as u64));
    });
}

/// A connection that gets one message is served although another one never rests.
#[test]
fn a_quiet_connection_is_served_beside_a_busy_one() {
    run(async {
        let (busy, _busy_theirs) = filled();
        let (mut quiet, mut quiet_theirs) = half_std_pair();
        let counter = Counter::new();
        let seen = counter.clone();
        let reads = spawn(read_all(busy, counter.clone()));
        let served = spawn(async move {
            quiet.read_exact(&mut [0; 4]).await.unwrap();
            seen.all.get()
        });
        phaseloop::task::yield_microtask().await;
        quiet_theirs.write_all(b"ping").unwrap();
        assert!(served.await.unwrap() <= 3 * MOST);
        reads.await.unwrap();
    });
}

/// Nothing else wakes the loop, and it does not sleep.
#[test]
fn the_loop_does_not_sleep_on_what_was_put_off() {
    let (event_loop, handle, _trace) = paused();
    let timer = Timer::new(&handle);
    timer.start(ms(60_000), ms(0), |_| ()).unwrap();
    let start = handle.now();
    for is_referenced in [true, false] {
        event_loop.block_on(async {
            let (stream, _theirs) = filled();
            if !is_referenced {
                stream.unref();
            }
            read_all(stream, Counter::new()).await;
        });
        assert_eq!(LoopHandle::now(&handle), start);
    }
}

#[test]
fn what_was_put_off_keeps_no_loop_alive_for_an_unrefd_source() {
    let (mut event_loop, handle, _trace) = paused();
    let (source, theirs) = udp_pair();
    theirs.send(b"stays").unwrap();
    let source = Source::new(&handle, source).unwrap();
    source.unref();
    handle
        .spawn(async move {
            loop {
                source.readable().await.unwrap();
            }
        })
        .detach();
    finish(&mut event_loop);
}

/// A future that is dropped while its operation is deferred leaves nothing behind.
#[test]
fn a_read_that_is_given_up_while_it_is_put_off_leaves_nothing() {
    block_on(async {
        let handle = LoopHandle::current();
        let (stream, _theirs) = filled();
        stream.readable().await.unwrap();
        let mut reads = 0;
        while stream.readable().now_or_never().is_some() {
            reads += 1;
            assert!(reads <= MOST);
        }
        assert!(!stream.is_active());
        // The check phase of this turn, then that behind the next poll phase.
        phaseloop::phase::check().await;
        phaseloop::phase::check().await;
        assert!(stream.readable().now_or_never().is_some());
        drop(stream);
        phaseloop::phase::check().await;
        assert_eq!(handle.keepers(), [(phaseloop::Keeper::MainFuture, 1)]);
    });
}

/// A callback ends by itself.
#[test]
fn what_a_callback_polls_has_no_budget() {
    run(async {
        let (stream, _theirs) = filled();
        stream.readable().await.unwrap();
        let read = Rc::new(Cell::new(0));
        let count = read.clone();
        drop(LoopHandle::current().set_immediate(move || {
            while let Some(Ok(64)) = (&stream).read(&mut [0; 64]).now_or_never() {
                count.set(count.get() + 1);
            }
        }));
        sleep(ms(1)).await;
        assert_eq!(read.get(), MESSAGES);
    });
}

/// The sources are deferred together, and one callback resumes them.
#[test]
fn a_waker_that_panics_keeps_no_deferred_source_from_its_wake() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let pairs = [(); 3].map(|()| udp_pair());
    let [first, second, third] = pairs.map(|(ours, theirs)| {
        theirs.send(b"x").unwrap();
        (Source::new(&handle, ours).unwrap(), theirs).0
    });
    let woken = Arc::new(AtomicUsize::new(0));
    let wakes = |panics: bool| {
        let woken = woken.clone();
        waker_fn(move || {
            woken.fetch_add(1, Ordering::Relaxed);
            assert!(!panics, "a waker");
        })
    };
    event_loop.block_on(async {
        for source in [&first, &second, &third] {
            source.readable().await.unwrap();
        }
        // The budget of this poll is used up at the first source.
        let (hostile, patient) = (wakes(true), wakes(false));
        let mut cx = Context::from_waker(&hostile);
        while first.poll_read_with(&mut cx, |_| Ok(())).is_ready() {}
        let mut cx = Context::from_waker(&patient);
        assert!(second.poll_readable(&mut cx).is_pending());
        assert!(third.poll_readable(&mut cx).is_pending());
    });
    assert!(panic_of(|| turn(&mut event_loop)).contains("a waker"));
    assert_eq!(woken.load(Ordering::Relaxed), 3);
    for source in [&first, &second, &third] {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(source.poll_readable(&mut cx).is_ready());
    }
    assert!(!turn(&mut event_loop), "no wait is left");
}
