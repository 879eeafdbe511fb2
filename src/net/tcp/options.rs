//! The options of a TCP connection.

use std::io;
use std::time::Duration;

use super::keepalive::{Keepalive, set_keepalive};
use super::stream::TcpStream;
use crate::net::transport::StreamOptions;

/// Options of the socket.
impl TcpStream {
    /// Returns whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(TCP_NODELAY)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_nodelay(true)?; // for small messages that cannot wait
    ///     assert!(stream.nodelay()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn nodelay(&self) -> io::Result<bool> {
        self.options().nodelay()
    }

    /// Sets whether small writes are sent at once (`TCP_NODELAY`) instead of being combined.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(TCP_NODELAY)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_nodelay(true)?; // for small messages that cannot wait
    ///     assert!(stream.nodelay()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.options().set_nodelay(nodelay)
    }

    /// Sets keep-alive probes for an idle connection; `None` turns them off.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for times below a second or no retries;
    /// otherwise any OS error of `setsockopt`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::{Keepalive, TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_keepalive(Some(Keepalive::after(Duration::from_secs(60))))?;
    ///     assert!(stream.keepalive()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_keepalive(&self, keepalive: Option<Keepalive>) -> io::Result<()> {
        set_keepalive(&self.options(), keepalive)
    }

    /// Returns whether keep-alive probes are on.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_KEEPALIVE)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::{Keepalive, TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_keepalive(Some(Keepalive::after(Duration::from_secs(60))))?;
    ///     assert!(stream.keepalive()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn keepalive(&self) -> io::Result<bool> {
        self.options().keepalive()
    }

    /// Sets what closing does with unsent bytes. `None` lets the kernel send them in the
    /// background. Zero discards them and resets the connection. Any other duration makes closing,
    /// and so the loop, block until they are sent or the duration has passed.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_LINGER)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_linger(Some(Duration::ZERO))?; // dropping it resets the connection
    ///     assert_eq!(stream.linger()?, Some(Duration::ZERO));
    ///     Ok(())
    /// }
    /// ```
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.options().set_linger(linger)
    }

    /// Returns the duration set by [`set_linger`](Self::set_linger).
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_LINGER)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_linger(Some(Duration::ZERO))?; // dropping it resets the connection
    ///     assert_eq!(stream.linger()?, Some(Duration::ZERO));
    ///     Ok(())
    /// }
    /// ```
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.options().linger()
    }

    /// Returns the time to live (TTL) of sent packets.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(IP_TTL)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_ttl(42)?;
    ///     assert_eq!(stream.ttl()?, 42);
    ///     Ok(())
    /// }
    /// ```
    pub fn ttl(&self) -> io::Result<u32> {
        self.source().get_ref().ttl()
    }

    /// Sets the time to live (TTL) of sent packets, 1 to 255.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_TTL)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_ttl(42)?;
    ///     assert_eq!(stream.ttl()?, 42);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.source().get_ref().set_ttl(ttl)
    }

    /// Returns the size of the kernel's receive buffer. Linux reports twice the size that was set.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_RCVBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_recv_buffer_size(65_536)?;
    ///     assert!(stream.recv_buffer_size()? >= 65_536);
    ///     Ok(())
    /// }
    /// ```
    pub fn recv_buffer_size(&self) -> io::Result<usize> {
        self.options().recv_buffer_size()
    }

    /// Sets the size of the kernel's receive buffer.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_RCVBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_recv_buffer_size(65_536)?;
    ///     assert!(stream.recv_buffer_size()? >= 65_536);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.options().set_recv_buffer_size(bytes)
    }

    /// Returns the size of the kernel's send buffer. Linux reports twice the size that was set.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_SNDBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_send_buffer_size(65_536)?;
    ///     assert!(stream.send_buffer_size()? >= 65_536);
    ///     Ok(())
    /// }
    /// ```
    pub fn send_buffer_size(&self) -> io::Result<usize> {
        self.options().send_buffer_size()
    }

    /// Sets the size of the kernel's send buffer.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_SNDBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_send_buffer_size(65_536)?;
    ///     assert!(stream.send_buffer_size()? >= 65_536);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.options().set_send_buffer_size(bytes)
    }

    /// Takes the pending error of the socket (`SO_ERROR`), if there is one.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_ERROR)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     assert!(stream.take_error()?.is_none());
    ///     Ok(())
    /// }
    /// ```
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.source().get_ref().take_error()
    }

    fn options(&self) -> StreamOptions<'_> {
        self.source().get_ref().options()
    }
}
