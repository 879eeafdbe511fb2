//! What streams of `zlib` leave behind that are given up in the middle: bytes, descriptors and jobs.
#![cfg(all(target_os = "linux", feature = "tls"))]

use crate::left::{closing, isolated, leaves_nothing, until};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use phaseloop_node::async_hooks::{Callbacks, create_hook};
use phaseloop_node::events::ERROR;
use phaseloop_node::stream::CLOSE;
use phaseloop_node::zlib::{self, Zlib};
use phaseloop_node::{Emitter, Error, sleep};

/// One of these streams has some hundred KiB: a codec, its input, a chunk of output.
#[test]
fn zlib_streams_that_are_destroyed_in_the_middle_leave_nothing() {
    const TEST: &str = "zlib_streams_that_are_destroyed_in_the_middle_leave_nothing";
    isolated(TEST, || async {
        let (begun, ended) = (Rc::new(Cell::new(0u32)), Rc::new(Cell::new(0u32)));
        let (begins, ends) = (begun.clone(), ended.clone());
        let known: Rc<RefCell<HashSet<u64>>> = Rc::default();
        let running = known.clone();
        let callbacks = Callbacks::new()
            .init(move |id, kind, _| {
                if kind == "ZLIB" {
                    begins.set(begins.get() + 1);
                    running.borrow_mut().insert(id);
                }
            })
            .destroy(move |id| {
                if known.borrow_mut().remove(&id) {
                    ends.set(ends.get() + 1);
                }
            });
        create_hook(callbacks).enable();
        let bomb = zlib::gzip_sync(vec![0; 4 << 20]).unwrap();
        // Bytes without a pattern: the output of the first job is a full chunk.
        let mut state = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u8
        })
        .take(200_000)
        .collect();
        let number = Cell::new(0);
        leaves_nothing(200, async || {
            let (stream, input): (Zlib, &[u8]) = match number.get() % 2 {
                0 => (zlib::create_gzip(), &noise),
                _ => (zlib::create_gunzip(), &bomb),
            };
            // Listeners that hold their own stream.
            let held = stream.clone();
            stream.on(CLOSE, move |()| _ = held.bytes_written());
            stream.on(ERROR, |error| assert_eq!(error.message(), "given up"));
            stream.writable().write(input);
            stream.writable().write(input);
            let closed = closing(&stream);
            match number.replace(number.get() + 1) / 2 % 4 {
                // A job runs.
                0 => stream.close(),
                1 => {
                    let error = Error::new("given up");
                    stream.transform().duplex().destroy(Some(error));
                }
                // Inside of the event of a chunk.
                2 => {
                    let held = stream.clone();
                    stream.readable().on_data(move |_| held.close());
                }
                // The buffer is full and nobody reads it.
                _ => {
                    let side = stream.readable();
                    let is_full = || side.length() >= side.high_water_mark();
                    assert!(until(is_full).await);
                    stream.close();
                }
            }
            drop(stream);
            closed.await.unwrap();
        })
        .await;
        assert!(begun.get() >= 205, "{} jobs", begun.get());
        let are_over = || begun.get() == ended.get();
        assert!(
            until(are_over).await,
            "{} of {} jobs",
            ended.get(),
            begun.get()
        );
        let jobs = begun.get();
        sleep(100).await.unwrap();
        assert_eq!(begun.get(), jobs, "no further job starts");
    });
}
