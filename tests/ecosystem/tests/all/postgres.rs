//! tokio-postgres against a real server, over a Unix socket of the loop.

use std::rc::Rc;
use std::time::Duration;

use phaseloop::net::UnixStream;
use phaseloop::{block_on, spawn, time};
use tokio_postgres::{Config, NoTls};

use crate::servers;

#[test]
fn tokio_postgres_over_our_unix_stream() {
    let Some(mut server) = servers::postgres("postgres") else {
        return;
    };
    block_on(async move {
        let socket = server.socket().await;
        let mut config = Config::new();
        config.user("tester").dbname("postgres");
        let (client, connection) = loop {
            let stream = UnixStream::connect(&socket).await.unwrap();
            match config.connect_raw(stream, NoTls).await {
                Ok(connected) => break connected,
                // The server says that it is starting up.
                Err(_) => time::sleep(Duration::from_millis(50)).await,
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
