//! axum: `phaseloop::hyper::serve` beside `axum::serve`, with one application.

use super::axum_app::App;
use super::sockets::announced_listener;
use crate::meter::{Meter, Reading};
use crate::runtime::phaseloop::Phaseloop;
use crate::runtime::tokio::Tokio;
use crate::runtime::{Runtime, Sockets};

/// What does a GET cost, answered by a handler of axum?
pub(crate) fn on_phaseloop(requests: u64) -> Reading {
    let (listener, app) = (announced_listener(), App::new(requests));
    let rt = Phaseloop::default();
    rt.run(async move {
        let done = app.done.clone();
        let listener = rt.listener(listener);
        let meter = Meter::start();
        phaseloop::hyper::serve(listener, app.router())
            .with_graceful_shutdown(async move { done.notified().await })
            .await
            .expect("it serves");
        meter.stop()
    })
}

/// The counterpart of [`on_phaseloop`], as axum's documentation has it.
pub(crate) fn on_tokio(requests: u64) -> Reading {
    let (listener, app) = (announced_listener(), App::new(requests));
    let rt = Tokio::LocalSet;
    rt.run(async move {
        let done = app.done.clone();
        let listener = rt.listener(listener);
        let meter = Meter::start();
        axum::serve(listener, app.router())
            .with_graceful_shutdown(async move { done.notified().await })
            .await
            .expect("it serves");
        meter.stop()
    })
}
