//! Each kind of question alone changes what it says, and nothing is asked about more.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;
use std::time::Duration;

use futures::channel::oneshot;
use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use phaseloop::shuffle::{Kind, Question};
use phaseloop::time::{self, sleep};
use phaseloop::{Builder, LoopHandle, phase, set_immediate, spawn, spawn_blocking};

pub(super) type Trace = Rc<RefCell<Vec<String>>>;

/// Runs a program with `answer` to all questions of one kind.
pub(super) fn run<F: Future<Output = ()>>(
    kind: Kind,
    answer: usize,
    program: impl FnOnce(Trace) -> F,
) -> Vec<String> {
    let trace = Trace::default();
    let chooser = move |question: &Question<'_>| {
        assert!(question.count >= 2, "a question has two answers at least");
        // The last bytes of a stream cannot be cut any more.
        let is_cut = matches!(kind, Kind::Read | Kind::Write) && answer >= question.count;
        if question.kind == kind && !is_cut {
            answer
        } else {
            0
        }
    };
    let event_loop = Builder::new().shuffle(chooser).build().unwrap();
    event_loop.block_on(program(trace.clone()));
    trace.take()
}

pub(super) fn note(trace: &Trace, text: impl Into<String>) {
    trace.borrow_mut().push(text.into());
}

/// Two peers have sent a byte each; the readers note in which order they get it.
async fn two_readers(trace: Trace) {
    let mut readers = Vec::new();
    let mut peers = Vec::new();
    for name in ["first", "second"] {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        peers.push(theirs);
        let trace = trace.clone();
        readers.push(spawn(async move {
            let mut byte = [0];
            ours.read_exact(&mut byte).await.unwrap();
            note(&trace, name);
        }));
    }
    phase::check().await;
    for peer in &mut peers {
        peer.write_all(b"x").await.unwrap();
    }
    for reader in readers {
        reader.await.unwrap();
    }
}

#[test]
fn event_chooses_the_order_within_a_batch() {
    assert_eq!(run(Kind::Event, 0, two_readers), ["first", "second"]);
    assert_eq!(run(Kind::Event, 9, two_readers), ["second", "first"]);
}

/// A reader beside an immediate in each of three turns and a timer.
async fn a_reader_beside_others(trace: Trace) {
    let start = time::now();
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let noted = trace.clone();
    let reader = spawn(async move {
        let mut byte = [0];
        ours.read_exact(&mut byte).await.unwrap();
        let now = (time::now() - start).as_millis();
        note(&noted, format!("read at {now}"));
    });
    phase::check().await;
    theirs.write_all(b"x").await.unwrap();
    immediates(&trace, 3);
    let timer = spawn(async move {
        sleep(Duration::from_millis(10)).await;
        let now = (time::now() - start).as_millis();
        note(&trace, format!("timer at {now}"));
        sleep(Duration::from_millis(100)).await;
    });
    reader.await.unwrap();
    timer.await.unwrap();
}

/// Notes an immediate in each of so many turns.
pub(super) fn immediates(trace: &Trace, turns: u32) {
    if turns > 0 {
        let trace = trace.clone();
        set_immediate(move || {
            note(&trace, "immediate");
            immediates(&trace, turns - 1);
        });
    }
}

#[test]
fn delay_moves_an_event_to_a_later_turn_or_a_later_time() {
    let immediate = "immediate";
    let traces = [0, 1, 2, 3].map(|answer| run(Kind::Delay, answer, a_reader_beside_others));
    let [at_once, a_turn_later, after_a_move, as_late_as_allowed] = &traces;
    assert_eq!(
        *at_once,
        ["read at 0", immediate, immediate, immediate, "timer at 10"]
    );
    assert_eq!(
        *a_turn_later,
        [immediate, "read at 0", immediate, immediate, "timer at 10"]
    );
    assert_eq!(
        *after_a_move,
        [immediate, immediate, immediate, "timer at 10", "read at 10"]
    );
    let late = [immediate, immediate, immediate, "timer at 10", "read at 50"];
    assert_eq!(*as_late_as_allowed, late);
}

#[test]
fn late_moves_the_clock_beyond_a_deadline_and_timers_keep_their_order() {
    async fn timers(trace: Trace) {
        let start = time::now();
        let sleeps = [20, 10, 60].map(|millis| {
            let trace = trace.clone();
            spawn(async move {
                sleep(Duration::from_millis(millis)).await;
                let now = (time::now() - start).as_millis();
                note(&trace, format!("{millis} at {now}"));
            })
        });
        for sleep in sleeps {
            sleep.await.unwrap();
        }
    }
    assert_eq!(
        run(Kind::Late, 0, timers),
        ["10 at 10", "20 at 20", "60 at 60"]
    );
    assert_eq!(
        run(Kind::Late, 1, timers),
        ["10 at 11", "20 at 21", "60 at 61"]
    );
    assert_eq!(
        run(Kind::Late, 2, timers),
        ["10 at 60", "20 at 60", "60 at 60"]
    );
}

