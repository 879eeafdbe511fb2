//! A lock that is held across an `await`.
// Marks: a lock that is free takes no call (row `mutex`).

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::error::TryLockError;
use super::lock::{Held, HeldOwned, Kind, Lock as State};
use super::permits::{Lot, Request};
use crate::raw::exclusive::{Exclusive, ExclusiveCell, OwnedExclusive};

/// A lock whose holder may wait for something else.
///
/// One thread runs all tasks of a loop, so data that is used between two awaits needs no lock: a
/// `Cell` or a `RefCell` does it. A `Mutex` is for a section with an `await` in it.
///
/// The lock is handed over in the order of asking: when it is released, the first that waits has
/// it, before it runs. A future that has the lock and is not polled cannot use it; so the next
/// future of the *same task* that asks takes the lock, and the other one waits at its old place.
/// A task therefore cannot wait for a lock that was granted to itself.
///
/// A holder that panics releases the lock: it is not poisoned.
///
/// Its waits are in the [report](crate::LoopHandle::report) of the loop, with the line that has the
/// lock; [`named`](Self::named) names it there.
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use phaseloop::{spawn, sync::Mutex, task::yield_now};
///
/// #[phaseloop::main]
/// async fn main() {
///     let balance = Rc::new(Mutex::new(100).named("balance"));
///     let tasks: Vec<_> = (0..3)
///         .map(|_| {
///             let balance = balance.clone();
///             spawn(async move {
///                 let mut balance = balance.lock().await;
///                 let before = *balance;
///                 yield_now().await; // no other task changes it meanwhile
///                 *balance = before - 10;
///             })
///         })
///         .collect();
///     for task in tasks {
///         task.await.unwrap();
///     }
///     assert_eq!(*balance.lock().await, 70);
/// }
/// ```
pub struct Mutex<T: ?Sized> {
    state: Rc<State>,
    value: ExclusiveCell<T>,
}

impl<T> Mutex<T> {
    /// Creates a lock that is free.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Mutex;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mutex = Mutex::new(1);
    ///     *mutex.lock().await += 1;
    ///     assert_eq!(mutex.into_inner(), 2);
    /// }
    /// ```
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self {
            state: State::new(Kind::Mutex, 1, Location::caller()),
            value: ExclusiveCell::new(value),
        }
    }

    /// Names the lock in reports.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Mutex;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     // A report of a hang calls it `mutex "accounts"`.
    ///     let accounts = Mutex::new(vec![1, 2]).named("accounts");
    ///     assert_eq!(accounts.lock().await.len(), 2);
    /// }
    /// ```
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        self.state.identity().set_name(name);
        self
    }

    /// Returns the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Mutex;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mutex = Mutex::new(1);
    ///     *mutex.lock().await += 1;
    ///     assert_eq!(mutex.into_inner(), 2);
    /// }
    /// ```
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    ///
    /// The lock is released when the guard is dropped. The task wakes in the microtask lane, in the
    /// drain in which the lock was released.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the line. A lock that was granted to it goes to
    /// the next.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Mutex;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let list = Mutex::new(vec![1]);
    ///     list.lock().await.push(2);
    ///     assert_eq!(list.into_inner(), [1, 2]);
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn lock(&self) -> Lock<'_, T> {
        Lock {
            mutex: self,
            request: Request::new(1, Location::caller()),
        }
    }

    /// Waits for the lock, as [`lock`](Self::lock) does. The guard keeps the mutex, and can be sent
    /// to another task.
    ///
    /// # Cancel safety
    ///
    /// As of [`lock`](Self::lock).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::{spawn, sync::Mutex};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mutex = Rc::new(Mutex::new(1));
    ///     let mut guard = mutex.clone().lock_owned().await;
    ///     spawn(async move { *guard += 1 }).await.unwrap();
    ///     assert_eq!(*mutex.lock().await, 2);
    /// }
    /// ```
    #[track_caller]
    pub fn lock_owned(self: Rc<Self>) -> LockOwned<T> {
        LockOwned {
            mutex: self,
            request: Request::new(1, Location::caller()),
        }
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    ///
    /// If the lock is held, or was granted to one that waits. It does not overtake those.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Mutex;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mutex = Mutex::new(0);
    ///     let mut guard = mutex.lock().await;
    ///     assert!(mutex.try_lock().is_err(), "the guard has the lock");
    ///     *guard += 1;
    ///     drop(guard);
    ///     assert_eq!(*mutex.try_lock().unwrap(), 1);
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        if self.state.permits().try_take_at(1, Location::caller()) {
            Ok(self.guard())
        } else {
            Err(TryLockError)
        }
    }

    /// Takes the lock if it is free, with a guard that keeps the mutex.
    ///
    /// # Errors
    ///
    /// As of [`try_lock`](Self::try_lock).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::sync::{Mutex, OwnedMutexGuard};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mutex = Rc::new(Mutex::new(0));
    ///     let guard = mutex.clone().lock_owned().await; // it may move into another task
    ///     assert!(mutex.clone().try_lock_owned().is_err());
    ///     assert!(Rc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
    /// }
    /// ```
    #[track_caller]
    pub fn try_lock_owned(self: Rc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        if self.state.permits().try_take_at(1, Location::caller()) {
            Ok(OwnedMutexGuard::new(self))
        } else {
            Err(TryLockError)
        }
    }

    /// Returns the value, to which no other reference exists.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Mutex;
    ///
    /// fn main() {
    ///     let mut mutex = Mutex::new(1);
    ///     *mutex.get_mut() = 2; // no lock is needed: the borrow is exclusive
    ///     assert_eq!(mutex.into_inner(), 2);
    /// }
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Returns a guard for one who has taken the permit.
    #[inline(always)]
    fn guard(&self) -> MutexGuard<'_, T> {
        let held = Held(&self.state);
        MutexGuard {
            value: self.value.take().expect("one permit, one guard"),
            _held: held,
        }
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_tuple("Mutex");
        match self.try_lock() {
            Ok(value) => debug.field(&&*value),
            Err(_) => debug.field(&format_args!("<locked>")),
        };
        debug.finish()
    }
}

