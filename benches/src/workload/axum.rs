//! axum: `phaseloop::hyper::serve` beside `axum::serve`, with one application.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::axum_app::App;
use super::sockets::announced_listener;
use crate::meter::{Meter, Reading};
use crate::runtime::phaseloop::Phaseloop;
use crate::runtime::tokio::Tokio;
use crate::runtime::{Runtime, Sockets};

/// The client asks once to learn how long an answer is.
const MORE: u64 = 1;

/// After the last request the client has time to read its answer and to leave.
const LEAVE: Duration = Duration::from_millis(300);

/// What does a GET cost, answered by a handler of axum?
pub(crate) fn on_phaseloop(requests: u64) -> Reading {
    let (listener, app) = (announced_listener(), App::new(requests + MORE));
    let rt = Phaseloop::default();
    rt.run(async move {
        let (done, taken) = (app.done.clone(), Arc::new(Mutex::new(None)));
        let (meter, taken_at_end) = (Meter::start(), taken.clone());
        phaseloop::hyper::serve(rt.listener(listener), app.router())
            .with_graceful_shutdown(async move {
                done.notified().await;
                *taken_at_end.lock().expect("no panic") = Some(meter.stop());
                phaseloop::time::sleep(LEAVE).await;
            })
            .await
            .expect("it serves");
        taken
            .lock()
            .expect("no panic")
            .take()
            .expect("it has ended")
    })
}

/// The counterpart of [`on_phaseloop`], as axum's documentation has it.
pub(crate) fn on_tokio(requests: u64) -> Reading {
    let (listener, app) = (announced_listener(), App::new(requests + MORE));
    let rt = Tokio::LocalSet;
    rt.run(async move {
        let (done, taken) = (app.done.clone(), Arc::new(Mutex::new(None)));
        let (meter, taken_at_end) = (Meter::start(), taken.clone());
        axum::serve(rt.listener(listener), app.router())
            .with_graceful_shutdown(async move {
                done.notified().await;
                *taken_at_end.lock().expect("no panic") = Some(meter.stop());
                tokio::time::sleep(LEAVE).await;
            })
            .await
            .expect("it serves");
        taken
            .lock()
            .expect("no panic")
            .take()
            .expect("it has ended")
    })
}
