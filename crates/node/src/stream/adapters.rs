//! Streams over other sources and sinks: iterators, `futures` streams, readers and writers.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::Stream;
use futures::io::{AsyncRead, AsyncWrite};

use super::base::{Base, Done, destroyed};
use super::gather::write_chunks;
use super::readable::Readable;
use super::writable::Writable;
use crate::callback_futures::in_callbacks;
use crate::error::Error;
use crate::promise::call;
use phaseloop::extension::frame::Frame;
use phaseloop::phase;
use phaseloop::task::{next_tick, queue_microtask};
use phaseloop::time::Timer;
use phaseloop::{Close, LoopHandle};

/// The size of the buffer of one read from a reader.
const READ_SIZE: usize = 64 * 1024;

/// How often a reader that always has more data is read in one phase: as often as libuv reads a
/// stream.
const READS_PER_PHASE: usize = 32;

impl<T: 'static> Readable<T> {
    /// Creates a stream of the items of an iterator, in object mode. JavaScript:
    /// `Readable.from(iterable)`.
    #[expect(
        clippy::should_implement_trait,
        reason = "collecting needs a running loop, which `FromIterator` cannot require"
    )]
    pub fn from_iter<I>(items: I) -> Self
    where
        I: IntoIterator<Item = T>,
        I::IntoIter: 'static,
    {
        let mut items = items.into_iter();
        Self::objects()
            .high_water_mark(1)
            .read(move |readable, _| {
                for item in items.by_ref() {
                    if !readable.push(item) {
                        return;
                    }
                }
                readable.push_end();
            })
            .destroy(close_iterator)
            .build()
    }

    /// Creates a stream of the items of a `futures` stream, in object mode. An error of `items`
    /// destroys the stream with that error. JavaScript: `Readable.from(asyncIterable)`.
    pub fn from_stream<E>(items: impl Stream<Item = Result<T, E>> + 'static) -> Self
    where
        E: Into<Error> + 'static,
    {
        let items = Given::new(items);
        let destroyed = items.clone();
        Self::objects()
            .high_water_mark(1)
            .read(move |readable, _| {
                let (items, readable) = (items.clone(), readable.clone());
                drop(call(async move {
                    loop {
                        let next =
                            poll_fn(|cx| items.poll(cx, || None, |items, cx| items.poll_next(cx)))
                                .await;
                        match next {
                            _ if readable.destroyed() => break,
                            Some(Ok(item)) => {
                                if !readable.push(item) {
                                    break;
                                }
                            }
                            Some(Err(error)) => break readable.destroy(Some(error.into())),
                            None => break readable.push_end(),
                        }
                    }
                }));
            })
            .destroy(move |error, done| {
                destroyed.stop();
                close_generator(error, done, destroyed);
            })
            .build()
    }

    /// Creates a stream of one chunk, in object mode. JavaScript: `Readable.from(text)`,
    /// `Readable.from(buffer)`, which do not split their argument.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, run, stream::Readable};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let readable = Readable::from_chunk("whole");
    ///         assert_eq!(readable.to_array().await.unwrap(), ["whole"]);
    ///     })
    /// }
    /// ```
    pub fn from_chunk(chunk: T) -> Self {
        let mut chunk = Some(chunk);
        Self::objects()
            .read(move |readable, _| {
                if let Some(chunk) = chunk.take() {
                    readable.push(chunk);
                }
                readable.push_end();
            })
            .build()
    }
}

/// Completes the destruction of the stream of an async generator. With an error Node calls `throw`
/// of the generator, which runs at once and rejects; otherwise `return`, which first awaits its
/// value. Either waits for a `yield` that is on its way. The microtasks are part of the order of
/// events.
fn close_generator<I: 'static>(error: Option<Error>, done: Done, items: Rc<Given<I>>) {
    let (before, after) = if error.is_some() { (0, 2) } else { (1, 3) };
    let before = before + u32::from(items.is_pending.get());
    let let_go = move || {
        items.let_go();
        let finish = move || next_tick(move || done.pass(error));
        after_microtasks(after, Box::new(finish));
    };
    after_microtasks(before, Box::new(let_go));
}

