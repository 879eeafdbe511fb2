//! The options of a loop that a test controls: its clock, its orders, its network.

use std::rc::Rc;
use std::time::Duration;

use crate::choices::{Chooser, Limits, Question, Threads, walk};
use crate::clock::nanoseconds;
use crate::event_loop::core::Core;
use crate::event_loop::wait::MadeWait;
use crate::runtime::builder::{Builder, Simulation};
use crate::ways_to_wait::peers::Peers;
use crate::ways_to_wait::shuffled::Shuffled;
use crate::ways_to_wait::shuffled::group::Group;
use crate::wire::{Settings, Wire};

impl Builder {
    /// Starts with a [paused](crate::time::pause) clock. It jumps to the next deadline when the
    /// loop has nothing to do, and waits in real time for peers outside of the loop.
    ///
    /// The variable `PHASELOOP_SHUFFLE=117` shuffles every such loop by that seed; see
    /// [`shuffle`](crate::shuffle#a-suite-that-exists).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use phaseloop::{Builder, time::sleep};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = Builder::new().start_paused(true).build()?;
    ///     let start = Instant::now();
    ///     event_loop.block_on(async { sleep(Duration::from_secs(3600)).await });
    ///     assert!(start.elapsed() < Duration::from_secs(60), "the clock jumped");
    ///     Ok(())
    /// }
    /// ```
    pub fn start_paused(self, paused: bool) -> Self {
        self.start_simulated(paused)
    }

    /// Lets `chooser` decide what libuv leaves open: the order of events, delays, lateness, the
    /// order of jobs; see [`shuffle`](crate::shuffle). The loop starts with a paused clock.
    ///
    /// Jobs of the thread pool run on the owner thread, in the poll phase. While one runs, no loop
    /// is current, as on another thread.
    ///
    /// # Panics
    ///
    /// The run of the loop panics if nothing is left that could wake the program, or after 200,000
    /// turns.
    pub fn shuffle(self, chooser: impl Chooser + 'static) -> Self {
        self.shuffle_within(Box::new(chooser), Limits::default())
    }

    /// Shuffles the loop within other limits than the default ones.
    pub(crate) fn shuffle_within(mut self, chooser: Box<dyn Chooser>, limits: Limits) -> Self {
        if let Some(entries) = limits.max_drain {
            self = self.lane_budget(entries);
        }
        self.simulation.shuffle = Some((chooser, limits));
        self.start_simulated(true)
    }

    /// Gives the loop a network in memory: `connect` and `bind` of [`net`](crate::net) reach the
    /// sockets of this loop and no others; see [`sim`](crate::sim). The loop starts with a paused
    /// clock, and its jobs run on the owner thread, as on a [shuffled](Self::shuffle) loop, which
    /// has such a network without this call.
    ///
    /// # Panics
    ///
    /// The run of the loop panics if nothing is left that could wake the program, or after 200,000
    /// turns.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    /// use phaseloop::sim::Settings;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = phaseloop::Builder::new().network(Settings::default()).build()?;
    ///     event_loop.block_on(async {
    ///         // No other process has this port, and none can take it.
    ///         let listener = TcpListener::bind("127.0.0.1:80").await?;
    ///         TcpStream::connect("127.0.0.1:80").await?;
    ///         listener.accept().await?;
    ///         Ok(())
    ///     })
    /// }
    /// ```
    pub fn network(mut self, settings: Settings) -> Self {
        self.simulation.network = Some(settings);
        self.start_simulated(true)
    }

    /// Sets whether a paused clock jumps to the next deadline by itself, as it does by default. If
    /// not, only [`advance`](crate::time::advance) moves it; see
    /// [`auto_advance`](crate::time::auto_advance).
    pub fn auto_advance(mut self, enabled: bool) -> Self {
        self.simulation.auto_advance = enabled;
        self.simulation.make_wait = Some(make_wait);
        self
    }

    /// Sets how long a paused clock waits in real time for peers outside of the loop before it
    /// jumps, 5 s by default; see [`pause`](crate::time::pause).
    ///
    /// Zero lets the clock jump at once, whatever the loop waits for. With `Duration::MAX` the
    /// clock is as slow as the real one while a peer outside is awaited: no answer comes too late
    /// that would be in time on the real clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{net::TcpStream, time::timeout};
    /// use phaseloop::io::AsyncReadExt;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    ///     let mut event_loop = phaseloop::Builder::new()
    ///         .start_paused(true)
    ///         .outside_timeout(Duration::from_millis(20))
    ///         .build()?;
    ///     event_loop.block_on(async {
    ///         let mut stream = TcpStream::connect(silent.local_addr()?).await?;
    ///         let read = timeout(Duration::from_secs(3600), stream.read(&mut [0; 8])).await;
    ///         assert!(read.is_err(), "an hour has passed, in 20 ms");
    ///         Ok(())
    ///     })
    /// }
    /// ```
    pub fn outside_timeout(mut self, timeout: Duration) -> Self {
        self.simulation.outside_timeout = Some(nanoseconds(timeout));
        self.simulation.make_wait = Some(make_wait);
        self
    }

    /// Starts with a paused clock, or not, and waits as the options of the test demand.
    fn start_simulated(mut self, paused: bool) -> Self {
        self.options.is_paused = paused;
        self.simulation.make_wait = Some(make_wait);
        self
    }
}

/// Makes the way to wait of a loop with a paused clock: shuffled if the test or the environment
/// demands it, or if the loop has a network in memory.
fn make_wait(simulation: Simulation, core: &Rc<Core>) -> MadeWait {
    let Simulation {
        mut shuffle,
        group,
        network,
        auto_advance,
        outside_timeout,
        ..
    } = simulation;
    core.executor.clock.set_auto_advance(auto_advance);
    if shuffle.is_none() && network.is_none() && core.executor.clock.is_paused() {
        shuffle = walk::of_suite();
    }
    if shuffle.is_none() && network.is_none() {
        return Ok(None);
    }
    let draws = shuffle.is_none();
    let (chooser, limits) = shuffle.unwrap_or_else(|| {
        // A loop that only has a network in memory does what an ordinary one does.
        let usual = |_: &Question<'_>| 0;
        (Box::new(usual), Limits::default())
    });
    let group = group.unwrap_or_else(|| {
        let wire = Wire::new(network.unwrap_or_default(), draws);
        (Group::new(chooser, wire), 0)
    });
    if limits.threads == Threads::Refuse {
        core.executor.shared.foreign_senders.refuse();
    }
    let pool = core.pool().manual_twin();
    let shuffled = Shuffled::new(group, limits, pool, Peers::new(outside_timeout));
    Ok(Some(Box::new(shuffled)))
}
