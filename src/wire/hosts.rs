//! Hosts: their names, addresses and ports.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr;
use std::rc::Rc;

use super::{Kind, Socket, SocketId, Wire};
use crate::frame::{Frame, Key};
use crate::sys::errno::Fault;

/// The place of a host in the list. The first host is that of tasks that have no other one.
pub(crate) type HostId = usize;

/// The name of the first host.
pub(crate) const LOCALHOST: &str = "localhost";

/// The addresses that other hosts know the first host by; both are reserved for documentation.
const OUTSIDE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// The first port that is given to a socket which asks for none.
const FIRST_PORT: u16 = 40_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

/// The host of a task, which goes along with what the task starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostTag {
    pub(crate) host: HostId,
    /// How often the host had crashed when the task was started.
    pub(crate) generation: u32,
}

/// Its address identifies the host among the context variables.
static HOST: u8 = 0;

/// Returns the identity of the context variable that holds the host of a task.
pub(crate) fn host_key() -> Key {
    Key::Static(ptr::from_ref(&HOST).addr())
}

/// Returns the host of what runs now; `None` for the first host.
fn current_host() -> Option<HostTag> {
    let value: Rc<HostTag> = Frame::current_value(host_key())?.downcast().ok()?;
    Some(*value)
}

pub(super) struct Host {
    name: String,
    addresses: Vec<IpAddr>,
    generation: u32,
    /// Nanoseconds that its wall clock is ahead.
    skew: i64,
    next_port: u16,
    /// The sockets that are bound, by port, in the order in which they were bound.
    ports: BTreeMap<(Protocol, u16), Vec<SocketId>>,
    /// How many connections and datagrams sockets with one address have shared.
    shared: usize,
    /// What a restart calls.
    programs: Vec<Program>,
}

/// Starts a program of a host. It is user code, which must not run while the network is borrowed.
pub(crate) type Program = Rc<dyn Fn()>;

pub(super) struct Hosts {
    list: Vec<Host>,
    names: BTreeMap<String, HostId>,
    addresses: BTreeMap<IpAddr, HostId>,
}

impl Hosts {
    pub(super) fn new() -> Self {
        let mut hosts = Self {
            list: Vec::new(),
            names: BTreeMap::new(),
            addresses: BTreeMap::new(),
        };
        hosts.add(LOCALHOST.to_owned(), OUTSIDE.to_vec());
        hosts
    }

    fn add(&mut self, name: String, addresses: Vec<IpAddr>) -> HostId {
        let id = self.list.len();
        self.names.insert(name.clone(), id);
        for address in &addresses {
            self.addresses.insert(*address, id);
        }
        self.list.push(Host {
            name,
            addresses,
            generation: 0,
            skew: 0,
            next_port: FIRST_PORT,
            ports: BTreeMap::new(),
            shared: 0,
            programs: Vec::new(),
        });
        id
    }

    pub(super) fn begin_generation(&mut self, host: HostId) {
        self.list[host].generation += 1;
    }

    /// Returns the host that an address leads to, seen from a host.
    pub(super) fn owner(&self, from: HostId, ip: IpAddr) -> Option<HostId> {
        if ip.is_loopback() || ip.is_unspecified() {
            return Some(from);
        }
        self.addresses.get(&ip).copied()
    }

    /// Returns the address that a host sends from, to an address.
    pub(super) fn source(&self, host: HostId, to: IpAddr) -> Result<IpAddr, Fault> {
        if to.is_loopback() || to.is_unspecified() {
            return Ok(if to.is_ipv4() {
                Ipv4Addr::LOCALHOST.into()
            } else {
                Ipv6Addr::LOCALHOST.into()
            });
        }
        let own = &self.list[host].addresses;
        if own.contains(&to) {
            return Ok(to);
        }
        let of_family = own.iter().find(|ip| ip.is_ipv4() == to.is_ipv4());
        of_family.copied().ok_or(Fault::NetworkUnreachable)
    }