fn after_microtasks(count: u32, f: Box<dyn FnOnce()>) {
    match count {
        0 => f(),
        _ => queue_microtask(move || after_microtasks(count - 1, f)),
    }
}

/// Completes the destruction of an iterator stream: a microtask first, then a tick. Node awaits the
/// iterator's `return` there, and the order of events shows it.
fn close_iterator(error: Option<Error>, done: Done) {
    queue_microtask(move || next_tick(move || done.pass(error)));
}

impl Readable<Vec<u8>> {
    /// Creates a stream of the bytes of a reader: a socket, a file, a pipe. The reader is dropped
    /// when the stream is destroyed.
    ///
    /// Bytes that are read in the poll phase are pushed and emitted in that callback.
    // N96.
    pub fn from_reader(reader: impl AsyncRead + 'static) -> Self {
        Self::of_reader(reader, None)
    }

    /// Creates a stream of the bytes of a handle of the loop, as Node's streams of handles are: it
    /// ends without a reader if no byte is left, and is closed in the closing phase.
    pub(crate) fn from_handle(reader: impl AsyncRead + 'static) -> Self {
        let handle = Rc::<HandleClose>::default();
        let readable = Self::of_reader(reader, Some(handle.clone()));
        handle.is_of(readable.state(), |state| &state.base);
        readable
    }

    fn of_reader(reader: impl AsyncRead + 'static, handle: Option<Rc<HandleClose>>) -> Self {
        let is_handle = handle.is_some();
        let reader = Given::new(reader);
        let destroyed = reader.clone();
        let (pace, frame) = (Rc::new(Pace::default()), Frame::current());
        Self::bytes()
            .read(move |readable, _| {
                let (reader, readable) = (reader.clone(), readable.clone());
                let (pace, frame) = (pace.clone(), frame.clone());
                in_callbacks(async move {
                    let chunk = read(&reader, &pace).await;
                    frame.call(|| match chunk {
                        _ if readable.destroyed() => {}
                        Ok(chunk) if chunk.is_empty() => {
                            readable.push_end();
                            if is_handle {
                                readable.read_size(0);
                            }
                        }
                        Ok(chunk) => drop(readable.push(chunk)),
                        Err(error) => readable.destroy(Some(Error::of_io(error, "read"))),
                    });
                });
            })
            .destroy(move |error, done| {
                destroyed.let_go();
                if let Some(handle) = &handle {
                    handle.close();
                }
                done.pass(error);
            })
            .build()
    }
}

/// The close of a handle below a stream, which emits that of the stream.
#[derive(Default)]
struct HandleClose(Cell<Option<Box<Held>>>);

/// Returns what emits the close of a stream, and holds the stream until then.
type Held = dyn FnOnce() -> Option<Box<dyn FnOnce()>>;

impl HandleClose {
    /// Leaves the close of a stream to this.
    fn is_of<S: 'static>(&self, state: &Rc<S>, base: fn(&S) -> &Base) {
        base(state).emits_close.set(false);
        let state = Rc::downgrade(state);
        self.0.set(Some(Box::new(move || {
            let state = state.upgrade()?;
            Some(Box::new(move || base(&state).emit_close()))
        })));
    }

    fn close(&self) {
        let emit = self.0.take().and_then(|stream| stream());
        if let Some((emit, close)) = emit.zip(close_of_nothing()) {
            close.then(emit);
        }
    }
}

/// Returns the close of a handle that does nothing: what has no handle of the loop keeps its place
/// among the closes of those that have one, the latest first.
// Rule R103.
pub(crate) fn close_of_nothing() -> Option<Close> {
    let event_loop = LoopHandle::try_current()?;
    Some(Timer::new(&event_loop).close())
}

