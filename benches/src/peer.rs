//! Peers that know no futures, so that the workloads are written for each of them: they show what
//! the same work costs without tasks. Node's are in `peers/node.mjs`.

pub(crate) mod blocking;
pub(crate) mod epoll;
#[cfg(feature = "libuv")]
pub(crate) mod libuv;
pub(crate) mod raw_epoll;
