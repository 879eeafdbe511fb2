//! The stack of a thread that is stuck, read from another thread.
//!
//! ```text
//!   watchdog: ask ── SIGURG by `tgkill` ──> handler on the stuck thread: stores the addresses
//!      └──────────────── waits for the answer, then names them <────────────────┘
//! ```
//!
//! The handler allocates nothing and takes no lock: since version 2.35, the unwinder of glibc finds
//! the tables of the program without one.
// Marks: not inlined: the test looks for its name in a stack.
#![allow(
    unsafe_code,
    reason = "a signal handler, and a pointer to a static that is stored in an atomic"
)]

use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::site::Site;

#[cfg(all(feature = "stacks", target_os = "linux", target_env = "gnu"))]
pub(crate) use linux::{Thread, stack_of};
#[cfg(not(all(feature = "stacks", target_os = "linux", target_env = "gnu")))]
pub(crate) use portable::{Thread, stack_of};

/// A line of the program, or none, that threads share.
pub(crate) struct AtomicSite(AtomicPtr<Location<'static>>);

impl AtomicSite {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    pub(crate) fn get(&self) -> Option<Site> {
        as_site(self.0.load(Ordering::Relaxed))
    }

    /// Stores a line and returns the one before.
    pub(crate) fn swap(&self, site: Option<Site>) -> Option<Site> {
        let new = site.map_or(ptr::null_mut(), |site| ptr::from_ref(site).cast_mut());
        // One thread writes, so that this need not be one operation.
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(new, Ordering::Relaxed);
        as_site(before)
    }
}

fn as_site(pointer: *mut Location<'static>) -> Option<Site> {
    // SAFETY: the pointer is null, or was made from a reference to a static in `swap`, which never
    // changes.
    unsafe { pointer.as_ref() }
}

#[cfg(not(all(feature = "stacks", target_os = "linux", target_env = "gnu")))]
mod portable {
    /// A thread.
    #[derive(Clone, Copy)]
    pub(crate) struct Thread;

    impl Thread {
        /// Returns the calling thread.
        pub(crate) fn this() -> Self {
            Self
        }
    }

    /// A stack, of which nothing is known: that of another thread cannot be read here.
    pub(crate) struct Stack;

    impl Stack {
        pub(crate) fn functions(&self) -> Vec<String> {
            Vec::new()
        }

        pub(crate) fn fault(&self) -> Option<String> {
            None
        }
    }

    pub(crate) fn stack_of(_: Thread) -> Stack {
        Stack
    }
}

#[cfg(all(feature = "stacks", target_os = "linux", target_env = "gnu"))]
mod linux {
    use std::ffi::{c_int, c_void};
    use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
    use std::sync::{Mutex, OnceLock, PoisonError};
    use std::time::Duration;

    use rustix::thread::gettid;

    use crate::raw::stack;
    use crate::sys::signal::{Before, action_of, disposition};

    /// The deepest stack that is read.
    const DEEPEST: usize = 64;

    /// How long the thread may take to answer, in steps of a tenth of a millisecond. A thread that
    /// waits inside the kernel without a signal does not answer.
    const STEPS: u32 = 2_000;

    // The states of a request.
    const NONE: u32 = 0;
    const ASKED: u32 = 1;
    const RUNNING: u32 = 2;
    const DONE: u32 = 3;

    static STATE: AtomicU32 = AtomicU32::new(NONE);
    /// The thread that is asked.
    static ASKED_THREAD: AtomicI32 = AtomicI32::new(0);
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    static FRAMES: [AtomicUsize; DEEPEST] = [const { AtomicUsize::new(0) }; DEEPEST];

    /// Where the thread was interrupted; zero if that is not known.
    static INTERRUPTED: AtomicUsize = AtomicUsize::new(0);

    /// The handler that ours has replaced.
    static BEFORE: Before = Before::new();

    /// A thread.
    #[derive(Clone, Copy)]
    pub(crate) struct Thread(i32);

    impl Thread {
        /// Returns the calling thread.
        pub(crate) fn this() -> Self {
            Self(gettid().as_raw_nonzero().get())
        }
    }

    /// Reads the stack of a thread, up to the code of this crate that has called the program. It is
    /// empty if the thread does not answer.
    pub(crate) fn stack_of(thread: Thread) -> Stack {
        let addresses = addresses(thread);
        Stack {
            fault: addresses.is_empty().then(|| why_silent(thread)),
            addresses,
        }
    }

    /// The stack of a thread.
    pub(crate) struct Stack {
        /// Innermost first.
        addresses: Vec<usize>,
        fault: Option<String>,
    }

    impl Stack {
        /// Names the functions. The first time in a process, the debug information of the program
        /// is read, which may take long.
        pub(crate) fn functions(&self) -> Vec<String> {
            program_of(all_functions(&self.addresses))
        }

        /// Returns why the stack is not known.
        pub(crate) fn fault(&self) -> Option<String> {
            self.fault.clone()
        }
    }

    fn why_silent(thread: Thread) -> String {
        let status = std::fs::read_to_string(format!("/proc/self/task/{}/status", thread.0));
        let status = status.unwrap_or_default();
        match status.lines().find_map(|line| line.strip_prefix("State:")) {
            Some(state) => format!(
                "the thread does not answer a signal, its state is {}",
                state.trim()
            ),
            None => "the thread has ended".to_owned(),
        }
    }

    fn program_of(mut names: Vec<String>) -> Vec<String> {
        let part = part_of_program(&names);
        names.truncate(part.end);
        names.drain(..part.start);
        let directory = stack::directory();
        names
            .iter()
            .map(|name| stack::shortened(name, &directory))
            .collect()
    }

    /// Returns the addresses on the stack of a thread, innermost first.
    pub(super) fn addresses(thread: Thread) -> Vec<usize> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // A walk that has not ended in time may end later; until then there is no other.
        if STATE.load(Ordering::Acquire) == RUNNING || !install() {
            return Vec::new();
        }
        // The first walk of a process may load the unwinder, which the handler must not.
        backtrace::trace(|_| false);
        ask(thread)
    }

    /// Installs the handler, once in a process. A handler that is installed above it later may call
    /// it, so it is not installed above that one again: the two would call each other for ever.
    fn install() -> bool {
        static IS_INSTALLED: OnceLock<bool> = OnceLock::new();
        *IS_INSTALLED.get_or_init(|| {
            let Ok(before) = disposition::get(libc::SIGURG) else {
                return false;
            };
            // Before the handler is installed, which calls it.
            BEFORE.set(&before);
            let flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
            let ours = action_of(on_signal as *const () as usize, flags);
            disposition::set(libc::SIGURG, &ours).is_ok()
        })
    }

    /// Asks a thread for the addresses on its stack.
    fn ask(thread: Thread) -> Vec<usize> {
        ASKED_THREAD.store(thread.0, Ordering::Relaxed);
        STATE.store(ASKED, Ordering::Release);
        // SAFETY: the call sends a signal, which has a handler, to a thread of this process.
        let sent = unsafe {
            let process = libc::getpid();
            libc::syscall(libc::SYS_tgkill, process, thread.0, libc::SIGURG)
        };
        let mut steps = if sent == 0 { STEPS } else { 0 };
        while steps > 0 && STATE.load(Ordering::Acquire) != DONE {
            std::thread::sleep(Duration::from_micros(100));
            steps -= 1;
        }
        let given_up = STATE.compare_exchange(ASKED, NONE, Ordering::AcqRel, Ordering::Acquire);
        if given_up.is_ok() || STATE.load(Ordering::Acquire) != DONE {
            return Vec::new();
        }
        let count = COUNT.load(Ordering::Acquire).min(DEEPEST);
        let frames = FRAMES[..count].iter();
        let mut addresses: Vec<_> = frames.map(|frame| frame.load(Ordering::Acquire)).collect();
        let interrupted = INTERRUPTED.load(Ordering::Acquire);
        STATE.store(NONE, Ordering::Release);
        // The caller of the first function of a thread.
        addresses.retain(|&address| address != 0);
        // The frames of the handler, which a stripped program does not name.
        if let Some(place) = addresses.iter().position(|&one| one == interrupted) {
            addresses.drain(..place);
        }
        addresses
    }

    extern "C" fn on_signal(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        let errno = errno::errno();
        let is_asked = ASKED_THREAD.load(Ordering::Relaxed) == Thread::this().0
            && STATE
                .compare_exchange(ASKED, RUNNING, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if is_asked {
            INTERRUPTED.store(interrupted_at(context), Ordering::Relaxed);
            store_stack();
            STATE.store(DONE, Ordering::Release);
        } else {
            // The default action of SIGURG is to ignore it.
            BEFORE.call(number, info, context);
        }
        errno::set_errno(errno);
    }

    /// Returns the address of the instruction that a signal has interrupted, or zero.
    fn interrupted_at(context: *mut c_void) -> usize {
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: the kernel passes a valid context to a handler with `SA_SIGINFO`.
            let context = unsafe { &*context.cast::<libc::ucontext_t>() };
            usize::try_from(context.uc_mcontext.gregs[libc::REG_RIP as usize]).unwrap_or(0)
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = context;
            0
        }
    }

    fn store_stack() {
        let mut count = 0;
        let store = |frame: &backtrace::Frame| {
            if let Some(place) = FRAMES.get(count) {
                place.store(frame.ip().addr(), Ordering::Relaxed);
                count += 1;
            }
            count < DEEPEST
        };
        // SAFETY: the walk shares nothing with walks of other threads: it takes neither the lock of
        // the crate, which protects the naming of addresses, nor memory.
        unsafe { backtrace::trace_unsynchronized(store) };
        COUNT.store(count, Ordering::Release);
    }

    /// Names the functions at the addresses; one address may be in several, which are inlined.
    pub(super) fn all_functions(addresses: &[usize]) -> Vec<String> {
        let mut names = Vec::new();
        for &address in addresses {
            let before = names.len();
            stack::resolve(address, |name| names.push(name));
            if names.len() == before {
                names.push(place_in_file(address));
            }
        }
        names
    }

    /// Names an address by the program or library that it is in, and by its distance from the
    /// beginning of it.
    pub(super) fn place_in_file(address: usize) -> String {
        let mappings = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let Some((file, start)) = file_at(&mappings, address) else {
            return format!("{address:#x}");
        };
        let file = file.rsplit('/').next().unwrap_or_default();
        format!("{file}+{:#x}", address - start)
    }

    /// Returns the file that is mapped at an address, and the address that its first byte has.
    /// The lines are those of `/proc/self/maps`, in order: `start-end rights offset device inode
    /// path`. A file has several, whose first is that of its beginning.
    fn file_at(mappings: &str, address: usize) -> Option<(&str, usize)> {
        let number = |text| usize::from_str_radix(text, 16).ok();
        let mut first = ("", 0);
        for line in mappings.lines() {
            let (start, rest) = line.split_once('-')?;
            let (start, end) = (number(start)?, number(rest.split(' ').next()?)?);
            let file = line.find('/').map_or("", |at| &line[at..]);
            if file != first.0 {
                first = (file, start);
            }
            if (start..end).contains(&address) {
                return (!file.is_empty()).then_some(first);
            }
        }
        None
    }

    /// Returns the part of a stack that is the program's: behind the handler, before this crate.
    pub(super) fn part_of_program(names: &[String]) -> std::ops::Range<usize> {
        let is_handler =
            |name: &String| name.contains("__restore_rt") || name.contains("sys::stall::");
        let start = names
            .iter()
            .rposition(is_handler)
            .map_or(0, |last| last + 1);
        let end = names[start..].iter().position(|name| stack::is_ours(name));
        let mut end = end.map_or(names.len(), |end| start + end);
        while end > start + 1 && stack::is_glue(&names[end - 1]) {
            end -= 1;
        }
        // Code of this crate that blocks: all of it is reported.
        if start == end {
            return start..names.len();
        }
        start..end
    }
}

