//! Servers that are processes of their own.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};

/// A process that ends with its test, and the folder that it works in.
pub(crate) struct Server {
    child: Child,
    pub(crate) folder: PathBuf,
}

impl Server {
    pub(crate) fn start(command: &mut Command, folder: PathBuf) -> Self {
        let child = command.spawn().expect("the program was found before");
        Self { child, folder }
    }

    /// Waits until the server listens on the socket, which exists a moment before.
    pub(crate) async fn wait_for(&mut self, socket: &str) -> PathBuf {
        let path = self.folder.join(socket);
        while UnixStream::connect(&path).is_err() {
            assert!(
                self.child.try_wait().unwrap().is_none(),
                "the server has ended"
            );
            phaseloop::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Finds a program in the path, or in the folders of Debian's PostgreSQL.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let found = folders.iter().map(|folder| folder.join(program));
    let found = found.into_iter().find(|path| path.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// An empty folder for a server.
pub(crate) fn folder(name: &str) -> PathBuf {
    let name = format!("phaseloop-{name}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
