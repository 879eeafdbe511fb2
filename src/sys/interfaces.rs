//! The addresses of the network interfaces.
#![allow(unsafe_code, reason = "the list of interfaces is a C structure")]

#[cfg(feature = "os")]
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr::{self, NonNull};

/// One address of a network interface.
#[cfg(feature = "os")]
pub(crate) struct InterfaceEntry {
    pub(crate) name: String,
    pub(crate) address: IpAddr,
    pub(crate) netmask: IpAddr,
    pub(crate) scope_id: u32,
    pub(crate) hardware_address: [u8; 6],
    pub(crate) is_loopback: bool,
}

/// Lists the addresses of the interfaces that are up and running.
#[cfg(feature = "os")]
#[inline]
pub(crate) fn list() -> io::Result<Vec<InterfaceEntry>> {
    let list = List::new()?;
    let mut found = Vec::new();
    for entry in list.running() {
        let Some(Address::Ip(address, scope_id)) = address_of(entry.ifa_addr) else {
            continue;
        };
        let netmask = match address_of(entry.ifa_netmask) {
            Some(Address::Ip(netmask, _)) => netmask,
            _ if address.is_ipv4() => Ipv4Addr::UNSPECIFIED.into(),
            _ => Ipv6Addr::UNSPECIFIED.into(),
        };
        let name = name_of(entry);
        let hardware = list
            .iter()
            .find_map(|other| match address_of(other.ifa_addr) {
                Some(Address::Hardware(address)) if name_of(other) == name => Some(address),
                _ => None,
            });
        found.push(InterfaceEntry {
            name: name.to_string_lossy().into_owned(),
            address,
            netmask,
            scope_id,
            hardware_address: hardware.unwrap_or_default(),
            is_loopback: entry.ifa_flags & libc::IFF_LOOPBACK as libc::c_uint != 0,
        });
    }
    Ok(found)
}

/// The scope of the first interface that has a link-local address, if any has.
#[cfg(feature = "net")]
#[inline]
pub(crate) fn link_local_scope() -> Option<u32> {
    let list = List::new().ok()?;
    list.running()
        .find_map(|entry| match address_of(entry.ifa_addr) {
            Some(Address::Ip(IpAddr::V6(address), scope)) if address.is_unicast_link_local() => {
                Some(scope)
            }
            _ => None,
        })
}

/// The list that `getifaddrs` allocates. Dropping this frees it.
struct List {
    first: Option<NonNull<libc::ifaddrs>>,
}

impl List {
    fn new() -> io::Result<Self> {
        let mut first = ptr::null_mut();
        // SAFETY: there is room for the pointer.
        if unsafe { libc::getifaddrs(&mut first) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            first: NonNull::new(first),
        })
    }

    /// Returns the addresses of interfaces that are up and running.
    fn running(&self) -> impl Iterator<Item = &libc::ifaddrs> {
        const WANTED: libc::c_uint = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_uint;
        self.iter()
            .filter(|entry| entry.ifa_flags & WANTED == WANTED)
    }

    fn iter(&self) -> impl Iterator<Item = &libc::ifaddrs> {
        let next = |pointer: Option<NonNull<libc::ifaddrs>>| {
            // SAFETY: the pointers of the list lead to its entries, which live as long as it does.
            pointer.map(|pointer| unsafe { pointer.as_ref() })
        };
        std::iter::successors(next(self.first), move |entry| {
            next(NonNull::new(entry.ifa_next))
        })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if let Some(first) = self.first {
            // SAFETY: it came from `getifaddrs` and is freed once.
            unsafe { libc::freeifaddrs(first.as_ptr()) }
        }
    }
}

#[cfg(feature = "os")]
fn name_of(entry: &libc::ifaddrs) -> &CStr {
    // SAFETY: the name is text with a zero byte at its end, and lives as long as the entry.
    unsafe { CStr::from_ptr(entry.ifa_name) }
}

enum Address {
    /// With its scope.
    Ip(IpAddr, u32),
    #[cfg(feature = "os")]
    Hardware([u8; 6]),
}

/// Copies an address bytewise, since it may be unaligned for `T`. Some platforms cut the trailing
/// zeros of netmasks; the copy restores them.
///
/// # Safety
///
/// The length is `sa_len` where the platform has it, otherwise `size_of::<T>()`. `T` may be all
/// zeros.
unsafe fn read<T>(address: *const libc::sockaddr) -> T {
    let mut form = MaybeUninit::<T>::zeroed();
    // SAFETY: both are at least this long and do not overlap. The zeros and the kernel's bytes form
    // a valid `T`.
    unsafe {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let length = size_of::<T>();
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let length = usize::from((&raw const (*address).sa_len).read()).min(size_of::<T>());
        ptr::copy_nonoverlapping(address.cast::<u8>(), form.as_mut_ptr().cast(), length);
        form.assume_init()
    }
}

fn address_of(address: *const libc::sockaddr) -> Option<Address> {
    if address.is_null() {
        return None;
    }
    // SAFETY: an address has at least a length and a family. It is as long as its length field
    // says, or as the structure of its family on platforms without that field; `read` goes no
    // further. All zeros are a valid address of each family.
    unsafe {
        match i32::from((&raw const (*address).sa_family).read_unaligned()) {
            libc::AF_INET => {
                let address: libc::sockaddr_in = read(address);
                let bits = u32::from_be(address.sin_addr.s_addr);
                Some(Address::Ip(Ipv4Addr::from_bits(bits).into(), 0))
            }
            libc::AF_INET6 => {
                let address: libc::sockaddr_in6 = read(address);
                let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
                Some(Address::Ip(ip.into(), address.sin6_scope_id))
            }
            #[cfg(all(feature = "os", any(target_os = "linux", target_os = "android")))]
            libc::AF_PACKET => {
                let address: libc::sockaddr_ll = read(address);
                let [bytes @ .., _, _] = address.sll_addr;
                (address.sll_halen == 6).then_some(Address::Hardware(bytes))
            }
            #[cfg(all(feature = "os", not(any(target_os = "linux", target_os = "android"))))]
            libc::AF_LINK => {
                // The address follows the name of the interface, and may reach beyond the
                // structure.
                let link: libc::sockaddr_dl = read(address);
                let data = std::mem::offset_of!(libc::sockaddr_dl, sdl_data);
                let start = data + usize::from(link.sdl_nlen);
                let bytes = address.cast::<u8>().add(start).cast::<[u8; 6]>();
                (link.sdl_alen == 6).then(|| Address::Hardware(bytes.read()))
            }
            _ => None,
        }
    }
}
