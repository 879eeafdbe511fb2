//! Named pipes.

use std::io::ErrorKind;
use std::path::PathBuf;

use futures::future::{join, join_all};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::windows::{NamedPipeListener, NamedPipeStream};
use phaseloop::{LoopHandle, OsError};

use crate::{is_wine, run};
use tokio_test::assert_pending;

fn name(test: &str) -> PathBuf {
    format!(r"\\.\pipe\phaseloop-test-{test}-{}", std::process::id()).into()
}

#[test]
fn a_connection_carries_bytes_both_ways() {
    run(async {
        let listener = NamedPipeListener::bind(name("both")).unwrap();
        let (client, server) =
            join(NamedPipeStream::connect(name("both")), listener.accept()).await;
        let (mut client, mut server) = (client.unwrap(), server.unwrap());
        let long = vec![b'x'; 300_000];
        let mut received = vec![0; long.len()];
        let send = async {
            client.write_all(&long).await.unwrap();
            client.flush().await.unwrap();
        };
        let (_, read) = join(send, server.read_exact(&mut received)).await;
        read.unwrap();
        assert!(received == long);
        server.write_all(b"answer").await.unwrap();
        drop(server);
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "answer", "and then EOF");
        let error = client.write_all(&[0; 10]).await.err();
        let error = match error {
            Some(error) => Some(error),
            None => client.flush().await.err(),
        };
        assert_eq!(error.unwrap().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn clients_are_served_one_after_the_other() {
    run(async {
        let listener = NamedPipeListener::bind(name("many")).unwrap();
        assert_eq!(listener.name(), name("many"));
        let clients = join_all((0..20_u8).map(|number| async move {
            let mut client = NamedPipeStream::connect(name("many")).await.unwrap();
            client.write_all(&[number]).await.unwrap();
            let mut echo = [0];
            client.read_exact(&mut echo).await.unwrap();
            echo[0]
        }));
        let server = async {
            for _ in 0..20 {
                let mut stream = listener.accept().await.unwrap();
                let mut byte = [0];
                stream.read_exact(&mut byte).await.unwrap();
                stream.write_all(&byte).await.unwrap();
            }
        };
        let (echoes, ()) = join(clients, server).await;
        assert_eq!(echoes, (0..20).collect::<Vec<_>>());
    });
}

#[test]
fn a_name_belongs_to_one_listener_and_is_free_after_it() {
    run(async {
        let missing = NamedPipeStream::connect(name("one")).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert_eq!(OsError::of(&missing).unwrap().path(), Some(&*name("one")));
        let listener = NamedPipeListener::bind(name("one")).unwrap();
        match NamedPipeListener::bind(name("one")) {
            Err(taken) => assert_eq!(taken.kind(), ErrorKind::AddrInUse),
            // Wine 8 does not know the flag for the first instance.
            Ok(_second) => assert!(is_wine()),
        }
        listener.close().await;
        let again = NamedPipeListener::bind(name("one")).unwrap();
        drop(again);
        assert_eq!(LoopHandle::current().handles().len(), 0);
    });
}

#[test]
fn a_listener_may_be_dropped_while_the_kernel_waits_for_a_client() {
    run(async {
        for round in 0..100 {
            let name = name(&format!("drop-{round}"));
            let listener = NamedPipeListener::bind(name).unwrap();
            let accept = std::pin::pin!(listener.accept());
            assert_pending!(tokio_test::task::spawn(accept).poll());
        }
    });
}
