//! The timeline that `PHASELOOP_TRACE` asks for: one file a loop.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::observer::{Flush, Observer, Wants};
use super::recorder::Recorder;
use crate::stderr;

/// The file for the timeline, with the recorder that it shows.
pub(crate) struct Timeline {
    pub(super) file: TraceFile,
    pub(super) recorder: Recorder,
}

impl Observer for Timeline {
    fn wants(&self) -> Wants {
        Wants::FLUSHES
    }

    fn flush(&self, why: Flush) {
        // At the exit of a forked child, the file is that of its parent.
        if why != Flush::Exit || self.file.process == process::id() {
            self.file.write(&self.recorder);
        }
    }
}

/// A file that was created with its loop, so that a wrong path is known at once.
pub(crate) struct TraceFile {
    path: PathBuf,
    file: File,
    /// The process that has created it.
    process: u32,
}

impl TraceFile {
    /// Creates the file of the next loop of the process. A failure is one line on standard error.
    pub(crate) fn create(pattern: &Path) -> Option<Self> {
        static LOOPS: AtomicU32 = AtomicU32::new(0);
        let number = LOOPS.fetch_add(1, Ordering::Relaxed) + 1;
        let process = process::id();
        let path = path_of(pattern, process, number);
        match File::create(&path) {
            Ok(file) => Some(Self {
                path,
                file,
                process,
            }),
            Err(error) => {
                cannot_write(&path, &error);
                None
            }
        }
    }

    /// Writes the records, in place of what was written before. A failure is one line on standard
    /// error.
    fn write(&self, recorder: &Recorder) {
        if let Err(error) = self.try_write(recorder) {
            cannot_write(&self.path, &error);
        }
    }

    fn try_write(&self, recorder: &Recorder) -> io::Result<()> {
        let mut file = &self.file;
        file.rewind()?;
        file.set_len(0)?;
        let mut out = BufWriter::new(file);
        if self.path.extension().is_some_and(|it| it == "html") {
            recorder.write_html(&mut out)?;
        } else {
            recorder.write_chrome(&mut out)?;
        }
        out.flush()
    }
}

/// Replaces `%p` by the process, and puts the number of a second or later loop before the
/// extension.
fn path_of(pattern: &Path, process: u32, number: u32) -> PathBuf {
    let mut path = pattern.to_path_buf();
    let Some(name) = pattern.file_name() else {
        return path;
    };
    // A name that is not Unicode has no `%p` that could be found.
    let name = match name.to_str() {
        Some(name) => OsString::from(name.replace("%p", &process.to_string())),
        None => name.to_owned(),
    };
    path.set_file_name(name);
    if number > 1 {
        let mut stem = path.file_stem().unwrap_or_default().to_owned();
        stem.push(format!("-{number}"));
        if let Some(extension) = path.extension() {
            stem.push(".");
            stem.push(extension);
        }
        path.set_file_name(stem);
    }
    path
}

fn cannot_write(path: &Path, error: &io::Error) {
    let path = path.display();
    stderr::print(format_args!("phaseloop: cannot write {path}: {error}"));
}

#[cfg(test)]
mod tests {
    use super::path_of;
    use std::path::Path;

    #[test]
    fn the_name_holds_the_process_and_the_number_of_a_later_loop() {
        let path = |pattern, number| path_of(Path::new(pattern), 42, number);
        assert_eq!(path("out.html", 1), Path::new("out.html"));
        assert_eq!(path("a/out.html", 2), Path::new("a/out-2.html"));
        assert_eq!(path("a%p/out-%p.json", 1), Path::new("a%p/out-42.json"));
        assert_eq!(path("%p.json", 3), Path::new("42-3.json"));
    }
}
