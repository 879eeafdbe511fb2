//! The programs on libuv, with the clock and the wait of [`kernel`].

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr;
use std::rc::{Rc, Weak};

use libuv_sys2::*;

use crate::gate;
use crate::interpreter::{Log, RESCUE, Run, Side, note};
use crate::kernel;
use crate::program::{ASYNCS, Events, HOOKS, Handle, Kind, Mode, POLLS, TIMERS};

thread_local! {
    /// The run whose loop exists.
    static RUN: RefCell<Weak<Run>> = const { RefCell::new(Weak::new()) };
    /// Whether work was queued since the last wait.
    static HAS_WORK: Cell<bool> = const { Cell::new(false) };
}

pub(crate) struct Theirs {
    uv: Slot<uv_loop_t>,
    start: u64,
    timers: Vec<Slot<uv_timer_t>>,
    idles: Vec<Slot<uv_idle_t>>,
    prepares: Vec<Slot<uv_prepare_t>>,
    checks: Vec<Slot<uv_check_t>>,
    asyncs: Vec<Slot<uv_async_t>>,
    polls: Vec<Slot<uv_poll_t>>,
    rescue: Slot<uv_timer_t>,
    works: RefCell<Vec<*mut Work>>,
}

/// The memory of a loop or a handle. libuv writes to it behind the back of Rust's references.
struct Slot<T>(*mut T);

impl<T> Slot<T> {
    fn new() -> Self {
        Self(Box::into_raw(Box::new(MaybeUninit::<T>::zeroed())).cast())
    }

    fn handle(&self) -> *mut uv_handle_t {
        self.0.cast()
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        // SAFETY: it was made from such a box, and the loop is closed before.
        drop(unsafe { Box::from_raw(self.0.cast::<MaybeUninit<T>>()) });
    }
}

#[repr(C)]
struct Work {
    /// First, so that a pointer to it points to the whole.
    request: uv_work_t,
    number: u32,
    log: Log,
}

/// Makes a loop with its handles, and replaces the clock until it is dropped.
pub(crate) fn make(run: &Rc<Run>) -> Box<dyn Side> {
    kernel::replace();
    RUN.set(run.weak());
    let uv = Slot::new();
    let raw: *mut uv_loop_t = uv.0;
    // SAFETY: the memory is valid; after this call it is initialized.
    let (epoll, first) = unsafe {
        check(uv_loop_init(raw));
        ((*raw).backend_fd, (*raw).async_io_watcher.fd)
    };
    kernel::replace_wait(epoll, first, before_wait);
    fn made<T>(kind: Kind, count: u8, init: impl Fn(u8, *mut T) -> c_int) -> Vec<Slot<T>> {
        let make = |number| {
            let slot = Slot::new();
            check(init(number, slot.0));
            // SAFETY: every handle begins with the fields of `uv_handle_t`, and is initialized.
            unsafe { (*slot.handle()).data = data_of(Handle { kind, number }) };
            slot
        };
        (0..count).map(make).collect()
    }
    let rescue = Slot::new();
    // SAFETY: the loop and the memory of each handle are valid, and outlive the handle's close.
    let theirs = unsafe {
        check(uv_timer_init(raw, rescue.0));
        check(uv_timer_start(rescue.0, Some(on_rescue), RESCUE, RESCUE));
        uv_unref(rescue.handle());
        Theirs {
            start: uv_now(raw),
            timers: made(Kind::Timer, TIMERS, |_, slot| uv_timer_init(raw, slot)),
            idles: made(Kind::Idle, HOOKS, |_, slot| uv_idle_init(raw, slot)),
            prepares: made(Kind::Prepare, HOOKS, |_, slot| uv_prepare_init(raw, slot)),
            checks: made(Kind::Check, HOOKS, |_, slot| uv_check_init(raw, slot)),
            asyncs: made(Kind::Async, ASYNCS, |_, slot| {
                uv_async_init(raw, slot, Some(on_async))
            }),
            polls: made(Kind::Poll, POLLS, |number, slot| {
                let end = &run.ends[usize::from(number)];
                uv_poll_init(raw, slot, end.as_raw_fd())
            }),
            rescue,
            works: RefCell::default(),
            uv,
        }
    };
    for handle in &theirs.asyncs {
        // SAFETY: the handle is initialized.
        unsafe { uv_unref(handle.handle()) };
    }
    Box::new(theirs)
}

fn check(status: c_int) {
    assert!(status >= 0, "libuv: {status}");
}

fn before_wait() {
    if HAS_WORK.take() {
        gate::let_work_pass();
    }
}

