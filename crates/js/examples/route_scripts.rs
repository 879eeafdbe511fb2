//! A server of Rust whose routes are scripts with limits: an endless one costs its own request only.
//! `cargo run -p phaseloop-js --example route_scripts`, then `curl localhost:8080/hello?you`.

use std::time::Duration;

use phaseloop_js::{Engine, Error, Files, Modules};
use phaseloop_node::{Exit, http, run};

const ROUTES: [(&str, &str); 2] = [
    ("/hello", "(query) => `hello ${query || 'world'}\\n`"),
    ("/endless", "() => { for (;;); }"),
];

fn main() -> Exit<Result<(), Error>> {
    run(async {
        let engine = Engine::builder()
            .time_limit(Duration::from_millis(50))
            .memory_limit(16 << 20)
            .modules(Modules::Core)
            .files(Files::None)
            .build()?;
        let routes = ROUTES.map(|(path, script)| (path, engine.run(path, script)));
        let server = http::create_server(move |request, response| {
            let url = request.url().to_owned();
            let (path, query) = url.split_once('?').unwrap_or((&url, ""));
            let Some((_, Ok(script))) = routes.iter().find(|(known, _)| *known == path) else {
                response.set_status(404);
                return response.end("not found\n");
            };
            match script
                .call((query,))
                .and_then(|answer| answer.to::<String>())
            {
                Ok(text) => response.end(text),
                Err(error) => {
                    response.set_status(500);
                    response.end(format!("{}\n", error.message()))
                }
            };
        });
        server.listen(8080);
        std::future::pending::<()>().await;
        Ok(())
    })
}
