//! The lines of an interface as a `futures` stream.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::Stream;

use super::{CLOSE, Interface, LINE};
use crate::error::Error;
use crate::events::EventQueue;

/// How many lines wait for their reader before the input is paused.
const MOST_LINES: usize = 1024;

impl Interface {
    /// Returns the lines from now on as a `futures` stream. JavaScript: `for await (const line of
    /// rl)`.
    ///
    /// A waiting reader resumes one microtask after its line was read; a line that is already there
    /// takes one microtask too. The stream ends when the interface is closed, after the lines read
    /// before. An [`ERROR`](crate::events::ERROR) of the interface is its last item. While
    /// more than 1024 lines wait, the interface is paused.
    ///
    /// As in Node, lines that were read before this call are lost, and all streams of one interface
    /// share their lines: after one was dropped, another returns the lines that are left and ends.
    /// Dropping a stream does not close the interface. While a stream exists it also gets the lines
    /// that arrive before a [question](Interface::question) is asked; a dialogue asks all its
    /// questions, or reads all its lines.
    ///
    /// # Cancel safety
    ///
    /// Dropping a pending wait for the next line loses no line.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, readline, run, stream::Readable};
    /// use phaseloop::stream::StreamExt;
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let rl = readline::create_interface(&Readable::from_iter([b"a\nb".to_vec()]));
    ///         let mut lines = rl.lines();
    ///         let mut seen = Vec::new();
    ///         while let Some(line) = lines.next().await {
    ///             seen.push(line.unwrap());
    ///         }
    ///         assert_eq!(seen, ["a", "b"]);
    ///     })
    /// }
    /// ```
    // H113.
    pub fn lines(&self) -> Lines {
        let known = self.inner.lines.borrow().clone();
        let queue = known.unwrap_or_else(|| {
            let emitter = &self.inner.emitter;
            let queue = EventQueue::new(emitter, LINE);
            queue.close_on(emitter, CLOSE);
            let weak = Rc::downgrade(&self.inner);
            queue.pause_above(MOST_LINES, move |is_paused| match weak.upgrade() {
                Some(inner) if is_paused => inner.pause(),
                Some(inner) => inner.resume(),
                None => {}
            });
            self.inner.lines.replace(Some(queue.clone()));
            queue
        });
        Lines { queue }
    }
}

/// The lines of an interface; returned by [`Interface::lines`].
///
/// # Cancel safety
///
/// Dropping a pending wait for the next line loses no line. Dropping the stream removes its
/// listeners from the interface.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, readline, run, stream::Readable};
/// use phaseloop::stream::StreamExt;
///
/// fn main() -> Exit<()> {
///     run(async {
///         let input = Readable::from_iter([b"one\ntwo\n".to_vec()]);
///         let lines: readline::Lines = readline::create_interface(&input).lines();
///         let lengths: Vec<usize> = lines.map(|line| line.unwrap().len()).collect().await;
///         assert_eq!(lengths, [3, 3]);
///     })
/// }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct Lines {
    queue: Rc<EventQueue<String>>,
}

impl Stream for Lines {
    type Item = Result<String, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.queue.poll_next(cx)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}
