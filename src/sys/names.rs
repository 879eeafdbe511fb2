//! Reverse name lookup through the C library, on Windows through its sockets.
#![allow(unsafe_code, reason = "a call of the platform")]

use std::io;
use std::net::SocketAddr;

/// Returns the host name and the service name of an address.
#[cfg(unix)]
pub(crate) fn name_of(address: &SocketAddr) -> io::Result<(String, String)> {
    // `NI_MAXHOST` and `NI_MAXSERV`.
    let mut host = [0_u8; 1025];
    let mut service = [0_u8; 32];
    let address = socket2::SockAddr::from(*address);
    // SAFETY: `address` is valid for its length, both buffers for theirs.
    let code = unsafe {
        libc::getnameinfo(
            address.as_ptr().cast(),
            address.len(),
            host.as_mut_ptr().cast(),
            host.len() as _,
            service.as_mut_ptr().cast(),
            service.len() as _,
            0,
        )
    };
    match code {
        0 => Ok((text(&host), text(&service))),
        libc::EAI_SYSTEM => Err(io::Error::last_os_error()),
        code => {
            // SAFETY: the function returns a text that is valid for ever.
            let message = unsafe { std::ffi::CStr::from_ptr(libc::gai_strerror(code)) };
            Err(io::Error::other(message.to_string_lossy().into_owned()))
        }
    }
}

#[cfg(unix)]
fn text(buffer: &[u8]) -> String {
    let text = buffer.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Returns the host name and the service name of an address.
#[cfg(windows)]
pub(crate) fn name_of(address: &SocketAddr) -> io::Result<(String, String)> {
    use windows_sys::Win32::Networking::WinSock::GetNameInfoW;
    // The standard library starts the sockets of the process with its first lookup.
    let _ = std::net::ToSocketAddrs::to_socket_addrs(&("127.0.0.1", 0));
    // `NI_MAXHOST` and `NI_MAXSERV`.
    let mut host = [0_u16; 1025];
    let mut service = [0_u16; 32];
    let address = socket2::SockAddr::from(*address);
    // SAFETY: `address` is valid for its length, both buffers for theirs.
    let code = unsafe {
        GetNameInfoW(
            address.as_ptr().cast(),
            address.len(),
            host.as_mut_ptr(),
            host.len() as u32,
            service.as_mut_ptr(),
            service.len() as u32,
            0,
        )
    };
    match code {
        0 => Ok((text(&host), text(&service))),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

#[cfg(windows)]
fn text(buffer: &[u16]) -> String {
    let text = buffer.split(|&unit| unit == 0).next().unwrap_or_default();
    String::from_utf16_lossy(text)
}
