//! The numbers of the errors that tests expect, under the names of Unix.

#[cfg(unix)]
pub(crate) use rustix::io::Errno;
#[cfg(windows)]
pub(crate) use windows::Errno;

#[cfg(windows)]
mod windows {
    /// What rustix has on Unix, as far as tests name it: what Windows reports in its place.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Errno(i32);

    #[allow(dead_code, reason = "the binaries use a part each")]
    impl Errno {
        pub(crate) const ADDRINUSE: Self = Self(10048);
        pub(crate) const AFNOSUPPORT: Self = Self(10047);
        pub(crate) const CONNREFUSED: Self = Self(10061);
        /// A socket without a peer is not connected.
        pub(crate) const DESTADDRREQ: Self = Self(10057);
        pub(crate) const INVAL: Self = Self(10022);
        pub(crate) const MSGSIZE: Self = Self(10040);
        pub(crate) const NOENT: Self = Self(2);
        pub(crate) const NOTDIR: Self = Self(267);
        pub(crate) const PIPE: Self = Self(232);

        pub(crate) const fn from_raw_os_error(number: i32) -> Self {
            Self(number)
        }

        pub(crate) const fn raw_os_error(self) -> i32 {
            self.0
        }
    }

    impl From<Errno> for std::io::Error {
        fn from(number: Errno) -> Self {
            Self::from_raw_os_error(number.0)
        }
    }
}
