//! The times of a file.

use std::time::SystemTime;

use crate::sys::fs::Time;

/// The times of a file to set, as [`std::fs::FileTimes`]. A time that is not set stays unchanged.
///
/// Setting a time to "now" needs write permission only. Setting another time needs ownership of the
/// file.
///
/// # Examples
///
/// ```
/// use phaseloop::fs::{self, FileTimes};
/// use std::time::{Duration, SystemTime};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (file, path) = fs::mkstemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let day = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
///     file.set_times(FileTimes::new().set_modified(day)).await?;
///     assert_eq!(file.metadata().await?.modified()?, day);
///     fs::set_times(&path, FileTimes::new().set_modified_now()).await?;
///     assert!(file.metadata().await?.modified()? > day);
///     fs::remove_file(path).await
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "times are set by handing them to `set_times`"]
pub struct FileTimes {
    pub(super) accessed: Time,
    pub(super) modified: Time,
}

impl FileTimes {
    /// Creates a value that changes no time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use phaseloop::fs::{self, File, FileTimes};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let file = File::create(folder.join("file")).await?;
    ///     let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    ///     file.set_times(FileTimes::new().set_accessed(time).set_modified(time)).await?;
    ///     assert_eq!(file.metadata().await?.accessed()?, time);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time of last access.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use phaseloop::fs::{self, File, FileTimes};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let file = File::create(folder.join("file")).await?;
    ///     let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    ///     file.set_times(FileTimes::new().set_accessed(time).set_modified(time)).await?;
    ///     assert_eq!(file.metadata().await?.accessed()?, time);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn set_accessed(mut self, time: SystemTime) -> Self {
        self.accessed = Time::At(time);
        self
    }

    /// Sets the time of last modification.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use phaseloop::fs::{self, File, FileTimes};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let file = File::create(folder.join("file")).await?;
    ///     let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    ///     file.set_times(FileTimes::new().set_accessed(time).set_modified(time)).await?;
    ///     assert_eq!(file.metadata().await?.accessed()?, time);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn set_modified(mut self, time: SystemTime) -> Self {
        self.modified = Time::At(time);
        self
    }

    /// Sets the time of last access to now.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, FileTimes};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     fs::write(folder.join("stamp"), "").await?;
    ///     let now = FileTimes::new().set_accessed_now().set_modified_now(); // as `touch` does
    ///     fs::set_times(folder.join("stamp"), now).await?;
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn set_accessed_now(mut self) -> Self {
        self.accessed = Time::Now;
        self
    }

    /// Sets the time of last modification to now.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, FileTimes};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     fs::write(folder.join("stamp"), "").await?;
    ///     let now = FileTimes::new().set_accessed_now().set_modified_now(); // as `touch` does
    ///     fs::set_times(folder.join("stamp"), now).await?;
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn set_modified_now(mut self) -> Self {
        self.modified = Time::Now;
        self
    }
}
