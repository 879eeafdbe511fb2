//! Files: what Windows has of the operations that were on Unix only.

use std::io::ErrorKind;

use phaseloop::fs::{self, Access};
use phaseloop::io::AsyncWriteExt;

use crate::{is_wine, run};

#[test]
fn a_file_that_is_read_only_may_not_be_written() {
    run(async {
        let folder = fs::mkdtemp(std::env::temp_dir().join("access-XXXXXX"))
            .await
            .unwrap();
        let path = folder.join("file");
        fs::write(&path, "text").await.unwrap();
        fs::access(&path, Access::READ | Access::WRITE)
            .await
            .unwrap();
        fs::access(&folder, Access::WRITE).await.unwrap();
        let mut permissions = fs::metadata(&path).await.unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions.clone())
            .await
            .unwrap();
        fs::access(&path, Access::READ).await.unwrap();
        let refused = fs::access(&path, Access::WRITE).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        let missing = fs::access(folder.join("missing"), Access::EXISTS).await;
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
        #[allow(
            clippy::permissions_set_readonly_false,
            reason = "Windows has no others"
        )]
        permissions.set_readonly(false);
        fs::set_permissions(&path, permissions).await.unwrap();
        fs::remove_dir_all(folder).await.unwrap();
    });
}

#[test]
fn a_file_system_tells_its_size() {
    run(async {
        for path in [std::env::temp_dir(), std::env::current_exe().unwrap()] {
            let system = fs::statfs(&path).await.unwrap();
            assert!(
                system.blocks > 0 && system.fragment_size >= 512,
                "{system:?}"
            );
            assert!(system.available_blocks <= system.blocks);
        }
        let missing = fs::statfs(r"C:\no\such\folder").await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn bytes_are_copied_from_an_offset_to_the_position() {
    run(async {
        let folder = fs::mkdtemp(std::env::temp_dir().join("range-XXXXXX"))
            .await
            .unwrap();
        fs::write(folder.join("from"), "0123456789").await.unwrap();
        let from = fs::File::open(folder.join("from")).await.unwrap();
        let mut to = fs::File::create(folder.join("to")).await.unwrap();
        to.write_all(b"ab").await.unwrap();
        assert_eq!(fs::copy_range(&from, 4, &to, 3).await.unwrap(), 3);
        assert_eq!(fs::copy_range(&from, 8, &to, 100).await.unwrap(), 2);
        to.close().await.unwrap();
        drop(from);
        assert_eq!(fs::read(folder.join("to")).await.unwrap(), b"ab45689");
        fs::remove_dir_all(folder).await.unwrap();
    });
}

/// Without the privilege the OS refuses it.
#[test]
fn a_symbolic_link_leads_to_a_file_or_a_directory() {
    run(async {
        let folder = fs::mkdtemp(std::env::temp_dir().join("link-XXXXXX"))
            .await
            .unwrap();
        fs::write(folder.join("file"), "text").await.unwrap();
        fs::create_dir(folder.join("inner")).await.unwrap();
        let linked = fs::symlink("file", folder.join("to-file")).await;
        const ERROR_PRIVILEGE_NOT_HELD: i32 = 1314;
        match linked {
            Err(error) => assert_eq!(
                phaseloop::os_error(&error),
                Some(ERROR_PRIVILEGE_NOT_HELD),
                "{error}"
            ),
            // The call of Wine 8 does nothing and succeeds.
            Ok(()) if is_wine() => {}
            Ok(()) => {
                fs::symlink("inner", folder.join("to-inner")).await.unwrap();
                assert_eq!(fs::read(folder.join("to-file")).await.unwrap(), b"text");
                assert!(
                    fs::metadata(folder.join("to-inner"))
                        .await
                        .unwrap()
                        .is_dir()
                );
            }
        }
        fs::remove_dir_all(folder).await.unwrap();
    });
}
