//! What `std`'s own calls cost, one after the other on one thread: the floor under the workloads
//! with files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Instant;

use crate::latency::Latencies;
use crate::meter::{Meter, Reading};
use crate::workload::fairness::SHORT;
use crate::workload::pool::{BigFile, SmallFiles};

pub(crate) fn read_files(n: u64) -> io::Result<Reading> {
    let files = SmallFiles::create(n);
    let meter = Meter::start();
    for path in files.paths.iter().cycle().take(n as usize) {
        assert_eq!(fs::read(path)?.len(), SmallFiles::SIZE);
    }
    Ok(meter.stop())
}

pub(crate) fn read_through(at_once: usize, megabytes: u64) -> io::Result<Reading> {
    let big = BigFile::create();
    let mut buffer = vec![0; at_once];
    let meter = Meter::start();
    for _ in 0..megabytes / BigFile::MEGABYTES {
        let mut file = File::open(&big.path)?;
        let mut total = 0;
        loop {
            let n = file.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            total += n as u64;
        }
        assert_eq!(total, BigFile::SIZE);
    }
    Ok(meter.stop())
}

pub(crate) fn read_pages(n: u64) -> io::Result<Reading> {
    let big = BigFile::create();
    let file = File::open(&big.path)?;
    let mut page = vec![0; BigFile::PAGE];
    let meter = Meter::start();
    for index in 0..n {
        file.read_exact_at(&mut page, BigFile::page(index))?;
    }
    Ok(meter.stop())
}

pub(crate) fn short_sleep(naps: u64) -> Reading {
    let mut latencies = Latencies::new();
    let meter = Meter::start();
    for _ in 0..naps {
        let deadline = Instant::now() + SHORT;
        thread::sleep(SHORT);
        latencies.record(deadline.elapsed());
    }
    Reading {
        latencies: Some(latencies),
        ..meter.stop()
    }
}