    /// Returns whether a socket of a host can be bound to an address.
    pub(super) fn has_address(&self, host: HostId, ip: IpAddr) -> bool {
        ip.is_loopback() || ip.is_unspecified() || self.list[host].addresses.contains(&ip)
    }

    /// Returns the sockets that are bound to a port of a host.
    pub(super) fn at(&self, host: HostId, protocol: Protocol, port: u16) -> &[SocketId] {
        let ports = &self.list[host].ports;
        ports.get(&(protocol, port)).map_or(&[], Vec::as_slice)
    }

    /// Gives a port to a socket; `0` asks for a free one.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub(super) fn occupy(
        &mut self,
        id: SocketId,
        host: HostId,
        protocol: Protocol,
        port: u16,
    ) -> Result<u16, Fault> {
        let host = &mut self.list[host];
        let port = match port {
            0 => host.free_port(protocol).ok_or(Fault::AddressInUse)?,
            port => port,
        };
        host.ports.entry((protocol, port)).or_default().push(id);
        Ok(port)
    }

    /// Takes the port of a socket back.
    pub(super) fn release(&mut self, id: SocketId, socket: &Socket) {
        let Some(port) = socket.port else {
            return;
        };
        let ports = &mut self.list[socket.host].ports;
        if let Some(sockets) = ports.get_mut(&port) {
            sockets.retain(|other| *other != id);
            if sockets.is_empty() {
                ports.remove(&port);
            }
        }
    }

    /// Returns which of so many sockets with one address is next.
    pub(super) fn next_shared(&mut self, host: HostId, count: usize) -> usize {
        let shared = &mut self.list[host].shared;
        *shared += 1;
        (*shared - 1) % count.max(1)
    }
}

impl Host {
    fn free_port(&mut self, protocol: Protocol) -> Option<u16> {
        for _ in FIRST_PORT..=u16::MAX {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            if !self.ports.contains_key(&(protocol, port)) {
                return Some(port);
            }
        }
        None
    }
}

/// What the program asks about hosts.
impl Wire {
    /// Adds a host.
    ///
    /// # Errors
    ///
    /// A text, if there is a host with this name or address, or if hosts cannot have the address.
    pub(crate) fn add_host(&mut self, name: &str, ip: IpAddr) -> Result<HostId, String> {
        let ip = ip.to_canonical();
        if let Some(other) = self.hosts.addresses.get(&ip) {
            let other = &self.hosts.list[*other].name;
            return Err(format!("the host {other:?} has the address {ip}"));
        }
        if self.hosts.names.contains_key(name) {
            return Err(format!("there is a host {name:?}"));
        }
        if ip.is_loopback() || ip.is_unspecified() || is_group(ip) {
            return Err(format!("{ip} is not an address of a host"));
        }
        Ok(self.hosts.add(name.to_owned(), vec![ip]))
    }

    pub(crate) fn host_by_name(&self, name: &str) -> Option<HostId> {
        self.hosts.names.get(name).copied()
    }

    pub(crate) fn host_name(&self, host: HostId) -> &str {
        &self.hosts.list[host].name
    }

    pub(crate) fn host_address(&self, host: HostId) -> IpAddr {
        self.hosts.list[host].addresses[0]
    }

    /// Returns the name of the host with an address.
    pub(crate) fn name_of(&self, ip: IpAddr) -> Option<String> {
        let ip = ip.to_canonical();
        let host = match ip.is_loopback() {
            true => 0,
            false => *self.hosts.addresses.get(&ip)?,
        };
        Some(self.host_name(host).to_owned())
    }

    /// Returns the addresses of a name; `None` if it is not the name of a host.
    pub(crate) fn lookup(&self, name: &str) -> Option<Vec<IpAddr>> {
        if name == LOCALHOST {
            return Some(vec![Ipv4Addr::LOCALHOST.into()]);
        }
        let host = self.host_by_name(name)?;
        Some(self.hosts.list[host].addresses.clone())
    }

