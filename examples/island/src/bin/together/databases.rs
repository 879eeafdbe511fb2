//! Databases.

use std::rc::Rc;
use std::time::Duration;

use phaseloop::net::UnixStream;
use phaseloop::time::sleep;
use phaseloop::{spawn, spawn_blocking};
use tokio_postgres::{Config, NoTls};

use crate::{Outcome, ROUNDS, processes};

/// tokio-postgres on a Unix socket of the loop; its queries are pipelined.
pub(crate) async fn postgres() -> Outcome {
    // It waits for `initdb`, which takes a second.
    let started = spawn_blocking(|| processes::postgres("island-postgres"));
    let Some(mut server) = started.await? else {
        return Ok(());
    };
    let socket = server.socket().await;
    let mut config = Config::new();
    config.user("tester").dbname("postgres");
    let (client, connection) = loop {
        let stream = UnixStream::connect(&socket).await?;
        match config.connect_raw(stream, NoTls).await {
            Ok(connected) => break connected,
            // The server says that it is starting up.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    };
    let connection = spawn(connection);
    let client = Rc::new(client);
    let queries = (0..ROUNDS as i32).map(|n| {
        let client = client.clone();
        spawn(async move { client.query_one("SELECT $1 * 2", &[&n]).await })
    });
    let rows = futures::future::join_all(queries).await;
    for (n, row) in rows.into_iter().enumerate() {
        assert_eq!(row??.get::<_, i32>(0), n as i32 * 2);
    }
    drop(client);
    connection.await??;
    Ok(())
}

/// redis' own client, on tokio's sockets.
pub(crate) async fn redis() -> Outcome {
    let Some(mut server) = processes::redis("island-redis") else {
        return Ok(());
    };
    let url = format!("redis+unix://{}", server.socket().await.display());
    let client = redis::Client::open(url)?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    for _ in 0..ROUNDS {
        let () = redis::cmd("INCR")
            .arg("n")
            .query_async(&mut connection)
            .await?;
    }
    let n: usize = redis::cmd("GET")
        .arg("n")
        .query_async(&mut connection)
        .await?;
    assert_eq!(n, ROUNDS);
    Ok(())
}

/// sqlx, whose connection has a thread of its own.
pub(crate) async fn sqlx() -> Outcome {
    let pool = sqlx::sqlite::SqlitePoolOptions::new()
        .max_connections(1)
        .connect("sqlite::memory:")
        .await?;
    sqlx::query("create table numbers (n integer)")
        .execute(&pool)
        .await?;
    for n in 0..ROUNDS {
        sqlx::query("insert into numbers values (?)")
            .bind(n as i64)
            .execute(&pool)
            .await?;
    }
    let sum: i64 = sqlx::query_scalar("select sum(n) from numbers")
        .fetch_one(&pool)
        .await?;
    assert_eq!(sum, (0..ROUNDS as i64).sum());
    pool.close().await;
    Ok(())
}
