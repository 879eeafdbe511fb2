//! A small file read whole: open, stat, read, close, each a job of the pool, as a program on libuv
//! does it.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use libuv_sys2::{
    uv_buf_init, uv_fs_close, uv_fs_fstat, uv_fs_open, uv_fs_read, uv_fs_req_cleanup, uv_fs_t,
    uv_loop_t,
};

use super::{check, run_loop};
use crate::meter::{Meter, Reading};
use crate::workload::pool::SmallFiles;

struct Reader {
    request: uv_fs_t,
    paths: Vec<CString>,
    file: i32,
    bytes: Vec<u8>,
}

pub(super) fn read_files(uv: *mut uv_loop_t, in_flight: u64, n: u64) -> Reading {
    let files = SmallFiles::create(n);
    let each = n / in_flight;
    let path = |i: u64| {
        let path = &files.paths[i as usize % files.paths.len()];
        CString::new(path.as_os_str().as_bytes()).expect("there is no zero in it")
    };
    let meter = Meter::start();
    let mut readers: Vec<_> = (0..in_flight)
        .map(|reader| {
            Box::new(Reader {
                // SAFETY: a request of zeroes is overwritten when it is started.
                request: unsafe { std::mem::zeroed() },
                paths: (reader * each..(reader + 1) * each).map(path).collect(),
                file: 0,
                bytes: Vec::new(),
            })
        })
        .collect();
    for reader in &mut readers {
        let reader = &raw mut **reader;
        // SAFETY: the reader outlives the run.
        unsafe {
            (*reader).request.data = reader.cast();
            open(uv, reader);
        }
    }
    run_loop(uv);
    meter.stop()
}

/// # Safety
///
/// The reader is valid and has no request under way.
unsafe fn open(uv: *mut uv_loop_t, reader: *mut Reader) {
    // SAFETY: the path stays in the reader until the request is done, since only `opened` takes it
    // away.
    unsafe {
        let request = &raw mut (*reader).request;
        let paths = &(*reader).paths;
        let Some(path) = paths.last() else {
            return;
        };
        check(uv_fs_open(
            uv,
            request,
            path.as_ptr(),
            libc::O_RDONLY,
            0,
            Some(opened),
        ));
    }
}

// SAFETY of the four: each is called once, when its request is done; `data` is the reader, which
// outlives the run.

extern "C" fn opened(request: *mut uv_fs_t) {
    // SAFETY: see above.
    unsafe {
        let reader = (*request).data.cast::<Reader>();
        (*reader).file = check((*request).result as i32);
        uv_fs_req_cleanup(request);
        let paths = &mut (*reader).paths;
        paths.pop();
        check(uv_fs_fstat(
            (*request).loop_,
            request,
            (*reader).file,
            Some(measured),
        ));
    }
}

extern "C" fn measured(request: *mut uv_fs_t) {
    // SAFETY: see above; the buffer lives in the reader until the file is closed.
    unsafe {
        let reader = (*request).data.cast::<Reader>();
        let size = (*request).statbuf.st_size;
        uv_fs_req_cleanup(request);
        (*reader).bytes = vec![0; size as usize];
        let buffer = uv_buf_init((*reader).bytes.as_mut_ptr().cast(), size as u32);
        let file = (*reader).file;
        check(uv_fs_read(
            (*request).loop_,
            request,
            file,
            &raw const buffer,
            1,
            0,
            Some(read),
        ));
    }
}

extern "C" fn read(request: *mut uv_fs_t) {
    // SAFETY: see above.
    unsafe {
        let reader = (*request).data.cast::<Reader>();
        assert_eq!((*request).result as usize, SmallFiles::SIZE);
        uv_fs_req_cleanup(request);
        check(uv_fs_close(
            (*request).loop_,
            request,
            (*reader).file,
            Some(closed),
        ));
    }
}

extern "C" fn closed(request: *mut uv_fs_t) {
    // SAFETY: see above.
    unsafe {
        uv_fs_req_cleanup(request);
        open((*request).loop_, (*request).data.cast());
    }
}
