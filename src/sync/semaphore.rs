//! Permits that limit how many do something at a time.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::error::{Closed, TryAcquireError};
use super::lock::{Kind, Lock as State};
use super::permits::{Lot, Permits, Request};

/// A number of permits, of which each is held by one at a time.
///
/// Permits are handed over in the order of asking, as the lock of a [`Mutex`](super::Mutex) is: one
/// that asks for many keeps those behind it waiting, although few would be enough for them. Among
/// the futures of one task, the one that is polled takes what was granted to another.
///
/// For readers and writers, let a reader take one permit, and a writer all.
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use std::time::Duration;
/// use phaseloop::{spawn, sync::Semaphore, time::sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     let uploads = Rc::new(Semaphore::new(2).named("uploads"));
///     let tasks: Vec<_> = (0..5)
///         .map(|_| {
///             let uploads = uploads.clone();
///             spawn(async move {
///                 let _permit = uploads.acquire(1).await.unwrap();
///                 assert!(uploads.available() < 2);
///                 sleep(Duration::from_millis(1)).await;
///             })
///         })
///         .collect();
///     for task in tasks {
///         task.await.unwrap();
///     }
///     assert_eq!(uploads.available(), 2);
/// }
/// ```
pub struct Semaphore {
    state: Rc<State>,
}

impl Semaphore {
    /// Creates a semaphore with so many free permits.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Semaphore;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let connections = Semaphore::new(2);
    ///     let one = connections.acquire(1).await.unwrap();
    ///     assert_eq!(connections.available(), 1);
    ///     drop(one);
    ///     assert_eq!(connections.available(), 2);
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new(permits: usize) -> Self {
        Self {
            state: State::new(Kind::Semaphore, permits, Location::caller()),
        }
    }

