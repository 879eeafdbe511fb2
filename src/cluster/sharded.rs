//! A value on every loop.

use std::any::type_name;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use super::{Cluster, Member, current};
use crate::error::Error;
use crate::executor::join::JoinError;
use crate::runtime::remote::RemoteJoinHandle;

/// A value of its own on each loop of the cluster. Clones share the values.
///
/// A value is made, used and dropped on its loop, so it may hold `Rc`s and sockets; the `Sharded`
/// itself is `Send`, whatever `T` is. The values are dropped after the last clone, by a message,
/// and at the latest when their loop ends, behind its tasks.
///
/// # Examples
///
/// A map whose keys are spread over the loops:
///
/// ```
/// use std::{cell::RefCell, collections::HashMap};
/// use phaseloop::cluster::{self, Sharded};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     cluster::Builder::new().loops(2).block_on(async {
///         let users = Sharded::new(async |_| RefCell::new(HashMap::new())).await?;
///         let home = users.index_of("ada");
///         users.on(home, async |map| map.borrow_mut().insert("ada", 36))?.await?;
///         let age = users.on(home, async |map| map.borrow().get("ada").copied())?.await?;
///         assert_eq!(age, Some(36));
///         Ok::<(), Box<dyn std::error::Error>>(())
///     })?
/// }
/// ```
pub struct Sharded<T: 'static> {
    shards: Arc<Shards>,
    /// No value is in here.
    of: PhantomData<fn() -> T>,
}

/// The values; the last owner drops them, each on its loop.
struct Shards {
    cluster: Cluster,
    number: u64,
}

impl Drop for Shards {
    fn drop(&mut self) {
        let number = self.number;
        for remote in &self.cluster.inner.remotes {
            // A loop that has ended has dropped its value.
            let _ = remote.call(move || {
                let value = Member::current().shards.borrow_mut().remove(&number);
                drop(value);
            });
        }
    }
}

impl<T: 'static> Sharded<T> {
    /// Makes a value on each loop of the running loop's cluster. `make` is called on each loop,
    /// with its index.
    ///
    /// # Errors
    ///
    /// The panic of `make` on the loop of the lowest index, or a cancellation if a loop has ended.
    /// The values that were made are dropped.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the values are made and dropped.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub async fn new<M>(make: M) -> Result<Self, JoinError>
    where
        M: AsyncFn(usize) -> T + Clone + Send + 'static,
    {
        let cluster = current();
        let number = cluster.next_shard();
        let shards = Arc::new(Shards { cluster, number });
        // Each root keeps the shards: values that are made after the drop of this future are
        // dropped, too.
        let kept = shards.clone();
        let made = shards.cluster.each(move |index| {
            let (make, kept) = (make.clone(), kept.clone());
            async move {
                let value: Rc<T> = Rc::new(make(index).await);
                let before = Member::current()
                    .shards
                    .borrow_mut()
                    .insert(kept.number, value);
                debug_assert!(before.is_none(), "numbers are used once");
            }
        });
        made.await.into_iter().collect::<Result<(), _>>()?;
        Ok(Self {
            shards,
            of: PhantomData,
        })
    }

    /// Returns the value of the running loop.
    ///
    /// # Panics
    ///
    /// On a thread without a loop, and on a loop of another cluster.
    #[must_use]
    #[track_caller]
    pub fn here(&self) -> Rc<T> {
        let member = Member::current();
        assert!(
            member.cluster.is_same(&self.shards.cluster),
            "this loop is of another cluster than the `Sharded`"
        );
        let value = member.shards.borrow().get(&self.shards.number).cloned();
        let value = value.and_then(|value| value.downcast().ok());
        value.expect("a value stays until the last `Sharded` is dropped or its loop has ended")
    }

    /// Calls `f` with the value of a loop, on that loop.
    ///
    /// # Errors
    ///
    /// If the loop has ended; then `f` is dropped on this thread.
    ///
    /// # Panics
    ///
    /// If there is no loop of that index.
    #[track_caller]
    pub fn on<R, F>(&self, index: usize, f: F) -> Result<RemoteJoinHandle<R>, Error>
    where
        F: AsyncFnOnce(&T) -> R + Send + 'static,
        R: Send + 'static,
    {
        let sharded = self.clone();
        self.shards.cluster.remote(index).spawn(move || async move {
            let value = sharded.here();
            f(&value).await
        })
    }

    /// Returns the index of the loop that a key belongs to. It is the same in every run of a
    /// program, for a cluster of so many loops.
    #[must_use]
    pub fn index_of<K: Hash + ?Sized>(&self, key: &K) -> usize {
        let mut hasher = Fnv::default();
        key.hash(&mut hasher);
        let loops = self.shards.cluster.len() as u64;
        // It is below the number of loops.
        (hasher.finish() % loops) as usize
    }
}

/// The hash FNV-1a with a last mix: the standard library's may change.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        // The low bits of a product depend on the low bits of its factors alone.
        self.0 ^ (self.0 >> 32)
    }
}

impl<T> Clone for Sharded<T> {
    fn clone(&self) -> Self {
        Self {
            shards: self.shards.clone(),
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Sharded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharded")
            .field("type", &type_name::<T>())
            .field("loops", &self.shards.cluster.len())
            .finish_non_exhaustive()
    }
}
