//! Unix sockets on the way from one loop to another, with the paths that they remove.

use super::{UnixDatagram, UnixListener, UnixStream};
use crate::io::Source;
use crate::net::detached::Detached;

detach!(UnixStream, |stream| {
    let (socket, moving) = stream.into_source().detach();
    Detached::new(socket, moving, |handle, socket, moving| {
        let source = Source::new_stream(handle, socket, true, moving.site)?;
        Ok(Self::from_source(source.arrived(moving)))
    })
});

detach!(UnixListener, |listener| {
    let (path, source) = listener.into_parts();
    let (socket, moving) = source.detach();
    Detached::new(socket, moving, move |handle, socket, moving| {
        let listener = Self::adopt(handle, socket, moving.site)?;
        let (_, source) = listener.into_parts();
        Ok(Self::from_parts(path, source.arrived(moving)))
    })
});

detach!(UnixDatagram, |socket| {
    let (path, source) = socket.into_parts();
    let (socket, moving) = source.detach();
    Detached::new(socket, moving, move |handle, socket, moving| {
        let source = Source::new_stream(handle, socket, true, moving.site)?;
        Ok(Self::from_parts(path, source.arrived(moving)))
    })
});
