//! The network interfaces of the machine.

use std::io;
use std::net::IpAddr;

use crate::sys::interfaces;

/// One address of a network interface, as [`network_interfaces`] lists it.
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     for interface in phaseloop::os::network_interfaces()? {
///         println!("{} {} / {}", interface.name, interface.address, interface.netmask);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// Name of the interface, such as `eth0`.
    pub name: String,
    /// Address.
    pub address: IpAddr,
    /// Netmask of the address.
    pub netmask: IpAddr,
    /// Scope id for link-local IPv6 addresses, else 0.
    pub scope_id: u32,
    /// Hardware (MAC) address; zeros if there is none.
    pub hardware_address: [u8; 6],
    /// Whether this is a loopback interface.
    pub is_internal: bool,
}

/// Lists the addresses of the interfaces that are up and running, one entry for each address.
///
/// # Errors
///
/// Any OS error of `getifaddrs`.
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     for interface in phaseloop::os::network_interfaces()? {
///         println!("{}: {}", interface.name, interface.address);
///     }
///     Ok(())
/// }
/// ```
pub fn network_interfaces() -> io::Result<Vec<Interface>> {
    let entries = interfaces::list()?.into_iter().map(|entry| Interface {
        name: entry.name,
        address: entry.address,
        netmask: entry.netmask,
        scope_id: entry.scope_id,
        hardware_address: entry.hardware_address,
        is_internal: entry.is_loopback,
    });
    Ok(entries.collect())
}
