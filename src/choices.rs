//! The questions that a shuffled loop asks, and their answers. They know no loop; see
//! [`shuffle`](crate::shuffle).

pub(crate) mod walk;

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use crate::error::debug_as_display;

/// What a shuffled loop asks about. Each kind is something that libuv leaves open.
///
/// # Examples
///
/// ```
/// use phaseloop::Builder;
/// use phaseloop::shuffle::{Kind, Question};
///
/// fn main() -> std::io::Result<()> {
///     // Jobs end in reverse order; all else is as usual.
///     let chooser = |question: &Question<'_>| match question.kind {
///         Kind::JobEnd => question.count - 1,
///         _ => 0,
///     };
///     let event_loop = Builder::new().shuffle(chooser).build()?;
///     event_loop.block_on(async {});
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// When an event of a source is delivered: now; in a later turn; after the clock has moved; as
    /// late as allowed.
    Delay,
    /// Which event of a batch is delivered next.
    Event,
    /// How far the clock moves beyond the deadline that it moves to: not at all; by one
    /// millisecond; as far as allowed.
    Late,
    /// When a thread of the pool takes a job; the answers are those of [`Delay`](Self::Delay).
    JobRun,
    /// Which of the jobs that threads have taken runs next.
    Job,
    /// When the completion of a job arrives; the answers are those of [`Delay`](Self::Delay).
    JobEnd,
    /// Which sender's messages arrive next.
    Arrival,
    /// How much a read takes: all that it can; nothing, as if it would block; 1, 2, 7 or 64 bytes.
    Read,
    /// How much a write takes; the answers are those of [`Read`](Self::Read).
    Write,
    /// Whether another operation on a ready source, such as an accept or a datagram, is made, or
    /// fails as if it would block.
    Attempt,
    /// Which waiting task is polled although nothing has happened: none; the first; the second …
    Wake,
    /// How long a packet of the [network in memory](crate::sim) takes: the least latency of its
    /// link; a step more; two … And how many datagrams of other senders one is delivered before.
    Net,
    /// Whether a datagram of the [network in memory](crate::sim) arrives: once; never; twice.
    Loss,
    /// When the exit of a child is delivered: now; in a later turn.
    Exit,
    /// When caught signals are delivered: now; in a later turn.
    Caught,
    /// Which loop of several that can go on takes the next turn: the next one, by index; the one
    /// after it …
    Loop,
}

/// The numbers of bytes that a read or write is cut to.
pub(crate) const NIBBLES: [usize; 4] = [1, 2, 7, 64];

impl Kind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 16] = [
        Self::Delay,
        Self::Event,
        Self::Late,
        Self::JobRun,
        Self::Job,
        Self::JobEnd,
        Self::Arrival,
        Self::Read,
        Self::Write,
        Self::Attempt,
        Self::Wake,
        Self::Net,
        Self::Loss,
        Self::Exit,
        Self::Caught,
        Self::Loop,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Event => "event",
            Self::Late => "late",
            Self::JobRun => "job-run",
            Self::Job => "job",
            Self::JobEnd => "job-end",
            Self::Arrival => "arrival",
            Self::Read => "read",
            Self::Write => "write",
            Self::Attempt => "attempt",
            Self::Wake => "wake",
            Self::Net => "net",
            Self::Loss => "loss",
            Self::Exit => "exit",
            Self::Caught => "caught",
            Self::Loop => "loop",
        }
    }

    /// Says what an answer means.
    pub(crate) fn meaning(self, answer: u32) -> String {
        let text = match (self, answer) {
            (Self::Delay | Self::JobRun | Self::JobEnd | Self::Exit | Self::Caught, 0) => "at once",
            (Self::Delay | Self::JobRun | Self::JobEnd, 1) => "a turn later",
            (Self::Exit | Self::Caught, _) => "a turn later",
            (Self::Delay | Self::JobRun | Self::JobEnd, 2) => "after the clock has moved",
            (Self::Delay | Self::JobRun | Self::JobEnd, _) => "as late as allowed",
            (Self::Late, 0) => "on time",
            (Self::Late, 1) => "1 ms late",
            (Self::Late, _) => "as late as allowed",
            (Self::Read | Self::Write, 0) => "all",
            (Self::Attempt, 0) => "done",
            (Self::Read | Self::Write | Self::Attempt, 1) => "would block",
            (Self::Read | Self::Write | Self::Attempt, n) => {
                let bytes = NIBBLES.get(n as usize - 2).unwrap_or(&64);
                return format!("{bytes} bytes at most");
            }
            (Self::Net, 0) => "as soon as it can",
            (Self::Net, n) => return format!("by {n} steps of the latency, or places"),
            (Self::Loss, 0) => "arrives",
            (Self::Loss, 1) => "is lost",
            (Self::Loss, _) => "arrives twice",
            (Self::Wake, 0) => "no task",
            (Self::Wake, n) => return format!("task {n} of those that wait"),
            (Self::Loop, 0) => "the next one",
            (Self::Event | Self::Job | Self::Arrival | Self::Loop, n) => {
                return format!("number {} of those left", n + 1);
            }
        };
        text.to_owned()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a question is about. The numbers of sources and jobs count in the order of the first
/// question.
///
/// # Examples
///
/// ```
/// use phaseloop::shuffle::{Decision, Who};
///
/// fn main() {
///     let decision: Decision = "delay source3 2 =1".parse().unwrap();
///     assert_eq!(decision.who, Some(Who::Source(3)));
///     let error = "delay of nothing".parse::<Decision>().unwrap_err();
///     println!("{error}");
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Who {
    /// A source, such as a socket.
    Source(u32),
    /// A job of the thread pool.
    Job(u32),
    /// A loop of several, by index.
    Loop(u32),
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(number) => write!(f, "source{number}"),
            Self::Job(number) => write!(f, "job{number}"),
            Self::Loop(index) => write!(f, "loop{index}"),
        }
    }
}

