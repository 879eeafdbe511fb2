//! What identifies a task: its number, its name, and the line that spawned it.

use std::fmt;
use std::panic::Location;
use std::rc::Rc;

/// The number of a task, unique among all tasks of its loop.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() {
///     let first = phaseloop::spawn(async {}).id();
///     let second = phaseloop::spawn(async {}).id();
///     assert!(first < second);
///     assert_eq!(first.to_string(), "1");
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(crate) u64);

impl Id {
    /// The number of what failed before it had one. No task has it.
    pub(crate) const NONE: Self = Self(u64::MAX);
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number and the name of a task, and the line that spawned it.
///
/// Prints as `task 3 "reader" (src/main.rs:12:5)`, and on one of several loops of a cluster as
/// `loop 1 task 3 …`.
///
/// # Examples
///
/// ```
/// use phaseloop::{LoopHandle, task};
///
/// #[phaseloop::main]
/// async fn main() {
///     task::Builder::new().name("reader").spawn(async {}).detach();
///     let tasks = LoopHandle::current().tasks();
///     assert_eq!(tasks[0].name(), Some("reader"));
///     assert!(tasks[0].to_string().starts_with("task 1 \"reader\" ("));
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Info {
    pub(crate) id: Id,
    pub(crate) site: &'static Location<'static>,
    pub(crate) name: Option<Rc<str>>,
    /// The index of its loop among several of one program.
    pub(crate) of_loop: Option<u32>,
}

impl Info {
    /// Creates the description of a task without a name.
    pub(crate) fn unnamed(id: Id, site: &'static Location<'static>) -> Self {
        Self {
            id,
            site,
            name: None,
            of_loop: None,
        }
    }

    /// Returns the task's number.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, task};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let reader = task::Builder::new().name("reader").spawn(std::future::pending::<()>());
    ///     let info = &LoopHandle::current().tasks()[0];
    ///     assert_eq!((info.id(), info.name()), (reader.id(), Some("reader")));
    ///     println!("spawned at {}", info.spawned_at());
    /// }
    /// ```
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns the name given by [`Builder::name`](crate::task::Builder::name), if any.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, task};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let reader = task::Builder::new().name("reader").spawn(std::future::pending::<()>());
    ///     let info = &LoopHandle::current().tasks()[0];
    ///     assert_eq!((info.id(), info.name()), (reader.id(), Some("reader")));
    ///     println!("spawned at {}", info.spawned_at());
    /// }
    /// ```
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the line that spawned the task.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, task};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let reader = task::Builder::new().name("reader").spawn(std::future::pending::<()>());
    ///     let info = &LoopHandle::current().tasks()[0];
    ///     assert_eq!((info.id(), info.name()), (reader.id(), Some("reader")));
    ///     println!("spawned at {}", info.spawned_at());
    /// }
    /// ```
    #[must_use]
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.site
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.of_loop {
            write!(f, "loop {index} ")?;
        }
        write!(f, "task {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, " ({})", self.site)
    }
}
