//! axum: `phaseloop::hyper::serve` beside `axum::serve`, with one application.

use std::time::Duration;

use tokio::sync::oneshot;

use super::axum_app::App;
use super::sockets::announced_listener;
use crate::meter::{Meter, Reading};
use crate::runtime::phaseloop::Phaseloop;
use crate::runtime::tokio::{CURRENT_THREAD, Tokio};
use crate::runtime::{Runtime, Sockets};

/// The client asks once to learn how long an answer is.
const MORE: u64 = 1;

/// After the last request the client has time to read its answer and to leave.
const LEAVE: Duration = Duration::from_millis(300);

/// What does a GET cost, answered by a handler of axum?
pub(crate) fn on_phaseloop(requests: u64) -> Reading {
    let (rt, listener) = (Phaseloop::default(), announced_listener());
    rt.run(async move {
        let (app, reading, last) = measured(requests);
        phaseloop::hyper::serve(rt.listener(listener), app.router())
            .with_graceful_shutdown(async {
                last.await;
                phaseloop::time::sleep(LEAVE).await;
            })
            .await
            .expect("it serves");
        reading.await.expect("it has ended")
    })
}

/// The counterpart of [`on_phaseloop`], as axum's documentation has it.
pub(crate) fn on_tokio(requests: u64) -> Reading {
    let (rt, listener) = (Tokio::<CURRENT_THREAD>, announced_listener());
    rt.run(async move {
        let (app, reading, last) = measured(requests);
        axum::serve(rt.listener(listener), app.router())
            .with_graceful_shutdown(async {
                last.await;
                tokio::time::sleep(LEAVE).await;
            })
            .await
            .expect("it serves");
        reading.await.expect("it has ended")
    })
}

/// Starts to measure an application. The future waits for its last request, and sends the reading.
fn measured(
    requests: u64,
) -> (
    App,
    oneshot::Receiver<Reading>,
    impl Future<Output = ()> + Send,
) {
    let app = App::new(requests + MORE);
    let (sender, reading) = oneshot::channel();
    let (done, meter) = (app.done.clone(), Meter::start());
    let last = async move {
        done.notified().await;
        // The receiver waits for the server to end.
        let _ = sender.send(meter.stop());
    };
    (app, reading, last)
}