/// Six jobs on four threads, and a timer.
async fn six_jobs(trace: Trace) {
    let start = time::now();
    let jobs: Vec<_> = (0..6).map(|n| spawn_blocking(move || n)).collect();
    let jobs = jobs.into_iter().map(|job| {
        let trace = trace.clone();
        spawn(async move {
            let number = job.await.unwrap();
            let now = (time::now() - start).as_millis();
            note(&trace, format!("{number} at {now}"));
        })
    });
    let jobs: Vec<_> = jobs.collect();
    sleep(Duration::from_millis(10)).await;
    sleep(Duration::from_millis(200)).await;
    for job in jobs {
        job.await.unwrap();
    }
}

#[test]
fn job_chooses_among_as_many_jobs_as_the_pool_has_threads() {
    let at_once = |order: [u32; 6]| order.map(|number| format!("{number} at 0"));
    assert_eq!(run(Kind::Job, 0, six_jobs), at_once([0, 1, 2, 3, 4, 5]));
    // The last of four runs first; the fifth then takes its place, and so on.
    assert_eq!(run(Kind::Job, 9, six_jobs), at_once([3, 4, 5, 2, 1, 0]));
}

#[test]
fn job_run_and_job_end_delay_what_a_job_sends() {
    for kind in [Kind::JobRun, Kind::JobEnd] {
        let times = |answer| -> Vec<String> {
            let trace = run(kind, answer, six_jobs);
            let mut times: Vec<_> = trace
                .iter()
                .map(|line| line.split(' ').next_back().unwrap().to_owned())
                .collect();
            times.dedup();
            times
        };
        assert_eq!(times(0), ["0"], "{kind}");
        assert_eq!(times(2)[0], "10", "{kind}: after the clock has moved");
        let last = times(3);
        assert!(
            last.iter().all(|time| time.parse::<u32>().unwrap() >= 50),
            "{kind}: {last:?}"
        );
    }
}

/// A task that was woken is dropped through its wake, wherever that is.
#[test]
fn a_wake_that_is_held_back_is_dropped_with_the_loop() {
    let alive = Rc::new(());
    let of_task = alive.clone();
    let order = run(Kind::JobEnd, 3, |trace| async move {
        let (done, is_done) = oneshot::channel();
        spawn(async move {
            let _ = is_done.await;
            drop(of_task);
        })
        .detach();
        spawn_blocking(move || done.send(())).detach();
        for _ in 0..3 {
            phase::check().await;
        }
        note(&trace, "returned");
    });
    assert_eq!(order, ["returned"]);
    assert_eq!(Rc::strong_count(&alive), 1, "the task was dropped");
}

#[test]
fn arrival_chooses_among_the_jobs_that_have_ended() {
    let reversed: Vec<_> = [5, 4, 3, 2, 1, 0]
        .map(|number| format!("{number} at 0"))
        .into();
    assert_eq!(run(Kind::Arrival, 9, six_jobs), reversed);
}

#[test]
fn wake_polls_a_task_for_nothing() {
    async fn count_polls(trace: Trace) {
        let polls = Rc::new(Cell::new(0));
        let counted = polls.clone();
        let mut timer = Box::pin(sleep(Duration::from_millis(10)));
        let waiter = spawn(poll_fn(move |cx| {
            counted.set(counted.get() + 1);
            timer.as_mut().poll(cx)
        }));
        two_readers(Trace::default()).await;
        waiter.await.unwrap();
        note(&trace, polls.get().to_string());
    }
    assert_eq!(run(Kind::Wake, 0, count_polls), ["2"]);
    let more: u32 = run(Kind::Wake, 1, count_polls)[0].parse().unwrap();
    assert!(more > 2, "{more}");
}

/// A stream of ten bytes, written and read by single calls of ten bytes at most.
async fn ten_bytes(trace: Trace) {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let noted = trace.clone();
    let writer = spawn(async move {
        let mut left = &b"0123456789"[..];
        while !left.is_empty() {
            let count = theirs.write(left).await.unwrap();
            note(&noted, format!("wrote {count}"));
            left = &left[count..];
        }
    });
    writer.await.unwrap();
    let mut buffer = [0; 10];
    loop {
        let count = ours.read(&mut buffer).await.unwrap();
        note(&trace, format!("read {count}"));
        if count == 0 {
            break;
        }
    }
}

#[test]
fn read_and_write_are_cut_and_the_bytes_stay_in_order() {
    let all = ["wrote 10", "read 10", "read 0"];
    assert_eq!(run(Kind::Read, 0, ten_bytes), all);
    let sevens = ["wrote 10", "read 7", "read 3", "read 0"];
    assert_eq!(run(Kind::Read, 4, ten_bytes), sevens);
    let written = ["wrote 7", "wrote 3", "read 10", "read 0"];
    assert_eq!(run(Kind::Write, 4, ten_bytes), written);
    let twos = run(Kind::Write, 3, ten_bytes);
    assert_eq!(twos.iter().filter(|line| *line == "wrote 2").count(), 5);
}

