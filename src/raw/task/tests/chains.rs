//! Long chains of tasks that each own the handle of the next are dropped on a small stack.

use std::cell::RefCell;
use std::panic::panic_any;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use super::super::Output;
use super::{Task, World};

const LENGTH: usize = 100_000;

/// The size is enough for a test, and for a bounded number of nested drops.
const STACK: usize = 256 << 10;

/// The output of a task of a chain.
struct Link {
    next: Option<Output<Self, Task>>,
    number: usize,
    order: Rc<RefCell<Vec<usize>>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.order.borrow_mut().push(self.number);
        drop(self.next.take());
    }
}

/// Returns the handle of the first of `length` completed tasks; each output owns the handle of the
/// next one.
fn chain(world: &Arc<World>, length: usize, order: &Rc<RefCell<Vec<usize>>>) -> Output<Link, Task> {
    let mut next = None;
    for number in (0..length).rev() {
        let link = Link {
            next,
            number,
            order: order.clone(),
        };
        let (_, output) = world.spawn(async { link });
        world.run();
        next = Some(output);
    }
    next.unwrap()
}

fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(STACK).spawn(f);
    thread.unwrap().join().unwrap();
}

#[test]
fn a_chain_of_outputs_is_dropped_on_a_small_stack() {
    on_a_small_stack(|| {
        let world = World::new();
        let order = Rc::default();
        drop(chain(&world, LENGTH, &order));
        assert_eq!(*order.borrow(), Vec::from_iter(0..LENGTH));
        world.ends_with(&[]);
    });
}

#[test]
fn a_chain_of_outputs_of_a_detached_task_is_dropped_on_a_small_stack() {
    on_a_small_stack(|| {
        let world = World::new();
        let order = Rc::default();
        let first = chain(&world, LENGTH, &order);
        drop(world.spawn(async { first }));
        world.run();
        assert_eq!(order.borrow().len(), LENGTH);
        world.ends_with(&[]);
    });
}

#[test]
fn a_chain_of_panics_is_reported_on_a_small_stack() {
    /// The payload of a panic. Payloads must be `Send`; this one is never sent.
    struct Next {
        _output: Option<Output<(), Task>>,
    }
    // SAFETY: the value stays on this thread.
    unsafe impl Send for Next {}

    on_a_small_stack(|| {
        let world = World::new();
        let mut next = Next { _output: None };
        for _ in 0..1000 {
            let (_, output) = world.spawn(async { panic_any(next) });
            world.run();
            next = Next {
                _output: Some(output),
            };
        }
        drop(next);
        world.ends_with(&["something"; 1000]);
    });
}

#[test]
fn few_nested_outputs_are_dropped_one_inside_the_other() {
    struct Nested(Rc<RefCell<String>>, char, Option<Box<dyn std::any::Any>>);
    struct Closing(Rc<RefCell<String>>);
    impl Drop for Nested {
        fn drop(&mut self) {
            self.0.borrow_mut().push(self.1);
            let inner = self.2.take();
            drop(inner);
            drop(Closing(self.0.clone()));
        }
    }
    impl Drop for Closing {
        fn drop(&mut self) {
            self.0.borrow_mut().push(')');
        }
    }

    let world = World::new();
    let text = Rc::<RefCell<String>>::default();
    let inner = Nested(text.clone(), 'b', None);
    let (_, inner) = world.spawn(async { inner });
    world.run();
    let outer = Nested(text.clone(), 'a', Some(Box::new(inner)));
    let (_, outer) = world.spawn(async { outer });
    world.run();
    drop(outer);
    assert_eq!(*text.borrow(), "ab))");
    world.ends_with(&[]);
}
