//! The programs of `../programs`, each ported to Rust: the same tokens in the same order.
//!
//! One file an area, each with a table `PORTS`. To add a port: write its main program as an `async
//! fn` (no `await` is needed; what runs before the first one is the main program), and name it in
//! the table of its file:
//!
//! ```text
//! ports! {
//!     Virtual "001-main-order" => main_order,     // timers only: the virtual clock
//!     Real "070-readfile-timeout-immediate" => …, // I/O: the real clock
//! }
//! ```
//!
//! A port of what one system has is gated there: `#[cfg(unix)]`.
//!
//! The name is that of the program without `.js`. `tests/conformance/main.rs` runs all of them and
//! compares with `../programs/NAME.expected`; `cargo run --example conformance -- port NAME` runs
//! one on the real clock.

#[cfg(target_os = "linux")]
mod child_pipes;
mod combined;
mod context_again;
mod context_flow;
mod context_handles;
mod context_kept;
mod context_more;
mod context_process;
mod context_requests;
mod context_sockets;
mod contexts;
mod diagnostics;
mod dialogues;
mod dns;
mod ends;
#[cfg(target_os = "linux")]
mod error_fields;
mod errors;
mod events;
mod exit;
mod fetch;
mod fetch_more;
#[cfg(unix)]
mod file_system;
#[cfg(unix)]
mod files;
mod generators;
mod hooks;
mod hooks_again;
mod hooks_further;
mod hooks_more;
mod http_agents;
mod http_bytes;
mod http_client;
mod http_ends;
mod http_errors;
mod http_headers;
mod http_limits;
mod http_messages;
mod http_more;
mod http_order;
mod http_places;
mod http_stages;
mod http_streams;
mod immediates;
mod io;
mod lanes;
mod listen_again;
mod messages;
#[cfg(unix)]
mod missing;
mod mixed;
mod modules;
mod net_reset;
mod network;
mod newer;
mod order;
mod performance;
mod performance_more;
mod porting;
mod porting_events;
mod porting_more;
#[cfg(unix)]
mod processes;
mod promise_timers;
mod promises;
mod readline;
mod readline_terminal;
mod small_modules;
mod sockets;
mod sockets_again;
mod sockets_reentrant;
#[cfg(unix)]
mod spawning;
mod streams;
mod surface;
mod timers;
mod tls;
#[cfg(target_os = "linux")]
mod watching;
mod zlib;

use crate::support::{Clock, Main};

/// One port.
#[derive(Clone, Copy)]
pub(crate) struct Port {
    pub(crate) name: &'static str,
    pub(crate) clock: Clock,
    pub(crate) main: fn() -> Main,
}

/// All ports, area by area.
pub(crate) const ALL: &[&[Port]] = &[
    lanes::PORTS,
    promises::PORTS,
    timers::PORTS,
    immediates::PORTS,
    io::PORTS,
    sockets::PORTS,
    sockets_again::PORTS,
    sockets_reentrant::PORTS,
    errors::PORTS,
    exit::PORTS,
    events::PORTS,
    promise_timers::PORTS,
    messages::PORTS,
    streams::PORTS,
    newer::PORTS,
    #[cfg(unix)]
    processes::PORTS,
    #[cfg(unix)]
    files::PORTS,
    surface::PORTS,
    combined::PORTS,
    order::PORTS,
    http_order::PORTS,
    http_bytes::PORTS,
    http_headers::PORTS,
    http_limits::PORTS,
    http_errors::PORTS,
    readline::PORTS,
    small_modules::PORTS,
    generators::PORTS,
    dialogues::PORTS,
    modules::PORTS,
    http_ends::PORTS,
    http_client::PORTS,
    fetch::PORTS,
    mixed::PORTS,
    http_agents::PORTS,
    http_stages::PORTS,
    http_messages::PORTS,
    fetch_more::PORTS,
    http_more::PORTS,
    http_streams::PORTS,
    http_places::PORTS,
    contexts::PORTS,
    context_flow::PORTS,
    context_handles::PORTS,
    hooks::PORTS,
    context_more::PORTS,
    hooks_more::PORTS,
    performance::PORTS,
    context_again::PORTS,
    context_kept::PORTS,
    context_process::PORTS,
    context_requests::PORTS,
    context_sockets::PORTS,
    hooks_again::PORTS,
    hooks_further::PORTS,
    performance_more::PORTS,
    ends::PORTS,
    porting::PORTS,
    porting_events::PORTS,
    porting_more::PORTS,
    #[cfg(unix)]
    missing::PORTS,
    #[cfg(target_os = "linux")]
    error_fields::PORTS,
    #[cfg(unix)]
    spawning::PORTS,
    #[cfg(target_os = "linux")]
    child_pipes::PORTS,
    #[cfg(unix)]
    file_system::PORTS,
    network::PORTS,
    net_reset::PORTS,
    listen_again::PORTS,
    #[cfg(target_os = "linux")]
    watching::PORTS,
    zlib::PORTS,
    diagnostics::PORTS,
    tls::PORTS,
    dns::PORTS,
    readline_terminal::PORTS,
];

/// The table of one area; see the module's documentation.
macro_rules! ports {
    ($($(#[$gate:meta])* $clock:ident $name:literal => $main:ident,)*) => {
        pub(crate) const PORTS: &[$crate::ports::Port] = &[$($(#[$gate])* $crate::ports::Port {
            name: $name,
            clock: $crate::support::Clock::$clock,
            main: || Box::pin($main()),
        },)*];
    };
}
use ports;
