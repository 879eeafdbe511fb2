//! Copies of files and whole directories.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::platform;
use super::stats::Stats;
use crate::error::Error;
use phaseloop::fs::{self, CopyOptions};

/// Returns whether a source is copied to a target.
type Filter = Rc<dyn Fn(&Path, &Path) -> bool>;

/// Options of [`cp_with`](super::cp_with). JavaScript: `{ dereference, errorOnExist, filter, force,
/// mode, preserveTimestamps, recursive, verbatimSymlinks }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let to = std::env::temp_dir().join(format!("phaseloop-cp-{}", std::process::id()));
///         let options = fs::CpOptions { recursive: true, ..Default::default() };
///         fs::promises::cp_with("src", &to, options).await.unwrap();
///         assert!(fs::promises::stat(to.join("lib.rs")).await.unwrap().is_file());
///         let options = fs::RmOptions { recursive: true, ..Default::default() };
///         fs::promises::rm(&to, options).await.unwrap();
///     })
/// }
/// ```
#[derive(Clone)]
pub struct CpOptions {
    /// Whether symbolic links are followed, in place of copied.
    pub dereference: bool,
    /// Whether an existing target is an error, if `force` is not set.
    pub error_on_exist: bool,
    /// Whether existing files are replaced; the default is `true`.
    pub force: bool,
    /// Whether directories are copied with their contents.
    pub recursive: bool,
    /// Whether the copies have the times of their sources.
    pub preserve_timestamps: bool,
    /// Whether the targets of symbolic links stay as they are. Otherwise they become absolute.
    pub verbatim_symlinks: bool,
    /// How files are copied.
    pub mode: CopyOptions,
    /// Leaves out the sources, with all below, for which it returns `false`. It gets the source and
    /// the target.
    pub filter: Option<Filter>,
}

impl Default for CpOptions {
    fn default() -> Self {
        Self {
            dereference: false,
            error_on_exist: false,
            force: true,
            recursive: false,
            preserve_timestamps: false,
            verbatim_symlinks: false,
            mode: CopyOptions::new(),
            filter: None,
        }
    }
}

impl std::fmt::Debug for CpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpOptions")
            .field("recursive", &self.recursive)
            .field("force", &self.force)
            .finish_non_exhaustive()
    }
}

/// Copies a file, or a directory with its contents.
pub(super) async fn copy(from: PathBuf, to: PathBuf, options: CpOptions) -> Result<(), Error> {
    let Some(both) = check(&from, &to, &options).await? else {
        return Ok(());
    };
    check_parents(&from, &both.0, &to).await?;
    if let Some(parent) = to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        if let Err(error) = fs::metadata(parent).await {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error.into());
            }
            fs::create_dir_all(parent).await?;
        }
    }
    copy_one(&from, &to, both, &options).await
}

/// The stats of a source, and of its target if that exists.
type Both = (Stats, Option<Stats>);

async fn look(path: &Path, options: &CpOptions) -> io::Result<Stats> {
    let metadata = match options.dereference {
        true => fs::metadata(path).await,
        false => fs::symlink_metadata(path).await,
    };
    metadata.map(Stats::from)
}

/// Checks that a source can be copied to a target. `None`: the filter leaves it out.
async fn check(from: &Path, to: &Path, options: &CpOptions) -> Result<Option<Both>, Error> {
    if options
        .filter
        .as_ref()
        .is_some_and(|filter| !filter(from, to))
    {
        return Ok(None);
    }
    let source = look(from, options).await?;
    let target = match look(to, options).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        target => Some(target?),
    };
    let (from_text, to_text) = (from.display(), to.display());
    if let Some(target) = &target {
        if is_same(&source, target) {
            let text = "src and dest cannot be the same".to_owned();
            return Err(Error::of_cp("ERR_FS_CP_EINVAL", text, to));
        }
        if source.is_directory() && !target.is_directory() {
            let text =
                format!("cannot overwrite non-directory {to_text} with directory {from_text}");
            return Err(Error::of_cp("ERR_FS_CP_DIR_TO_NON_DIR", text, to));
        }
        if !source.is_directory() && target.is_directory() {
            let text =
                format!("cannot overwrite directory {to_text} with non-directory {from_text}");
            return Err(Error::of_cp("ERR_FS_CP_NON_DIR_TO_DIR", text, to));
        }
    }
    if source.is_directory() && is_below(to, from) {
        return Err(below_itself(from, to, to));
    }
    Ok(Some((source, target)))
}

fn is_same(one: &Stats, other: &Stats) -> bool {
    one.ino() != 0 && one.dev() != 0 && one.ino() == other.ino() && one.dev() == other.dev()
}

fn below_itself(from: &Path, to: &Path, path: &Path) -> Error {
    let (from, to) = (from.display(), to.display());
    let text = format!("cannot copy {from} to a subdirectory of self {to}");
    Error::of_cp("ERR_FS_CP_EINVAL", text, path)
}