    /// Names the semaphore in reports.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Semaphore;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let uploads = Semaphore::new(4).named("uploads"); // the name in the report of a hang
    ///     let _permit = uploads.acquire(1).await.unwrap();
    /// }
    /// ```
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        self.state.identity().set_name(name);
        self
    }

    #[inline]
    fn permits(&self) -> &Permits {
        self.state.permits()
    }

    /// Waits for `count` permits. The task wakes in the microtask lane.
    ///
    /// A request for more permits than there are waits until [`add_permits`](Self::add_permits)
    /// makes enough.
    ///
    /// # Errors
    ///
    /// If the semaphore is [closed](Self::close).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the line. Permits that were granted to it go to
    /// the next.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Semaphore;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let semaphore = Semaphore::new(3);
    ///     let permit = semaphore.acquire(2).await.unwrap();
    ///     assert_eq!((permit.count(), semaphore.available()), (2, 1));
    /// }
    /// ```
    #[track_caller]
    #[doc(alias = "acquire_many")]
    #[inline]
    pub fn acquire(&self, count: usize) -> Acquire<'_> {
        Acquire {
            semaphore: self,
            request: Request::new(count, Location::caller()),
        }
    }

    /// Waits for `count` permits, as [`acquire`](Self::acquire) does. The permit keeps the
    /// semaphore, and can be sent to another task.
    ///
    /// # Errors
    ///
    /// As of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As of [`acquire`](Self::acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::{spawn, sync::Semaphore};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let connections = Rc::new(Semaphore::new(1));
    ///     for _ in 0..3 {
    ///         let permit = connections.clone().acquire_owned(1).await.unwrap();
    ///         spawn(async move {
    ///             // … serves the connection …
    ///             drop(permit);
    ///         })
    ///         .detach();
    ///     }
    /// }
    /// ```
    #[track_caller]
    #[doc(alias = "acquire_many_owned")]
    pub fn acquire_owned(self: Rc<Self>, count: usize) -> AcquireOwned {
        AcquireOwned {
            semaphore: self,
            request: Request::new(count, Location::caller()),
        }
    }

    /// Takes `count` permits if they are free and no task waits.
    ///
    /// # Errors
    ///
    /// If too few are free, a task waits, or the semaphore is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Semaphore;
    ///
    /// fn main() {
    ///     let semaphore = Semaphore::new(1);
    ///     let permit = semaphore.try_acquire(1).unwrap();
    ///     assert!(semaphore.try_acquire(1).is_err());
    ///     drop(permit);
    ///     assert!(semaphore.try_acquire(1).is_ok());
    /// }
    /// ```
    #[track_caller]
    #[doc(alias = "try_acquire_many")]
    pub fn try_acquire(&self, count: usize) -> Result<Permit<'_>, TryAcquireError> {
        self.try_take(count, Location::caller())?;
        let semaphore = self;
        Ok(Permit { semaphore, count })
    }

    /// Takes `count` permits as [`try_acquire`](Self::try_acquire) does. The permit keeps the
    /// semaphore.
    ///
    /// # Errors
    ///
    /// As of [`try_acquire`](Self::try_acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::{spawn, sync::Semaphore};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let slots = Rc::new(Semaphore::new(1));
    ///     let permit = slots.clone().acquire_owned(1).await.unwrap();
    ///     assert!(slots.clone().try_acquire_owned(1).is_err());
    ///     // The task releases it at its end.
    ///     spawn(async move { drop(permit) }).await.unwrap();
    ///     assert_eq!(slots.available(), 1);
    /// }
    /// ```
    #[track_caller]
    pub fn try_acquire_owned(self: Rc<Self>, count: usize) -> Result<OwnedPermit, TryAcquireError> {
        self.try_take(count, Location::caller())?;
        let semaphore = self;
        Ok(OwnedPermit { semaphore, count })
    }

    fn try_take(
        &self,
        count: usize,
        site: &'static Location<'static>,
    ) -> Result<(), TryAcquireError> {
        if self.permits().try_take_at(count, site) {
            Ok(())
        } else if self.is_closed() {
            Err(TryAcquireError::Closed)
        } else {
            Err(TryAcquireError::NoPermits)
        }
    }

    /// Adds permits. They go to those that wait, in their order.
    ///
    /// # Panics
    ///
    /// If the number of permits exceeds `usize::MAX`. If a waker panics: all are woken before.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Semaphore;
    ///
    /// fn main() {
    ///     let semaphore = Semaphore::new(1);
    ///     semaphore.add_permits(3);
    ///     assert_eq!(semaphore.forget_permits(2), 2);
    ///     assert_eq!(semaphore.available(), 2);
    /// }
    /// ```
    pub fn add_permits(&self, count: usize) {
        let total = self.state.total().checked_add(count);
        self.state
            .set_total(total.expect("the number of permits fits into a usize"));
        self.permits().release(count);
    }

    /// Removes up to `count` free permits. Returns how many.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Semaphore;
    ///
    /// fn main() {
    ///     let semaphore = Semaphore::new(1);
    ///     semaphore.add_permits(3);
    ///     assert_eq!(semaphore.forget_permits(2), 2);
    ///     assert_eq!(semaphore.available(), 2);
    /// }
    /// ```
    pub fn forget_permits(&self, count: usize) -> usize {
        let forgotten = self.permits().forget(count);
        self.state.set_total(self.state.total() - forgotten);
        forgotten
    }

    /// Returns how many permits are free.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Semaphore;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let connections = Semaphore::new(2);
    ///     let one = connections.acquire(1).await.unwrap();
    ///     assert_eq!(connections.available(), 1);
    ///     drop(one);
    ///     assert_eq!(connections.available(), 2);
    /// }
    /// ```
    #[must_use]
    #[doc(alias = "available_permits")]
    pub fn available(&self) -> usize {
        self.permits().free()
    }

    /// Closes the semaphore: no permit is acquired any more. Those that wait get an error, also
    /// those whose permits were granted and whose futures were not polled since. Permits that are
    /// held are not affected.
    ///
    /// # Panics
    ///
    /// If a waker panics. All are woken before the panic is resumed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Semaphore;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let semaphore = Semaphore::new(1);
    ///     semaphore.close();
    ///     assert!(semaphore.is_closed());
    ///     assert!(semaphore.acquire(1).await.is_err());
    /// }
    /// ```
    pub fn close(&self) {
        self.permits().close();
    }

    /// Returns whether the semaphore was closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Semaphore;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let semaphore = Semaphore::new(1);
    ///     semaphore.close();
    ///     assert!(semaphore.is_closed());
    ///     assert!(semaphore.acquire(1).await.is_err());
    /// }
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.permits().is_closed()
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available", &self.available())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}

/// The future of [`Semaphore::acquire`].
///
/// # Examples
///
/// ```
/// use phaseloop::sync::Semaphore;
///
/// #[phaseloop::main]
/// async fn main() {
///     let connections = Semaphore::new(2);
///     let one = connections.acquire(1).await.unwrap();
///     assert_eq!(connections.available(), 1);
///     drop(one);
///     assert_eq!(connections.available(), 2);
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Acquire<'a> {
    semaphore: &'a Semaphore,
    request: Request,
}

/// The future of [`Semaphore::acquire_owned`].
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use phaseloop::{spawn, sync::Semaphore};
///
/// #[phaseloop::main]
/// async fn main() {
///     let slots = Rc::new(Semaphore::new(1));
///     let permit = slots.clone().acquire_owned(1).await.unwrap();
///     assert!(slots.clone().try_acquire_owned(1).is_err());
///     // The task releases it at its end.
///     spawn(async move { drop(permit) }).await.unwrap();
///     assert_eq!(slots.available(), 1);
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct AcquireOwned {
    semaphore: Rc<Semaphore>,
    request: Request,
}

/// Permits of a [`Semaphore`]. The drop releases them.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::Semaphore;
///
/// #[phaseloop::main]
/// async fn main() {
///     let connections = Semaphore::new(2);
///     let one = connections.acquire(1).await.unwrap();
///     assert_eq!(connections.available(), 1);
///     drop(one);
///     assert_eq!(connections.available(), 2);
/// }
/// ```
#[must_use = "permits are released when they are dropped"]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
    count: usize,
}

