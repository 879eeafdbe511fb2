//! tower and tower-http: what needs no runtime on the bare loop, the rest on the island.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use axum::routing::get;
use phaseloop::block_on;
use phaseloop::hyper::TimeoutLayer;
use tower::{Service, ServiceBuilder, ServiceExt};

fn ask() -> Request<Body> {
    let request = Request::get("/").header("accept-encoding", "gzip");
    request
        .header("origin", "http://there")
        .body(Body::empty())
        .unwrap()
}

#[test]
fn layers_without_a_timer() {
    block_on(async {
        let long = || async { "x".repeat(10_000) };
        let router = Router::new().route("/", get(long)).layer(
            ServiceBuilder::new()
                .layer(tower_http::trace::TraceLayer::new_for_http())
                .layer(tower_http::cors::CorsLayer::permissive())
                .layer(tower_http::compression::CompressionLayer::new()),
        );
        let mut service = ServiceBuilder::new()
            .concurrency_limit(2)
            .map_request(|request: Request<Body>| request)
            .service(router);
        let answer: Response<Body> = service.ready().await.unwrap().call(ask()).await.unwrap();
        assert_eq!(answer.headers()["content-encoding"], "gzip");
        assert_eq!(answer.headers()["access-control-allow-origin"], "*");
    });
}

/// The loop's own layer in place of tower's, inside a router and around one.
#[test]
fn a_limit_by_the_loop() {
    block_on(async {
        let limit = Duration::from_millis(20);
        let layer = TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, limit);
        let slow = || Router::new().route("/", get(std::future::pending::<()>));
        let answer = slow().layer(layer).oneshot(ask()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
        let around = ServiceBuilder::new().layer(layer).service(slow());
        let answer = around.oneshot(ask()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
    });
}

#[test]
fn towers_timers_on_the_island() {
    phaseloop::tokio::block_on(async {
        let slow = tower::service_fn(|()| std::future::pending::<Result<(), Infallible>>());
        let mut service = ServiceBuilder::new()
            .buffer::<()>(4)
            .rate_limit(100, Duration::from_secs(1))
            .timeout(Duration::from_millis(20))
            .service(slow);
        let error = service.ready().await.unwrap().call(()).await.unwrap_err();
        assert!(error.is::<tower::timeout::error::Elapsed>(), "{error}");

        let limit = Duration::from_millis(20);
        let layer =
            tower_http::timeout::TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, limit);
        let router = Router::new().route("/", get(std::future::pending::<()>));
        let answer = router.layer(layer).oneshot(ask()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
    });
}