/// The iterator, reader or writer behind a stream. It is taken out of its cell while it is polled:
/// the poll may run user code, which may destroy the stream.
struct Given<I> {
    inner: RefCell<Option<Pin<Box<I>>>>,
    /// The waker of the task that polls `inner`; it is woken when the stream is destroyed.
    waker: RefCell<Option<Waker>>,
    /// Whether the stream is destroyed.
    is_gone: Cell<bool>,
    /// Whether the last poll has returned `Pending`.
    is_pending: Cell<bool>,
}

/// The value while it is polled. Its drop puts the value back, also after a panic, unless the
/// stream was destroyed in the meantime.
struct Lent<'a, I> {
    inner: Option<Pin<Box<I>>>,
    to: &'a Given<I>,
}

impl<I> Given<I> {
    fn new(inner: I) -> Rc<Self> {
        Rc::new(Self {
            inner: RefCell::new(Some(Box::pin(inner))),
            waker: RefCell::new(None),
            is_gone: Cell::new(false),
            is_pending: Cell::new(false),
        })
    }

    /// Ends all polls; the inner value is kept until [`let_go`](Self::let_go).
    fn stop(&self) {
        self.is_gone.set(true);
    }

    fn let_go(&self) {
        self.stop();
        let inner = self.inner.take();
        drop(inner);
        let waker = self.waker.take();
        if let Some(waker) = waker {
            // The wake is deferred to a tick: it may run user code, which may call back into this
            // stream.
            next_tick(move || waker.wake());
        }
    }

    /// Polls the inner value; returns `gone()` once the stream is destroyed.
    fn poll<R>(
        &self,
        cx: &mut Context<'_>,
        gone: impl FnOnce() -> R,
        poll: impl FnOnce(Pin<&mut I>, &mut Context<'_>) -> Poll<R>,
    ) -> Poll<R> {
        if self.is_gone.get() {
            return Poll::Ready(gone());
        }
        let Some(inner) = self.inner.take() else {
            // This call is nested in another poll of the same value. The task is woken to try
            // again.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        };
        let mut lent = Lent {
            inner: Some(inner),
            to: self,
        };
        let inner = lent.inner.as_mut().expect("`inner` was set above");
        let polled = poll(inner.as_mut(), cx);
        self.is_pending.set(polled.is_pending());
        if polled.is_pending() {
            self.wake_when_gone(cx);
        }
        polled
    }

    fn wake_when_gone(&self, cx: &Context<'_>) {
        let is_known = |known: &Waker| known.will_wake(cx.waker());
        if self.is_gone.get() {
            cx.waker().wake_by_ref();
        } else if !self.waker.borrow().as_ref().is_some_and(is_known) {
            let before = self.waker.replace(Some(cx.waker().clone()));
            drop(before);
        }
    }
}

impl<I> Drop for Lent<'_, I> {
    fn drop(&mut self) {
        if !self.to.is_gone.get() {
            self.to.inner.replace(self.inner.take());
        }
    }
}

/// How a reader is read: as libuv reads a stream.
#[derive(Default)]
struct Pace {
    /// How many reads had data at once.
    in_a_row: Cell<usize>,
    /// Whether the last read has filled its buffer, so that the next one follows at once.
    is_filled: Cell<bool>,
}

/// Reads a chunk, which is empty at EOF. Data that is already there is delivered in the next poll
/// phase, unless it follows a full buffer.
async fn read<R: AsyncRead>(reader: &Given<R>, pace: &Pace) -> io::Result<Vec<u8>> {
    let in_a_row = &pace.in_a_row;
    if in_a_row.get() == READS_PER_PHASE {
        in_a_row.set(0);
        phase::poll().await;
    }
    in_a_row.set(in_a_row.get() + 1);
    let mut chunk = vec![0; READ_SIZE];
    let mut is_at_once = true;
    let read = poll_fn(|cx| {
        let chunk = &mut chunk;
        let read = reader.poll(cx, || Ok(0), |reader, cx| reader.poll_read(cx, chunk));
        if read.is_pending() {
            in_a_row.set(0);
            is_at_once = false;
        }
        read
    })
    .await;
    let follows = pace.is_filled.take();
    pace.is_filled.set(matches!(read, Ok(READ_SIZE)));
    // libuv delivers an EOF that is reported together with the last data at once, too.
    let is_end = matches!(read, Ok(0));
    if is_at_once && !follows && !is_end {
        phase::poll().await;
    }
    chunk.truncate(read?);
    chunk.shrink_to_fit();
    Ok(chunk)
}

impl Writable<Vec<u8>> {
    /// Creates a sink that writes into a writer: a socket, a file, a pipe. The writer is closed
    /// when the stream ends, and dropped when the stream is destroyed.
    pub fn from_writer(writer: impl AsyncWrite + 'static) -> Self {
        Self::of_writer(writer, None)
    }

