//! The thread pool, and files on it.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use crate::meter::{Meter, Reading};
use crate::runtime::{Pages, Pool};

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
    let files = SmallFiles::create(n);
    let shares = files.shares(in_flight, n);
    rt.run(async move {
        let meter = Meter::start();
        let read = |share: Vec<PathBuf>| async move {
            for path in share {
                let bytes = rt.read_file(path).await.expect("it was written");
                assert_eq!(bytes.len(), SmallFiles::SIZE);
            }
        };
        let tasks: Vec<_> = shares
            .into_iter()
            .map(|share| rt.spawn(read(share)))
            .collect();
        for task in tasks {
            task.await;
        }
        meter.stop()
    })
}

/// What does a megabyte cost of a file that is read from its start to its end, so many bytes at a
/// time?
pub(crate) fn read_through<R: Pool>(rt: R, at_once: usize, megabytes: u64) -> Reading {
    let big = BigFile::create();
    let path = big.path.clone();
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..megabytes / BigFile::MEGABYTES {
            let total = rt.read_through(path.clone(), at_once).await;
            assert_eq!(total.expect("it was written"), BigFile::SIZE);
        }
        meter.stop()
    })
}

/// What does it cost to read a page of a file that is cached, with so many reads in flight?
pub(crate) fn read_pages<R: Pages>(rt: R, in_flight: u64, n: u64) -> Reading {
    let big = BigFile::create();
    let path = big.path.clone();
    rt.run(async move {
        let read = |first: u64, file: R::File| async move {
            let mut page = vec![0; BigFile::PAGE];
            for index in (first..n).step_by(in_flight as usize) {
                let read = rt.read_page(&file, page, BigFile::page(index));
                page = read.await.expect("it was written");
            }
        };
        let mut files = Vec::new();
        for _ in 0..in_flight {
            files.push(rt.open_pages(path.clone()).await.expect("it was written"));
        }
        let meter = Meter::start();
        let tasks: Vec<_> = (0..)
            .zip(files)
            .map(|(first, file)| rt.spawn(read(first, file)))
            .collect();
        for task in tasks {
            task.await;
        }
        meter.stop()
    })
}

/// A file that fits into the page cache and no other, removed when dropped.
pub(crate) struct BigFile {
    pub(crate) path: PathBuf,
}

impl BigFile {
    pub(crate) const MEGABYTES: u64 = 64;
    pub(crate) const SIZE: u64 = Self::MEGABYTES * 1024 * 1024;
    pub(crate) const PAGE: usize = 4096;

    /// The offset of a page, far from that of the one before it.
    pub(crate) fn page(index: u64) -> u64 {
        let pages = Self::SIZE / Self::PAGE as u64;
        index.wrapping_mul(0x9e37_79b1) % pages * Self::PAGE as u64
    }

    pub(crate) fn create() -> Self {
        let name = format!("phaseloop-big-{}", std::process::id());
        let big = Self {
            path: std::env::temp_dir().join(name),
        };
        let mut file = File::create(&big.path).expect("the temporary folder can be written to");
        let megabyte = vec![b'x'; 1024 * 1024];
        for _ in 0..Self::MEGABYTES {
            file.write_all(&megabyte).expect("there is room");
        }
        big
    }
}

impl Drop for BigFile {
    fn drop(&mut self) {
        // What is left behind lies in the temporary folder.
        let _ = fs::remove_file(&self.path);
    }
}

/// A folder of small files, removed when dropped.
pub(crate) struct SmallFiles {
    folder: PathBuf,
    pub(crate) paths: Vec<PathBuf>,
}

impl SmallFiles {
    const MOST: u64 = 10_000;
    pub(crate) const SIZE: usize = 1024;

    /// As many as are read, up to a limit.
    pub(crate) fn create(reads: u64) -> Self {
        let folder = std::env::temp_dir().join(format!("phaseloop-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be written to");
        let paths: Vec<_> = (0..reads.min(Self::MOST))
            .map(|i| folder.join(i.to_string()))
            .collect();
        for path in &paths {
            fs::write(path, [b'x'; Self::SIZE]).expect("there is room");
        }
        Self { folder, paths }
    }

    /// The paths of `n` reads, in as many equal parts as are read at once.
    pub(crate) fn shares(&self, in_flight: u64, n: u64) -> Vec<Vec<PathBuf>> {
        let each = (n / in_flight) as usize;
        let mut paths = self.paths.iter().cycle().cloned();
        (0..in_flight)
            .map(|_| paths.by_ref().take(each).collect())
            .collect()
    }
}

impl Drop for SmallFiles {
    fn drop(&mut self) {
        // What is left behind lies in the temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
