//! Several loops under seeds, on one thread. The rule is C23 of `tests/CLUSTER.md`.

mod exchange;
mod life;
mod network;
