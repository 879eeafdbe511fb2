//! 870, 871: what `zlib` packs, unpacks and refuses.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::stream::{CLOSE, DRAIN, END, FINISH, PREFINISH, Readable, Writable, pipeline};
use phaseloop_node::zlib::{self, Flush, Options, Zlib, promises};
use phaseloop_node::{Emitter, Error, call, catch, next_tick, process, set_immediate, set_timeout};

use crate::support::{log, say, says};

super::ports! {
    Real "870-zlib-functions" => functions,
    Real "871-zlib-streams" => streams,
}

type Sync = fn(&[u8], &Options) -> Result<Vec<u8>, Error>;

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn show(name: &str, work: impl FnOnce() -> Result<String, Error>) {
    let result = catch(work).unwrap_or_else(|reason| Err(reason.into()));
    log(match result {
        Ok(text) => format!("{name}: {text}"),
        Err(e) => format!("{name}: {} {} {e}", e.name(), e.code().unwrap()),
    });
}

async fn functions() {
    let one = bytes("1f8b0800000000000003cb48cdc9c9070086a6103605000000");
    let two = bytes("1f8b08000000000000032bcf2fca4901004311773a05000000");
    let plain = bytes("789ccb48cdc9c90700062c0215");
    let none = Options::default;
    let gunzip: Sync = |bytes, options| zlib::gunzip_sync_with(bytes, options);
    let inflate: Sync = |bytes, options| zlib::inflate_sync_with(bytes, options);
    let unzip: Sync = |bytes, options| zlib::unzip_sync_with(bytes, options);
    let inflate_raw: Sync = |bytes, options| zlib::inflate_raw_sync_with(bytes, options);
    let gzip: Sync = |bytes, options| zlib::gzip_sync_with(bytes, options);
    let deflate: Sync = |bytes, options| zlib::deflate_sync_with(bytes, options);
    let deflate_raw: Sync = |bytes, options| zlib::deflate_raw_sync_with(bytes, options);
    for (name, pack, unpack) in [
        ("gzip", gzip, gunzip),
        ("deflate", deflate, inflate),
        ("raw", deflate_raw, inflate_raw),
        ("unzip", gzip, unzip),
        ("unzip deflate", deflate, unzip),
    ] {
        for size in [0, 1, 1000, 100_000] {
            let mut text = "a line of text\n".repeat(size / 10 + 1);
            text.truncate(size);
            let options = Options {
                level: 9,
                window_bits: 10,
                mem_level: 1,
                ..none()
            };
            show(&format!("{name} {size}"), || {
                let packed = pack(text.as_bytes(), &options)?;
                Ok((unpack(&packed, &none())? == text.as_bytes()).to_string())
            });
        }
    }
    let run = |name: &str, work: Sync, parts: &[&[u8]], options: Options| {
        show(name, || Ok(text(&work(&parts.concat(), &options)?)));
    };
    let rejects = || Options {
        reject_garbage_after_end: true,
        ..none()
    };
    run(
        "gzip with window bits 0",
        gunzip,
        &[&one],
        Options {
            window_bits: 0,
            ..none()
        },
    );
    run("two members", gunzip, &[&one, &two], none());
    run("two members by unzip", unzip, &[&one, &two], none());
    run("padding", gunzip, &[&one, &[0; 9]], none());
    run(
        "a member behind padding",
        gunzip,
        &[&one, &[0; 9], &two],
        none(),
    );
    run(
        "rubbish behind",
        gunzip,
        &[&one, b"rubbish and more"],
        none(),
    );
    run("one byte behind", gunzip, &[&one, b"r"], none());
    run(
        "half a header behind",
        gunzip,
        &[&one, &bytes("1f8bffff"), &[0; 10]],
        none(),
    );
    run(
        "rubbish behind zlib",
        inflate,
        &[&plain, b"rubbish"],
        none(),
    );
    run("rubbish refused", inflate, &[&plain, b"rubbish"], rejects());
    run("padding refused", gunzip, &[&one, &[0; 3]], rejects());
    run("cut", gunzip, &[&one[..15]], none());
    let taken = Options {
        finish_flush: Flush::Sync,
        ..none()
    };
    run("cut, taken", gunzip, &[&one[..15]], taken);
    run("nothing", inflate, &[], none());
    run("rubbish", gunzip, &[b"rubbish"], none());
    run("rubbish by inflate", inflate, &[b"rubbish"], none());
    run("rubbish by unzip", unzip, &[b"rubbish"], none());
    run("raw rubbish", inflate_raw, &[&bytes("ffffffff")], none());
    run("raw lengths", inflate_raw, &[&bytes("0001020304")], none());
    let wrong = |bytes: &[u8], behind: usize| {
        let mut bytes = bytes.to_vec();
        let at = bytes.len() - behind;
        bytes[at] ^= 1;
        bytes
    };
    run("wrong sum", gunzip, &[&wrong(&one, 6)], none());
    run("wrong length", gunzip, &[&wrong(&one, 2)], none());
    run("wrong adler", inflate, &[&wrong(&plain, 1)], none());
    run(
        "large window",
        inflate,
        &[&plain],
        Options {
            window_bits: 8,
            ..none()
        },
    );
    run(
        "limit",
        gunzip,
        &[&one],
        Options {
            max_output_length: 4,
            ..none()
        },
    );
    run(
        "at the limit",
        gunzip,
        &[&one],
        Options {
            max_output_length: 5,
            ..none()
        },
    );
    let knows = |text: &str| Options {
        dictionary: Some(text.into()),
        ..none()
    };
    let known = deflate(b"hello hello", &knows("hello")).unwrap();
    run("dictionary", inflate, &[&known], knows("hello"));
    run("no dictionary", inflate, &[&known], none());
    run("another dictionary", inflate, &[&known], knows("other"));
    let known = deflate_raw(b"hello hello", &knows("hello")).unwrap();
    run("raw dictionary", inflate_raw, &[&known], knows("hello"));
    for (name, options) in [
        (
            r#"{"level":10}"#,
            Options {
                level: 10,
                ..none()
            },
        ),
        (
            r#"{"level":-2}"#,
            Options {
                level: -2,
                ..none()
            },
        ),
        (
            r#"{"chunkSize":63}"#,
            Options {
                chunk_size: 63,
                ..none()
            },
        ),
        (
            r#"{"windowBits":16}"#,
            Options {
                window_bits: 16,
                ..none()
            },
        ),
        (
            r#"{"windowBits":8}"#,
            Options {
                window_bits: 8,
                ..none()
            },
        ),
        (
            r#"{"windowBits":0}"#,
            Options {
                window_bits: 0,
                ..none()
            },
        ),
        (
            r#"{"memLevel":0}"#,
            Options {
                mem_level: 0,
                ..none()
            },
        ),
        (
            r#"{"maxOutputLength":0}"#,
            Options {
                max_output_length: 0,
                ..none()
            },
        ),
    ] {
        run(name, gzip, &[b"x"], options);
    }
    let small = Options {
        window_bits: 8,
        ..none()
    };
    run(
        "deflate with 8 bits",
        inflate,
        &[&deflate(b"x", &small).unwrap()],
        none(),
    );
    run(
        "raw with 8 bits",
        inflate_raw,
        &[&deflate_raw(b"x", &small).unwrap()],
        none(),
    );
    let brotli: Sync = |bytes, options| zlib::brotli_decompress_sync_with(bytes, options);
    let packed = bytes("0b028068656c6c6f03");
    run("brotli", brotli, &[&packed], none());
    run("brotli, cut", brotli, &[&packed[..5]], none());
    run(
        "brotli, rubbish",
        brotli,
        &[b"this is not brotli at all"],
        none(),
    );
    run(
        "brotli, rubbish behind",
        brotli,
        &[&packed, b"rubbish"],
        none(),
    );
    let (whole, parts) = (
        zlib::crc32("hello", 0),
        zlib::crc32("lo", zlib::crc32("hel", 0)),
    );
    log(format!("crc32: {whole} {parts}"));
}

