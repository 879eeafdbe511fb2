//! Addresses that must not connect, or be connected to.

use std::cell::RefCell;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use crate::error::Error;

/// A list of addresses for [`Server::set_block_list`](super::Server::set_block_list) and
/// [`ConnectOptions`](super::ConnectOptions). A clone is a handle to the same list. JavaScript:
/// `net.BlockList`.
///
/// An IPv6 address that stands for an IPv4 address, such as `::ffff:10.0.0.1`, counts as that.
///
/// # Examples
///
/// ```
/// use phaseloop_node::net::BlockList;
///
/// fn main() {
///     let list = BlockList::new();
///     list.add_subnet("10.0.0.0".parse().unwrap(), 8).unwrap();
///     assert!(list.check("10.1.2.3".parse().unwrap()));
///     assert_eq!(list.rules(), ["Subnet: IPv4 10.0.0.0/8"]);
/// }
/// ```
#[derive(Clone, Default)]
pub struct BlockList {
    rules: Rc<RefCell<Vec<Rule>>>,
}

#[derive(Clone, Copy)]
enum Rule {
    Address(IpAddr),
    Range(IpAddr, IpAddr),
    Subnet(IpAddr, u8),
}

impl BlockList {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an address. JavaScript: `blockList.addAddress(address)`.
    pub fn add_address(&self, address: IpAddr) {
        self.rules.borrow_mut().push(Rule::Address(address));
    }

    /// Adds all addresses from `start` to `end`. JavaScript: `blockList.addRange(start, end)`.
    ///
    /// # Errors
    ///
    /// `ERR_INVALID_ARG_VALUE` if `start` is behind `end`, or the two are of different families.
    pub fn add_range(&self, start: IpAddr, end: IpAddr) -> Result<(), Error> {
        if start.is_ipv4() != end.is_ipv4() || start > end {
            let text = format!("The argument 'start' must come before {end}. Received {start}");
            return Err(Error::type_error(text).coded("ERR_INVALID_ARG_VALUE"));
        }
        self.rules.borrow_mut().push(Rule::Range(start, end));
        Ok(())
    }

    /// Adds all addresses that have the first `prefix` bits of an address. JavaScript:
    /// `blockList.addSubnet(net, prefix)`.
    ///
    /// # Errors
    ///
    /// `ERR_OUT_OF_RANGE` for more bits than the address has.
    pub fn add_subnet(&self, network: IpAddr, prefix: u8) -> Result<(), Error> {
        let most = if network.is_ipv4() { 32 } else { 128 };
        if prefix > most {
            let text = format!(
                "The value of \"prefix\" is out of range. It must be >= 0 && <= {most}. Received {prefix}"
            );
            return Err(Error::range_error(text).coded("ERR_OUT_OF_RANGE"));
        }
        self.rules.borrow_mut().push(Rule::Subnet(network, prefix));
        Ok(())
    }

    /// Returns whether a rule holds for an address. JavaScript: `blockList.check(address)`.
    #[must_use]
    pub fn check(&self, address: IpAddr) -> bool {
        let plain = address.to_canonical();
        let rules = self.rules.borrow();
        rules
            .iter()
            .any(|rule| rule.holds(address) || rule.holds(plain))
    }

    /// Returns the rules as text: addresses, subnets and ranges, the latest first. JavaScript:
    /// `blockList.rules`.
    #[must_use]
    pub fn rules(&self) -> Vec<String> {
        let rules = self.rules.borrow();
        let of_kind = |kind: fn(&Rule) -> bool| {
            let rules = rules.iter().rev().filter(move |rule| kind(rule));
            rules.map(ToString::to_string).collect::<Vec<_>>()
        };
        let mut texts = of_kind(|rule| matches!(rule, Rule::Address(_)));
        texts.extend(of_kind(|rule| matches!(rule, Rule::Subnet(..))));
        texts.extend(of_kind(|rule| matches!(rule, Rule::Range(..))));
        texts
    }
}

impl Rule {
    fn holds(self, address: IpAddr) -> bool {
        match self {
            Self::Address(known) => known == address,
            Self::Range(start, end) => {
                start.is_ipv4() == address.is_ipv4() && (start..=end).contains(&address)
            }
            Self::Subnet(IpAddr::V4(network), prefix) => match address {
                IpAddr::V4(address) => masked_v4(network, prefix) == masked_v4(address, prefix),
                IpAddr::V6(_) => false,
            },
            Self::Subnet(IpAddr::V6(network), prefix) => match address {
                IpAddr::V6(address) => masked_v6(network, prefix) == masked_v6(address, prefix),
                IpAddr::V4(_) => false,
            },
        }
    }
}

/// Returns the first bits of an address.
fn masked_v4(address: Ipv4Addr, prefix: u8) -> u32 {
    let rest = 32 - u32::from(prefix);
    address.to_bits().checked_shr(rest).unwrap_or(0)
}

/// Returns the first bits of an address.
fn masked_v6(address: Ipv6Addr, prefix: u8) -> u128 {
    let rest = 128 - u32::from(prefix);
    address.to_bits().checked_shr(rest).unwrap_or(0)
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "Address: {} {address}", family(*address)),
            Self::Range(start, end) => write!(f, "Range: {} {start}-{end}", family(*start)),
            Self::Subnet(network, prefix) => {
                write!(f, "Subnet: {} {network}/{prefix}", family(*network))
            }
        }
    }
}

impl fmt::Debug for BlockList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BlockList").field(&self.rules()).finish()
    }
}