/// A question with at least two answers. Answer 0 is what an ordinary loop does.
///
/// # Examples
///
/// ```
/// use phaseloop::Builder;
/// use phaseloop::shuffle::{Kind, Question};
///
/// fn main() -> std::io::Result<()> {
///     // Jobs end in reverse order; all else is as usual.
///     let chooser = |question: &Question<'_>| match question.kind {
///         Kind::JobEnd => question.count - 1,
///         _ => 0,
///     };
///     let event_loop = Builder::new().shuffle(chooser).build()?;
///     event_loop.block_on(async {});
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Question<'a> {
    /// What is asked.
    pub kind: Kind,
    /// What it is asked about; `None` if the question chooses among several.
    pub who: Option<Who>,
    /// The number of answers, at least two.
    pub count: usize,
    /// The candidates, by answer, of a question that chooses among several.
    pub among: &'a [Who],
    /// Says for people what the question is about, such as a line of the program.
    pub about: &'a dyn fmt::Display,
}

impl fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("kind", &self.kind)
            .field("who", &self.who)
            .field("count", &self.count)
            .field("among", &self.among)
            .field("about", &format_args!("{}", self.about))
            .finish()
    }
}

/// Answers the questions of a shuffled loop.
///
/// # Examples
///
/// A chooser that always delivers the last event of a batch first:
///
/// ```
/// use phaseloop::Builder;
/// use phaseloop::shuffle::{Kind, Question};
///
/// fn main() -> std::io::Result<()> {
///     let last_first = |question: &Question<'_>| match question.kind {
///         Kind::Event => question.count - 1,
///         _ => 0,
///     };
///     let event_loop = Builder::new().shuffle(last_first).build()?;
///     event_loop.block_on(async {});
///     Ok(())
/// }
/// ```
pub trait Chooser {
    /// Returns the number of an answer. A number beyond the last answer counts as the last one.
    fn choose(&mut self, question: &Question<'_>) -> usize;
}

impl<F: FnMut(&Question<'_>) -> usize> Chooser for F {
    fn choose(&mut self, question: &Question<'_>) -> usize {
        self(question)
    }
}

/// Whether other threads may send to a shuffled loop: wakes, calls, sends to async handles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threads {
    /// A send from another thread fails the run, since its moment cannot be repeated.
    #[default]
    Refuse,
    /// Other threads may send. A failing seed may pass the next time.
    Allow,
}

