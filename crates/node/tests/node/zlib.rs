//! `zlib`: pieces, limits, and the loop that goes on.

use crate::util::trace::paused;
use std::cell::{Cell, RefCell};
use std::io::Read;
use std::rc::Rc;

use phaseloop_node::async_hooks::{Callbacks, create_hook};
use phaseloop_node::events::ERROR;
use phaseloop_node::stream::{CLOSE, END, FINISH};
use phaseloop_node::zlib::{self, Flush, Options, Zlib};
use phaseloop_node::{Deferred, Emitter, Error, run, run_on, set_immediate};

/// Runs a program, which must end well: one that waits for ever has an exit code, and no panic.
fn run_well(program: impl Future<Output = ()> + 'static) {
    assert_eq!(run(program).code(), 0);
}

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

/// Writes `bytes` in pieces of up to `most` bytes, and returns all output. The stream must have used
/// all of its input, and its chunks must not be longer than its options allow.
async fn through(
    create: Create,
    options: &Options,
    bytes: &[u8],
    most: u64,
    numbers: &mut Numbers,
) -> Vec<u8> {
    let stream = create(options);
    let mut rest = bytes;
    while !rest.is_empty() {
        let size = (numbers.next() % most + 1).min(rest.len() as u64) as usize;
        stream.writable().write(&rest[..size]);
        rest = &rest[size..];
    }
    stream.writable().end(());
    let chunks = stream.readable().to_array().await.unwrap();
    assert_eq!(stream.bytes_written(), bytes.len() as u64, "{options:?}");
    assert!(chunks.iter().all(|chunk| chunk.len() <= options.chunk_size));
    chunks.concat()
}

type Create = fn(&Options) -> Zlib;

/// A decoder of another crate.
type Decode = fn(&[u8]) -> Vec<u8>;

fn decoded(mut decoder: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    decoder.read_to_end(&mut bytes).unwrap();
    bytes
}

const FORMATS: [(Create, Create, Decode); 5] = {
    let gunzip: Decode = |bytes| decoded(flate2::bufread::GzDecoder::new(bytes));
    let inflate: Decode = |bytes| decoded(flate2::bufread::ZlibDecoder::new(bytes));
    let raw: Decode = |bytes| decoded(flate2::bufread::DeflateDecoder::new(bytes));
    let inflates = zlib::create_inflate_with;
    [
        (zlib::create_gzip_with, zlib::create_gunzip_with, gunzip),
        (zlib::create_deflate_with, zlib::create_unzip_with, inflate),
        (zlib::create_deflate_with, inflates, inflate),
        (
            zlib::create_deflate_raw_with,
            zlib::create_inflate_raw_with,
            raw,
        ),
        (zlib::create_gzip_with, zlib::create_unzip_with, gunzip),
    ]
};

// N154.
#[test]
fn n154_what_is_packed_in_pieces_is_unpacked_in_other_pieces() {
    run_well(async move {
        let mut numbers = Numbers(7);
        for (pack, unpack, decode) in FORMATS {
            for length in [0, 1, 100, 30_000] {
                for kinds in [1, 3, 256] {
                    let mark = numbers.next() as usize % 200;
                    let options = Options {
                        chunk_size: 64 + (numbers.next() % 5000) as usize,
                        level: (numbers.next() % 11) as i32 - 1,
                        high_water_mark: (mark < 100).then_some(mark),
                        ..Options::default()
                    };
                    let bytes = numbers.bytes(length, kinds);
                    let packed = through(pack, &options, &bytes, 9000, &mut numbers).await;
                    assert!(decode(&packed) == bytes, "{length} bytes, {options:?}");
                    let unpacked = through(unpack, &options, &packed, 700, &mut numbers).await;
                    assert!(unpacked == bytes, "{length} bytes, {options:?}");
                }
            }
        }
    });
}

/// Each length of the output up to some chunks: also those that end with a full chunk.
#[test]
fn n154_no_byte_is_lost_where_a_chunk_is_full() {
    run_well(async move {
        let mut numbers = Numbers(11);
        let options = Options {
            chunk_size: 64,
            ..Options::default()
        };
        for (pack, unpack, decode) in FORMATS {
            for length in 0..=200 {
                let bytes = numbers.bytes(length, 256);
                let packed = through(pack, &options, &bytes, 100, &mut numbers).await;
                assert!(decode(&packed) == bytes, "{length} bytes");
                let most = 1 + numbers.next() % 100;
                let unpacked = through(unpack, &options, &packed, most, &mut numbers).await;
                assert!(unpacked == bytes, "{length} bytes");
            }
        }
    });
}

/// Each flush brings out all that was written before it.
#[test]
fn n154_a_flush_leaves_nothing_inside() {
    run_well(async move {
        let mut numbers = Numbers(13);
        let options = Options {
            chunk_size: 64,
            ..Options::default()
        };
        let pack = zlib::create_deflate_with(&options);
        let packed: Rc<RefCell<Vec<u8>>> = Rc::default();
        let known = packed.clone();
        pack.readable()
            .on_data(move |chunk| known.borrow_mut().extend_from_slice(chunk));
        let mut bytes = Vec::new();
        for length in 1..100 {
            let piece = numbers.bytes(length, 7);
            pack.writable().write(&piece[..]);
            bytes.extend(piece);
            let flushed = Deferred::new();
            let promise = flushed.promise();
            pack.flush(Flush::Sync, move || flushed.resolve(()));
            promise.await.unwrap();
            let cut = Options {
                finish_flush: Flush::Sync,
                ..Options::default()
            };
            let unpacked = zlib::inflate_sync_with(&*packed.borrow(), &cut).unwrap();
            assert!(unpacked == bytes, "after {length} pieces");
        }
        pack.writable().end(());
    });
}

