//! Hooks: callbacks that run in every turn.
//!
//! ```text
//!   new ──> stopped <── stop ──> started ──> called once a turn, in its phase
//!              └── drop, close ──> gone; not called any more, not even in the running pass
//! ```

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;

use crate::error::Error;
use crate::event_loop::core::Core;
use crate::event_loop::phases::hooks::{HookState, Hooks};
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::raw::bound::Bound;
use crate::runtime::handle::{Close, Handle, HandleCore, impl_handle};
use crate::runtime::loop_handle::LoopHandle;

/// Runs once a turn before the prepare hooks. The loop does not wait in the poll phase while an
/// idle hook is started.
///
/// See [`Hook`].
#[doc(alias = "uv_idle_t")]
pub type Idle = Hook<IdleHooks>;

/// Runs once a turn, right before the loop waits for I/O. See [`Hook`].
#[doc(alias = "uv_prepare_t")]
pub type Prepare = Hook<PrepareHooks>;

/// Runs once a turn, right after the loop has waited for I/O. See [`Hook`].
#[doc(alias = "uv_check_t")]
pub type Check = Hook<CheckHooks>;

/// The phases that have hooks; [`Idle`], [`Prepare`] and [`Check`] name them.
///
/// # Examples
///
/// ```
/// use phaseloop::phase::{Hook, HookPhase, Idle, Prepare};
/// use phaseloop::{Error, EventLoop};
///
/// fn log<P: HookPhase>(hook: &Hook<P>, name: &'static str) -> Result<(), Error> {
///     hook.start(move |_| println!("{name}"))
/// }
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let event_loop = EventLoop::new()?;
///     log(&Idle::new(&event_loop.handle()), "idle")?;
///     log(&Prepare::new(&event_loop.handle()), "prepare")?;
///     Ok(())
/// }
/// ```
pub trait HookPhase: private::Marker {}

mod private {
    use crate::keeper::Keeper;
    use crate::phase_order::Phase;

    #[expect(
        unnameable_types,
        reason = "keeps `HookPhase` from being implemented elsewhere"
    )]
    pub trait Marker: 'static {
        const KIND: Keeper;
        const PHASE: Phase;
    }
}

macro_rules! hook_phase {
    ($marker:ident, $name:ident) => {
        #[doc = concat!("Marks a hook as [`", stringify!($name), "`].")]
        #[derive(Debug)]
        #[expect(unnameable_types, reason = "reached through the alias of its hook")]
        pub enum $marker {}

        impl HookPhase for $marker {}

        impl private::Marker for $marker {
            const KIND: Keeper = Keeper::$name;
            const PHASE: Phase = Phase::$name;
        }
    };
}

hook_phase!(IdleHooks, Idle);
hook_phase!(PrepareHooks, Prepare);
hook_phase!(CheckHooks, Check);

/// A callback that runs in every turn of the loop, in the phase `P`: [`Idle`], [`Prepare`] or
/// [`Check`].
///
/// Hooks of a phase run in *reverse* order of their start. A hook that is started while its phase
/// runs waits for the next turn. A hook that is stopped, closed or dropped does not run any more,
/// not even in the current pass. The lanes are drained after each hook.
///
/// # Examples
///
/// ```
/// use phaseloop::{EventLoop, Handle, RunMode, phase::Idle};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let mut event_loop = EventLoop::new()?;
///     let idle = Idle::new(&event_loop.handle());
///     let mut left = 3;
///     idle.start(move |idle| {
///         left -= 1;
///         if left == 0 {
///             idle.stop();
///         }
///     })?;
///     event_loop.run(RunMode::Default)?;
///     assert!(!idle.is_active());
///     Ok(())
/// }
/// ```
pub struct Hook<P: HookPhase> {
    core: HandleCore,
    state: Bound<Rc<HookState>>,
    phase: PhantomData<P>,
}

impl<P: HookPhase> Hook<P> {
    /// Creates a stopped hook.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode, phase::Prepare};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let hook = Prepare::new(&event_loop.handle());
    ///     hook.start(|hook| {
    ///         println!("before the loop waits");
    ///         hook.stop();
    ///     })?;
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new(handle: &LoopHandle) -> Self {
        let core = handle.open(P::KIND, Location::caller());
        Self {
            state: Bound::new(HookState::new(core.header.clone(), P::PHASE)),
            core,
            phase: PhantomData,
        }
    }

    /// Starts the hook: `callback` runs once a turn. A started hook keeps its callback and its
    /// place.
    ///
    /// The callback receives the hook, to stop or close it.
    ///
    /// # Errors
    ///
    /// If the hook was closed or the loop was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode, phase::Prepare};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let hook = Prepare::new(&event_loop.handle());
    ///     hook.start(|hook| {
    ///         println!("before the loop waits");
    ///         hook.stop();
    ///     })?;
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn start(&self, mut callback: impl FnMut(&Self) + 'static) -> Result<(), Error> {
        self.core.check_open()?;
        if self.hooks().start(&self.state) {
            // The reference is weak, since the hook owns the callback.
            let state = Rc::downgrade(&self.state);
            let before = self.state.callback.set(Box::new(move || {
                if let Some(state) = state.upgrade() {
                    callback(&Self::view(state));
                }
            }));
            self.loop_core().set_active(&self.state.header, true);
            // Dropping the old callback may run user code, which may use this hook.
            drop(before);
        }
        Ok(())
    }

    /// Stops the hook. Stopping a stopped hook does nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode, phase::Prepare};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let hook = Prepare::new(&event_loop.handle());
    ///     hook.start(|hook| {
    ///         println!("before the loop waits");
    ///         hook.stop();
    ///     })?;
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn stop(&self) {
        if self.hooks().stop(&self.state) {
            self.loop_core().set_active(&self.state.header, false);
        }
    }

    /// Stops the hook for good, at once. The close completes in the closing phase; see [`Close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Handle, LoopHandle, phase::Check};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let hook = Check::new(&LoopHandle::current());
    ///     hook.start(|_| ())?;
    ///     hook.close().await;
    ///     assert!(hook.is_closing());
    ///     Ok(())
    /// }
    /// ```
    pub fn close(&self) -> Close {
        self.core.close()
    }

    fn hooks(&self) -> &Hooks {
        self.loop_core().phases.hooks(P::PHASE)
    }

    fn loop_core(&self) -> &Core {
        self.core.handle.core()
    }

    fn view(state: Rc<HookState>) -> Self {
        Self {
            core: HandleCore::view(state.header.clone()),
            state: Bound::new(state),
            phase: PhantomData,
        }
    }
}

impl_handle!([P: HookPhase] Hook<P>, |this| &this.core);

impl<P: HookPhase> fmt::Debug for Hook<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("phase", &P::PHASE)
            .field("active", &self.is_active())
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}
