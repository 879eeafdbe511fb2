//! Several loops as one program. The rules are in `tests/CLUSTER.md`.

#[path = "../util"]
mod util {
    pub(crate) mod panics;
}

mod attribute;
mod channel;
mod life;
mod listen;
mod order;
mod sharded;
mod shutdown;
