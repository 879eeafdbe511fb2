//! Streams that hold each other, dropped without a close: pipes, pairs, halves and chains. Each
//! test is in a process of its own.
#![cfg(all(target_os = "linux", feature = "tls"))]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::left::{isolated, leaves_nothing, until};
use crate::util::memory::live;
use phaseloop::phase;
use phaseloop_node::stream::{
    CLOSE, Duplex, END, Readable, Transform, Writable, add_abort_signal, compose, duplex_pair,
    pipeline,
};
use phaseloop_node::{AbortController, Emitter as _, sleep, zlib};

/// Far more than the links that wait for the next search have, and far less than those of all
/// rounds.
const KEPT: usize = 1 << 20;

/// The rounds that are counted.
const ROUNDS: usize = 2000;

/// Runs `round` often; it gets the number of the round. Less than `most` bytes may be left.
async fn is_bounded(most: usize, round: impl AsyncFn(usize)) {
    for number in 0..200 {
        round(number).await;
    }
    sleep(10).await.unwrap();
    let before = live();
    for number in 0..ROUNDS {
        round(number).await;
    }
    sleep(10).await.unwrap();
    let more = live().saturating_sub(before);
    assert!(more < most, "{more} bytes more");
}

fn source() -> Readable<Vec<u8>> {
    let source = Readable::bytes().build();
    source.push(vec![b'x'; 1000]);
    source
}

/// Returns a sink that never reports the end of its first write.
fn stuck() -> Writable<Vec<u8>> {
    let write = |_: Vec<u8>, _done| ();
    Writable::bytes(write).high_water_mark(10).build()
}

fn free() -> Writable<Vec<u8>> {
    Writable::bytes(|_: Vec<u8>, done| done.ok()).build()
}

#[test]
fn a_pair_that_is_dropped_is_freed() {
    isolated("a_pair_that_is_dropped_is_freed", || async {
        is_bounded(KEPT, async |number| {
            let (client, server) = duplex_pair::<Vec<u8>>();
            client.readable().on(END, |()| ());
            client.writable().write(vec![b'x'; 1000]);
            match number % 5 {
                0 => {}
                1 => drop(server.writable().write(vec![b'x'; 1000])),
                2 => {
                    client.writable().end(());
                    server.writable().end(());
                }
                3 => drop(server.readable().on_data(|_| ())),
                _ => phase::check().await,
            }
        })
        .await;
    });
}

#[test]
fn halves_that_are_dropped_are_freed() {
    isolated("halves_that_are_dropped_are_freed", || async {
        is_bounded(KEPT, async |number| {
            let (readable, writable) = (source(), free());
            let duplex = Duplex::from_halves(&readable, &writable);
            duplex.writable().write(vec![b'x'; 1000]);
            match number % 4 {
                0 => {}
                1 => drop(duplex.readable().on_data(|_| ())),
                2 => duplex.writable().end(()),
                _ => phase::check().await,
            }
        })
        .await;
    });
}

#[test]
fn a_chain_that_is_dropped_is_freed() {
    isolated("a_chain_that_is_dropped_is_freed", || async {
        is_bounded(KEPT, async |number| {
            let first = Transform::<Vec<u8>, Vec<u8>>::pass_through();
            let last = Transform::<Vec<u8>, Vec<u8>>::pass_through();
            let both = compose(&first).through(&last).build();
            both.writable().write(vec![b'x'; 1000]);
            match number % 3 {
                0 => {}
                1 => drop(both.readable().on_data(|_| ())),
                _ => phase::check().await,
            }
        })
        .await;
    });
}

#[test]
fn a_full_transform_that_is_dropped_is_freed() {
    isolated("a_full_transform_that_is_dropped_is_freed", || async {
        // A round has some hundred KiB.
        is_bounded(32 << 20, async |number| {
            let same = Transform::<Vec<u8>, Vec<u8>>::pass_through();
            if number % 2 == 0 {
                source().pipe(same.writable());
            }
            while same.writable().write(vec![b'x'; 40_000]) {}
            phase::check().await;
        })
        .await;
    });
}

#[test]
fn a_full_decoder_that_is_dropped_is_freed() {
    isolated("a_full_decoder_that_is_dropped_is_freed", || async {
        let bomb = zlib::gzip_sync(vec![0; 4 << 20]).unwrap();
        leaves_nothing(50, async || {
            let decoder = zlib::create_gunzip();
            decoder.writable().write(&bomb[..]);
            assert!(until(|| decoder.readable().length() > 0).await);
        })
        .await;
    });
}

#[test]
fn pipes_that_are_dropped_are_freed() {
    isolated("pipes_that_are_dropped_are_freed", || async {
        is_bounded(KEPT, async |number| {
            let (source, same) = (source(), Transform::<Vec<u8>, Vec<u8>>::pass_through());
            match number % 4 {
                0 => source.pipe(&free()),
                1 => {
                    source.pipe(same.writable());
                    same.readable().pipe(&free());
                }
                2 => pipeline(&source)
                    .through(&same)
                    .into(&free())
                    .then(|result| result.unwrap()),
                _ => source.pipe(&stuck()),
            }
            phase::check().await;
        })
        .await;
    });
}

/// A source that waits for its sink lives although the program has dropped it.
#[test]
fn links_that_are_in_use_survive_the_search() {
    isolated("links_that_are_in_use_survive_the_search", || async {
        let seen = Rc::new(Cell::new(0));
        let waits = Rc::new(RefCell::new(Vec::new()));
        for _ in 0..10 {
            let (seen, waits) = (seen.clone(), waits.clone());
            let sink = Writable::bytes(move |chunk: Vec<u8>, done| {
                seen.set(seen.get() + chunk.len());
                waits.borrow_mut().push(done);
            });
            let sink = sink.high_water_mark(1).build();
            let source = Readable::from_iter((0..20).map(|_| vec![0; 100]));
            let (left, right) = duplex_pair::<Vec<u8>>();
            source.pipe(left.writable());
            right.readable().pipe(&sink);
        }
        for _ in 0..200 {
            source().pipe(&free());
            phase::check().await;
            for done in waits.take() {
                done.ok();
            }
        }
        assert_eq!(seen.get(), 10 * 20 * 100);
    });
}

/// The signal holds the streams that it may abort, also if nothing else does.
#[test]
fn an_abort_reaches_streams_that_only_links_hold() {
    isolated("an_abort_reaches_streams_that_only_links_hold", || async {
        let controller = AbortController::new();
        let end = pipeline(&source())
            .into(&stuck())
            .signal(&controller.signal());
        let closed = Rc::new(Cell::new(false));
        let alone = source();
        alone.on(CLOSE, {
            let closed = closed.clone();
            move |()| closed.set(true)
        });
        alone.pipe(&stuck());
        add_abort_signal(&controller.signal(), &alone);
        drop(alone);
        phase::check().await;
        // Enough links for several searches.
        for _ in 0..200 {
            source().pipe(&stuck());
        }
        phase::check().await;
        controller.abort();
        assert_eq!(end.await.unwrap_err().name(), "AbortError");
        phase::check().await;
        assert!(closed.get());
    });
}
