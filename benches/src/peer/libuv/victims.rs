//! A timer of a millisecond beside callbacks that keep the loop busy. How late is it?

use std::ffi::c_int;
use std::os::fd::IntoRawFd;
use std::time::Instant;

use libuv_sys2::{
    uv_accept, uv_close, uv_handle_t, uv_idle_init, uv_idle_start, uv_idle_t, uv_listen, uv_loop_t,
    uv_queue_work, uv_stop, uv_stream_t, uv_tcp_init, uv_tcp_open, uv_tcp_t, uv_timer_init,
    uv_timer_start, uv_timer_t, uv_work_t,
};

use super::{check, run_loop};
use crate::catalogue::Kind;
use crate::latency::Latencies;
use crate::meter::{Meter, Reading};
use crate::workload::fairness::{BITE, JOBS, NAP, compute};
use crate::workload::sockets::announced_listener;

struct Victim {
    timer: uv_timer_t,
    deadline: Instant,
    naps: u64,
    latencies: Latencies,
}

impl Victim {
    fn nap(&mut self) {
        self.deadline = Instant::now() + NAP;
        let milliseconds = NAP.as_millis() as u64;
        // SAFETY: the handle is initialized; `data` points to the victim, which outlives the run.
        check(unsafe { uv_timer_start(&raw mut self.timer, Some(woken), milliseconds, 0) });
    }
}

extern "C" fn woken(timer: *mut uv_timer_t) {
    // SAFETY: `data` is the victim, which outlives the run.
    let victim = unsafe { &mut *(*timer).data.cast::<Victim>() };
    victim.latencies.record(victim.deadline.elapsed());
    victim.naps -= 1;
    if victim.naps > 0 {
        victim.nap();
    } else {
        // SAFETY: the handle was initialized with its loop.
        unsafe { uv_stop((*timer).loop_) };
    }
}

pub(super) fn run(uv: *mut uv_loop_t, kind: Kind, naps: u64) -> Reading {
    let mut victim = Box::new(Victim {
        // SAFETY: a handle of zeroes is overwritten by its initialization.
        timer: unsafe { std::mem::zeroed() },
        deadline: Instant::now(),
        naps,
        latencies: Latencies::new(),
    });
    // SAFETY: the victim is boxed, and outlives the run.
    check(unsafe { uv_timer_init(uv, &raw mut victim.timer) });
    victim.timer.data = (&raw mut *victim).cast();
    match kind {
        Kind::Hog => hog(uv),
        Kind::CompletionStorm => completion_storm(uv),
        Kind::AcceptFlood => accept_flood(uv),
        _ => {}
    }
    let meter = Meter::start();
    victim.nap();
    run_loop(uv);
    Reading {
        latencies: Some(victim.latencies.clone()),
        ..meter.stop()
    }
}

// What the neighbours use is never freed: the loop knows it until the process ends.

/// Computes in every turn, as an idle handle does.
fn hog(uv: *mut uv_loop_t) {
    extern "C" fn bite(_: *mut uv_idle_t) {
        compute(BITE);
    }
    // SAFETY: a handle of zeroes is overwritten by its initialization.
    let handle = Box::leak(Box::new(unsafe { std::mem::zeroed::<uv_idle_t>() }));
    // SAFETY: the handle lives for ever.
    unsafe {
        check(uv_idle_init(uv, handle));
        check(uv_idle_start(handle, Some(bite)));
    }
}

fn completion_storm(uv: *mut uv_loop_t) {
    extern "C" fn work(_: *mut uv_work_t) {}
    extern "C" fn done(request: *mut uv_work_t, _: c_int) {
        // SAFETY: the request lives for ever, and is done.
        let queued = unsafe { uv_queue_work((*request).loop_, request, Some(work), Some(done)) };
        check(queued);
    }
    for _ in 0..JOBS {
        // SAFETY: a request of zeroes is overwritten when it is queued.
        let request = Box::leak(Box::new(unsafe { std::mem::zeroed::<uv_work_t>() }));
        // SAFETY: the request lives for ever.
        check(unsafe { uv_queue_work(uv, request, Some(work), Some(done)) });
    }
}

fn accept_flood(uv: *mut uv_loop_t) {
    extern "C" fn connected(listener: *mut uv_stream_t, status: i32) {
        if status < 0 {
            return;
        }
        // SAFETY: the new handle is boxed, and freed by the callback of its close.
        unsafe {
            let stream = Box::into_raw(Box::new(std::mem::zeroed::<uv_tcp_t>()));
            check(uv_tcp_init((*listener).loop_, stream));
            // One that was given up before it was accepted is no error here.
            let _ = uv_accept(listener, stream.cast());
            uv_close(stream.cast(), Some(free));
        }
    }
    extern "C" fn free(handle: *mut uv_handle_t) {
        // SAFETY: the loop is done with it.
        drop(unsafe { Box::from_raw(handle.cast::<uv_tcp_t>()) });
    }
    // SAFETY: a handle of zeroes is overwritten by its initialization.
    let handle = Box::leak(Box::new(unsafe { std::mem::zeroed::<uv_tcp_t>() }));
    let handle = &raw mut *handle;
    // SAFETY: the handle lives for ever.
    unsafe {
        check(uv_tcp_init(uv, handle));
        check(uv_tcp_open(handle, announced_listener().into_raw_fd()));
        check(uv_listen(handle.cast(), 4096, Some(connected)));
    }
}
