//! What processes, watchers and their kind leave behind: bytes, counted by the allocator, and
//! descriptors. Each test is in a process of its own, and on the paused clock.
#![cfg(all(target_os = "linux", feature = "tls"))]

use crate::left::{closing, descriptors, isolated, leaves_nothing, until};
use std::cell::Cell;
use std::net::TcpStream;
use std::rc::Rc;

use phaseloop_node::child_process::{CLOSE, EXIT, SpawnOptions, Stdio, spawn_with};
use phaseloop_node::events::once;
use phaseloop_node::fs::{self, CHANGE, ReadStreamOptions, STAT_CHANGE, WatchOptions, promises};
use phaseloop_node::net::{self, DROP, LISTENING, ListenOptions};
use phaseloop_node::{AbortController, Emitter, sleep};

#[test]
fn processes_with_further_pipes_leave_nothing() {
    isolated("processes_with_further_pipes_leave_nothing", || async {
        // One signal for all of them: it must not keep those that have ended.
        let abort = AbortController::new();
        leaves_nothing(20, async || {
            let options = SpawnOptions {
                stdio: vec![Stdio::Ignore, Stdio::Pipe, Stdio::Ignore, Stdio::Pipe],
                signal: Some(abort.signal()),
                timeout: Some(1_000_000_000.into()),
                ..Default::default()
            };
            let child = spawn_with("sh", ["-c", "read a <&3; echo $a"], options);
            let pipe = child.stdio(3).unwrap();
            pipe.write("hello\n");
            // Listeners that hold the process and its pipe.
            let (held, own) = (child.clone(), pipe.clone());
            pipe.on_data(move |_| drop(own.clone()));
            child.on(EXIT, move |_| drop(held.stdio(3)));
            let (held, closed) = (child.clone(), closing(&child));
            child.on(CLOSE, move |exit| assert_eq!(held.exit(), Some(*exit)));
            drop((child, pipe));
            closed.await.unwrap();
        })
        .await;
    });
}

#[test]
fn watchers_and_streams_of_handles_leave_nothing() {
    isolated("watchers_and_streams_of_handles_leave_nothing", || async {
        let abort = AbortController::new();
        let root = std::env::temp_dir().join(format!("pl-watched-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("file"), "text").unwrap();
        let root = Rc::new(root);
        leaves_nothing(20, async || {
            let options = WatchOptions {
                recursive: true,
                signal: Some(abort.signal()),
                ..Default::default()
            };
            let watcher = fs::watch_with(&*root, options, |_| ());
            // Listeners that hold their own watcher.
            let held = watcher.clone();
            watcher.on(CHANGE, move |_| held.unref());
            let closed = closing(&watcher);
            watcher.close();
            closed.await.unwrap();
            let looking = fs::watch_file(root.join("file"), |_, _| ());
            let held = looking.clone();
            looking.on(STAT_CHANGE, move |_| held.unref());
            sleep(1).await.unwrap();
            fs::unwatch_file(root.join("file"));
            let file = promises::open(root.join("file"), "r").await.unwrap();
            let options = ReadStreamOptions {
                signal: Some(abort.signal()),
                ..Default::default()
            };
            let stream = file.create_read_stream(options);
            let (own, closed) = (file.clone(), closing(&stream));
            stream.on_data(move |_| assert!(own.fd().is_some()));
            closed.await.unwrap();
            assert!(file.fd().is_none());
        })
        .await;
        std::fs::remove_dir_all(&*root).unwrap();
    });
}

#[test]
fn a_flood_beyond_the_limit_leaves_nothing() {
    isolated("a_flood_beyond_the_limit_leaves_nothing", || async {
        let abort = AbortController::new();
        let accepted = Rc::new(Cell::new(0));
        let count = accepted.clone();
        let server = net::create_server(move |socket| {
            count.set(count.get() + 1);
            socket.resume();
        });
        server.set_max_connections(Some(1));
        let dropped = Rc::new(Cell::new(0));
        let count = dropped.clone();
        server.on(DROP, move |_| count.set(count.get() + 1));
        let listens = once(&server, LISTENING);
        let signal = Some(abort.signal());
        let options = ListenOptions {
            signal,
            ..Default::default()
        };
        server.listen_with_options(("127.0.0.1", 0), options);
        listens.await.unwrap();
        let address = server.address().unwrap();
        // One connection stays, so that all others are beyond the limit.
        let kept = TcpStream::connect(address).unwrap();
        assert!(until(|| accepted.get() == 1).await);
        let open = descriptors();
        leaves_nothing(10, async || {
            let before = dropped.get();
            let flood: Vec<_> = (0..40)
                .map(|_| TcpStream::connect(address).unwrap())
                .collect();
            assert!(until(|| dropped.get() == before + 40).await);
            // Those of the flood itself are open, those of the server are not.
            assert!(until(|| descriptors() <= open + 40).await);
            drop(flood);
        })
        .await;
        assert_eq!(accepted.get(), 1);
        drop(kept);
        let closed = closing(&server);
        abort.abort();
        closed.await.unwrap();
    });
}
