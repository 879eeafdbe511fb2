//! 921: servers that listen again.

use phaseloop_node::events::ERROR;
use phaseloop_node::net::{LISTENING, ListenOn, Server};
use phaseloop_node::stream::CLOSE;
use phaseloop_node::{Emitter, Error, catch, sleep};

use crate::support::log;

super::ports! {
    Real "921-listen-again" => listen_again,
}

const LOOPBACK: (&str, u16) = ("127.0.0.1", 0);
const ANY: u16 = 0;

fn make(name: &'static str) -> Server {
    let server = Server::new();
    let says = move |event: &str, server: &Server| {
        let (listens, address) = (server.is_listening(), server.address());
        log(format!("{name} {event} {listens} {}", address.is_some()));
    };
    server.on_this(LISTENING, move |server, ()| says("listening", server));
    server.on_this(CLOSE, move |server, ()| says("close", server));
    server.on_this(ERROR, move |server, error| {
        let code = error.code().unwrap();
        log(format!("{name} error {code} {}", server.is_listening()));
    });
    server
}

fn tried(name: &str, server: &Server, listen: impl FnOnce(&Server)) {
    match catch(|| listen(server)) {
        Ok(()) => log(format!("{name} fine {}", server.is_listening())),
        Err(reason) => log(format!("{name} {}", reason.code().unwrap())),
    }
}

fn listen(name: &str, server: &Server, on: impl Into<ListenOn>) {
    tried(name, server, |server| server.listen(on));
}

fn step(name: &'static str, server: &Server) {
    match name {
        "a" => {
            listen(name, server, LOOPBACK);
            listen(name, server, LOOPBACK);
        }
        "b" => {
            listen(name, server, ANY);
            listen(name, server, ANY);
        }
        "c" => {
            listen(name, server, LOOPBACK);
            listen(name, server, ANY);
        }
        "d" => {
            listen(name, server, ANY);
            tried(name, server, |server| {
                server.listen_with(LOOPBACK, move || log(format!("{name} callback")));
            });
        }
        "e" => {
            listen(name, server, ("localhost", 0));
            server.close();
            listen(name, server, ANY);
        }
        "f" => {
            listen(name, server, LOOPBACK);
            server.close_with_result(move |result: Result<(), Error>| {
                let error = result.unwrap_err();
                log(format!("{name} closed {}", error.code().unwrap()));
            });
        }
        "g" => {
            server.once_this(ERROR, move |server, _| listen(name, server, LOOPBACK));
            listen(name, server, ("1.2.3.4", 0));
        }
        "h" => {
            listen(name, server, ANY);
            server.close();
            listen(name, server, ANY);
        }
        _ => {
            server.once_this(LISTENING, move |server, ()| {
                listen(name, server, ANY);
                server.close();
            });
            server.once_this(CLOSE, move |server, ()| listen(name, server, LOOPBACK));
            listen(name, server, LOOPBACK);
        }
    }
}

async fn listen_again() {
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        let server = make(name);
        step(name, &server);
        sleep(30).await.unwrap();
        log(format!("{name} end {}", server.is_listening()));
        server.close();
        sleep(30).await.unwrap();
        let address = server.address().map(|address| address.to_string());
        log(format!(
            "{name} address {}",
            address.as_deref().unwrap_or("null")
        ));
    }
}
