//! The timeline that `PHASELOOP_TRACE` asks for: one file a loop. The loops of a cluster have one.

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
    pub(super) process: u32,
    /// The part of this loop in the timeline of several.
    #[cfg(feature = "cluster")]
    pub(super) part: Option<super::joint::Part>,
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
                #[cfg(feature = "cluster")]
                part: None,
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

    /// Returns the same file for another loop, whose timeline is a part of it.
    #[cfg(feature = "cluster")]
    pub(super) fn with_part(&self, part: super::joint::Part) -> io::Result<Self> {
        Ok(Self {
            path: self.path.clone(),
            file: self.file.try_clone()?,
            process: self.process,
            part: Some(part),
        })
    }

    fn try_write(&self, recorder: &Recorder) -> io::Result<()> {
        #[cfg(feature = "cluster")]
        if let Some(part) = &self.part {
            return part.write(self, recorder);
        }
        self.replace(|out, is_page| {
            if is_page {
                recorder.write_html(out)
            } else {
                recorder.write_chrome(out)
            }
        })
    }

    /// Writes the file, in place of what was written before. `write` learns whether it is a page.
    pub(super) fn replace(
        &self,
        write: impl FnOnce(&mut BufWriter<&File>, bool) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut file = &self.file;
        file.rewind()?;
        file.set_len(0)?;
        let mut out = BufWriter::new(file);
        write(&mut out, self.is_page())?;
        out.flush()
    }
}

impl TraceFile {
    pub(super) fn is_page(&self) -> bool {
        self.path.extension().is_some_and(|it| it == "html")
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
