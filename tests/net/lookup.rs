//! Name lookup, R285–R288: what is asked on the pool, what is known without asking, what is refused
//! before anything is queued, and that the loop goes on meanwhile. Nothing here leaves the host:
//! names are those of the hosts file, or such as no server could be asked for.
//!
//! Ours differs in R285 (there is no synchronous call; `std` has one).

use crate::util::tcp::{kind, pair, run, run_on};
use crate::util::trace::{Trace, ms};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc;

use futures::FutureExt;
use phaseloop::net::{TcpListener, TcpStream, UdpSocket, lookup_addr, lookup_host};
use phaseloop::phase::check;
use phaseloop::pool::{Class, Pool, PoolBuilder};
use phaseloop::time::sleep;
use phaseloop::{Builder, EventLoop, Keeper, spawn, spawn_blocking_as};

/// A loop with a pool of `threads` of its own.
fn with_pool(threads: usize) -> (EventLoop, Pool) {
    let pool = PoolBuilder::new().threads(threads).build();
    let event_loop = Builder::new().pool(pool.clone()).build().unwrap();
    (event_loop, pool)
}

/// libuv's `getaddrinfo_basic`.
#[test]
fn localhost_is_known() {
    run(async {
        for addresses in [
            lookup_host("localhost:80").await.unwrap(),
            lookup_host(("localhost", 80)).await.unwrap(),
            lookup_host(("localhost".to_owned(), 80)).await.unwrap(),
        ] {
            assert!(!addresses.is_empty());
            let good = |a: &SocketAddr| a.ip().is_loopback() && a.port() == 80;
            assert!(addresses.iter().all(good), "{addresses:?}");
        }
    });
}

/// libuv's `getaddrinfo_fail`. Its label is too long to be asked for, so that no server is.
#[test]
fn r287_a_failure_says_which_name_it_was() {
    let name = format!("{}.invalid", "x".repeat(64));
    run(async {
        let error = lookup_host((&*name, 80)).await.unwrap_err();
        assert!(error.to_string().contains(&name), "{error}");
        let error = TcpStream::connect((&*name, 80)).await.unwrap_err();
        assert!(error.to_string().contains(&name), "{error}");
        assert!(TcpListener::bind((name.as_str(), 80)).await.is_err());
    });
}

#[test]
fn r286_bad_input_is_refused_before_anything_is_queued() {
    let (mut event_loop, pool) = with_pool(1);
    run_on(&mut event_loop, async {
        let long = "a".repeat(256);
        let bad = [
            "",
            ":80",
            "no-port",
            "host:",
            "host:99999",
            "host:port",
            "a\0b:80",
        ];
        for text in bad.into_iter().chain([&*format!("{long}:80")]) {
            let refused = lookup_host(text).now_or_never().expect("known at once");
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text:?}: {error}");
            let refused = TcpStream::connect(text).now_or_never().unwrap();
            assert_eq!(kind(refused), Some(ErrorKind::InvalidInput), "{text:?}");
            let refused = TcpListener::bind(text).now_or_never().unwrap();
            assert_eq!(kind(refused), Some(ErrorKind::InvalidInput), "{text:?}");
            let refused = UdpSocket::bind(text).now_or_never().unwrap();
            assert_eq!(kind(refused), Some(ErrorKind::InvalidInput), "{text:?}");
        }
        assert_eq!(
            kind(lookup_host(("", 80)).await),
            Some(ErrorKind::InvalidInput)
        );
        // The message helps.
        let error = lookup_host("no-port").await.unwrap_err().to_string();
        assert!(
            error.contains("no-port") && error.contains("host:port"),
            "{error}"
        );
    });
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.started, stats.queued), (0, 0, 0));
}

/// The dots of other scripts make an address of it, which the resolver knows; the other names are
/// too long for any. The conversion itself is tested beside its code.
#[test]
fn r286_names_in_other_scripts_are_converted() {
    let (mut event_loop, pool) = with_pool(1);
    run_on(&mut event_loop, async {
        for host in ["127。0。0。1", "127．0．0．1", "127｡0.0｡1"] {
            let addresses = lookup_host((host, 80)).await.unwrap();
            assert_eq!(addresses, [SocketAddr::from(([127, 0, 0, 1], 80))]);
            let addresses = lookup_host(format!("{host}:80")).await.unwrap();
            assert_eq!(addresses.len(), 1);
        }
        // Asked for, although it is longer than that in the form of this file, and refused without
        // asking a server.
        let long = "語".repeat(100);
        let error = lookup_host((&*long, 80)).await.unwrap_err();
        assert!(error.to_string().contains(&long), "{error}");
    });
    assert_eq!(pool.stats().started, 7);
    run_on(&mut event_loop, async {
        // Short enough here, but not in ASCII.
        let host = "ü.".repeat(50);
        let refused = lookup_host((&*host, 80)).now_or_never().unwrap();
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(&host), "{error}");
    });
    assert_eq!(pool.stats().started, 7);
}

