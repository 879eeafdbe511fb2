//! Values that stay on the thread of their loop, with one reason that the compiler can name.
//!
//! A handle of the loop has several parts that are not `Send`. Moved to another thread, it would
//! have an error for each of them, with the names of private types. A [`Bound`] hides them behind
//! one public reason.
#![allow(
    unsafe_code,
    reason = "hides which part of a value is not `Send` from a type that is not `Send` itself"
)]

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// The reason why a value cannot be sent to another thread: it belongs to the thread of its loop.
///
/// Sockets, handles, tasks and futures of a loop are used on the thread that runs the loop, so that
/// none of them pays for locks. The compiler refuses to move one to another thread, and names this
/// trait:
///
/// ```text
/// error[E0277]: `(dyn StaysOnLoopThread + 'static)` cannot be sent between threads safely
/// ```
///
/// What to do instead:
///
/// - A thread uses a [`Remote`](crate::Remote), which spawns tasks and calls closures on the loop.
/// - A closure that blocks goes to [`spawn_blocking`](crate::spawn_blocking), and gets the bytes,
///   not the socket.
/// - A [`Local`](crate::Local) passes a bound of `Send` where nothing leaves the thread.
/// - A socket for another loop is sent as a `net::Detached`, and registered there.
///
/// No type implements it.
///
/// # Examples
///
/// ```compile_fail
/// let stream = phaseloop::block_on(phaseloop::net::TcpStream::connect("127.0.0.1:80")).unwrap();
/// std::thread::spawn(move || drop(stream));
/// ```
// The supertraits keep the reason from changing what else a type is.
pub trait StaysOnLoopThread: Unpin + UnwindSafe + RefUnwindSafe {}

/// Makes a type neither `Send` nor `Sync`.
pub(crate) type Stays = PhantomData<dyn StaysOnLoopThread>;

/// A value that is neither `Send` nor `Sync`, for the reason of [`StaysOnLoopThread`] alone.
// No `Clone`: a clone of what it holds is that of the value.
pub(crate) struct Bound<T: ?Sized> {
    _stays: Stays,
    value: Hidden<T>,
}

/// The value of a [`Bound`], and of nothing else.
struct Hidden<T: ?Sized>(T);

// SAFETY: the value is a field of `Bound` only, which is not `Send`: no reference to this type, and
// no value of it, leaves this module.
unsafe impl<T: ?Sized> Send for Hidden<T> {}
// SAFETY: `Bound` is not `Sync` either.
unsafe impl<T: ?Sized> Sync for Hidden<T> {}

impl<T> Bound<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Self {
            _stays: PhantomData,
            value: Hidden(value),
        }
    }
}

impl<T: ?Sized> Deref for Bound<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value.0
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Bound<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.0.fmt(f)
    }
}
