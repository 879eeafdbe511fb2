//! A `Send` wrapper for values that never leave their thread.
// Marks: `cold`: it panics.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut, SeekFrom};
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use futures::io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};

use crate::raw::thread_bound::ThreadBound;
use crate::runtime::loop_handle::LoopHandle;
use crate::runtime::remote::Remote;
use crate::site::Site;

/// A value that is `Send + Sync` for the type system, and is used on its own thread only.
///
/// Crates of the tokio world ask for `Send` where nothing leaves the thread: state and handlers of
/// axum, upgraded connections of hyper. A `Local` passes these bounds with an `Rc`, a socket or a
/// future of the loop inside. It is a [`Future`], a [`Stream`], and implements the I/O traits of
/// `futures` if the value does; with the feature `tokio-io` also those of tokio.
///
/// # Drop
///
/// On its own thread a `Local` drops the value. A `Local` that is dropped on another thread sends
/// the value home: the loop that ran when the `Local` was created drops it in its poll phase. If
/// there was no such loop, or it is gone, the value is leaked.
///
/// # Panics
///
/// Every access on another thread panics and names the line that created the `Local`;
/// [`try_get`](Self::try_get) returns `None` instead.
///
/// # Examples
///
/// ```
/// use std::{cell::Cell, rc::Rc, time::Duration};
/// use phaseloop::{Local, time::sleep};
///
/// fn asks_for_send<T: Send>(value: T) -> T {
///     value
/// }
///
/// #[phaseloop::main]
/// async fn main() {
///     let state = asks_for_send(Local::new(Rc::new(Cell::new(0))));
///     state.set(state.get() + 1);
///     asks_for_send(Local::new(sleep(Duration::from_millis(1)))).await;
///     assert_eq!(state.get(), 1);
/// }
/// ```
pub struct Local<T: 'static> {
    /// In a box, so that the value stays where it is when the `Local` moves. The inner `None` means
    /// that the value was unwrapped, the outer one that the `Local` is being dropped.
    value: Option<ThreadBound<Option<Pin<Box<T>>>>>,
    home: Option<Remote>,
    site: Site,
}

impl<T> Local<T> {
    /// Creates a `Local` for the calling thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::Local;
    ///
    /// fn main() {
    ///     let local = Local::new(Rc::new(42)); // `Send`, though an `Rc` is not
    ///     assert!(local.is_home());
    ///     assert_eq!(local.try_get().map(|value| **value), Some(42));
    ///     let there = std::thread::spawn(move || local.try_get().is_some());
    ///     assert!(!there.join().unwrap(), "the value stays with its thread");
    /// }
    /// ```
    #[track_caller]
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            value: Some(ThreadBound::new(Some(Box::pin(value)))),
            home: LoopHandle::try_current().map(|handle| handle.remote()),
            site: Location::caller(),
        }
    }

    /// Returns the value, or `None` on another thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::Local;
    ///
    /// fn main() {
    ///     let local = Local::new(Rc::new(42)); // `Send`, though an `Rc` is not
    ///     assert!(local.is_home());
    ///     assert_eq!(local.try_get().map(|value| **value), Some(42));
    ///     let there = std::thread::spawn(move || local.try_get().is_some());
    ///     assert!(!there.join().unwrap(), "the value stays with its thread");
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn try_get(&self) -> Option<&T> {
        if self.is_of_other_loop() {
            return None;
        }
        self.value.as_ref()?.get()?.as_deref()
    }

    /// Returns whether a loop runs that stands for another thread in a test.
    #[inline]
    fn is_of_other_loop(&self) -> bool {
        #[cfg(feature = "test-util")]
        let is_other = self.home.as_ref().is_some_and(Remote::is_of_sibling);
        #[cfg(not(feature = "test-util"))]
        let is_other = false;
        is_other
    }

    /// Returns the value, unless this is another thread than its own.
    #[inline]
    fn value_mut(&mut self) -> Option<&mut Option<Pin<Box<T>>>> {
        if self.is_of_other_loop() {
            return None;
        }
        self.value.as_mut().and_then(ThreadBound::get_mut)
    }

    /// Returns whether the calling thread is the one that created the `Local`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::Local;
    ///
    /// fn main() {
    ///     let local = Local::new(Rc::new(42)); // `Send`, though an `Rc` is not
    ///     assert!(local.is_home());
    ///     assert_eq!(local.try_get().map(|value| **value), Some(42));
    ///     let there = std::thread::spawn(move || local.try_get().is_some());
    ///     assert!(!there.join().unwrap(), "the value stays with its thread");
    /// }
    /// ```
    #[must_use]
    pub fn is_home(&self) -> bool {
        self.try_get().is_some()
    }

    /// Unwraps the value.
    ///
    /// # Panics
    ///
    /// On another thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::Local;
    ///
    /// fn main() {
    ///     let local = Local::new(Rc::new(42));
    ///     assert_eq!(*local.into_inner(), 42);
    /// }
    /// ```
    #[track_caller]
    #[must_use]
    pub fn into_inner(mut self) -> T
    where
        T: Unpin,
    {
        match self.value_mut().and_then(Option::take) {
            Some(value) => *Pin::into_inner(value),
            None => used_elsewhere(self.site),
        }
    }

    /// Returns the value as a pinned reference.
    ///
    /// # Panics
    ///
    /// On another thread.
    #[track_caller]
    #[inline]
    pub fn as_pin_mut(&mut self) -> Pin<&mut T> {
        let site = self.site;
        match self.value_mut().and_then(Option::as_mut) {
            Some(value) => value.as_mut(),
            None => used_elsewhere(site),
        }
    }
}

