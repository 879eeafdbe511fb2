//! The builder of readable streams.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::mem::take;
use std::rc::{Rc, Weak};

use super::{ReadHook, Readable, Source, State};
use crate::error::Error;
use crate::events::Watch;
use crate::stream::base::{Base, Done, ReadableSide};
use crate::stream::chunk::Mode;
use crate::stream::shared::{Options, impl_debug, impl_options};

/// Builds a [`Readable`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::Readable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let mut next = 0;
///         let numbers = Readable::objects()
///             .high_water_mark(1)
///             .read(move |stream, _| {
///                 next += 1;
///                 if next > 3 {
///                     stream.push_end();
///                 } else {
///                     stream.push(next);
///                 }
///             })
///             .build();
///         assert_eq!(numbers.to_array().await.unwrap(), [1, 2, 3]);
///     })
/// }
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct ReadableBuilder<T: 'static> {
    mode: Mode<T>,
    pub(in crate::stream) high_water_mark: Option<usize>,
    read: Option<ReadHook<T>>,
    pub(in crate::stream) options: Options,
}

impl<T: 'static> ReadableBuilder<T> {
    pub(in crate::stream) fn new(mode: Mode<T>) -> Self {
        Self {
            mode,
            high_water_mark: None,
            read: None,
            options: Options::default(),
        }
    }

    /// Sets how much is buffered before `read` is no longer called: bytes or objects. The default
    /// is 16 KiB or 16 objects. JavaScript: `{ highWaterMark }`.
    pub fn high_water_mark(mut self, mark: usize) -> Self {
        self.high_water_mark = Some(mark);
        self
    }

    /// Sets the function that is called when the stream wants data, with the wanted size. It is not
    /// called again before it has pushed. A panic in it [destroys](Readable::destroy) the stream.
    /// JavaScript: `{ read }`.
    pub fn read(mut self, read: impl FnMut(&Readable<T>, usize) + 'static) -> Self {
        self.read = Some(ReadHook::Call(Box::new(read)));
        self
    }

    /// Lets the stream read from an object, in place of the functions `read` and `destroy`.
    pub(crate) fn source(mut self, source: Rc<dyn Source<T>>) -> Self {
        self.read = Some(ReadHook::Source(source));
        self
    }

    /// Creates the stream.
    #[must_use]
    pub fn build(mut self) -> Readable<T> {
        let options = take(&mut self.options);
        options.build("Readable", |base| Readable {
            state: self.build_side(base),
            other_side: None,
        })
    }

    /// Adds the readable side to a stream.
    pub(in crate::stream) fn build_side(self, base: &Rc<Base>) -> Rc<State<T>> {
        let mark = self.mode.high_water_mark();
        let state = Rc::new_cyclic(|me| State {
            base: base.clone(),
            me: me.clone(),
            mode: Cell::new(self.mode),
            decode: RefCell::default(),
            encoding: Cell::new(None),
            high_water_mark: Cell::new(self.high_water_mark.unwrap_or(mark)),
            total: Cell::new(0),
            read_hook: RefCell::new(self.read),
            buffer: RefCell::default(),
            length: Cell::new(0),
            ended: Cell::new(false),
            end_emitted: Cell::new(false),
            end_scheduled: Cell::new(false),
            unannounced_end: Cell::new(false),
            reading: Cell::new(false),
            sync: Cell::new(true),
            need_readable: Cell::new(false),
            emitted_readable: Cell::new(false),
            readable_listening: Cell::new(false),
            data_listening: Cell::new(false),
            resume_scheduled: Cell::new(false),
            reading_more: Cell::new(false),
            flowing: Cell::new(None),
            paused: Cell::new(None),
            pipes: OnceCell::new(),
        });
        let side: Weak<dyn ReadableSide> = Rc::<State<T>>::downgrade(&state);
        base.has_readable(side);
        let watch: Weak<dyn Watch> = Rc::<State<T>>::downgrade(&state);
        base.emitter.watched_by(watch);
        state
    }
}

impl_options!(ReadableBuilder<T>);
impl_debug!(ReadableBuilder);
