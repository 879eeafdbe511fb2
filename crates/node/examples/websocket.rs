//! A WebSocket echo on the event `upgrade` of Node's `http`, and a client that talks to it.
//! `tungstenite` makes and reads the frames, and does no I/O of its own.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind::WouldBlock, Read, Write};
use std::mem::take;

use phaseloop_node::http::{self, Handover, RequestOptions, Server, UPGRADE};
use phaseloop_node::{Emitter, Exit, events::ERROR, run};
use tungstenite::handshake::{client::generate_key, derive_accept_key};
use tungstenite::protocol::{Role, WebSocket, WebSocketConfig};
use tungstenite::{Error, Message};

fn main() -> Exit<()> {
    run(async {
        let server = http::create_server(|_, res| res.end("This is a WebSocket.\n"));
        server.on(UPGRADE, accept);
        server.listen_this(("127.0.0.1", 0), |server| talk(server.clone()));
    })
}

/// Answers the handshake of a client, and echoes its messages.
fn accept(handover: &Handover) {
    let (headers, socket) = (handover.message.headers(), &handover.socket);
    let get = |name| headers.get(name);
    let (Some(key), Some("13")) = (get("sec-websocket-key"), get("sec-websocket-version")) else {
        return socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    };
    let accepted = derive_accept_key(key.as_bytes());
    socket.write(format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accepted}\r\n\r\n"
    ));
    let is_data = |message: &Message| message.is_text() || message.is_binary();
    let echo = move |message| Some(message).filter(is_data);
    open(handover, Role::Server, &[], echo);
}

/// Sends `first`, and calls `listener` with each message that arrives. What it returns is sent.
/// tungstenite itself answers pings and closes.
fn open<F>(handover: &Handover, role: Role, first: &[Message], listener: F)
where
    F: Fn(Message) -> Option<Message> + 'static,
{
    let config = WebSocketConfig::default().max_message_size(Some(1 << 20));
    let mut frames = WebSocket::from_raw_socket(Wire::default(), role, Some(config));
    for message in first {
        frames.send(message.clone()).expect("the wire takes all");
    }
    let socket = &handover.socket;
    socket.write(take(&mut frames.get_mut().sent));
    socket.on(ERROR, |error| eprintln!("websocket: {error}"));
    let frames = RefCell::new(frames);
    socket.on_data_this(move |socket, bytes| {
        let mut frames = frames.borrow_mut();
        frames.get_mut().received.extend(bytes);
        let step = || match listener(frames.read()?) {
            Some(answer) => frames.send(answer),
            None => frames.flush(),
        };
        let end = std::iter::repeat_with(step).find_map(Result::err);
        socket.write(take(&mut frames.get_mut().sent));
        match end {
            Some(Error::Io(error)) if error.kind() == WouldBlock => {}
            Some(Error::ConnectionClosed) => socket.end(()),
            broken => socket.destroy(broken.map(|error| io::Error::other(error).into())),
        }
    });
    socket.readable().unshift(handover.head.clone());
}

/// What tungstenite reads and writes: the bytes that have come, and those that are to leave.
#[derive(Default)]
struct Wire {
    received: VecDeque<u8>,
    sent: Vec<u8>,
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.received.read(buffer)? {
            0 => Err(WouldBlock.into()),
            count => Ok(count),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sent.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends two messages, a ping and a close.
fn talk(server: Server) {
    let key = generate_key();
    let mut options = RequestOptions::new(server.address().unwrap());
    options = options.header("Connection", "Upgrade");
    options = options.header("Upgrade", "websocket");
    options = options.header("Sec-WebSocket-Version", "13");
    let request = http::request(options.header("Sec-WebSocket-Key", &key));
    request.on(UPGRADE, move |handover| {
        let accepted = handover.message.headers().get("sec-websocket-accept");
        assert_eq!(accepted, Some(&*derive_accept_key(key.as_bytes())));
        let [one, two] = [5, 70_000].map(|length| Message::text("x".repeat(length)));
        let ping = Message::Ping("there?".into());
        let all = [one, two, ping, Message::Close(None)];
        let (left, server) = (RefCell::new(vec![0, 6, 70_000, 5]), server.clone());
        open(handover, Role::Client, &all, move |message| {
            assert_eq!(left.borrow_mut().pop(), Some(message.len()));
            message.is_close().then(|| server.close());
            None
        });
    });
    request.end(());
}