    /// Creates a sink that writes into a handle of the loop, and is closed in the closing phase.
    pub(crate) fn to_handle(writer: impl AsyncWrite + 'static) -> Self {
        let handle = Rc::<HandleClose>::default();
        let writable = Self::of_writer(writer, Some(handle.clone()));
        handle.is_of(writable.state(), |state| &state.base);
        writable
    }

    fn of_writer(writer: impl AsyncWrite + 'static, handle: Option<Rc<HandleClose>>) -> Self {
        let writer = Given::new(writer);
        let [writes_all, ended, destroyed] = [(); 3].map(|()| writer.clone());
        Self::bytes(move |chunk: Vec<u8>, done| {
            let writer = writer.clone();
            in_callbacks(async move { done.call(write_all(&writer, &chunk).await) });
        })
        .write_all(move |chunks, done| {
            let writer = writes_all.clone();
            in_callbacks(async move { done.call(write_gathered(&writer, &chunks).await) });
        })
        .end(move |done| {
            in_callbacks(async move { done.call(close(&ended).await) });
        })
        .destroy(move |error, done| {
            destroyed.let_go();
            if let Some(handle) = &handle {
                handle.close();
            }
            done.pass(error);
        })
        .build()
    }
}

async fn write_all<W: AsyncWrite>(writer: &Given<W>, mut bytes: &[u8]) -> Result<(), Error> {
    while !bytes.is_empty() {
        let size = poll_fn(|cx| {
            let write = |writer: Pin<&mut W>, cx: &mut Context<'_>| {
                writer.poll_write(cx, bytes).map_err(write_error)
            };
            writer.poll(cx, || Err(destroyed("write")), write)
        })
        .await?;
        if size == 0 {
            return Err(io::Error::from(io::ErrorKind::WriteZero).into());
        }
        bytes = &bytes[size..];
    }
    flush(writer).await
}

async fn write_gathered<W: AsyncWrite>(writer: &Given<W>, chunks: &[Vec<u8>]) -> Result<(), Error> {
    write_chunks(chunks, |cx, buffers| {
        let write = |writer: Pin<&mut W>, cx: &mut Context<'_>| {
            writer.poll_write_vectored(cx, buffers).map_err(write_error)
        };
        writer.poll(cx, || Err(destroyed("write")), write)
    })
    .await?;
    flush(writer).await
}

async fn flush<W: AsyncWrite>(writer: &Given<W>) -> Result<(), Error> {
    let flushed = poll_fn(|cx| writer.poll(cx, || Ok(()), |writer, cx| writer.poll_flush(cx)));
    flushed.await.map_err(write_error)
}

async fn close<W: AsyncWrite>(writer: &Given<W>) -> Result<(), Error> {
    let closed = poll_fn(|cx| writer.poll(cx, || Ok(()), |writer, cx| writer.poll_close(cx)));
    closed
        .await
        .map_err(|error| Error::of_io(error, "shutdown"))
}

fn write_error(error: io::Error) -> Error {
    Error::of_io(error, "write")
}