/// The future of [`Mutex::lock`].
///
/// # Examples
///
/// ```
/// use phaseloop::sync::Mutex;
///
/// #[phaseloop::main]
/// async fn main() {
///     let mutex = Mutex::new(0);
///     let mut guard = mutex.lock().await;
///     assert!(mutex.try_lock().is_err(), "the guard has the lock");
///     *guard += 1;
///     drop(guard);
///     assert_eq!(*mutex.try_lock().unwrap(), 1);
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Lock<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    request: Request,
}

impl<'a, T: ?Sized> Future for Lock<'a, T> {
    type Output = MutexGuard<'a, T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mutex = self.mutex;
        // A mutex is never closed.
        let polled = self.request.poll(&mutex.state, cx);
        polled.map(|_| mutex.guard())
    }
}

impl<T: ?Sized> Drop for Lock<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.request.cancel(self.mutex.state.permits());
    }
}

impl<T: ?Sized> fmt::Debug for Lock<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

/// The future of [`Mutex::lock_owned`].
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use phaseloop::sync::{Mutex, OwnedMutexGuard};
///
/// #[phaseloop::main]
/// async fn main() {
///     let mutex = Rc::new(Mutex::new(0));
///     let guard = mutex.clone().lock_owned().await; // it may move into another task
///     assert!(mutex.clone().try_lock_owned().is_err());
///     assert!(Rc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct LockOwned<T: ?Sized> {
    mutex: Rc<Mutex<T>>,
    request: Request,
}

impl<T: ?Sized> Future for LockOwned<T> {
    type Output = OwnedMutexGuard<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // A mutex is never closed.
        let polled = this.request.poll(&this.mutex.state, cx);
        polled.map(|_| OwnedMutexGuard::new(this.mutex.clone()))
    }
}

impl<T: ?Sized> Drop for LockOwned<T> {
    fn drop(&mut self) {
        self.request.cancel(self.mutex.state.permits());
    }
}

impl<T: ?Sized> fmt::Debug for LockOwned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockOwned").finish_non_exhaustive()
    }
}

/// The lock of a [`Mutex`], which gives access to the value. The drop releases it.
///
/// If the waker of one that waits panics, the drop panics after it has woken it; see
/// [`Mutex::lock`].
///
/// # Examples
///
/// ```
/// use phaseloop::sync::Mutex;
///
/// #[phaseloop::main]
/// async fn main() {
///     let mutex = Mutex::new(0);
///     let mut guard = mutex.lock().await;
///     assert!(mutex.try_lock().is_err(), "the guard has the lock");
///     *guard += 1;
///     drop(guard);
///     assert_eq!(*mutex.try_lock().unwrap(), 1);
/// }
/// ```
#[must_use = "the lock is released when its guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    // Given back before the permit goes to the next.
    value: Exclusive<'a, T>,
    _held: Held<'a>,
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

/// The lock of a [`Mutex`] that the guard keeps; see [`Mutex::lock_owned`].
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use phaseloop::sync::{Mutex, OwnedMutexGuard};
///
/// #[phaseloop::main]
/// async fn main() {
///     let mutex = Rc::new(Mutex::new(0));
///     let guard = mutex.clone().lock_owned().await; // it may move into another task
///     assert!(mutex.clone().try_lock_owned().is_err());
///     assert!(Rc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
/// }
/// ```
#[must_use = "the lock is released when its guard is dropped"]
pub struct OwnedMutexGuard<T: ?Sized> {
    // Given back before the permit goes to the next.
    value: OwnedExclusive<Mutex<T>, T>,
    _held: HeldOwned,
}

impl<T: ?Sized> OwnedMutexGuard<T> {
    /// Makes a guard for one who has taken the permit.
    fn new(mutex: Rc<Mutex<T>>) -> Self {
        let held = HeldOwned(mutex.state.clone());
        let value = OwnedExclusive::take(mutex, |mutex| &mutex.value);
        Self {
            value: value.expect("one permit, one guard"),
            _held: held,
        }
    }

    /// Returns the mutex.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::sync::{Mutex, OwnedMutexGuard};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mutex = Rc::new(Mutex::new(0));
    ///     let guard = mutex.clone().lock_owned().await; // it may move into another task
    ///     assert!(mutex.clone().try_lock_owned().is_err());
    ///     assert!(Rc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
    /// }
    /// ```
    pub fn mutex(guard: &Self) -> &Rc<Mutex<T>> {
        guard.value.owner()
    }
}

impl<T: ?Sized> Deref for OwnedMutexGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: ?Sized> DerefMut for OwnedMutexGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedMutexGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for OwnedMutexGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}
