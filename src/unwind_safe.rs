//! Which types may be used after a panic that `catch_unwind` has caught.
//!
//! No type of the crate runs user code while its state is inconsistent: a panic of user code leaves
//! sockets, handles and tasks as usable as any other code does. The compiler cannot see this behind
//! cells and trait objects, so the types for which tokio states it are listed here.

use std::panic::{RefUnwindSafe, UnwindSafe};

macro_rules! are_unwind_safe {
    ($($(#[$when:meta])* $type:ty $(where $parameter:ident)?;)*) => {
        $(
            $(#[$when])*
            impl$(<$parameter>)? UnwindSafe for $type {}
            $(#[$when])*
            impl$(<$parameter>)? RefUnwindSafe for $type {}
        )*
    };
}

are_unwind_safe! {
    crate::async_handle::AsyncSender;
    crate::event_loop::EventLoop;
    crate::runtime::loop_handle::LoopHandle;
    crate::runtime::remote::Remote;
    crate::runtime::remote::RemoteJoinHandle<T> where T;
    crate::sync::Notify;
    crate::sync::Semaphore;
    crate::sync::mpsc::Receiver<T> where T;
    crate::sync::mpsc::Sender<T> where T;
    crate::sync::mpsc::UnboundedSender<T> where T;
    crate::sync::oneshot::Receiver<T> where T;
    crate::sync::oneshot::Sender<T> where T;
    crate::task::AbortHandle;
    crate::task::JoinHandle<T> where T;
    crate::io::PipeReader;
    crate::io::PipeWriter;
    crate::io::Stderr;
    crate::io::Stdin;
    crate::io::Stdout;
    #[cfg(feature = "net")]
    crate::net::TcpListener;
    #[cfg(feature = "net")]
    crate::net::TcpSocket;
    #[cfg(feature = "net")]
    crate::net::TcpStream;
    #[cfg(feature = "net")]
    crate::net::UdpSocket;
    #[cfg(all(unix, feature = "net"))]
    crate::net::UnixDatagram;
    #[cfg(all(unix, feature = "net"))]
    crate::net::UnixListener;
    #[cfg(all(unix, feature = "net"))]
    crate::net::UnixStream;
    #[cfg(feature = "process")]
    crate::process::Command;
}
