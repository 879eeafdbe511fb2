//! The hooks of one phase: a list that is walked once in each turn while hooks start and stop.
//!
//! Idle, prepare and check use one structure. A started hook goes to the front, so a pass runs
//! hooks in reverse order of start. A pass moves the whole list aside, and puts each hook back at
//! the end of the main list before it runs. A hook that is started during the pass goes to the
//! front of the main list and waits for the next pass. A stopped hook leaves whichever list it is
//! in.
// Rules of tests/LIBUV.md: R71–R74, R76.
// Marks: the check for an empty phase is inlined in each turn, the pass is not.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use slab::Slab;

use super::callback::CallbackSlot;
use crate::event_loop::core::Core;
use crate::event_loop::ledger::handles::{Header, Owner};
use crate::phase_order::Phase;

/// A hook: its flags and its callback.
pub(crate) struct HookState {
    pub(crate) header: Rc<Header>,
    pub(crate) callback: CallbackSlot,
    phase: Phase,
    /// The node of the hook while it is started.
    node: Cell<Option<u32>>,
}

impl HookState {
    pub(crate) fn new(header: Rc<Header>, phase: Phase) -> Rc<Self> {
        let state = Rc::new(Self {
            header,
            callback: CallbackSlot::new(None),
            phase,
            node: Cell::new(None),
        });
        state.header.belongs_to(&state);
        state
    }
}

impl Owner for HookState {
    fn callback(&self) -> Option<&CallbackSlot> {
        Some(&self.callback)
    }

    fn stop_for_good(&self, core: &Core) {
        core.phases.hooks(self.phase).stop(self);
        self.callback.clear();
    }
}

#[derive(Default)]
pub(crate) struct Hooks {
    lists: RefCell<Lists>,
    /// The number of started hooks.
    pub(super) len: Cell<usize>,
}

#[derive(Default)]
struct Lists {
    nodes: Slab<Node>,
    /// The hooks that wait for the next pass.
    main: Ends,
    /// The hooks that the running pass has not called yet.
    pass: Ends,
}

struct Node {
    hook: Rc<HookState>,
    previous: Option<u32>,
    next: Option<u32>,
    in_pass: bool,
}

#[derive(Default)]
struct Ends {
    head: Option<u32>,
    tail: Option<u32>,
}

impl Hooks {
    /// Adds the hook at the front. Returns `false` if it was started already.
    pub(crate) fn start(&self, hook: &Rc<HookState>) -> bool {
        if hook.node.get().is_some() {
            return false;
        }
        let lists = &mut *self.lists.borrow_mut();
        let node = lists.nodes.insert(Node {
            hook: hook.clone(),
            previous: None,
            next: None,
            in_pass: false,
        });
        let node = u32::try_from(node).expect("fewer than 2^32 hooks are started at once");
        hook.node.set(Some(node));
        lists.push_front(node);
        self.len.set(self.len.get() + 1);
        true
    }

    /// Removes the hook. Returns `false` if it was not started.
    pub(crate) fn stop(&self, hook: &HookState) -> bool {
        let Some(node) = hook.node.take() else {
            return false;
        };
        let lists = &mut *self.lists.borrow_mut();
        lists.unlink(node);
        lists.nodes.remove(node as usize);
        self.len.set(self.len.get() - 1);
        true
    }

    /// Begins a pass over the rest of an interrupted pass and the hooks that are started now.
    pub(crate) fn begin_pass(&self) {
        let lists = &mut *self.lists.borrow_mut();
        let mut next = lists.main.head;
        while let Some(node) = next {
            next = lists.nodes[node as usize].next;
            lists.unlink(node);
            lists.push_back(node, true);
        }
    }

    /// Returns the next hook of the pass.
    pub(crate) fn next(&self) -> Option<Rc<HookState>> {
        let lists = &mut *self.lists.borrow_mut();
        let node = lists.pass.head?;
        lists.unlink(node);
        lists.push_back(node, false);
        Some(lists.nodes[node as usize].hook.clone())
    }

    /// Removes all hooks.
    pub(crate) fn clear(&self) {
        self.len.set(0);
        let mut lists = self.lists.borrow_mut();
        lists.main = Ends::default();
        lists.pass = Ends::default();
        let nodes = std::mem::take(&mut lists.nodes);
        drop(lists);
        for (_, node) in &nodes {
            node.hook.node.set(None);
        }
        // Dropping a callback may run user code; nothing is borrowed here.
        drop(nodes);
    }
}

impl Lists {
    fn ends(&mut self, in_pass: bool) -> &mut Ends {
        if in_pass {
            &mut self.pass
        } else {
            &mut self.main
        }
    }

    fn push_front(&mut self, node: u32) {
        let head = self.main.head.replace(node);
        match head {
            Some(head) => self.nodes[head as usize].previous = Some(node),
            None => self.main.tail = Some(node),
        }
        self.nodes[node as usize].next = head;
    }

    fn push_back(&mut self, node: u32, in_pass: bool) {
        let tail = self.ends(in_pass).tail.replace(node);
        match tail {
            Some(tail) => self.nodes[tail as usize].next = Some(node),
            None => self.ends(in_pass).head = Some(node),
        }
        let entry = &mut self.nodes[node as usize];
        entry.previous = tail;
        entry.in_pass = in_pass;
    }

    fn unlink(&mut self, node: u32) {
        let entry = &mut self.nodes[node as usize];
        let (previous, next, in_pass) = (entry.previous.take(), entry.next.take(), entry.in_pass);
        match previous {
            Some(previous) => self.nodes[previous as usize].next = next,
            None => self.ends(in_pass).head = next,
        }
        match next {
            Some(next) => self.nodes[next as usize].previous = previous,
            None => self.ends(in_pass).tail = previous,
        }
    }
}

impl Core {
    /// Runs idle, prepare or check: the hooks first, then the queued entries (for check, the
    /// immediates).
    pub(in crate::event_loop) fn run_hooks(&self, phase: Phase) {
        let hooked = self.phases.hooked(phase);
        if hooked.hooks.len.get() != 0 {
            self.run_hook_pass(phase, &hooked.hooks);
        }
        self.run_queue(phase);
    }

    #[inline(never)]
    fn run_hook_pass(&self, phase: Phase, hooks: &Hooks) {
        self.executor.clock.catch_up();
        hooks.begin_pass();
        while let Some(hook) = hooks.next() {
            self.dispatch(phase, || hook.header.origin(), || hook.callback.call());
        }
    }
}