fn watch(name: &'static str, stream: Zlib) -> Zlib {
    for event in [PREFINISH, FINISH, END, CLOSE, DRAIN] {
        stream.on(event, move |()| log(format!("{name}.{}", event.name())));
    }
    stream.on(ERROR, move |e| {
        log(format!("{name}.error {} {e}", e.code().unwrap()))
    });
    stream
}

fn logs_data(stream: &Zlib) {
    stream
        .readable()
        .on_data(|bytes| log(format!("data {}", text(bytes))));
}

type Step = fn(Box<dyn FnOnce()>);

fn next(mut steps: VecDeque<Step>) {
    if let Some(step) = steps.pop_front() {
        log("--");
        step(Box::new(|| next(steps)));
    }
}

async fn streams() {
    process::on_uncaught_exception(|e, _| log(format!("uncaught {e}")));
    let steps: [Step; 11] = [
        order, flushes, slow, bad, cut, behind, refused, members, closed, failing, callbacks,
    ];
    next(steps.into());
}

fn then(stream: &Zlib, done: Box<dyn FnOnce()>) {
    let done = Cell::new(Some(done));
    stream.on(CLOSE, move |()| done.take().unwrap()());
}

fn order(done: Box<dyn FnOnce()>) {
    let pack = watch("pack", zlib::create_gzip());
    let unpack = watch("unpack", zlib::create_gunzip());
    pack.readable().pipe(unpack.writable());
    logs_data(&unpack);
    then(&unpack, done);
    pack.writable().write_with("hello, ", |_| log("written"));
    pack.writable().end_with("world", |_| log("ended"));
    next_tick(say("tick"));
    set_immediate(|| ());
}