/// The output of Node's `brotliCompressSync` for [`brotli_text`].
const BROTLI: &str = "G3EVAIzUVnfiTKfDqZ9RE7K5QIKYvfH/fCek5wxDnv1rs6bVRSxIi0HcWFoyC970P9u/vP+8bx4cPDx8dPT4+MnJ\
     09Nnznv24LnDX4Qf/cLxL5z8wukHfvjf+KDnM9n3Ld8SSy619DKwmez7Vm+FFVdaeRXUTPZ967fGmmutvQ5uJvu+\
     zdtgw4023oQ0k33f9m2x5VZbb0Obyb5v5+1ghzva8U6YZrLv23272OWudr0btpns+/beHva4pz3vhWsm+9/1yOc9\
     nwefR5+nmvo8+7z4vqZ0ujnwAACBgEFEO90cfBCQUNAwsp1uDj0ERCRkFNVON4cfBiYWNo5up5sjj4CQiJjEtNPN\
     0UdBSUVNY9vp5pjHgCEjxkycdro59rFgyYo1G7edbo57HDhy4szFa6f7vpvv3Xy4+Xjz6ebzzZeffO10c+ABAAIB\
     g4h2ujn4ICChoGFkO90cegiISMgoqp1uDj8MTCxsHN1ON0ceASERMYlpp5ujj4KSiprGttPNMY8BQ0aMmTjtdHPs\
     Y8GSFWs2bjvdHPc4cOTEmYvXTvd9t9679XDr8dbTredbLz/12unmwAMABAIGEe10c/BBQEJBw8h2ujn0EBCRkFFU\
     O90cfhiYWNg4up1ujjwCQiJiEtNON0cfBSUVNY1tp5tjHgOGjBgzcdrp5tjHgiUr1mzcdro57nHgyIkzF6+d7jk=";

fn brotli_text() -> String {
    let line = |n| format!("line {n} of {}\n", n % 7);
    (0..400).map(line).collect()
}

#[test]
fn n154_brotli_is_unpacked_in_pieces() {
    use base64::Engine as _;
    let packed = base64::engine::general_purpose::STANDARD
        .decode(BROTLI)
        .unwrap();
    run_well(async move {
        let mut numbers = Numbers(17);
        for round in 0..200 {
            let options = Options {
                chunk_size: 64 + round,
                ..Options::default()
            };
            let unpack = zlib::create_brotli_decompress_with;
            let most = 1 + numbers.next() % 300;
            let unpacked = through(unpack, &options, &packed, most, &mut numbers).await;
            assert!(unpacked == brotli_text().as_bytes(), "{options:?}");
        }
    });
}

#[test]
fn n154_the_loop_turns_while_the_pool_packs() {
    let turns = Rc::new(Cell::new(0));
    let counted = turns.clone();
    run_well(async move {
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
    run_well(async move {
        let unpacked = zlib::promises::gunzip_with(bomb.clone(), &limited(1 << 20));
        let error = Error::from(unpacked.await.unwrap_err());
        assert_eq!(error.code(), Some("ERR_BUFFER_TOO_LARGE"));
        // Nothing reads this one: it stops at its mark.
        let stream = zlib::create_gunzip();
        stream.writable().end(bomb);
        phaseloop_node::sleep(200).await.unwrap();
        let buffered = stream.readable().length();
        assert!(buffered <= (64 + 16) << 10, "{buffered} bytes");
        assert!(!stream.readable().ended());
    });
}

/// As in Node, the write whose job runs ends well, and uses nothing of its input; a write behind it
/// fails. No further job is started: the input would take 64 of them.
#[test]
fn n154_a_stream_that_is_closed_while_a_job_runs_ends_without_an_error() {
    let closed = "close first fine 0 second ERR_STREAM_DESTROYED 0";
    let destroyed = "mine close first fine 0 second mine 0";
    for (error, expected) in [(None, closed), (Some(Error::new("mine")), destroyed)] {
        let jobs = Rc::new(Cell::new(0));
        let (mut event_loop, _, trace) = paused();
        let (counted, log) = (jobs.clone(), trace.clone());
        let exit = run_on(&mut event_loop, async move {
            let count = move |_, kind, _| counted.set(counted.get() + u32::from(kind == "ZLIB"));
            create_hook(Callbacks::new().init(count)).enable();
            let stream = zlib::create_gzip();
            for event in [CLOSE, END, FINISH] {
                let log = log.clone();
                stream.on(event, move |()| log.log(event.name()));
            }
            let listener = log.clone();
            stream.on(ERROR, move |error| listener.log(error.message()));
            let listener = log.clone();
            stream.readable().on_data(move |_| listener.log("data"));
            let callback = |name: &'static str| {
                let (log, stream) = (log.clone(), stream.clone());
                move |result: Result<(), Error>| {
                    let text = result.err().map_or("fine".to_owned(), |error| {
                        error.code().unwrap_or(error.message()).to_owned()
                    });
                    log.log(format!("{name} {text} {}", stream.bytes_written()));
                }
            };
            let bytes = Numbers(1).bytes(1 << 20, 256);
            stream.writable().write_with(bytes, callback("first"));
            stream.writable().write_with("more", callback("second"));
            match error {
                None => stream.close(),
                Some(error) => stream.transform().duplex().destroy(Some(error)),
            }
        });
        assert_eq!(exit.code(), 0);
        assert_eq!(jobs.get(), 1);
        assert_eq!(trace.take(), expected);
    }
}
