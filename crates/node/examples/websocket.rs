//! A WebSocket echo on the event `upgrade` of Node's `http`: the handshake and the frames of RFC
//! 6455, without a WebSocket library.
//!
//! ```text
//! cargo run --release --package phaseloop-node --example websocket                      # talks to itself, then exits
//! cargo run --release --package phaseloop-node --example websocket -- 127.0.0.1:8080    # serves until ctrl-c
//! ```

use std::cell::RefCell;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use phaseloop_node::events::ERROR;
use phaseloop_node::http::{self, Handover, RequestOptions, Server, UPGRADE};
use phaseloop_node::net::Socket;
use phaseloop_node::{Emitter, Exit, run};

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The bit of the last frame of a message.
const FIN: u8 = 0x80;

/// The longest payload of a frame.
const MAX_PAYLOAD: usize = 1 << 20;

/// The status of a close after a frame that breaks the protocol, and after one that is too long.
const PROTOCOL_ERROR: u16 = 1002;
const TOO_BIG: u16 = 1009;

fn main() -> Exit<()> {
    let address = std::env::args().nth(1);
    run(async move {
        let server = http::create_server(|_, res| {
            res.set_status(426);
            res.set_header("Upgrade", "websocket");
            res.end("This is a WebSocket.\n");
        });
        server.on(UPGRADE, accept);
        let is_demo = address.is_none();
        let address = address.as_deref().unwrap_or("127.0.0.1:0");
        let address: SocketAddr = address.parse().expect("an IP address and a port");
        server.listen_this(address, move |server| {
            println!("listening on ws://{}/", server.address().unwrap());
            if is_demo {
                demo(server);
            }
        });
    })
}

fn accept_key(key: &str) -> String {
    let joined = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    BASE64.encode(sha1_smol::Sha1::from(joined).digest().bytes())
}

/// Answers the handshake of a client, and echoes its messages.
fn accept(handover: &Handover) {
    let (headers, socket) = (handover.message.headers(), &handover.socket);
    let key = headers.get("sec-websocket-key");
    let is_websocket = headers
        .get("upgrade")
        .is_some_and(|name| name.eq_ignore_ascii_case("websocket"));
    let (Some(key), true, Some("13")) = (key, is_websocket, headers.get("sec-websocket-version"))
    else {
        return socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    };
    socket.write(format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        accept_key(key)
    ));
    socket.on(ERROR, |error| eprintln!("client: {error}"));
    on_frames(handover, true, |socket, frame| match frame.opcode & !FIN {
        PING => _ = socket.write(encode(FIN | PONG, &frame.payload, None)),
        PONG => {}
        CLOSE => socket.end(encode(FIN | CLOSE, &frame.payload, None)),
        // A fragmented message is echoed frame by frame.
        _ => _ = socket.write(encode(frame.opcode, &frame.payload, None)),
    });
}

struct Frame {
    /// The opcode with the bit [`FIN`].
    opcode: u8,
    payload: Vec<u8>,
}

/// Calls `listener` with each frame that arrives. A bad frame closes the connection.
fn on_frames(handover: &Handover, is_server: bool, listener: impl Fn(&Socket, Frame) + 'static) {
    let socket = &handover.socket;
    let received = RefCell::new(Vec::new());
    socket.on_data_this(move |socket, bytes| {
        received.borrow_mut().extend_from_slice(bytes);
        loop {
            let frame = decode(&mut received.borrow_mut(), is_server);
            match frame {
                Ok(Some(frame)) => listener(socket, frame),
                Ok(None) => return,
                Err(status) => {
                    let bytes = encode(FIN | CLOSE, &status.to_be_bytes(), None);
                    return socket.end(bytes);
                }
            }
        }
    });
    // Bytes that came together with the handshake.
    socket.readable().unshift(handover.head.clone());
}

/// Takes the first frame out of `bytes`. `None` if it is not complete.
fn decode(bytes: &mut Vec<u8>, is_masked: bool) -> Result<Option<Frame>, u16> {
    let Some((&[opcode, length], rest)) = bytes.split_first_chunk::<2>() else {
        return Ok(None);
    };
    // Clients mask their frames, servers do not; the three reserved bits are zero.
    if (length & 0x80 != 0) != is_masked || opcode & 0x70 != 0 {
        return Err(PROTOCOL_ERROR);
    }
    let long = match length & 0x7f {
        126 => rest
            .first_chunk()
            .map(|&size| (u64::from(u16::from_be_bytes(size)), 2)),
        127 => rest
            .first_chunk()
            .map(|&size| (u64::from_be_bytes(size), 8)),
        size => Some((u64::from(size), 0)),
    };
    let Some((size, size_bytes)) = long else {
        return Ok(None);
    };
    let size = usize::try_from(size)
        .ok()
        .filter(|&size| size <= MAX_PAYLOAD)
        .ok_or(TOO_BIG)?;
    let mask_bytes = if is_masked { 4 } else { 0 };
    let (head, end) = (2 + size_bytes, 2 + size_bytes + mask_bytes + size);
    if bytes.len() < end {
        return Ok(None);
    }
    let mask = bytes[head..head + mask_bytes].to_vec();
    let mut payload: Vec<u8> = bytes.drain(..end).skip(head + mask_bytes).collect();
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Ok(Some(Frame { opcode, payload }))
}

fn encode(opcode: u8, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let bit = if mask.is_some() { 0x80 } else { 0 };
    let mut frame = vec![opcode];
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(size @ ..126), _) => frame.push(bit | size),
        (_, Ok(size)) => {
            frame.push(bit | 126);
            frame.extend(size.to_be_bytes());
        }
        _ => {
            frame.push(bit | 127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend(mask.into_iter().flatten());
    let mask = mask.unwrap_or_default();
    frame.extend(
        payload
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, mask)| byte ^ mask),
    );
    frame
}

/// Sends messages of several lengths, a ping and a close.
fn demo(server: &Server) {
    // A real client takes random bytes for the key and for each mask.
    let (key, mask) = (BASE64.encode(*b"the sample nonce"), Some([1, 2, 3, 4]));
    let request = http::try_request(
        RequestOptions::new(server.address().unwrap())
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", &key),
    )
    .expect("the options are valid");
    let server = server.clone();
    request.on(UPGRADE, move |handover| {
        let accepted = handover.message.headers().get("sec-websocket-accept");
        assert_eq!(accepted, Some(&*accept_key(&key)));
        for length in [5, 300, 70_000] {
            handover
                .socket
                .write(encode(FIN | TEXT, "x".repeat(length).as_bytes(), mask));
        }
        handover
            .socket
            .write(encode(FIN | PING, b"still there?", mask));
        handover
            .socket
            .write(encode(FIN | CLOSE, &1000_u16.to_be_bytes(), mask));
        let server = server.clone();
        on_frames(handover, false, move |socket, frame| {
            let kind = match frame.opcode & !FIN {
                TEXT => "text",
                PONG => "pong",
                _ => "close",
            };
            println!("{kind} of {} bytes", frame.payload.len());
            if kind == "close" {
                socket.end(());
                server.close();
            }
        });
    });
    request.end(());
}
