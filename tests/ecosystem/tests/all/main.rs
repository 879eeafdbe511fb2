//! One small test for each crate that the guide `phaseloop::guide::crates` says works. All run on
//! one thread; none needs more than the guide says.
//!
//! ```text
//! cargo test --manifest-path tests/ecosystem/Cargo.toml # a minute or two
//! cargo test --manifest-path tests/ecosystem/Cargo.toml --features heavy # all
//! ```
//!
//! PostgreSQL and Redis are started as processes of their own. Where a server is not installed, its
//! test says so and passes.

mod axum_app;
mod certificates;
mod grpc;
mod http_client;
mod island;
mod orders;
mod postgres;
mod redis_server;
mod servers;
#[cfg(feature = "heavy")]
mod sqlite;
mod tls;
mod tower_layers;
mod utilities;
mod websocket;