/// The field `data` of a handle: its place in the list of all handles.
fn data_of(handle: Handle) -> *mut std::ffi::c_void {
    let place = Handle::all().position(|other| other == handle);
    ptr::without_provenance_mut(place.expect("it is listed"))
}

/// # Safety
///
/// The handle is initialized, and its `data` is that of [`data_of`].
unsafe fn handle_of<T>(handle: *mut T) -> Handle {
    // SAFETY: every handle begins with the fields of `uv_handle_t`.
    let place = unsafe { (*handle.cast::<uv_handle_t>()).data.addr() };
    Handle::all().nth(place).expect("it is listed")
}

fn with_run(call: impl FnOnce(&Run)) {
    let run = RUN.with_borrow(Weak::upgrade);
    call(&run.expect("the loop runs within a run"));
}

macro_rules! callbacks {
    ($($name:ident: $type:ty;)*) => {$(
        extern "C" fn $name(handle: *mut $type) {
            // SAFETY: libuv passes the handle that was started.
            let handle = unsafe { handle_of(handle) };
            with_run(|run| run.called(handle, ""));
        }
    )*};
}

callbacks! {
    on_timer: uv_timer_t;
    on_idle: uv_idle_t;
    on_prepare: uv_prepare_t;
    on_check: uv_check_t;
    on_async: uv_async_t;
}

extern "C" fn on_rescue(_: *mut uv_timer_t) {
    with_run(Run::rescued);
}

extern "C" fn on_close(handle: *mut uv_handle_t) {
    // SAFETY: libuv passes the handle that was closed.
    let handle = unsafe { handle_of(handle) };
    with_run(|run| run.closed(handle));
}

extern "C" fn on_poll(handle: *mut uv_poll_t, status: c_int, events: c_int) {
    // SAFETY: libuv passes the handle that was started.
    let handle = unsafe { handle_of(handle) };
    let has = |event| events & event as c_int != 0;
    let detail = if status < 0 {
        " with an error".to_owned()
    } else {
        let events = Events {
            readable: has(uv_poll_event_UV_READABLE),
            writable: has(uv_poll_event_UV_WRITABLE),
            disconnect: has(uv_poll_event_UV_DISCONNECT),
        };
        format!(" for {events}")
    };
    with_run(|run| run.called(handle, &detail));
}

extern "C" fn do_work(work: *mut uv_work_t) {
    // SAFETY: the request is the first field of a `Work`, which lives until the loop is closed.
    let work = unsafe { &*work.cast::<Work>() };
    note(&work.log, format!("work {} runs", work.number));
}

extern "C" fn after_work(work: *mut uv_work_t, status: c_int) {
    // SAFETY: as above.
    let number = unsafe { (*work.cast::<Work>()).number };
    with_run(|run| run.worked(number, status < 0));
}

impl Theirs {
    fn raw(&self) -> *mut uv_loop_t {
        self.uv.0
    }

    fn handle(&self, handle: Handle) -> *mut uv_handle_t {
        let number = usize::from(handle.number);
        match handle.kind {
            Kind::Timer => self.timers[number].handle(),
            Kind::Idle => self.idles[number].handle(),
            Kind::Prepare => self.prepares[number].handle(),
            Kind::Check => self.checks[number].handle(),
            Kind::Async => self.asyncs[number].handle(),
            Kind::Poll => self.polls[number].handle(),
        }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: the loop does not run.
        let closed = unsafe { uv_loop_close(self.raw()) };
        kernel::restore();
        assert!(closed == 0, "a handle or a request is left");
        for work in self.works.take() {
            // SAFETY: it was made from a box, and its loop is closed.
            drop(unsafe { Box::from_raw(work) });
        }
    }
}

// The SAFETY of each call: the loop and its handles are initialized, they live as long as this
// value, and all calls come from the thread that made the loop. The interpreter calls no method of
// a closed handle.
#[allow(
    clippy::undocumented_unsafe_blocks,
    reason = "one reason for all of them, above"
)]
impl Side for Theirs {
    fn now(&self) -> u64 {
        unsafe { uv_now(self.raw()) - self.start }
    }

    fn update_time(&self) {
        unsafe { uv_update_time(self.raw()) };
    }

    fn busy(&self, time: u64) {
        kernel::advance(time);
    }