#[cold]
#[track_caller]
fn used_elsewhere(site: Site) -> ! {
    panic!(
        "the `Local` of {site} is used on another thread than its own: use it on the thread of its loop, for example \
         inside `Remote::call` or `Remote::spawn`"
    )
}

impl<T> Deref for Local<T> {
    type Target = T;

    #[track_caller]
    #[inline]
    fn deref(&self) -> &T {
        match self.try_get() {
            Some(value) => value,
            None => used_elsewhere(self.site),
        }
    }
}

impl<T: Unpin> DerefMut for Local<T> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        self.as_pin_mut().get_mut()
    }
}

impl<T: Clone> Clone for Local<T> {
    /// Clones the value.
    ///
    /// # Panics
    ///
    /// On another thread.
    #[track_caller]
    fn clone(&self) -> Self {
        Self {
            value: Some(ThreadBound::new(Some(Box::pin(T::clone(self))))),
            home: self.home.clone(),
            site: self.site,
        }
    }
}

impl<T> From<T> for Local<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T> Drop for Local<T> {
    fn drop(&mut self) {
        let is_of_other_loop = self.is_of_other_loop();
        let Some(value) = self.value.take() else {
            return;
        };
        match self.home.take() {
            // The call runs on the owner thread, where the drop of `value` drops what it holds. If
            // the loop is gone, the call is dropped here, and the value leaks.
            Some(home) if is_of_other_loop || value.get().is_none() => {
                _ = home.call(move || drop(value));
            }
            _ => drop(value),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_get() {
            Some(value) => f.debug_tuple("Local").field(value).finish(),
            None => f.write_str("Local(<on another thread>)"),
        }
    }
}

impl<F: Future> Future for Local<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.as_pin_mut().poll(cx)
    }
}

impl<S: Stream> Stream for Local<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.as_pin_mut().poll_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.try_get().map_or((0, None), Stream::size_hint)
    }
}

impl<R: AsyncRead> AsyncRead for Local<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.as_pin_mut().poll_read(cx, buffer)
    }

    fn poll_read_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.as_pin_mut().poll_read_vectored(cx, buffers)
    }
}

impl<W: AsyncWrite> AsyncWrite for Local<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.as_pin_mut().poll_write(cx, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.as_pin_mut().poll_write_vectored(cx, buffers)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_pin_mut().poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_pin_mut().poll_close(cx)
    }
}

/// For streams that are read through a reference, as those of [`net`](crate::net) are.
impl<R> AsyncRead for &Local<R>
where
    for<'a> &'a R: AsyncRead,
{
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &***self).poll_read(cx, buffer)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &***self).poll_read_vectored(cx, buffers)
    }
}

/// For streams that are written through a reference, as those of [`net`](crate::net) are.
impl<W> AsyncWrite for &Local<W>
where
    for<'a> &'a W: AsyncWrite,
{
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &***self).poll_write(cx, buffer)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &***self).poll_write_vectored(cx, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &***self).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &***self).poll_close(cx)
    }
}

impl<R: AsyncBufRead> AsyncBufRead for Local<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.get_mut().as_pin_mut().poll_fill_buf(cx)
    }

    fn consume(mut self: Pin<&mut Self>, amount: usize) {
        self.as_pin_mut().consume(amount);
    }
}

impl<S: AsyncSeek> AsyncSeek for Local<S> {
    fn poll_seek(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        position: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        self.as_pin_mut().poll_seek(cx, position)
    }
}
