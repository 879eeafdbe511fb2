//! gRPC by tonic: its server over `serve`, its client over our connector.

use hyper::Uri;
use phaseloop::hyper::{Connector, HyperExecutor, serve};
use phaseloop::net::TcpListener;
use phaseloop::{block_on, spawn};
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// `Routes` is a service of tower, so it needs no `tonic::transport::Server`. Both ends send small
/// messages at once: without that a call takes 40 milliseconds.
#[test]
fn a_server_and_a_channel_of_tonic() {
    block_on(async {
        let (reporter, health) = tonic_health::server::health_reporter();
        reporter
            .set_service_status("echo", tonic_health::ServingStatus::Serving)
            .await;
        let routes = tonic::service::Routes::new(health);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(serve(listener, routes));

        let uri: Uri = format!("http://{address}").parse().unwrap();
        let endpoint = Endpoint::from(uri).executor(HyperExecutor);
        let channel = endpoint
            .connect_with_connector(Connector::new())
            .await
            .unwrap();
        let mut client = HealthClient::new(channel);
        for _ in 0..10 {
            let question = HealthCheckRequest {
                service: "echo".into(),
            };
            let answer = client.check(question).await.unwrap().into_inner();
            assert_eq!(
                answer.status(),
                tonic_health::pb::health_check_response::ServingStatus::Serving
            );
        }
        let unknown = HealthCheckRequest {
            service: "nothing".into(),
        };
        let error = client.check(unknown).await.unwrap_err();
        assert_eq!(error.code(), tonic::Code::NotFound);
        server.abort();
    });
}
