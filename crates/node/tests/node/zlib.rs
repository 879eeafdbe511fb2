//! `zlib`: pieces, limits, and the loop that goes on.

use std::cell::Cell;
use std::rc::Rc;

use phaseloop_node::stream::CLOSE;
use phaseloop_node::zlib::{self, Options, Zlib};
use phaseloop_node::{Emitter, Error, run, set_immediate};

/// Numbers without a pattern, always the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.0 >> 33
    }

    fn bytes(&mut self, length: usize, kinds: u64) -> Vec<u8> {
        (0..length).map(|_| (self.next() % kinds) as u8).collect()
    }
}

/// Writes `bytes` in pieces of up to `most` bytes, and returns all output.
async fn through(stream: &Zlib, bytes: &[u8], most: u64, numbers: &mut Numbers) -> Vec<u8> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let size = (numbers.next() % most + 1).min(rest.len() as u64) as usize;
        stream.writable().write(&rest[..size]);
        rest = &rest[size..];
    }
    stream.writable().end(());
    stream.readable().to_array().await.unwrap().concat()
}

// N154.
#[test]
fn n154_what_is_packed_in_pieces_is_unpacked_in_other_pieces() {
    type Create = fn(&Options) -> Zlib;
    let formats: [(Create, Create); 4] = [
        (zlib::create_gzip_with, zlib::create_gunzip_with),
        (zlib::create_deflate_with, zlib::create_unzip_with),
        (zlib::create_deflate_raw_with, zlib::create_inflate_raw_with),
        (zlib::create_gzip_with, zlib::create_unzip_with),
    ];
    run(async move {
        let mut numbers = Numbers(7);
        for (pack, unpack) in formats {
            for length in [0, 1, 100, 30_000] {
                for kinds in [1, 3, 256] {
                    let options = Options {
                        chunk_size: 64 + (numbers.next() % 5000) as usize,
                        level: (numbers.next() % 11) as i32 - 1,
                        ..Options::default()
                    };
                    let bytes = numbers.bytes(length, kinds);
                    let packed = through(&pack(&options), &bytes, 9000, &mut numbers).await;
                    let unpacked = through(&unpack(&options), &packed, 700, &mut numbers).await;
                    assert!(unpacked == bytes, "{length} bytes, {options:?}");
                }
            }
        }
    });
}

#[test]
fn n154_the_loop_turns_while_the_pool_packs() {
    let turns = Rc::new(Cell::new(0));
    let counted = turns.clone();
    run(async move {
        let done = Rc::new(Cell::new(false));
        fn turn(turns: Rc<Cell<u32>>, done: Rc<Cell<bool>>) {
            turns.set(turns.get() + 1);
            if !done.get() {
                set_immediate(move || turn(turns, done));
            }
        }
        turn(counted, done.clone());
        let bytes = Numbers(1).bytes(1 << 20, 256);
        zlib::gzip(bytes, move |packed| {
            assert!(packed.unwrap().len() > 1 << 20, "there is no pattern");
            done.set(true);
        });
    });
    // 16 KiB of output a job, and a turn for the end of each.
    assert!(turns.get() > 64, "{} turns", turns.get());
}

#[test]
fn n154_a_bomb_stops_at_its_limit() {
    let bomb = zlib::gzip_sync(vec![0; 64 << 20]).unwrap();
    let limited = |max_output_length| Options {
        max_output_length,
        ..Options::default()
    };
    let error = zlib::gunzip_sync_with(&bomb, &limited(1 << 20)).unwrap_err();
    assert_eq!(error.code(), Some("ERR_BUFFER_TOO_LARGE"));
    run(async move {
        let unpacked = zlib::promises::gunzip_with(bomb.clone(), &limited(1 << 20));
        let error = Error::from(unpacked.await.unwrap_err());
        assert_eq!(error.code(), Some("ERR_BUFFER_TOO_LARGE"));
        // Nobody reads this one: it stops at its mark.
        let stream = zlib::create_gunzip();
        stream.writable().end(bomb);
        phaseloop_node::sleep(200).await.unwrap();
        let buffered = stream.readable().length();
        assert!(buffered <= (64 + 16) << 10, "{buffered} bytes");
        assert!(!stream.readable().ended());
    });
}

#[test]
fn n154_a_stream_that_is_closed_while_a_job_runs_ends_without_an_error() {
    let closed = Rc::new(Cell::new(false));
    let mark = closed.clone();
    run(async move {
        let stream = zlib::create_gzip();
        stream.on(CLOSE, move |()| mark.set(true));
        stream.writable().write(Numbers(1).bytes(1 << 20, 256));
        phaseloop::phase::check().await;
        stream.close();
    });
    assert!(closed.get());
}