    pub(crate) fn tag(&self, host: HostId) -> HostTag {
        HostTag {
            host,
            generation: self.hosts.list[host].generation,
        }
    }

    /// Adds a program to those that a restart of the host starts.
    pub(crate) fn add_program(&mut self, host: HostId, program: Program) {
        self.hosts.list[host].programs.push(program);
    }

    /// Returns the programs of a host.
    pub(crate) fn programs(&self, host: HostId) -> Vec<Program> {
        self.hosts.list[host].programs.clone()
    }

    /// Takes the programs of all hosts, which may refer to the loop, when the loop is dropped.
    pub(crate) fn take_programs(&mut self) -> Vec<Program> {
        let hosts = self.hosts.list.iter_mut();
        hosts.flat_map(|host| host.programs.drain(..)).collect()
    }

    pub(crate) fn set_skew(&mut self, host: HostId, nanoseconds: i64) {
        self.hosts.list[host].skew = nanoseconds;
    }

    /// Returns how far the wall clock of the current host is ahead, in nanoseconds.
    pub(crate) fn current_skew(&self) -> i64 {
        self.hosts.list[current_host().map_or(0, |tag| tag.host)].skew
    }

    /// Returns the host of what runs now.
    ///
    /// # Errors
    ///
    /// If it was started before its host has crashed.
    pub(super) fn current_host(&self) -> Result<HostId, Fault> {
        let Some(tag) = current_host() else {
            return Ok(0);
        };
        if self.hosts.list[tag.host].generation == tag.generation {
            Ok(tag.host)
        } else {
            Err(Fault::Crashed)
        }
    }

    /// Checks whether a socket may be bound to an address beside those that are bound already.
    pub(super) fn check_free(
        &self,
        id: SocketId,
        address: SocketAddr,
        protocol: Protocol,
    ) -> Result<(), Fault> {
        let socket = self.socket(id)?;
        let others = self.hosts.at(socket.host, protocol, address.port());
        for other in others.iter().filter(|other| **other != id) {
            let other = self.socket(*other)?;
            let (local, is_in_the_way) = match &other.kind {
                // Sockets of TCP share an address until one of them listens.
                Kind::Listener(listener) => (listener.local, !both_reuse_port(socket, other)),
                Kind::Datagrams(datagrams) => {
                    let share = socket.options.reuse_address && other.options.reuse_address;
                    let share = share || both_reuse_port(socket, other);
                    (datagrams.local, !share)
                }
                Kind::Fresh(_) | Kind::Stream(_) => continue,
            };
            if is_in_the_way && overlap(socket, address.ip(), other, local.ip()) {
                return Err(Fault::AddressInUse);
            }
        }
        Ok(())
    }
}

fn both_reuse_port(one: &Socket, other: &Socket) -> bool {
    one.options.reuse_port && other.options.reuse_port
}

/// Returns whether two sockets with these addresses would get the same packets.
fn overlap(one: &Socket, one_ip: IpAddr, other: &Socket, other_ip: IpAddr) -> bool {
    receives(one, one_ip, other_ip) || receives(other, other_ip, one_ip)
}

/// Returns whether a socket that is bound to an address gets what is sent to another one.
pub(super) fn receives(socket: &Socket, local: IpAddr, to: IpAddr) -> bool {
    if !local.is_unspecified() {
        return local == to;
    }
    local.is_ipv4() == to.is_ipv4() || local.is_ipv6() && !socket.options.only_v6
}

/// Returns whether an address names several hosts.
pub(super) fn is_group(ip: IpAddr) -> bool {
    ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// Returns the address that stands for all of a family.
pub(super) fn unspecified(is_v6: bool) -> SocketAddr {
    let ip: IpAddr = if is_v6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    SocketAddr::new(ip, 0)
}

/// Returns an address without the form that maps IPv4 into IPv6.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns an address in the form that a socket shows: an IPv6 socket maps IPv4.
pub(super) fn shown(address: SocketAddr, is_v6: bool) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if is_v6 => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        _ => address,
    }
}
