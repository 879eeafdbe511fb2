//! tokio-postgres against a real server, over a Unix socket of the loop.

use std::process::{Command, Stdio};
use std::rc::Rc;

use phaseloop::net::UnixStream;
use phaseloop::{block_on, spawn};
use tokio_postgres::{Config, NoTls};

use crate::process::{Server, find, folder};

fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output();
    user.is_ok_and(|user| user.stdout == b"0\n")
}

/// The server refuses to run as root; Debian's package has created a user for it.
fn as_server_user(program: &std::path::Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    command.arg(program);
    command
}

#[test]
fn tokio_postgres_over_our_unix_stream() {
    let (Some(initdb), Some(postgres)) = (find("initdb"), find("postgres")) else {
        return;
    };
    let place = folder("postgres");
    if is_root() {
        let owner = Command::new("chown").arg("postgres").arg(&place).status();
        if !owner.is_ok_and(|status| status.success()) {
            return eprintln!("SKIPPED: there is no user `postgres`");
        }
    }
    let data = place.join("data");
    let made = as_server_user(&initdb)
        .args(["--auth=trust", "--no-sync", "--username=tester", "-D"])
        .arg(&data)
        .current_dir("/")
        .stdout(Stdio::null())
        .status();
    assert!(made.unwrap().success());
    let mut command = as_server_user(&postgres);
    command.args(["-c", "listen_addresses=", "-c", "fsync=off", "-k"]);
    command.arg(&place).arg("-D").arg(&data).current_dir("/");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Server::start(&mut command, place);
    block_on(async move {
        let socket = server.wait_for(".s.PGSQL.5432").await;
        let mut config = Config::new();
        config.user("tester").dbname("postgres");
        let (client, connection) = loop {
            let stream = UnixStream::connect(&socket).await.unwrap();
            match config.connect_raw(stream, NoTls).await {
                Ok(connected) => break connected,
                // The server says that it is starting up.
                Err(_) => phaseloop::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        };
        let connection = spawn(connection);
        let client = Rc::new(client);
        let queries = (0..10).map(|number: i32| {
            let client = client.clone();
            spawn(async move {
                let row = client.query_one("SELECT $1 * 2", &[&number]).await.unwrap();
                row.get::<_, i32>(0)
            })
        });
        let answers = futures::future::join_all(queries).await;
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers, (0..10).map(|n| n * 2).collect::<Vec<_>>());
        drop(client);
        connection.await.unwrap().unwrap();
    });
}
