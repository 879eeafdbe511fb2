//! A ring on a loop, as small as it can be: entries are collected during a turn and submitted once
//! before its wait; an eventfd reports completions.

use std::cell::RefCell;
use std::fs::File;
use std::future::poll_fn;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::rc::Rc;
use std::task::{Poll, Waker};

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types};
use phaseloop::LoopHandle;
use phaseloop::io::Source;
use phaseloop::phase::{Phase, call_in};

const ENTRIES: u32 = 256;

/// What an operation waits for.
#[derive(Default)]
struct Slot {
    result: Option<i32>,
    waker: Option<Waker>,
}

struct State {
    ring: IoUring,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Whether a submission is due in this turn.
    is_due: bool,
}

impl State {
    /// Wakes those whose entries are completed.
    fn reap(&mut self) {
        for end in self.ring.completion() {
            if let Some(slot) = self.slots.get_mut(end.user_data() as usize) {
                slot.result = Some(end.result());
                if let Some(waker) = slot.waker.take() {
                    waker.wake();
                }
            }
        }
    }
}

#[derive(Clone)]
pub(crate) struct Ring(Rc<RefCell<State>>);

impl Ring {
    /// `None` where the kernel has no such ring.
    pub(crate) fn new() -> Option<Self> {
        let ring: IoUring = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_defer_taskrun()
            .build(ENTRIES)
            .ok()?;
        // SAFETY: a call without pointers, whose result is checked.
        let number = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        assert!(number >= 0);
        // SAFETY: the descriptor was just made, and belongs to nothing else.
        let event_fd = unsafe { File::from_raw_fd(number) };
        let submitter = ring.submitter();
        submitter.register_eventfd(number).ok()?;
        let this = Self(Rc::new(RefCell::new(State {
            ring,
            slots: Vec::new(),
            free: Vec::new(),
            is_due: false,
        })));
        let source = Source::new(&LoopHandle::current(), event_fd).ok()?;
        let shared = this.clone();
        phaseloop::spawn(async move {
            while source
                .read_with(|mut event_fd| event_fd.read(&mut [0; 8]))
                .await
                .is_ok()
            {
                const GET_EVENTS: u32 = 1;
                let mut state = shared.0.borrow_mut();
                // SAFETY: nothing is submitted, and no argument is passed.
                let entered = unsafe { state.ring.submitter().enter::<()>(0, 0, GET_EVENTS, None) };
                entered.unwrap();
                state.reap();
            }
        })
        .detach();
        Some(this)
    }

    /// Submits an entry before the next wait, and waits for its completion. It has the number that
    /// `entry` gets.
    ///
    /// # Safety
    ///
    /// What the entry points to must live until the future has returned. It must not be dropped
    /// before.
    async unsafe fn run(&self, entry: impl FnOnce(u64) -> Entry) -> i32 {
        let slot = {
            let state = &mut *self.0.borrow_mut();
            let slot = state.free.pop().unwrap_or_else(|| {
                state.slots.push(Slot::default());
                state.slots.len() - 1
            });
            let entry = entry(slot as u64);
            // SAFETY: the contract of this function.
            while unsafe { state.ring.submission().push(&entry) }.is_err() {
                state.ring.submit().unwrap();
            }
            if !std::mem::replace(&mut state.is_due, true) {
                let shared = self.clone();
                call_in(Phase::Prepare, move || {
                    let mut state = shared.0.borrow_mut();
                    state.is_due = false;
                    state.ring.submit().unwrap();
                    state.reap();
                });
            }
            slot
        };
        poll_fn(|cx| {
            let state = &mut *self.0.borrow_mut();
            match state.slots[slot].result.take() {
                Some(result) => {
                    state.free.push(slot);
                    Poll::Ready(result)
                }
                None => {
                    state.slots[slot].waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Reads at an offset.
    pub(crate) async fn read_at(&self, file: &File, buffer: &mut [u8], offset: u64) {
        let (room, length) = (buffer.as_mut_ptr(), buffer.len() as u32);
        let file = types::Fd(file.as_raw_fd());
        let entry = opcode::Read::new(file, room, length).offset(offset);
        // SAFETY: the callers await this to its end, and the buffer and the file outlive it.
        let count = unsafe { self.run(|slot| entry.build().user_data(slot)) }.await;
        assert_eq!(count, length as i32);
    }
}