fn flushes(done: Box<dyn FnOnce()>) {
    let (pack, unpack) = (zlib::create_deflate(), zlib::create_inflate());
    pack.readable().pipe(unpack.writable());
    logs_data(&unpack);
    pack.writable().write("one");
    let first = pack.clone();
    pack.flush(Flush::Sync, move || {
        log(format!("flushed {}", first.bytes_written()));
        set_timeout(50, move || {
            first.writable().write("two");
            let second = first.clone();
            first.flush(Flush::Full, move || {
                log(format!("flushed {}", second.bytes_written()));
                set_timeout(50, move || {
                    second.writable().end("three");
                    second.flush(Flush::Full, say("flushed at the end"));
                    let behind = move || {
                        second.flush(Flush::Full, move || {
                            log("flushed behind the end");
                            done();
                        });
                    };
                    then(&unpack, Box::new(behind));
                });
            });
        });
    });
}

fn slow(done: Box<dyn FnOnce()>) {
    let packed = zlib::gzip_sync(vec![0; 1_000_000]).unwrap();
    let options = Options {
        chunk_size: 1000,
        high_water_mark: Some(4000),
        ..Options::default()
    };
    let unpack = watch("slow", zlib::create_gunzip_with(&options));
    unpack.writable().end(packed);
    set_timeout(100, move || {
        let readable = unpack.readable().clone();
        log(format!("buffered {}", readable.length()));
        let mut line = "read".to_owned();
        for size in [500, 200] {
            write!(line, " {}", readable.read_size(size).unwrap().len()).unwrap();
        }
        log(line);
        set_timeout(100, move || {
            log(format!("buffered {}", readable.length()));
            let total = Rc::new(RefCell::new((700, 0)));
            let counted = total.clone();
            readable.on_data(move |bytes| {
                let (length, chunks) = &mut *counted.borrow_mut();
                *length += bytes.len();
                *chunks += 1;
            });
            let all = move || {
                let (length, chunks) = *total.borrow();
                log(format!("all {length} {}", chunks > 990));
                done();
            };
            then(&unpack, Box::new(all));
        });
    });
}

