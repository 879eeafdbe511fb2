//! A chat server: every line is sent to all other clients. A slow client does not delay the rest:
//! its lines are queued up to a limit, then the client is disconnected.
//!
//! ```text
//! cargo run --release --example chat                      # three clients of its own, then exits
//! cargo run --release --example chat -- 127.0.0.1:7001    # until ctrl-c; try `nc 127.0.0.1 7001`
//! ```

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use futures::channel::mpsc;
use phaseloop::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::spawn;
use phaseloop::stream::StreamExt;

/// The most lines that are queued for a client.
const WAITING: usize = 1000;

/// The clients by number, each with its queue. An `Rc` suffices: all tasks run on one thread.
type Room = Rc<RefCell<HashMap<usize, mpsc::Sender<Rc<str>>>>>;

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    phaseloop::block_on(async {
        let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
        let here = listener.local_addr()?;
        println!("listening on {here}");
        let server = spawn(serve(listener));
        if address.is_some() {
            return server.await.expect("the server does not panic");
        }
        demo(here).await?;
        server.abort();
        Ok(())
    })
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    let room = Room::default();
    for number in 1.. {
        let (stream, _) = listener.accept().await?;
        spawn(client(number, stream, room.clone())).detach();
    }
    Ok(())
}

async fn client(number: usize, stream: TcpStream, room: Room) {
    let (sender, mut lines) = mpsc::channel(WAITING);
    room.borrow_mut().insert(number, sender);
    let (read, mut write) = phaseloop::io::split(stream);
    let writer = spawn(async move {
        while let Some(line) = lines.next().await {
            let line: Rc<str> = line;
            write.write_all(line.as_bytes()).await?;
        }
        io::Result::Ok(())
    });
    let mut input = BufReader::new(read).lines();
    while let Some(Ok(line)) = input.next().await {
        broadcast(&room, number, &format!("{number}: {line}\n"));
    }
    // The sender is dropped: the writer sends the queued lines, then the connection is closed.
    room.borrow_mut().remove(&number);
    drop(writer.await);
}

fn broadcast(room: &Room, from: usize, line: &str) {
    let line: Rc<str> = line.into();
    room.borrow_mut().retain(|&number, sender| {
        // A client with a full queue is too slow, or gone: it is disconnected.
        number == from || sender.try_send(line.clone()).is_ok()
    });
}

async fn demo(address: std::net::SocketAddr) -> io::Result<()> {
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(TcpStream::connect(address).await?);
        // Clients are numbered in the order in which they are accepted.
        phaseloop::task::yield_now_immediate().await;
    }
    let mut first = &clients[0];
    first.write_all(b"hello, all\n").await?;
    for other in &clients[1..] {
        let mut line = String::new();
        BufReader::new(other).read_line(&mut line).await?;
        println!("a client got {:?}", line.trim_end());
    }
    Ok(())
}
