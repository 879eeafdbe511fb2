//! The timeline of several loops of one program: one file, with a track for each.
// Rule C22.

#[cfg(feature = "probe")]
use std::io::{self, Write as _};
#[cfg(feature = "probe")]
use std::path::Path;
#[cfg(feature = "probe")]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
#[cfg(feature = "probe")]
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
#[cfg(feature = "probe")]
use std::time::Instant;

#[cfg(feature = "probe")]
use super::recorder::Recorder;
#[cfg(feature = "probe")]
use super::trace_file::TraceFile;
#[cfg(feature = "probe")]
use super::{chrome, html};

/// The timeline of several loops. Each loop renders its part, since no other thread can.
#[derive(Clone, Default)]
pub(crate) struct JointTrace {
    #[cfg(feature = "probe")]
    state: Arc<Mutex<State>>,
}

#[cfg(feature = "probe")]
#[derive(Default)]
struct State {
    /// The file, once the first loop has asked for it.
    file: Option<TraceFile>,
    /// The earliest start of a loop: the beginning of the timeline.
    begun: Option<Instant>,
    /// What each loop has rendered, by index.
    parts: Vec<Option<Rendered>>,
}

/// The part of one loop in a file.
#[cfg(feature = "probe")]
enum Rendered {
    Page(html::Part),
    Events(Vec<u8>),
}

#[cfg(feature = "probe")]
impl JointTrace {
    /// Returns the file for a loop whose clock began at `start`.
    pub(super) fn part(&self, index: u32, pattern: &Path, start: Instant) -> Option<TraceFile> {
        let mut state = lock(&self.state);
        if state.file.is_none() {
            state.file = TraceFile::create(pattern);
            ARE_TRACED.store(state.file.is_some(), Ordering::Relaxed);
        }
        let begun = state.begun.map_or(start, |begun| begun.min(start));
        state.begun = Some(begun);
        let part = Part {
            joint: self.clone(),
            index,
            start,
        };
        state.file.as_ref()?.with_part(part).ok()
    }
}

/// The part of one loop.
#[cfg(feature = "probe")]
pub(super) struct Part {
    joint: JointTrace,
    index: u32,
    start: Instant,
}

#[cfg(feature = "probe")]
impl Part {
    /// Renders the part, and writes the file with all parts that there are.
    pub(super) fn write(&self, file: &TraceFile, recorder: &Recorder) -> io::Result<()> {
        let mut state = lock(&self.joint.state);
        let later = self.start.duration_since(state.begun.unwrap_or(self.start));
        // A timeline is shorter than 500 years.
        let later = later.as_nanos() as u64;
        let rendered = recorder.with_trace(later, |trace| {
            if file.is_page() {
                return Ok(Rendered::Page(html::Part::of(trace)));
            }
            let mut events = Vec::new();
            chrome::write_events(trace, &mut events)?;
            Ok::<_, io::Error>(Rendered::Events(events))
        })?;
        let index = self.index as usize;
        if state.parts.len() <= index {
            state.parts.resize_with(index + 1, || None);
        }
        state.parts[index] = Some(rendered);
        let (mut pages, mut events) = (Vec::new(), Vec::new());
        for part in state.parts.iter().flatten() {
            match part {
                Rendered::Page(page) => pages.push(page),
                Rendered::Events(of_loop) => events.push(of_loop.as_slice()),
            }
        }
        file.replace(|out, is_page| {
            if is_page {
                return html::write_parts(&pages, out);
            }
            chrome::write_file(&events, out)?;
            out.flush()
        })
    }
}

#[cfg(feature = "probe")]
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether messages between loops are recorded, which is asked for each of them.
#[cfg(feature = "probe")]
static ARE_TRACED: AtomicBool = AtomicBool::new(false);

/// Returns the number of a message that is about to be sent, if messages are recorded.
#[inline]
pub(crate) fn number_message() -> Option<u32> {
    #[cfg(feature = "probe")]
    if ARE_TRACED.load(Ordering::Relaxed) {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        return Some(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    None
}