fn bad(done: Box<dyn FnOnce()>) {
    let unpack = watch("bad", zlib::create_gunzip());
    logs_data(&unpack);
    then(&unpack, done);
    unpack.writable().write_with("rubbish", |_| log("written"));
    unpack.writable().write_with("more", |_| log("written"));
    unpack.writable().end_with((), |_| log("ended"));
}

fn cut(done: Box<dyn FnOnce()>) {
    let unpack = watch("cut", zlib::create_gunzip());
    logs_data(&unpack);
    then(&unpack, done);
    unpack
        .writable()
        .end(&zlib::gzip_sync("hello").unwrap()[..16]);
}

fn behind(done: Box<dyn FnOnce()>) {
    let unpack = watch("behind", zlib::create_inflate());
    let packed = zlib::deflate_sync("hello").unwrap();
    logs_data(&unpack);
    let (used, length) = (unpack.clone(), packed.len() as u64);
    let close = move || {
        log(format!("used {}", used.bytes_written() == length));
        done();
    };
    then(&unpack, Box::new(close));
    unpack.writable().write(packed);
    unpack.writable().write("rubbish");
    unpack.writable().end("more");
}

fn refused(done: Box<dyn FnOnce()>) {
    let options = Options {
        reject_garbage_after_end: true,
        ..Options::default()
    };
    let unpack = watch("refused", zlib::create_inflate_with(&options));
    logs_data(&unpack);
    then(&unpack, done);
    let packed = zlib::deflate_sync("hello").unwrap();
    unpack.writable().end([&*packed, b"rubbish"].concat());
}

fn members(done: Box<dyn FnOnce()>) {
    let unpack = watch("members", zlib::create_unzip());
    logs_data(&unpack);
    then(&unpack, done);
    let [one, two] = ["he", "llo"].map(|text| zlib::gzip_sync(text).unwrap());
    for byte in [&*one, &two, &[0; 3]].concat() {
        unpack.writable().write([byte]);
    }
    unpack.writable().end(());
}

fn closed(done: Box<dyn FnOnce()>) {
    let pack = watch("closed", zlib::create_gzip());
    pack.readable().on_data(says("data"));
    then(&pack, done);
    pack.writable().write_with("hello", |_| log("written"));
    pack.close();
}

fn failing(done: Box<dyn FnOnce()>) {
    let source = Readable::from_iter([b"rubbish".to_vec(), b"more".to_vec()]);
    let sink = Writable::bytes(|bytes: Vec<u8>, done| {
        log(format!("sink {}", text(&bytes)));
        done.ok();
    });
    let sink = sink.build();
    let end = pipeline(&source)
        .through(&zlib::create_brotli_decompress())
        .into(&sink);
    end.then(move |result| {
        let error = result.unwrap_err();
        log(format!(
            "pipeline {} {}",
            error.code().unwrap(),
            sink.destroyed()
        ));
        done();
    });
}

fn callbacks(done: Box<dyn FnOnce()>) {
    fn turn(name: &'static str) -> impl FnOnce(Result<Vec<u8>, Error>) {
        move |result| match result {
            Ok(bytes) => log(format!("{name} {}", text(&bytes))),
            Err(error) => log(format!("{name} {}", error.code().unwrap())),
        }
    }
    zlib::gunzip(zlib::gzip_sync("hello").unwrap(), turn("gunzip"));
    set_timeout(50, move || {
        zlib::unzip("rubbish", turn("unzip"));
        set_timeout(50, move || {
            let options = Options {
                max_output_length: 50_000,
                ..Options::default()
            };
            let packed = zlib::gzip_sync(vec![0; 100_000]).unwrap();
            zlib::gunzip_with(packed, &options, turn("limit"));
            set_timeout(50, move || {
                call(async move {
                    let packed = promises::deflate_raw("hello").await.unwrap();
                    let bytes = promises::inflate_raw(packed).await.unwrap();
                    log(format!("promise {}", text(&bytes)));
                    let error = promises::brotli_decompress("").await.unwrap_err();
                    log(format!("promise {}", error.code().unwrap()));
                    done();
                });
            });
        });
    });
}
