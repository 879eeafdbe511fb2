//! The kinds of changes of watched files.

/// The kind of change of a watched file or directory, or of an entry.
///
/// # Examples
///
/// ```
/// use phaseloop::fs::WatchKind;
///
/// fn main() {
///     assert!(WatchKind::Created.is_rename());
///     assert!(!WatchKind::Created.is_change());
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WatchKind {
    /// The content was written or truncated.
    Modified,
    /// Attributes have changed: permissions, times, owner or link count.
    Attributes,
    /// An entry was created in the directory.
    Created,
    /// An entry was removed from the directory.
    Removed,
    /// An entry was renamed; this is its old name. If it stays in the directory, a
    /// [`MovedTo`](Self::MovedTo) with the same number follows.
    MovedFrom(u32),
    /// An entry was renamed; this is its new name. If it came from this directory, a
    /// [`MovedFrom`](Self::MovedFrom) with the same number precedes it.
    MovedTo(u32),
    /// The watched file or directory was removed: its last link is gone and no process has it open.
    /// The stream ends after this event.
    SelfRemoved,
    /// The watched file or directory was renamed. It is still watched.
    SelfMoved,
    /// The file system was unmounted. The stream ends after this event.
    Unmounted,
    /// Events were lost because they came faster than they were received. Read the directory again
    /// to find the current state.
    Overflow,
}

impl WatchKind {
    /// Whether libuv and Node call this *change*: content or attributes have changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::WatchKind;
    ///
    /// fn main() {
    ///     assert!(WatchKind::Created.is_rename() && !WatchKind::Created.is_change());
    /// }
    /// ```
    #[must_use]
    pub fn is_change(self) -> bool {
        matches!(self, Self::Modified | Self::Attributes)
    }

    /// Whether libuv and Node call this *rename*: a name has appeared or disappeared.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::WatchKind;
    ///
    /// fn main() {
    ///     assert!(WatchKind::Created.is_rename() && !WatchKind::Created.is_change());
    /// }
    /// ```
    #[must_use]
    pub fn is_rename(self) -> bool {
        !self.is_change() && self != Self::Overflow
    }
}
