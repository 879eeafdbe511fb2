//! The names in reports, of what hyper makes.

use std::convert::Infallible;
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::service::service_fn;
use phaseloop::hyper::{HyperIo, HyperTimer};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::{LoopHandle, block_on, phase, spawn};

#[test]
fn sleeps_of_hyper_have_the_line_of_the_user() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _client = TcpStream::connect(address).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let line = line!() + 1;
        let server = spawn(async move {
            let answer = async |_| {
                let response = hyper::Response::new(Empty::<Bytes>::new());
                Ok::<_, Infallible>(response)
            };
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder
                .timer(HyperTimer)
                .header_read_timeout(Duration::from_secs(60));
            let service = service_fn(answer);
            let _ = builder
                .serve_connection(HyperIo::new(stream), service)
                .await;
        });
        for _ in 0..100 {
            phase::check().await;
            if LoopHandle::current()
                .report()
                .to_string()
                .contains("sleep (")
            {
                break;
            }
        }
        let text = LoopHandle::current().report().to_string();
        let sleeps = format!("sleep ({}:{line}:", file!());
        assert!(text.contains(&sleeps), "{sleeps} in:\n{text}");
        drop(server);
    });
}
