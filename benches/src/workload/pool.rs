//! The thread pool, and files on it.

use std::fs;
use std::path::PathBuf;

use crate::meter::{Meter, Reading};
use crate::runtime::Pool;

/// What does a job cost that does nothing, with so many in flight?
pub(crate) fn blocking<R: Pool>(rt: R, in_flight: u64, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        let tasks: Vec<_> = (0..in_flight)
            .map(|_| {
                rt.spawn(async move {
                    for _ in 0..n / in_flight {
                        rt.blocking(|| ()).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        meter.stop()
    })
}

/// What does it cost to read a small file whole, with so many reads in flight?
pub(crate) fn read_files<R: Pool>(rt: R, in_flight: u64, n: u64) -> Reading {
    let files = SmallFiles::create();
    let reading = {
        let paths = files.paths.clone();
        rt.run(async move {
            let meter = Meter::start();
            let each = n / in_flight;
            let tasks: Vec<_> = (0..in_flight)
                .map(|task| {
                    let first = task * each;
                    let paths: Vec<_> = (first..first + each)
                        .map(|i| paths[i as usize % paths.len()].clone())
                        .collect();
                    rt.spawn(async move {
                        for path in paths {
                            let bytes = rt.read_file(path).await.expect("it was written");
                            assert_eq!(bytes.len(), SmallFiles::SIZE);
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
            meter.stop()
        })
    };
    drop(files);
    reading
}

/// A folder of small files, removed when dropped.
pub(crate) struct SmallFiles {
    folder: PathBuf,
    pub(crate) paths: Vec<PathBuf>,
}

impl SmallFiles {
    const COUNT: u64 = 10_000;
    pub(crate) const SIZE: usize = 1024;

    pub(crate) fn create() -> Self {
        let folder = std::env::temp_dir().join(format!("phaseloop-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be written to");
        let paths: Vec<_> = (0..Self::COUNT)
            .map(|i| folder.join(i.to_string()))
            .collect();
        for path in &paths {
            fs::write(path, [b'x'; Self::SIZE]).expect("there is room");
        }
        Self { folder, paths }
    }
}

impl Drop for SmallFiles {
    fn drop(&mut self) {
        // What is left behind lies in the temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
