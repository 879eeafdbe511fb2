//! What an engine keeps for the modules that are bound.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use phaseloop_node::Timeout;
use phaseloop_node::host::{NumberedMap, Rejection, ReportLine};
use phaseloop_node::process::Listener;
use phaseloop_node::stream::StreamId;
use slab::Slab;

use crate::engine::{Held, Kept, Limits};

/// The settings of the program that an engine runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) argv: Vec<String>,
    pub(crate) env: Option<Vec<(String, String)>>,
    pub(crate) root: PathBuf,
    pub(crate) modules: crate::Modules,
    pub(crate) files: crate::Files,
    pub(crate) positions: bool,
    pub(crate) limits: Limits,
    /// Ends the script when it is set: that of a worker.
    pub(crate) stop: Option<Arc<AtomicBool>>,
}

/// The state of an engine. Numbers are never used again.
#[derive(Default)]
pub(crate) struct Data {
    pub(crate) settings: Settings,
    /// The functions of the prelude that Rust calls.
    pub(crate) internal: OnceCell<Held>,
    pub(crate) timers: RefCell<NumberedMap<usize, Timer>>,
    pub(crate) immediates: RefCell<NumberedMap<usize, Immediate>>,
    /// What ticks and microtasks call.
    pub(crate) calls: RefCell<Slab<Call>>,
    /// What the objects of timers and immediates look like.
    pub(crate) shapes: OnceCell<crate::natives::Shapes>,
    /// The listeners of the process, by event.
    pub(crate) listeners: RefCell<HashMap<String, Listener>>,
    /// Rejected promises that had no handler, by address.
    pub(crate) rejections: RefCell<HashMap<usize, (Rejection, Rc<crate::error::Rejected>)>>,
    /// What Rust has put in the place of modules.
    pub(crate) modules: RefCell<HashMap<String, Held>>,
    pub(crate) console: RefCell<Option<Box<dyn crate::Console>>>,
    /// The objects of streams, weakly, for events that name another stream.
    pub(crate) streams: RefCell<HashMap<StreamId, Held>>,
    /// The stream of the object that was asked for it.
    pub(crate) lent: Cell<Option<crate::natives::Handle>>,
    pub(crate) lent_agent: Cell<Option<phaseloop_node::http::Agent>>,
    pub(crate) lent_signal: Cell<Option<phaseloop_node::AbortSignal>>,
    pub(crate) lent_file: Cell<Option<phaseloop_node::fs::FileHandle>>,
    pub(crate) lent_histogram: Cell<Option<crate::natives::Recordable>>,
    pub(crate) lent_list: Cell<Option<phaseloop_node::net::BlockList>>,
    /// The objects of streams that Rust has made, until they are closed.
    pub(crate) kept: RefCell<HashMap<StreamId, Held>>,
    /// The workers that run, by number.
    pub(crate) workers: RefCell<HashMap<usize, Rc<crate::natives::Running>>>,
    /// The channel to the parent, in a worker.
    pub(crate) parent: RefCell<Option<crate::natives::Parent>>,
    last: Cell<usize>,
}

/// A timer that is set.
pub(crate) struct Timer {
    pub(crate) timeout: Timeout,
    /// The object of JavaScript.
    pub(crate) object: Kept,
    /// Whether it was refreshed since it has fired.
    pub(crate) is_refreshed: bool,
    /// Whether JavaScript has asked for its number.
    pub(crate) is_asked: bool,
    /// Its line in reports.
    pub(crate) _line: Option<ReportLine>,
}

/// An immediate that is set.
pub(crate) struct Immediate {
    pub(crate) immediate: phaseloop_node::Immediate,
    /// The object of JavaScript.
    pub(crate) object: Kept,
}

/// A function of JavaScript that the loop calls once, and its arguments.
pub(crate) struct Call {
    pub(crate) callback: Kept,
    pub(crate) args: Vec<Kept>,
}

impl Data {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Returns a new number.
    pub(crate) fn number(&self) -> usize {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// Ends what JavaScript has started.
    pub(crate) fn close(&self) {
        let timers = self.timers.take();
        for timer in timers.values() {
            phaseloop_node::clear_timeout(&timer.timeout);
        }
        let immediates = self.immediates.take();
        for immediate in immediates.values() {
            immediate.immediate.clear();
        }
        let listeners = self.listeners.take();
        for listener in listeners.values() {
            listener.remove();
        }
        let (modules, rejections) = (self.modules.take(), self.rejections.take());
        let workers = self.workers.take();
        for worker in workers.values() {
            drop(worker.stop());
        }
        let kept = (self.kept.take(), workers, self.parent.take());
        drop((kept, timers, immediates, listeners, modules, rejections));
        drop(self.calls.take());
    }
}