#[test]
fn a_read_or_write_that_would_block_is_tried_again_after_an_event() {
    for kind in [Kind::Read, Kind::Write, Kind::Attempt] {
        let mut asked = 0;
        let trace = Trace::default();
        let event_loop = Builder::new()
            .shuffle(move |question: &Question<'_>| {
                asked += usize::from(question.kind == kind);
                usize::from(question.kind == kind && asked % 2 == 1)
            })
            .build()
            .unwrap();
        event_loop.block_on(ten_bytes(trace.clone()));
        assert_eq!(trace.take(), ["wrote 10", "read 10", "read 0"], "{kind}");
    }
}

#[test]
fn every_way_to_read_and_write_is_cut() {
    let chooser = |question: &Question<'_>| match question.kind {
        Kind::Read | Kind::Write => 3,
        _ => 0,
    };
    let event_loop = Builder::new().shuffle(chooser).build().unwrap();
    event_loop.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ours = TcpStream::connect(address).await.unwrap();
        let (theirs, _) = listener.accept().await.unwrap();
        assert_eq!(ours.try_write(b"abcdef").unwrap(), 2);
        let parts = [IoSlice::new(b""), IoSlice::new(b"cdef")];
        assert_eq!(ours.try_write_vectored(&parts).unwrap(), 2);
        assert_eq!((&ours).write_vectored(&parts).await.unwrap(), 2);
        theirs.readable().await.unwrap();
        let mut buffer = [0; 6];
        assert_eq!(theirs.try_read(&mut buffer).unwrap(), 2);
        let mut parts = [IoSliceMut::new(&mut []), IoSliceMut::new(&mut buffer)];
        assert_eq!(theirs.try_read_vectored(&mut parts).unwrap(), 2);
        assert_eq!((&theirs).read_vectored(&mut parts).await.unwrap(), 2);
        assert_eq!(&buffer[..2], b"cd");
    });
}

#[test]
fn tcp_and_udp_work_under_seeds() {
    phaseloop::shuffle::Explore::new()
        .seeds(100)
        .check(phaseloop::shuffle::Determinism::Off)
        .run(|| async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let server = spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).await.unwrap();
                stream.write_all(text.as_bytes()).await.unwrap();
            });
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"over the wire").await.unwrap();
            client.close().await.unwrap();
            let mut text = String::new();
            client.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, "over the wire");
            server.await.unwrap();

            let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0"));
            let [first, second] = sockets.map(|bind| async { bind.await.unwrap() });
            let (first, second) = (first.await, second.await);
            let target = second.local_addr().unwrap();
            first.send_to(b"whole", target).await.unwrap();
            let mut buffer = [0; 16];
            let (count, _) = second.recv_from(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..count], b"whole", "a datagram is never cut");
        });
}

#[test]
fn a_job_runs_as_on_another_thread() {
    let chooser = |_: &Question<'_>| 0;
    let event_loop = Builder::new().shuffle(chooser).build().unwrap();
    event_loop.block_on(async {
        let here = std::thread::current().id();
        let job = spawn_blocking(move || {
            assert_eq!(std::thread::current().id(), here, "no thread is started");
            assert!(LoopHandle::try_current().is_none(), "no loop is current");
            // A loop of its own may run there.
            phaseloop::block_on(async { 7 })
        });
        assert_eq!(job.await.unwrap(), 7);
        assert!(LoopHandle::try_current().is_some());
    });
}

#[test]
fn files_and_lookups_work_under_seeds() {
    phaseloop::shuffle::explore(50, || async {
        let text = phaseloop::fs::read("Cargo.toml").await.unwrap();
        assert!(text.starts_with(b"[package]"));
        let (first, second) = futures::future::join(
            phaseloop::fs::metadata("Cargo.toml"),
            phaseloop::fs::read_dir("src"),
        )
        .await;
        assert_eq!(first.unwrap().len(), text.len() as u64);
        drop(second);
    });
}

#[test]
fn an_event_comes_although_the_loop_is_never_idle() {
    async fn checks_in_every_turn(trace: Trace) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"x").await.unwrap();
        let is_read = Rc::new(Cell::new(false));
        let mark = is_read.clone();
        spawn(async move {
            ours.readable().await.unwrap();
            mark.set(true);
        })
        .detach();
        let handle = LoopHandle::current();
        let first = handle.turns();
        while !is_read.get() {
            phase::check().await;
        }
        note(&trace, (handle.turns() - first).to_string());
    }
    let turns = |answer| -> u64 {
        run(Kind::Delay, answer, checks_in_every_turn)[0]
            .parse()
            .unwrap()
    };
    assert!(turns(0) < 5);
    for answer in [2, 3] {
        assert!((100..110).contains(&turns(answer)), "{}", turns(answer));
    }
}
