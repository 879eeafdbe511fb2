//! The type of service of a socket of any protocol.

/// Implements the type of service for a socket with `local_addr`, by an expression that returns its
/// options.
macro_rules! impl_tos {
    ($socket:ty, |$this:ident| $options:expr) => {
        /// The type of service of sent packets.
        impl $socket {
            /// Returns the type of service of sent packets: `IP_TOS`, or the traffic class
            /// (`IPV6_TCLASS`) of an IPv6 socket.
            ///
            /// # Errors
            ///
            /// Any OS error of `getsockopt`; [`Unsupported`](std::io::ErrorKind::Unsupported) on
            /// platforms without the option.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     socket.set_tos(0x10)?; // low delay
            ///     assert_eq!(socket.tos()?, 0x10);
            ///     Ok(())
            /// }
            /// ```
            pub fn tos(&self) -> std::io::Result<u32> {
                let $this = self;
                $options.tos(self.local_addr()?.is_ipv6())
            }

            /// Sets the type of service of sent packets: `IP_TOS`, or the traffic class
            /// (`IPV6_TCLASS`) of an IPv6 socket. Its lower two bits may belong to the kernel.
            ///
            /// # Errors
            ///
            /// Any OS error of `setsockopt`; [`Unsupported`](std::io::ErrorKind::Unsupported) on
            /// platforms without the option.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     socket.set_tos(0x10)?; // low delay
            ///     assert_eq!(socket.tos()?, 0x10);
            ///     Ok(())
            /// }
            /// ```
            pub fn set_tos(&self, tos: u32) -> std::io::Result<()> {
                let $this = self;
                $options.set_tos(tos, self.local_addr()?.is_ipv6())
            }

            /// Returns the type of service of sent IPv4 packets (`IP_TOS`).
            ///
            /// # Errors
            ///
            /// Any OS error of `getsockopt(IP_TOS)`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     socket.set_tos_v4(0x10)?; // low delay
            ///     assert_eq!(socket.tos_v4()?, 0x10);
            ///     Ok(())
            /// }
            /// ```
            pub fn tos_v4(&self) -> std::io::Result<u32> {
                let $this = self;
                $options.tos(false)
            }

            /// Sets the type of service of sent IPv4 packets (`IP_TOS`).
            ///
            /// # Errors
            ///
            /// Any OS error of `setsockopt(IP_TOS)`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     socket.set_tos_v4(0x10)?; // low delay
            ///     assert_eq!(socket.tos_v4()?, 0x10);
            ///     Ok(())
            /// }
            /// ```
            pub fn set_tos_v4(&self, tos: u32) -> std::io::Result<()> {
                let $this = self;
                $options.set_tos(tos, false)
            }
        }
    };
}
