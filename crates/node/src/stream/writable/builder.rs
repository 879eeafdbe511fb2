//! The builder of writable streams.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::mem::take;
use std::rc::{Rc, Weak};

use super::{Functions, Output, State, Writable, WriteHook};
use crate::error::Error;
use crate::stream::base::{Base, Done, WritableSide};
use crate::stream::chunk::Mode;
use crate::stream::shared::{Options, impl_debug, impl_options};

/// Builds a [`Writable`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::Writable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let sink = Writable::bytes(|_: Vec<u8>, done| done.ok())
///             .high_water_mark(4)
///             .end(|done| done.ok())
///             .build();
///         assert!(sink.write("abc"));
///         sink.end(());
///     })
/// }
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct WritableBuilder<T: 'static> {
    mode: Mode<T>,
    pub(in crate::stream) high_water_mark: Option<usize>,
    output: Output<T>,
    pub(in crate::stream) options: Options,
}

impl<T: 'static> WritableBuilder<T> {
    pub(in crate::stream) fn new(mode: Mode<T>, write: WriteHook<T>) -> Self {
        let functions = Functions {
            write: RefCell::new(Some(write)),
            write_all: RefCell::default(),
            end: RefCell::default(),
        };
        Self::of(mode, Output::Functions(Box::new(functions)))
    }

    pub(in crate::stream) fn of(mode: Mode<T>, output: Output<T>) -> Self {
        Self {
            mode,
            high_water_mark: None,
            output,
            options: Options::default(),
        }
    }

    /// Sets how much may wait before [`write`](Writable::write) returns `false`: bytes or objects.
    /// The default is 16 KiB or 16 objects. JavaScript: `{ highWaterMark }`.
    pub fn high_water_mark(mut self, mark: usize) -> Self {
        self.high_water_mark = Some(mark);
        self
    }

    /// Sets a function that is called in place of `write` when several chunks wait. JavaScript: `{
    /// writev }`.
    pub fn write_all(self, write_all: impl FnMut(Vec<T>, Done) + 'static) -> Self {
        if let Output::Functions(functions) = &self.output {
            functions.write_all.replace(Some(Box::new(write_all)));
        }
        self
    }

    /// Sets the function that is called after the last write, before
    /// [`FINISH`](crate::stream::FINISH). JavaScript: `{ final }`.
    pub fn end(self, end: impl FnOnce(Done) + 'static) -> Self {
        if let Output::Functions(functions) = &self.output {
            functions.end.replace(Some(Box::new(end)));
        }
        self
    }

    /// Creates the stream.
    #[must_use]
    pub fn build(mut self) -> Writable<T> {
        let options = take(&mut self.options);
        options.build("Writable", |base| Writable {
            state: self.build_side(base),
            other_side: None,
        })
    }

    /// Adds the writable side to a stream.
    pub(in crate::stream) fn build_side(self, base: &Rc<Base>) -> Rc<State<T>> {
        let mark = self.mode.high_water_mark();
        let state = Rc::new_cyclic(|me| State {
            base: base.clone(),
            me: me.clone(),
            mode: self.mode,
            high_water_mark: self.high_water_mark.unwrap_or(mark),
            output: self.output,
            buffer: RefCell::default(),
            length: Cell::new(0),
            total: Cell::new(0),
            writing_length: Cell::new(0),
            writing_callback: RefCell::default(),
            done_inside: RefCell::default(),
            writing: Cell::new(false),
            in_write: Cell::new(false),
            sync: Cell::new(true),
            corked: Cell::new(0),
            need_drain: Cell::new(false),
            working_off: Cell::new(false),
            after_write_pending: Cell::new(false),
            ending: Cell::new(false),
            ended: Cell::new(false),
            final_called: Cell::new(false),
            prefinished: Cell::new(false),
            finished: Cell::new(false),
            pending_callbacks: Cell::new(0),
            on_finished: RefCell::default(),
        });
        let side: Weak<dyn WritableSide> = Rc::<State<T>>::downgrade(&state);
        base.has_writable(side);
        state
    }
}

impl_options!(WritableBuilder<T>);
impl_debug!(WritableBuilder);
