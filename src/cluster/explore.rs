//! Tests of several loops, by seed.
// Rule C23.

use std::rc::Rc;

use super::{Cluster, Member, Stopped};
use crate::event_loop::EventLoop;
use crate::shuffle::Explore;
use crate::shuffle::several::Crew;

impl Explore {
    /// Runs the program on loop 0 of a [cluster](crate::cluster) of so many loops. All of them are
    /// on the calling thread: a seed decides which loop makes the next turn
    /// ([`Kind::Loop`](crate::shuffle::Kind::Loop)).
    ///
    /// The loops have one paused clock, which moves when none of them can go on, and one network in
    /// memory. What one loop sends to another goes through its inbox, as between threads. A
    /// [`Local`](crate::Local) that is used on another loop than its own panics, as it does on
    /// another thread. [`RemoteJoinHandle::join`](crate::RemoteJoinHandle::join), which blocks the
    /// thread, panics. A run ends when the program has returned; then the other loops are stopped,
    /// as at the end of [`Builder::block_on`](crate::cluster::Builder::block_on).
    ///
    /// # Panics
    ///
    /// If the number is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{cluster, shuffle::Explore};
    ///
    /// fn main() {
    ///     Explore::new().seeds(20).loops(3).run(|| async {
    ///         let (sender, mut receiver) = cluster::channel(2);
    ///         let senders = cluster::current().each(move |index| {
    ///             let sender = sender.clone();
    ///             async move { sender.send(index).await.unwrap() }
    ///         });
    ///         let mut sum = 0;
    ///         while let Some(index) = receiver.recv().await {
    ///             // Which loop is the first depends on the seed.
    ///             sum += index;
    ///         }
    ///         assert_eq!(sum, 0 + 1 + 2);
    ///         senders.await;
    ///     });
    /// }
    /// ```
    pub fn loops(mut self, loops: usize) -> Self {
        assert!(loops > 0, "a cluster has at least one loop");
        self.several = Some((loops, muster));
        self
    }
}

/// The members of a cluster on one thread.
struct Members {
    members: Vec<Rc<Member>>,
}

/// Makes loops of this thread a cluster.
fn muster(loops: &[EventLoop]) -> Box<dyn Crew> {
    let cluster = Cluster::new(loops.iter().map(EventLoop::remote).collect());
    let join = |(index, event_loop): (usize, &EventLoop)| {
        let member = Member::new(index, cluster.clone());
        event_loop.core.member.get_or_init(|| member.clone());
        member
    };
    let members = loops.iter().enumerate().map(join).collect();
    Box::new(Members { members })
}

impl Crew for Members {
    fn has_ended(&self, index: usize) -> bool {
        self.members[index].has_ended.get()
    }

    fn end(&self) {
        self.members[0].cluster.end_members(1);
    }

    fn drop_rest(&self, index: usize) {
        let member = &self.members[index];
        if index == 0 {
            member.cluster.inner.end.set(Stopped::default());
        }
        member.drop_shards();
    }
}