    fn run(&self, mode: Mode) {
        let mode = match mode {
            Mode::Default => uv_run_mode_UV_RUN_DEFAULT,
            Mode::Once => uv_run_mode_UV_RUN_ONCE,
            Mode::NoWait => uv_run_mode_UV_RUN_NOWAIT,
        };
        // Ours refreshes the time at the start of every run that is not stopped (R15, R46).
        unsafe {
            if (*self.raw()).stop_flag == 0 {
                uv_update_time(self.raw());
            }
            uv_run(self.raw(), mode);
        }
    }

    fn stop_loop(&self) {
        unsafe { uv_stop(self.raw()) };
    }

    fn is_alive(&self) -> bool {
        unsafe { uv_loop_alive(self.raw()) != 0 }
    }

    fn start_timer(&self, number: usize, timeout: u64, repeat: u64) {
        let timer = self.timers[number].0;
        check(unsafe { uv_timer_start(timer, Some(on_timer), timeout, repeat) });
    }

    fn again(&self, number: usize) -> bool {
        unsafe { uv_timer_again(self.timers[number].0) == 0 }
    }

    fn set_repeat(&self, number: usize, repeat: u64) {
        unsafe { uv_timer_set_repeat(self.timers[number].0, repeat) };
    }

    fn times(&self, number: usize) -> (u64, u64) {
        let timer = self.timers[number].0;
        unsafe { (uv_timer_get_due_in(timer), uv_timer_get_repeat(timer)) }
    }

    fn start_hook(&self, hook: Handle) {
        let number = usize::from(hook.number);
        check(unsafe {
            match hook.kind {
                Kind::Idle => uv_idle_start(self.idles[number].0, Some(on_idle)),
                Kind::Prepare => uv_prepare_start(self.prepares[number].0, Some(on_prepare)),
                _ => uv_check_start(self.checks[number].0, Some(on_check)),
            }
        });
    }

    fn send(&self, number: usize) {
        check(unsafe { uv_async_send(self.asyncs[number].0) });
    }

    fn start_poll(&self, number: usize, events: Events) {
        let bits = [
            (events.readable, uv_poll_event_UV_READABLE),
            (events.writable, uv_poll_event_UV_WRITABLE),
            (events.disconnect, uv_poll_event_UV_DISCONNECT),
        ];
        let set = bits.into_iter().filter(|(is_set, _)| *is_set);
        let set = set.fold(0, |all, (_, event)| all | event as c_int);
        check(unsafe { uv_poll_start(self.polls[number].0, set, Some(on_poll)) });
    }

    fn stop(&self, handle: Handle) {
        let number = usize::from(handle.number);
        check(unsafe {
            match handle.kind {
                Kind::Timer => uv_timer_stop(self.timers[number].0),
                Kind::Idle => uv_idle_stop(self.idles[number].0),
                Kind::Prepare => uv_prepare_stop(self.prepares[number].0),
                Kind::Check => uv_check_stop(self.checks[number].0),
                Kind::Poll => uv_poll_stop(self.polls[number].0),
                Kind::Async => 0,
            }
        });
    }

    fn close(&self, handle: Handle) {
        unsafe { uv_close(self.handle(handle), Some(on_close)) };
    }

    fn close_rescue(&self) {
        if unsafe { uv_is_closing(self.rescue.handle()) } == 0 {
            unsafe { uv_close(self.rescue.handle(), None) };
        }
    }

    fn set_ref(&self, handle: Handle, is_referenced: bool) {
        if is_referenced {
            unsafe { uv_ref(self.handle(handle)) };
        } else {
            unsafe { uv_unref(self.handle(handle)) };
        }
    }

    fn has_ref(&self, handle: Handle) -> bool {
        unsafe { uv_has_ref(self.handle(handle)) != 0 }
    }

    fn is_active(&self, handle: Handle) -> bool {
        unsafe { uv_is_active(self.handle(handle)) != 0 }
    }

    fn is_closing(&self, handle: Handle) -> bool {
        unsafe { uv_is_closing(self.handle(handle)) != 0 }
    }

    fn queue(&self, number: u32) {
        let mut log = None;
        with_run(|run| log = Some(run.log.clone()));
        let work = Box::into_raw(Box::new(Work {
            request: unsafe { MaybeUninit::zeroed().assume_init() },
            number,
            log: log.expect("it was just set"),
        }));
        HAS_WORK.set(true);
        check(unsafe { uv_queue_work(self.raw(), work.cast(), Some(do_work), Some(after_work)) });
        self.works.borrow_mut().push(work);
    }

    fn cancel(&self, number: u32) -> bool {
        let work = self.works.borrow()[number as usize];
        unsafe { uv_cancel(work.cast()) == 0 }
    }
}