/// Permits of a [`Semaphore`] that keep it; see [`Semaphore::acquire_owned`].
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use phaseloop::{spawn, sync::Semaphore};
///
/// #[phaseloop::main]
/// async fn main() {
///     let slots = Rc::new(Semaphore::new(1));
///     let permit = slots.clone().acquire_owned(1).await.unwrap();
///     assert!(slots.clone().try_acquire_owned(1).is_err());
///     // The task releases it at its end.
///     spawn(async move { drop(permit) }).await.unwrap();
///     assert_eq!(slots.available(), 1);
/// }
/// ```
#[must_use = "permits are released when they are dropped"]
pub struct OwnedPermit {
    semaphore: Rc<Semaphore>,
    count: usize,
}

/// What both futures and both kinds of permits have.
macro_rules! impl_permits {
    ($future:ident, $permit:ident, $(<$lifetime:lifetime>)?, $name:literal, $permit_name:literal, $keep:expr) => {
        impl$(<$lifetime>)? Future for $future$(<$lifetime>)? {
            type Output = Result<$permit$(<$lifetime>)?, Closed>;

            #[inline]
            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                let this = &mut *self;
                let polled = this.request.poll(&this.semaphore.state, cx);
                polled.map_ok(|()| $permit {
                    semaphore: $keep(&this.semaphore),
                    count: this.request.wants(),
                })
            }
        }

        impl$(<$lifetime>)? Drop for $future$(<$lifetime>)? {
            #[inline]
            fn drop(&mut self) {
                self.request.cancel(self.semaphore.permits());
            }
        }

        impl$(<$lifetime>)? fmt::Debug for $future$(<$lifetime>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct($name).finish_non_exhaustive()
            }
        }

        impl$(<$lifetime>)? $permit$(<$lifetime>)? {
            /// Returns how many permits these are.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::sync::Semaphore;
            ///
            /// #[phaseloop::main]
            /// async fn main() {
            ///     let semaphore = Semaphore::new(5);
            ///     let mut permits = semaphore.acquire(4).await.unwrap();
            ///     let one = permits.split(1).unwrap();
            ///     assert_eq!((permits.count(), one.count()), (3, 1));
            ///     permits.merge(one);
            ///     permits.forget(); // they are gone for ever
            ///     assert_eq!(semaphore.available(), 1);
            /// }
            /// ```
            #[must_use]
            #[doc(alias = "num_permits")]
            pub fn count(&self) -> usize {
                self.count
            }

            /// Removes the permits from the semaphore for ever.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::sync::Semaphore;
            ///
            /// #[phaseloop::main]
            /// async fn main() {
            ///     let semaphore = Semaphore::new(5);
            ///     let mut permits = semaphore.acquire(4).await.unwrap();
            ///     let one = permits.split(1).unwrap();
            ///     assert_eq!((permits.count(), one.count()), (3, 1));
            ///     permits.merge(one);
            ///     permits.forget(); // they are gone for ever
            ///     assert_eq!(semaphore.available(), 1);
            /// }
            /// ```
            pub fn forget(mut self) {
                let state = &self.semaphore.state;
                state.set_total(state.total() - self.count);
                self.count = 0;
            }

            /// Splits `count` permits off, if there are so many.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::sync::Semaphore;
            ///
            /// #[phaseloop::main]
            /// async fn main() {
            ///     let semaphore = Semaphore::new(5);
            ///     let mut permits = semaphore.acquire(4).await.unwrap();
            ///     let one = permits.split(1).unwrap();
            ///     assert_eq!((permits.count(), one.count()), (3, 1));
            ///     permits.merge(one);
            ///     permits.forget(); // they are gone for ever
            ///     assert_eq!(semaphore.available(), 1);
            /// }
            /// ```
            pub fn split(&mut self, count: usize) -> Option<Self> {
                self.count = self.count.checked_sub(count)?;
                let semaphore = $keep(&self.semaphore);
                Some(Self { semaphore, count })
            }

            /// Adds other permits of the semaphore to these.
            ///
            /// # Panics
            ///
            /// If they are permits of another semaphore.
            #[track_caller]
            pub fn merge(&mut self, mut other: Self) {
                let is_same = Rc::ptr_eq(&self.semaphore.state, &other.semaphore.state);
                assert!(is_same, "permits of two semaphores cannot be merged");
                self.count += std::mem::take(&mut other.count);
            }
        }

        impl$(<$lifetime>)? Drop for $permit$(<$lifetime>)? {
            #[inline]
            fn drop(&mut self) {
                self.semaphore.permits().release(self.count);
            }
        }

        impl$(<$lifetime>)? fmt::Debug for $permit$(<$lifetime>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct($permit_name).field("count", &self.count).finish()
            }
        }
    };
}

impl_permits!(Acquire, Permit, <'a>, "Acquire", "Permit", |semaphore: &&'a Semaphore| *semaphore);
impl_permits!(AcquireOwned, OwnedPermit, , "AcquireOwned", "OwnedPermit", Rc::clone);
