//! A TCP echo server for one connection, to see how large a program with nothing else in it is.

fn main() {
    phaseloop_benches::echo::tokio_local_set();
}