#[test]
fn an_address_is_known_without_the_pool() {
    let (mut event_loop, pool) = with_pool(1);
    run_on(&mut event_loop, async {
        for (text, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("::1:80", "[::1]:80"),
        ] {
            let known = lookup_host(text).now_or_never().expect("known at once");
            assert_eq!(known.unwrap(), [expected.parse::<SocketAddr>().unwrap()]);
        }
        let known = lookup_host(("::1", 80)).now_or_never().unwrap().unwrap();
        assert_eq!(known[0].ip(), "::1".parse::<IpAddr>().unwrap());
        let many: Vec<SocketAddr> = vec![known[0], ([127, 0, 0, 1], 1).into()];
        let same = lookup_host(&many[..]).now_or_never().unwrap().unwrap();
        assert_eq!(same, many);
    });
    assert_eq!(pool.stats().started, 0);
}

/// libuv's `getaddrinfo_concurrent`.
#[test]
fn many_at_once_each_get_their_answer() {
    let (mut event_loop, pool) = with_pool(4);
    run_on(&mut event_loop, async {
        let lookups: Vec<_> = (1..=100)
            .map(|port| spawn(async move { lookup_host(("localhost", port)).await }))
            .collect();
        for (port, lookup) in (1..=100).zip(lookups) {
            let addresses = lookup.await.unwrap().unwrap();
            assert!(addresses.iter().all(|address| address.port() == port));
        }
    });
    assert_eq!(pool.stats().started, 100);
}

/// Holds a thread of the pool until the sender is dropped.
async fn occupy(pool: &Pool) -> mpsc::Sender<()> {
    let (release, wait) = mpsc::channel();
    drop(spawn_blocking_as(Class::Cpu, move || wait.recv()));
    while pool.stats().started == 0 {
        check().await;
    }
    release
}

/// Dropping the future cancels a lookup that no thread has begun. A running one finishes, and its
/// result is dropped.
#[test]
fn a_lookup_is_given_up_by_dropping_it() {
    let (mut event_loop, pool) = with_pool(1);
    let handle = event_loop.handle();
    run_on(&mut event_loop, async {
        let release = occupy(&pool).await;
        let lookup = spawn(lookup_host("localhost:80"));
        let address: SocketAddr = ([127, 0, 0, 1], 80).into();
        let reverse = spawn(lookup_addr(address));
        while pool.stats().queued < 2 {
            check().await;
        }
        let keepers = handle.keepers();
        assert!(keepers.contains(&(Keeper::Work, 3)), "{keepers:?}");
        for task in [lookup.abort_handle(), reverse.abort_handle()] {
            task.abort();
        }
        assert!(lookup.await.unwrap_err().is_cancelled());
        assert!(reverse.await.unwrap_err().is_cancelled());
        let works = handle
            .keepers()
            .into_iter()
            .filter(|(kind, _)| *kind == Keeper::Work);
        assert_eq!(
            Vec::from_iter(works),
            [(Keeper::Work, 1)],
            "only the job that runs"
        );
        drop(release);
        // The pool is of use after that.
        assert!(!lookup_host("localhost:80").await.unwrap().is_empty());
    });
}

/// libuv's `getnameinfo_basic_ip4` and `getnameinfo_basic_ip6`.
#[cfg(unix)]
#[test]
fn r288_an_address_has_a_name_and_a_service() {
    run(async {
        let (host, service) = lookup_addr(([127, 0, 0, 1], 80).into()).await.unwrap();
        assert!(!host.is_empty());
        assert!(["http", "80", "www"].contains(&&*service), "{service}");
        let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        let names = |address: &str| {
            let lines = hosts.lines().map(str::split_whitespace);
            lines
                .filter(|line| line.clone().next() == Some(address))
                .count()
        };
        if names("127.0.0.1") > 0 {
            assert_ne!(host, "127.0.0.1", "the hosts file has a name");
        }
        if names("::1") == 0 {
            eprintln!("skipped: the hosts file does not know ::1, and a server would be asked");
            return;
        }
        let (host, _) = lookup_addr("[::1]:80".parse().unwrap()).await.unwrap();
        assert_ne!(host, "::1");
    });
}

/// The only thread of the pool is held, and so the lookup waits. Timers and sockets do not.
#[test]
fn timers_and_sockets_go_on_while_a_lookup_waits() {
    let (mut event_loop, pool) = with_pool(1);
    let trace = Trace::new(&event_loop.handle());
    run_on(&mut event_loop, async {
        let release = occupy(&pool).await;
        let log = trace.clone();
        let lookup = spawn(async move {
            lookup_host("localhost:80").await.unwrap();
            log.log("lookup");
        });
        for _ in 0..3 {
            sleep(ms(1)).await;
            trace.log("timer");
        }
        drop(pair().await);
        trace.log("socket");
        assert_eq!(pool.stats().queued, 1, "it still waits");
        drop(release);
        lookup.await.unwrap();
    });
    assert_eq!(trace.take(), "timer timer timer socket lookup");
}

/// Lookups hold half of the threads at the most, so that other work is not stuck behind them.
#[test]
fn lookups_leave_threads_to_others() {
    let (mut event_loop, pool) = with_pool(2);
    run_on(&mut event_loop, async {
        // Slow lookups, as it were: jobs of their class.
        let (release, wait) = mpsc::channel::<()>();
        let slow = spawn_blocking_as(Class::Dns, move || wait.recv());
        let waiting = spawn(lookup_host("localhost:80"));
        let quick = spawn_blocking_as(Class::Cpu, || "quick");
        assert_eq!(quick.await.unwrap(), "quick");
        assert!(!waiting.is_finished());
        assert_eq!(pool.stats().queued, 1);
        drop(release);
        slow.await.unwrap().unwrap_err();
        waiting.await.unwrap().unwrap();
    });
}