#[cfg(all(test, feature = "stacks", target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::linux::part_of_program;
    use super::{Thread, stack_of};
    use crate::raw::stack;
    use crate::sys::signal::mask;

    #[inline(never)]
    fn blocks_until(until: &mpsc::Receiver<()>) {
        // The loop keeps the call from being the last one, which would leave no frame.
        while until.recv_timeout(Duration::from_secs(60)).is_err() {}
    }

    #[test]
    fn the_stack_of_another_thread_has_the_function_that_blocks() {
        let (end, until) = mpsc::channel();
        let (send, thread) = mpsc::channel();
        let blocked = std::thread::spawn(move || {
            send.send(Thread::this()).unwrap();
            blocks_until(&until);
        });
        let thread = thread.recv().unwrap();
        // The test's own functions are in a module of this name, which the filter takes for the
        // handler's; so the whole stack is looked for.
        let mut stack = Vec::new();
        for _ in 0..100 {
            stack = super::linux::all_functions(&super::linux::addresses(thread));
            if stack.iter().any(|name| name.contains("blocks_until")) {
                break;
            }
        }
        end.send(()).unwrap();
        blocked.join().unwrap();
        let found = stack.iter().any(|name| name.contains("blocks_until"));
        assert!(found, "{stack:#?}");
    }

    #[test]
    fn a_thread_that_has_ended_has_no_stack() {
        let thread = std::thread::spawn(Thread::this).join().unwrap();
        let stack = stack_of(thread);
        assert_eq!(stack.functions(), [""; 0]);
        assert_eq!(stack.fault().as_deref(), Some("the thread has ended"));
    }

    /// A thread that has blocked the signal stands for one that waits inside the kernel.
    #[test]
    fn a_thread_that_does_not_answer_is_reported_with_its_state() {
        let (end, until) = mpsc::channel();
        let (send, thread) = mpsc::channel();
        let blocked = std::thread::spawn(move || {
            mask::change(libc::SIG_BLOCK, &mask::of(&[libc::SIGURG])).unwrap();
            send.send(Thread::this()).unwrap();
            blocks_until(&until);
        });
        let stack = stack_of(thread.recv().unwrap());
        end.send(()).unwrap();
        blocked.join().unwrap();
        assert_eq!(stack.functions(), [""; 0]);
        let fault = stack.fault().unwrap();
        let text = "the thread does not answer a signal, its state is ";
        assert!(fault.starts_with(text), "{fault}");
    }

    #[test]
    fn an_address_without_a_name_is_reported_by_its_file() {
        let inside = super::linux::place_in_file as *const () as usize;
        let name = super::linux::place_in_file(inside);
        let (file, offset) = name.split_once("+0x").unwrap();
        let program = std::env::current_exe().unwrap();
        assert_eq!(Some(file), program.file_name().and_then(|it| it.to_str()));
        assert!(u64::from_str_radix(offset, 16).unwrap() > 0);
        assert_eq!(super::linux::place_in_file(1), "0x1");
    }

    #[test]
    fn paths_are_short() {
        let short = |name| stack::shortened(name, "(/home/ann/app/");
        assert_eq!(
            short("hash (/home/ann/app/src/main.rs:3)"),
            "hash (src/main.rs:3)"
        );
        assert_eq!(
            short("std::thread::sleep (/rustc/5980/library/std/src/thread.rs:1)"),
            "std::thread::sleep (library/std/src/thread.rs:1)"
        );
        assert_eq!(short("main (/other/x.rs:1)"), "main (/other/x.rs:1)");
        assert_eq!(short("app+0x1f"), "app+0x1f");
    }

    #[test]
    fn the_handler_and_this_crate_are_left_out() {
        let stack = [
            "phaseloop::sys::stall::linux::on_signal",
            "__restore_rt",
            "clock_nanosleep",
            "std::thread::sleep (thread.rs:1)",
            "app::hash (main.rs:3)",
            "app::main::{{closure}}",
            "<core::panic::AssertUnwindSafe<F> as core::ops::FnOnce<()>>::call_once",
            "__rust_try",
            "<phaseloop::raw::task::Tracked<F,L> as core::future::Future>::poll",
            "app::main",
        ];
        let names = stack.map(str::to_owned);
        assert_eq!(part_of_program(&names), 2..6);
        // Names of line tables.
        let source = stack::own_source();
        let stack = [
            "std::thread::sleep (thread.rs:1)".to_owned(),
            "{async_fn#0} (main.rs:3)".to_owned(),
            format!("poll_watched ({source}executor/watched.rs:1)"),
        ];
        assert_eq!(part_of_program(&stack), 0..2);
        // Code of the crate that blocks.
        let names = ["__restore_rt", "phaseloop::pool::run", "app::main"].map(str::to_owned);
        assert_eq!(part_of_program(&names), 1..3);
        assert_eq!(part_of_program(&[]), 0..0);
    }
}
