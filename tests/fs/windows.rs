//! Files on Windows: the kinds of its errors are those of Unix, and operations at an offset leave
//! the position where it is, as on Unix.
#![cfg(windows)]

use crate::util::files::Directory;
use std::io::{ErrorKind, SeekFrom};
use std::os::windows::fs::OpenOptionsExt;

use futures::future::join_all;
use futures::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use phaseloop::fs::{self, File};
use phaseloop::{block_on, os_error};

#[track_caller]
fn kind<T>(result: std::io::Result<T>) -> ErrorKind {
    result.err().expect("it fails").kind()
}

#[test]
fn a_file_that_another_holds_for_itself_is_busy() {
    const ERROR_SHARING_VIOLATION: i32 = 32;
    let directory = Directory::new("sharing");
    let path = directory.file("file", "mine");
    block_on(async {
        let mut options = std::fs::OpenOptions::new();
        let held = options.read(true).share_mode(0).open(&path).unwrap();
        let error = File::open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        assert_eq!(os_error(&error), Some(ERROR_SHARING_VIOLATION));
        assert_eq!(kind(fs::read(&path).await), ErrorKind::ResourceBusy);
        assert_eq!(kind(fs::write(&path, "x").await), ErrorKind::ResourceBusy);
        drop(held);
        assert_eq!(fs::read(&path).await.unwrap(), b"mine");
    });
}

#[test]
fn a_directory_is_no_file() {
    let directory = Directory::new("directory");
    let path = directory.path("folder");
    block_on(async {
        fs::create_dir(&path).await.unwrap();
        assert_eq!(kind(File::open(&path).await), ErrorKind::IsADirectory);
        assert_eq!(kind(File::create(&path).await), ErrorKind::IsADirectory);
        assert_eq!(kind(fs::read(&path).await), ErrorKind::IsADirectory);
        assert_eq!(kind(fs::write(&path, "").await), ErrorKind::IsADirectory);
        assert_eq!(kind(fs::append(&path, "").await), ErrorKind::IsADirectory);
        assert_eq!(kind(fs::truncate(&path, 0).await), ErrorKind::IsADirectory);
        assert_eq!(kind(fs::remove_file(&path).await), ErrorKind::IsADirectory);
        let file = directory.file("file", "");
        assert_eq!(kind(fs::remove_dir(&file).await), ErrorKind::NotADirectory);
    });
}

#[test]
fn a_rename_replaces_a_file_and_says_why_it_cannot_replace_a_directory() {
    let directory = Directory::new("rename");
    let (old, new) = (directory.file("old", "old"), directory.file("new", "new"));
    let (empty, full) = (directory.path("empty"), directory.path("full"));
    block_on(async {
        fs::rename(&new, &old).await.unwrap();
        assert_eq!(fs::read(&old).await.unwrap(), b"new");
        fs::create_dir(&empty).await.unwrap();
        fs::create_dir(&full).await.unwrap();
        fs::write(full.join("file"), "").await.unwrap();
        let renamed = fs::rename(&old, &full).await;
        assert_eq!(kind(renamed), ErrorKind::IsADirectory);
        let renamed = fs::rename(&empty, &full).await;
        assert_eq!(kind(renamed), ErrorKind::DirectoryNotEmpty);
        assert_eq!(fs::read(&old).await.unwrap(), b"new", "nothing has changed");
    });
}

#[test]
fn operations_at_an_offset_leave_the_position_alone() {
    let directory = Directory::new("position");
    let digits = "0123456789".repeat(10);
    let path = directory.file("file", &digits);
    block_on(async {
        let mut options = fs::OpenOptions::new();
        let mut file = options.read(true).write(true).open(&path).await.unwrap();
        file.seek(SeekFrom::Start(3)).await.unwrap();
        for round in 0..20 {
            // Many at once, and one at the position among them.
            let reads = join_all((0..10).map(|offset| {
                let file = &file;
                async move {
                    let mut byte = [0];
                    file.read_exact_at(&mut byte, offset).await.unwrap();
                    assert_eq!(byte[0], b'0' + offset as u8);
                }
            }));
            let mut byte = [0];
            let mut reader = &file;
            let (_, read) = futures::future::join(reads, reader.read_exact(&mut byte)).await;
            read.unwrap();
            assert_eq!(byte[0], b'0' + ((3 + round) % 10) as u8);
            file.seek(SeekFrom::Start(4 + round)).await.unwrap();
        }
        file.write_all_at(b"x", 0).await.unwrap();
        file.write_all(b"y").await.unwrap();
        file.close().await.unwrap();
        let content = fs::read_to_string(&path).await.unwrap();
        assert!(content.starts_with("x123456789"), "{content}");
        assert_eq!(content.find('y'), Some(23), "{content}");
    });
}
