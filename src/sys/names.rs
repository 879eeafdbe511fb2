//! Reverse name lookup through the C library.
#![allow(unsafe_code, reason = "a call of the C library")]

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

#[cfg(not(unix))]
pub(crate) fn name_of(_: &SocketAddr) -> io::Result<(String, String)> {
    Err(io::ErrorKind::Unsupported.into())
}