/// Returns whether `path` is `directory` or below it, by their names.
fn is_below(path: &Path, directory: &Path) -> bool {
    absolute(path).starts_with(absolute(directory))
}

/// Returns the absolute path without `.` and `..`.
fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => _ = plain.pop(),
            other => plain.push(other),
        }
    }
    plain
}

/// Checks that no directory above the target is the source, whatever its names are.
async fn check_parents(from: &Path, source: &Stats, to: &Path) -> Result<(), Error> {
    let (own, target) = (absolute(from), absolute(to));
    for parent in target.ancestors().skip(1) {
        if parent.parent().is_none() || Some(parent) == own.parent() {
            return Ok(());
        }
        match fs::metadata(parent).await {
            Ok(metadata) if is_same(source, &Stats::from(&metadata)) => {
                return Err(below_itself(from, to, to));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
    }
    Ok(())
}

async fn copy_one(
    from: &Path,
    to: &Path,
    (source, target): Both,
    options: &CpOptions,
) -> Result<(), Error> {
    if source.is_directory() {
        if !options.recursive {
            let text = format!("{} is a directory (not copied)", from.display());
            return Err(Error::of_cp("ERR_FS_EISDIR", text, from));
        }
        return Box::pin(copy_directory(from, to, &source, target.is_some(), options)).await;
    }
    if source.is_symbolic_link() {
        return copy_link(from, to, target.is_some(), options).await;
    }
    let (code, text) = if source.is_socket() {
        ("ERR_FS_CP_SOCKET", "a socket file")
    } else if source.is_fifo() {
        ("ERR_FS_CP_FIFO_PIPE", "a FIFO pipe")
    } else {
        return copy_file(from, to, &source, target.is_some(), options).await;
    };
    let text = format!("cannot copy {text}: {}", to.display());
    Err(Error::of_cp(code, text, to))
}

fn exists(to: &Path) -> Error {
    let text = format!("{} already exists", to.display());
    Error::of_cp("ERR_FS_CP_EEXIST", text, to)
}

async fn copy_file(
    from: &Path,
    to: &Path,
    source: &Stats,
    is_there: bool,
    options: &CpOptions,
) -> Result<(), Error> {
    if is_there {
        if !options.force {
            return if options.error_on_exist {
                Err(exists(to))
            } else {
                Ok(())
            };
        }
        fs::remove_file(to).await?;
    }
    options.mode.copy(from, to).await?;
    if options.preserve_timestamps {
        // A file that is not writable keeps its times otherwise.
        platform::set_mode(to, source.mode() | 0o200).await?;
        set_times(from, to).await?;
    }
    Ok(platform::set_mode(to, source.mode()).await?)
}

async fn set_times(from: &Path, to: &Path) -> io::Result<()> {
    let source = Stats::from(fs::metadata(from).await?);
    let times = fs::FileTimes::new()
        .set_accessed(source.atime())
        .set_modified(source.mtime());
    fs::set_times(to, times).await
}

async fn copy_directory(
    from: &Path,
    to: &Path,
    source: &Stats,
    is_there: bool,
    options: &CpOptions,
) -> Result<(), Error> {
    if !is_there {
        fs::create_dir(to).await?;
    } else if options.error_on_exist && !options.force {
        return Err(exists(to));
    }
    for entry in fs::scan_dir(from).await? {
        let (from, to) = (from.join(entry.file_name()), to.join(entry.file_name()));
        if let Some(both) = check(&from, &to, options).await? {
            copy_one(&from, &to, both, options).await?;
        }
    }
    if options.preserve_timestamps {
        set_times(from, to).await?;
    }
    if !is_there {
        platform::set_mode(to, source.mode()).await?;
    }
    Ok(())
}

async fn copy_link(
    from: &Path,
    to: &Path,
    is_there: bool,
    options: &CpOptions,
) -> Result<(), Error> {
    let mut source = fs::read_link(from).await?;
    if !options.verbatim_symlinks && source.is_relative() {
        source = resolve(from, &source);
    }
    let target = match is_there {
        true => fs::read_link(to).await,
        false => Err(io::ErrorKind::NotFound.into()),
    };
    let Ok(target) = target else {
        return Ok(fs::symlink(source, to).await?);
    };
    let target = resolve(to, &target);
    let is_directory = fs::metadata(from).await?.is_dir();
    if is_directory && is_below(&target, &source) {
        return Err(below_itself(&source, &target, to));
    }
    if is_directory && is_below(&source, &target) {
        // To remove the target would remove what the source points to.
        let (target, source) = (target.display(), source.display());
        let text = format!("cannot overwrite {target} with {source}");
        return Err(Error::of_cp("ERR_FS_CP_SYMLINK_TO_SUBDIRECTORY", text, to));
    }
    fs::remove_file(to).await?;
    Ok(fs::symlink(source, to).await?)
}

/// Returns the absolute target of a link.
fn resolve(link: &Path, target: &Path) -> PathBuf {
    let directory = link.parent().unwrap_or(Path::new(""));
    absolute(&directory.join(target))
}
