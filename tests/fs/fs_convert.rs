//! Files from and to those of the standard library, and `DirBuilder`.

use crate::util::files::Directory;
use crate::util::pool::{Hold, with_threads};
use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::pin::pin;

use futures::{AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, FutureExt};
use phaseloop::block_on;
use phaseloop::fs::{DirBuilder, File, OpenOptions};

#[test]
fn a_file_at_rest_becomes_one_of_the_standard_library_at_its_position() {
    let directory = Directory::new("try-into-std");
    let path = directory.file("file", "0123456789");
    block_on(async {
        // One that nothing has used.
        let file = File::open(&path).await.unwrap().try_into_std().unwrap();
        assert_eq!((&file).stream_position().unwrap(), 0);
        // Bytes were read ahead; the position goes back.
        let mut file = File::from_std(file);
        let mut some = [0; 3];
        file.read_exact(&mut some).await.unwrap();
        let mut file = file.try_into_std().unwrap();
        assert_eq!(file.stream_position().unwrap(), 3);
        let mut rest = String::new();
        file.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "3456789");
        // EOF was found, and a seek is done.
        let mut file = File::from_std(file);
        assert_eq!(file.read(&mut some).await.unwrap(), 0);
        file.seek(SeekFrom::Start(8)).await.unwrap();
        let mut file = file.try_into_std().unwrap();
        assert_eq!(file.stream_position().unwrap(), 8);
    });
}

#[test]
fn a_file_with_a_job_under_way_stays_and_is_whole_later() {
    let directory = Directory::new("try-into-std-busy");
    let path = directory.path("file");
    let (event_loop, _pool) = with_threads(1);
    event_loop.block_on(async {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let mut file = options.open(&path).await.unwrap();
        let hold = Hold::new();
        file.write_all(b"hello").await.unwrap();
        let mut file = file
            .try_into_std()
            .expect_err("the write waits for a thread");
        drop(hold);
        file.flush().await.unwrap();
        // A read whose future was dropped.
        file.seek(SeekFrom::Start(1)).await.unwrap();
        let hold = Hold::new();
        let mut byte = [0];
        assert!(pin!(file.read(&mut byte)).now_or_never().is_none());
        let mut file = file
            .try_into_std()
            .expect_err("the read waits for a thread");
        drop(hold);
        file.read_exact(&mut byte).await.unwrap();
        assert_eq!(&byte, b"e", "nothing was lost");
        let mut file = file.into_std().await.unwrap();
        assert_eq!(file.stream_position().unwrap(), 2);
        // A call whose future was dropped holds the file.
        let file = File::from_std(file);
        let hold = Hold::new();
        assert!(pin!(file.metadata()).now_or_never().is_none());
        let converted = file.try_into_std();
        drop(hold);
        // The job was cancelled with its future, or the file stays; either way it is whole.
        let mut file = match converted {
            Ok(file) => file,
            Err(file) => file.into_std().await.unwrap(),
        };
        assert_eq!(file.stream_position().unwrap(), 2);
    });
    assert_eq!(fs::read(path).unwrap(), b"hello");
}

#[test]
fn a_file_whose_write_has_failed_stays_until_the_error_is_known() {
    let directory = Directory::new("try-into-std-failed");
    let path = directory.file("file", "0123456789");
    block_on(async {
        // Open for reading only.
        let mut file = File::open(&path).await.unwrap();
        file.write_all(b"x").await.unwrap();
        // It waits until the write is done.
        file.metadata().await.unwrap();
        let mut file = file.try_into_std().expect_err("the error is not known");
        assert!(file.flush().await.is_err());
        let mut file = file.try_into_std().unwrap();
        assert_eq!(file.stream_position().unwrap(), 0);
    });
}

#[cfg(unix)]
#[test]
fn bytes_that_were_read_from_a_pipe_keep_the_file_until_they_are_used() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let mut writer = fs::File::from(writer);
    writer.write_all(b"0123456789").unwrap();
    block_on(async {
        let mut file = File::from(reader);
        assert!(!file.fill_buf().await.unwrap().is_empty());
        let mut file = file.try_into_std().expect_err("they cannot be put back");
        let mut digits = [0; 10];
        file.read_exact(&mut digits).await.unwrap();
        assert_eq!(&digits, b"0123456789");
        let mut file = file.try_into_std().unwrap();
        writer.write_all(b"abc").unwrap();
        drop(writer);
        let mut rest = String::new();
        file.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "abc");
    });
}

#[cfg(unix)]
#[test]
fn a_descriptor_becomes_a_file() {
    let directory = Directory::new("from-fd");
    let path = directory.file("file", "0123456789");
    block_on(async {
        let mut std = fs::File::open(&path).unwrap();
        std.seek(SeekFrom::Start(7)).unwrap();
        let mut file = File::from(std::os::fd::OwnedFd::from(std));
        assert_eq!(file.path(), None);
        let mut rest = String::new();
        file.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "789");
    });
}

#[test]
fn options_of_the_standard_library_open_files_here() {
    let directory = Directory::new("from-options");
    let path = directory.path("file");
    block_on(async {
        let mut std = fs::OpenOptions::new();
        std.write(true).create_new(true);
        let options = OpenOptions::from(std);
        options.open(&path).await.unwrap();
        let error = options.open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    });
}

#[test]
fn a_directory_is_created_with_its_parents_or_without() {
    let directory = Directory::new("dir-builder");
    let deep = directory.path("a/b/c");
    block_on(async {
        let error = DirBuilder::new().create(&deep).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("a/b/c"), "{error}");
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        builder.create(&deep).await.unwrap();
        // It exists: an error only without its parents.
        builder.create(&deep).await.unwrap();
        let error = builder.recursive(false).create(&deep).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        let file = directory.file("file", "");
        let mut builder = DirBuilder::default();
        assert!(
            builder
                .recursive(true)
                .create(file.join("x"))
                .await
                .is_err()
        );
    });
    assert!(deep.is_dir());
}

#[cfg(unix)]
#[test]
fn a_directory_has_the_mode_that_was_set() {
    use std::os::unix::fs::PermissionsExt;

    let directory = Directory::new("dir-mode");
    block_on(async {
        let mut builder = DirBuilder::new();
        builder.mode(0o700).recursive(true);
        builder.create(directory.path("x/y")).await.unwrap();
        // A builder may be used while its job runs, and cloned.
        builder.clone().create(directory.path("z")).await.unwrap();
    });
    for name in ["x", "x/y", "z"] {
        let mode = fs::metadata(directory.path(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700, "{name}");
    }
}

#[test]
fn a_builder_without_a_loop_panics_with_its_name() {
    let builder = DirBuilder::new();
    let create = pin!(builder.create("nowhere"));
    let text = crate::util::panics::panic_of(|| drop(create.now_or_never()));
    assert!(text.contains("fs::create_dir"), "{text}");
}
