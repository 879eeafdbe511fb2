//! Questions to name servers: by UDP, and by TCP if the answer was cut.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::records::Record;
use super::wire::{Answer, Reply, question, reply};
use phaseloop::net::{TcpStream, UdpOptions, UdpSocket};
use phaseloop::spawn_blocking;
use phaseloop::time::timeout;

/// The largest answer by UDP that is read.
const LARGEST: usize = 4096;

/// How many datagrams are read for one question. A peer that sends more of other ones has guessed.
const MOST_DATAGRAMS: usize = 64;

/// Node's code of an error.
pub(super) type Code = &'static str;

/// Whom to ask, and how long to wait.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// `None`: the servers of the system.
    pub(super) servers: Option<Vec<SocketAddr>>,
    /// The wait for the first answer. It doubles with each round.
    pub(super) wait: Duration,
    pub(super) rounds: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            servers: None,
            wait: Duration::from_secs(2),
            rounds: 4,
        }
    }
}

/// Reads the servers of the system, which may block.
pub(super) fn system_servers() -> Vec<SocketAddr> {
    servers_of(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default())
}

fn servers_of(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().map(str::trim);
    let servers = lines.filter_map(|line| line.strip_prefix("nameserver"));
    let servers = servers.filter(|rest| rest.starts_with(char::is_whitespace));
    let mut servers: Vec<_> = servers.filter_map(|it| server(it.trim())).collect();
    if servers.is_empty() {
        servers.push((Ipv4Addr::LOCALHOST, 53).into());
    }
    servers
}

impl Settings {
    /// Asks for the records of a name. A server that fails leaves the question to the next one.
    pub(super) async fn resolve<R: Record>(&self, name: &str) -> Result<Vec<R>, Code> {
        let random = RandomState::new().build_hasher().finish();
        let id = u16::try_from(random & 0xffff).unwrap_or_default();
        let question = question(id, name, R::KIND).ok_or("EBADNAME")?;
        let mut fault = "ETIMEOUT";
        let mut waiting = match &self.servers {
            Some(servers) => servers.clone(),
            None => spawn_blocking(system_servers).await.unwrap_or_default(),
        };
        for round in 0..self.rounds.max(1) {
            let wait = self.wait.saturating_mul(1 << round.min(6));
            let mut left = Vec::new();
            for server in waiting {
                let answer = timeout(wait, ask(server, &question)).await;
                let message = match answer.unwrap_or(Err("ETIMEOUT")) {
                    Ok(message) => message,
                    Err(code) => {
                        fault = code;
                        left.push(server);
                        continue;
                    }
                };
                let Reply::Answer(code, answer) = reply(&question, &message) else {
                    fault = "EBADRESP";
                    continue;
                };
                match code {
                    0 => return records(answer),
                    1 => return Err("EFORMERR"),
                    3 => return Err("ENOTFOUND"),
                    4 => fault = "ENOTIMP",
                    5 => fault = "EREFUSED",
                    _ => fault = "ESERVFAIL",
                }
            }
            waiting = left;
            // Each server has answered with an error: further rounds ask none.
            if waiting.is_empty() {
                break;
            }
        }
        Err(fault)
    }
}

/// Returns the address of a server: an IP address, perhaps with a port.
pub(super) fn server(text: &str) -> Option<SocketAddr> {
    let text = text.split('%').next().unwrap_or(text);
    let ip = text.parse::<IpAddr>().map(|ip| (ip, 53).into());
    ip.or_else(|_| text.parse()).ok()
}

fn records<R: Record>(answer: Answer<'_>) -> Result<Vec<R>, Code> {
    let found = answer.records(R::KIND).ok_or("EBADRESP")?;
    let found: Option<Vec<_>> = found
        .into_iter()
        .map(|mut data| R::read(&mut data))
        .collect();
    match found {
        Some(found) if found.is_empty() => Err("ENODATA"),
        Some(found) => Ok(found),
        None => Err("EBADRESP"),
    }
}

/// Asks one server. The socket is connected, so that the system drops what others send.
async fn ask(server: SocketAddr, question: &[u8]) -> Result<Vec<u8>, Code> {
    let any: IpAddr = match server.is_ipv4() {
        true => Ipv4Addr::UNSPECIFIED.into(),
        false => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind_with((any, 0).into(), UdpOptions::new()).map_err(code_of)?;
    socket.connect_now(server).map_err(code_of)?;
    socket.send(question).await.map_err(code_of)?;
    let mut buffer = vec![0; LARGEST];
    for _ in 0..MOST_DATAGRAMS {
        let size = socket.recv(&mut buffer).await.map_err(code_of)?;
        match reply(question, &buffer[..size]) {
            Reply::Foreign => {}
            Reply::Broken => return Err("EBADRESP"),
            Reply::Cut => return ask_again(server, question).await.map_err(code_of),
            Reply::Answer(..) => {
                buffer.truncate(size);
                return Ok(buffer);
            }
        }
    }
    Err("EBADRESP")
}

/// Asks by TCP, where each message has its length before it.
async fn ask_again(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let size = u16::try_from(question.len()).map_err(io::Error::other)?;
    let message = [&size.to_be_bytes(), question].concat();
    stream.write_all(&message).await?;
    let mut size = [0; 2];
    stream.read_exact(&mut size).await?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(size))];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

fn code_of(_: io::Error) -> Code {
    "ECONNREFUSED"
}

#[cfg(test)]
mod tests {
    use super::{server, servers_of};

    #[test]
    fn n162_the_settings_of_the_system_are_read() {
        let text = "# nameserver 1.1.1.1\nnameserver 9.9.9.9\nnameservers 8.8.8.8\n\
                    nameserver\tfe80::1%eth0\nnameserver nothing\n";
        let found = servers_of(text);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["9.9.9.9:53", "[fe80::1]:53"]);
        assert_eq!(servers_of(""), ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!(server("[::1]:5353").unwrap().port(), 5353);
        assert_eq!(server("1.2.3.4:99999"), None);
    }
}
