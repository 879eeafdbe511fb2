//! redis: its raw connection on a socket of the loop, and its own client on the tokio island.

use phaseloop::net::UnixStream;
use phaseloop::{Local, block_on, spawn};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;

use crate::servers;

/// Without time limits of its own, redis needs no runtime; `Local` passes its bound `Send`.
#[test]
fn the_raw_connection_runs_on_our_socket() {
    let Some(mut server) = servers::redis("redis-raw") else {
        return;
    };
    block_on(async move {
        let path = server.socket().await;
        let stream = Local::new(UnixStream::connect(path).await.unwrap());
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let info = redis::RedisConnectionInfo::default();
        let (mut client, driver) = MultiplexedConnection::new_with_config(&info, stream, config)
            .await
            .unwrap();
        spawn(driver).detach();
        let () = client.set("answer", 42).await.unwrap();
        let mut other = client.clone();
        let (one, two) = futures::join!(client.get("answer"), other.incr("answer", 1));
        let (one, two): (i32, i32) = (one.unwrap(), two.unwrap());
        assert_eq!((one, two), (42, 43));
    });
}

#[test]
fn its_own_client_runs_on_the_island() {
    let Some(mut server) = servers::redis("redis-island") else {
        return;
    };
    phaseloop::tokio::block_on(async move {
        let path = server.socket().await;
        let url = format!("redis+unix://{}", path.display());
        let client = redis::Client::open(url).unwrap();
        let mut client = client.get_multiplexed_async_connection().await.unwrap();
        let () = client.set("answer", 42).await.unwrap();
        assert_eq!(client.get::<_, i32>("answer").await.unwrap(), 42);
    });
}
