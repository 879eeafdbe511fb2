//! What needs tokio's timers and tasks, and no socket.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::Local;
use phaseloop::time::sleep;
use tower::{Service, ServiceExt};

use crate::{Outcome, ROUNDS};

pub(crate) async fn tower() -> Outcome {
    let mut service = tower::ServiceBuilder::new()
        .buffer(8)
        .rate_limit(1_000, Duration::from_millis(1))
        .timeout(Duration::from_millis(20))
        .service_fn(async |is_late: bool| {
            if is_late {
                Local::new(sleep(Duration::from_secs(3600))).await;
            }
            Ok::<_, Infallible>("in time")
        });
    for _ in 0..ROUNDS {
        assert_eq!(service.ready().await?.call(false).await?, "in time");
    }
    let late = service.ready().await?.call(true).await;
    assert!(late.is_err_and(|error| error.is::<tower::timeout::error::Elapsed>()));
    Ok(())
}

pub(crate) async fn local_set() -> Outcome {
    let shared = Rc::new(Cell::new(0));
    let set = tokio::task::LocalSet::new();
    for _ in 0..ROUNDS {
        let shared = shared.clone();
        set.spawn_local(async move {
            let one = tokio::spawn(async { 1 }).await.expect("no panic");
            shared.set(shared.get() + one);
        });
    }
    set.await;
    assert_eq!(shared.get(), ROUNDS);
    Ok(())
}