/// The bounds of what a shuffled loop may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The longest delay, in nanoseconds of the loop's clock.
    pub(crate) max_delay: u64,
    /// The number of turns after which the program counts as stuck.
    pub(crate) max_turns: u64,
    /// The number of ticks and microtasks of one drain after which the program counts as stuck. It
    /// is the lane budget of the loop.
    pub(crate) max_drain: Option<NonZeroU64>,
    /// Whether other threads may send to the loop.
    pub(crate) threads: Threads,
    /// Whether sockets are on a network in memory.
    pub(crate) has_network: bool,
    /// The real time, in nanoseconds, after which a wait for something outside of the loop counts
    /// as a dead end.
    pub(crate) stall: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_delay: 50_000_000,
            max_turns: 200_000,
            max_drain: None,
            threads: Threads::Allow,
            has_network: true,
            stall: 1_000_000_000,
        }
    }
}

/// The answer to one question, by name: the `nth` question of this kind about this subject, counted
/// from 0.
///
/// A name does not depend on the position of the question, so a list still has a meaning
/// after a change elsewhere in the program.
///
/// # Examples
///
/// ```
/// use phaseloop::shuffle::{Decision, Kind, Who};
///
/// fn main() {
///     let decision: Decision = "delay source3 2 =1".parse().unwrap();
///     let who = Some(Who::Source(3));
///     assert_eq!(decision, Decision { kind: Kind::Delay, who, nth: 2, answer: 1 });
///     assert_eq!(decision.to_string(), "delay source3 2 =1");
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(clippy::exhaustive_structs, reason = "tests construct decisions")]
pub struct Decision {
    /// The kind of the question.
    pub kind: Kind,
    /// What it was asked about.
    pub who: Option<Who>,
    /// Its number among the questions of the same kind and subject.
    pub nth: u32,
    /// The answer.
    pub answer: u32,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(who) = self.who {
            write!(f, "{who} ")?;
        }
        write!(f, "{} ={}", self.nth, self.answer)
    }
}

/// The error of a text that is no [`Decision`].
///
/// # Examples
///
/// ```
/// use phaseloop::shuffle::{Decision, Who};
///
/// fn main() {
///     let decision: Decision = "delay source3 2 =1".parse().unwrap();
///     assert_eq!(decision.who, Some(Who::Source(3)));
///     let error = "delay of nothing".parse::<Decision>().unwrap_err();
///     println!("{error}");
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ParseDecisionError {
    text: String,
}

impl fmt::Display for ParseDecisionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no decision; a decision is written as `delay source3 2 =1` or `late 0 =2`",
            self.text
        )
    }
}

debug_as_display!(ParseDecisionError { text });

impl std::error::Error for ParseDecisionError {}

impl FromStr for Decision {
    type Err = ParseDecisionError;

    fn from_str(text: &str) -> Result<Self, ParseDecisionError> {
        parse(text).ok_or_else(|| ParseDecisionError {
            text: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<Decision> {
    let words: Vec<_> = text.split_whitespace().collect();
    let (kind, who, nth, answer) = match words[..] {
        [kind, nth, answer] => (kind, None, nth, answer),
        [kind, who, nth, answer] => (kind, Some(parse_who(who)?), nth, answer),
        _ => return None,
    };
    Some(Decision {
        kind: Kind::ALL.into_iter().find(|known| known.name() == kind)?,
        who,
        nth: nth.parse().ok()?,
        answer: answer.strip_prefix('=')?.parse().ok()?,
    })
}

fn parse_who(text: &str) -> Option<Who> {
    let who = |number: &str, who: fn(u32) -> Who| Some(who(number.parse().ok()?));
    if let Some(number) = text.strip_prefix("source") {
        who(number, Who::Source)
    } else if let Some(number) = text.strip_prefix("job") {
        who(number, Who::Job)
    } else {
        who(text.strip_prefix("loop")?, Who::Loop)
    }
}

#[cfg(test)]
mod tests {
    use super::{Decision, Kind, Who};

    #[test]
    fn every_pick_survives_its_text() {
        for kind in Kind::ALL {
            for who in [
                None,
                Some(Who::Source(0)),
                Some(Who::Job(41)),
                Some(Who::Loop(2)),
            ] {
                let decision = Decision {
                    kind,
                    who,
                    nth: 7,
                    answer: 3,
                };
                assert_eq!(decision.to_string().parse(), Ok(decision));
            }
        }
    }

    #[test]
    fn a_bad_pick_is_named_in_the_error() {
        for text in [
            "",
            "delay",
            "delay source 1 =1",
            "nap 1 =1",
            "late 0 2",
            "late x =2",
        ] {
            let error = text.parse::<Decision>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
