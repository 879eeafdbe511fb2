//! PostgreSQL and Redis, as processes of their own. The programs of `examples/island` use this file
//! too.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server that ends with this value. It listens on a Unix socket in a folder of its own.
pub(crate) struct Server {
    child: Child,
    folder: PathBuf,
    socket: &'static str,
}

impl Server {
    fn start(command: &mut Command, folder: PathBuf, socket: &'static str) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("the program was found before");
        Self {
            child,
            folder,
            socket,
        }
    }

    /// Waits until the server listens, and returns the path of its socket. The path exists a moment
    /// before.
    pub(crate) async fn socket(&mut self) -> PathBuf {
        let path = self.folder.join(self.socket);
        while UnixStream::connect(&path).is_err() {
            let ended = self.child.try_wait().expect("it is our child");
            assert!(ended.is_none(), "the server has ended");
            phaseloop::time::sleep(Duration::from_millis(20)).await;
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

/// Starts Redis. Returns `None` where it is not installed.
pub(crate) fn redis(name: &str) -> Option<Server> {
    let mut command = Command::new(find("redis-server")?);
    let (folder, socket) = (folder(name), "redis.socket");
    command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
    command.arg("--unixsocket").arg(folder.join(socket));
    Some(Server::start(
        command.current_dir(&folder),
        folder.clone(),
        socket,
    ))
}

/// Starts PostgreSQL with a database `postgres` of the user `tester`. Returns `None` where it is
/// not installed.
pub(crate) fn postgres(name: &str) -> Option<Server> {
    let (initdb, postgres) = (find("initdb")?, find("postgres")?);
    let folder = folder(name);
    if is_root() {
        let owner = Command::new("chown").arg("postgres").arg(&folder).status();
        if !owner.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: there is no user `postgres`");
            return None;
        }
    }
    let data = folder.join("data");
    let made = as_server_user(&initdb)
        .args(["--auth=trust", "--no-sync", "--username=tester", "-D"])
        .arg(&data)
        .current_dir("/")
        .stdout(Stdio::null())
        .status();
    assert!(made.is_ok_and(|status| status.success()), "initdb failed");
    let mut command = as_server_user(&postgres);
    command.args(["-c", "listen_addresses=", "-c", "fsync=off", "-k"]);
    command.arg(&folder).arg("-D").arg(&data).current_dir("/");
    Some(Server::start(&mut command, folder, ".s.PGSQL.5432"))
}

fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output();
    user.is_ok_and(|user| user.stdout == b"0\n")
}

/// PostgreSQL refuses to run as root; Debian's package has created a user for it.
fn as_server_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    command.arg(program);
    command
}

/// Finds a program in the path, or in the folders of Debian's PostgreSQL.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let mut found = folders.iter().map(|folder| folder.join(program));
    let found = found.find(|path| path.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// Creates an empty folder for a server.
fn folder(name: &str) -> PathBuf {
    let name = format!("phaseloop-{name}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    folder
}
