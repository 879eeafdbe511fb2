//! Turns of the loop, wakes from other threads, and the thread pool.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use libuv_sys2::{
    uv_async_init, uv_async_send, uv_async_t, uv_check_init, uv_check_start, uv_check_stop,
    uv_check_t, uv_close, uv_handle_t, uv_idle_init, uv_idle_start, uv_idle_stop, uv_idle_t,
    uv_loop_close, uv_loop_init, uv_loop_t, uv_queue_work, uv_work_t,
};

use super::{check, run_loop};
use crate::meter::{Meter, Reading, Stopwatch};

/// A turn with one callback in the check phase; an idle handle keeps the loop from waiting, as Node
/// does it.
pub(super) fn check_turns(uv: *mut uv_loop_t, n: u64) -> Reading {
    struct Turns {
        left: u64,
        idle: uv_idle_t,
    }
    extern "C" fn turn(handle: *mut uv_check_t) {
        // SAFETY: `data` was set to the structure below, which outlives the run.
        unsafe {
            let turns = (*handle).data.cast::<Turns>();
            (*turns).left -= 1;
            if (*turns).left == 0 {
                uv_check_stop(handle);
                uv_idle_stop(&raw mut (*turns).idle);
            }
        }
    }
    extern "C" fn idle(_: *mut uv_idle_t) {}

    // SAFETY: handles of zeroes are overwritten by their initialization; all outlive the run.
    unsafe {
        let mut turns = Turns {
            left: n,
            idle: std::mem::zeroed(),
        };
        let mut handle: uv_check_t = std::mem::zeroed();
        check(uv_idle_init(uv, &raw mut turns.idle));
        check(uv_check_init(uv, &raw mut handle));
        handle.data = (&raw mut turns).cast();
        let meter = Meter::start();
        check(uv_idle_start(&raw mut turns.idle, Some(idle)));
        check(uv_check_start(&raw mut handle, Some(turn)));
        run_loop(uv);
        meter.stop()
    }
}

/// A loop is made, runs one callback and is closed.
pub(super) fn loops(n: u64) -> Reading {
    extern "C" fn once(handle: *mut uv_idle_t) {
        // SAFETY: the handle is open, and outlives the run.
        unsafe { uv_close(handle.cast(), None) };
    }

    let meter = Meter::start();
    for _ in 0..n {
        // SAFETY: loop and handle of zeroes are overwritten by their initialization; both outlive
        // the run.
        unsafe {
            let mut uv: uv_loop_t = std::mem::zeroed();
            let mut handle: uv_idle_t = std::mem::zeroed();
            check(uv_loop_init(&raw mut uv));
            check(uv_idle_init(&raw mut uv, &raw mut handle));
            check(uv_idle_start(&raw mut handle, Some(once)));
            run_loop(&raw mut uv);
            check(uv_loop_close(&raw mut uv));
        }
    }
    meter.stop()
}

struct Bell {
    caller: Thread,
    answered: AtomicBool,
    left: u64,
}

/// As the workload of the same name, through `uv_async_send`.
pub(super) fn cross_thread_wake(uv: *mut uv_loop_t, n: u64, slowdown: u32) -> Reading {
    struct Handle(*mut uv_async_t);
    // SAFETY: the only call made with it elsewhere is `uv_async_send`, which may come from any
    // thread.
    unsafe impl Send for Handle {}

    extern "C" fn rung(handle: *mut uv_async_t) {
        // SAFETY: `data` was set to the bell, which outlives the run.
        unsafe {
            let bell = (*handle).data.cast::<Bell>();
            (*bell).answered.store(true, Ordering::Release);
            (*bell).caller.unpark();
            (*bell).left -= 1;
            if (*bell).left == 0 {
                uv_close(handle.cast::<uv_handle_t>(), None);
            }
        }
    }

    let mut handle = Box::new(MaybeUninit::<uv_async_t>::zeroed());
    let pointer = Handle(handle.as_mut_ptr());
    // SAFETY: the handle outlives the run.
    check(unsafe { uv_async_init(uv, handle.as_mut_ptr(), Some(rung)) });
    let meter = Meter::start();
    let caller = thread::spawn(move || {
        let pointer = pointer;
        thread::park();
        // SAFETY: the main thread has set it before it unparked this one.
        let bell = unsafe { (*pointer.0).data.cast::<Bell>() };
        let mut stopwatch = Stopwatch::new();
        for _ in 0..n {
            thread::sleep(Duration::from_micros(50) * slowdown);
            stopwatch.measure(|| {
                // SAFETY: the handle is open until the last answer; the flag is atomic.
                unsafe {
                    uv_async_send(pointer.0);
                    while !(*bell).answered.swap(false, Ordering::Acquire) {
                        thread::park();
                    }
                }
            });
        }
        stopwatch.total()
    });
    let mut bell = Box::new(Bell {
        caller: caller.thread().clone(),
        answered: AtomicBool::new(false),
        left: n,
    });
    // SAFETY: the handle is initialized, and `data` is not read before the thread is unparked.
    unsafe { (*handle.as_mut_ptr()).data = (&raw mut *bell).cast() };
    caller.thread().unpark();
    run_loop(uv);
    let wall = caller.join().expect("it does not panic");
    Reading {
        wall,
        ..meter.stop()
    }
}

struct Job {
    request: uv_work_t,
    left: u64,
}

/// `uv_queue_work` with a job that does nothing.
pub(super) fn blocking(uv: *mut uv_loop_t, in_flight: u64, n: u64) -> Reading {
    extern "C" fn work(_: *mut uv_work_t) {}
    extern "C" fn done(request: *mut uv_work_t, _: c_int) {
        // SAFETY: the request is the first field of the job, and the job outlives the run.
        unsafe {
            let job = (*request).data.cast::<Job>();
            (*job).left -= 1;
            if (*job).left > 0 {
                check(uv_queue_work(
                    (*request).loop_,
                    request,
                    Some(work),
                    Some(done),
                ));
            }
        }
    }

    let meter = Meter::start();
    let mut jobs: Vec<_> = (0..in_flight)
        .map(|_| {
            Box::new(Job {
                // SAFETY: a request of zeroes is overwritten when it is queued.
                request: unsafe { std::mem::zeroed() },
                left: n / in_flight,
            })
        })
        .collect();
    for job in &mut jobs {
        let job = &raw mut **job;
        // SAFETY: the job outlives the run.
        unsafe {
            (*job).request.data = job.cast();
            check(uv_queue_work(
                uv,
                &raw mut (*job).request,
                Some(work),
                Some(done),
            ));
        }
    }
    run_loop(uv);
    meter.stop()
}
