//! Bursts: timers that are due at once, jobs that have ended before the loop looks. A timer of a
//! millisecond beside them shows how late it was.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Instant;

use libuv_sys2::{
    uv_loop_t, uv_queue_work, uv_timer_init, uv_timer_start, uv_timer_t, uv_update_time, uv_work_t,
};

use super::{check, run_loop};
use crate::meter::{Meter, Reading};
use crate::workload::bursts::{ARMED_WITHIN, BESIDE, BURST, Clocks};

/// What all callbacks of one burst share.
struct Shared {
    clocks: Clocks,
    /// When the burst began.
    begin: Instant,
    /// Callbacks that have not come yet.
    left: u64,
    beside: uv_timer_t,
    /// Jobs that have run.
    ended: AtomicU64,
    /// Closed by a writer until every job is queued.
    gate: Arc<RwLock<()>>,
}

impl Shared {
    fn new(uv: *mut uv_loop_t) -> Box<Self> {
        let mut shared = Box::new(Self {
            clocks: Clocks::new(),
            begin: Instant::now(),
            left: 0,
            // SAFETY: a handle of zeroes is overwritten by its initialization.
            beside: unsafe { std::mem::zeroed() },
            ended: AtomicU64::new(0),
            gate: Arc::default(),
        });
        let pointer = &raw mut *shared;
        // SAFETY: what is shared is boxed, and outlives the run.
        unsafe {
            check(uv_timer_init(uv, &raw mut (*pointer).beside));
            (*pointer).beside.data = pointer.cast();
        }
        shared
    }

    /// Arms the timer beside the burst, so many milliseconds from now.
    fn arm_beside(&mut self, milliseconds: u64) {
        // SAFETY: the handle is initialized, and outlives the run.
        check(unsafe { uv_timer_start(&raw mut self.beside, Some(beside_fired), milliseconds, 0) });
    }

    fn one_is_done(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.clocks.last_after(self.begin.elapsed());
        }
    }
}

extern "C" fn beside_fired(timer: *mut uv_timer_t) {
    // SAFETY: `data` is what is shared, which outlives the run.
    let shared = unsafe { &mut *(*timer).data.cast::<Shared>() };
    let deadline = shared.begin + BESIDE;
    shared.clocks.late_by(deadline.elapsed());
}

pub(super) fn sleeps(uv: *mut uv_loop_t, bursts: u64) -> Reading {
    extern "C" fn fired(timer: *mut uv_timer_t) {
        // SAFETY: `data` is what is shared, which outlives the run.
        unsafe { (*(*timer).data.cast::<Shared>()).one_is_done() };
    }
    let mut shared = Shared::new(uv);
    let pointer = &raw mut *shared;
    // SAFETY: handles of zeroes are overwritten by their initialization; the vector does not move
    // its elements any more, and outlives the run.
    let mut timers: Vec<uv_timer_t> = (0..BURST).map(|_| unsafe { std::mem::zeroed() }).collect();
    for timer in &mut timers {
        // SAFETY: as above.
        check(unsafe { uv_timer_init(uv, timer) });
        timer.data = pointer.cast();
    }
    let milliseconds = ARMED_WITHIN.as_millis() as u64;
    let meter = Meter::start();
    for _ in 0..bursts {
        // SAFETY: the loop is the default one.
        unsafe { uv_update_time(uv) };
        shared.begin = Instant::now() + ARMED_WITHIN;
        shared.left = BURST;
        shared.arm_beside(milliseconds + BESIDE.as_millis() as u64);
        for timer in &mut timers {
            // SAFETY: the handle is initialized, and outlives the run.
            check(unsafe { uv_timer_start(timer, Some(fired), milliseconds, 0) });
        }
        run_loop(uv);
    }
    let reading = shared.clocks.reading(meter);
    // The loop still knows them; it never runs again, and the process ends.
    std::mem::forget((timers, shared));
    reading
}

pub(super) fn jobs(uv: *mut uv_loop_t, bursts: u64) -> Reading {
    extern "C" fn work(request: *mut uv_work_t) {
        // SAFETY: `data` is what is shared; the pool's threads touch the gate and the counter only.
        unsafe {
            let shared = (*request).data.cast::<Shared>();
            drop((*shared).gate.read());
            (*shared).ended.fetch_add(1, Ordering::Relaxed);
        }
    }
    extern "C" fn done(request: *mut uv_work_t, _: c_int) {
        // SAFETY: `data` is what is shared, which outlives the run.
        unsafe { (*(*request).data.cast::<Shared>()).one_is_done() };
    }
    let mut shared = Shared::new(uv);
    let pointer = &raw mut *shared;
    // SAFETY: requests of zeroes are overwritten when they are queued; the vector outlives the run.
    let mut requests: Vec<uv_work_t> = (0..BURST).map(|_| unsafe { std::mem::zeroed() }).collect();
    let gate = shared.gate.clone();
    let meter = Meter::start();
    for _ in 0..bursts {
        shared.left = BURST;
        shared.ended.store(0, Ordering::Relaxed);
        let closed = gate.write().expect("no holder of the lock panics");
        for request in &mut requests {
            request.data = pointer.cast();
            // SAFETY: the request is not queued, and outlives the run.
            check(unsafe { uv_queue_work(uv, request, Some(work), Some(done)) });
        }
        drop(closed);
        while shared.ended.load(Ordering::Relaxed) < BURST {
            std::thread::yield_now();
        }
        // SAFETY: the loop is the default one.
        unsafe { uv_update_time(uv) };
        shared.begin = Instant::now();
        shared.arm_beside(BESIDE.as_millis() as u64);
        run_loop(uv);
    }
    shared.clocks.reading(meter)
}
