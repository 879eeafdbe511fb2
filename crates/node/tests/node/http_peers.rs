//! `node::http` with other programs at the other end: `curl`, `wrk`, `autocannon` and Node itself. A test says so and
//! passes where its program is missing.

use crate::util::peers::{output, serve, start};
use std::cell::Cell;
use std::rc::Rc;

use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{
    self, Agent, CONTINUE, IncomingMessage, RESPONSE, RequestOptions, Server, ServerResponse,
};
use phaseloop_node::net::{CONNECTION, LISTENING};
use phaseloop_node::stream::END;
use phaseloop_node::{AbortController, Emitter, run, set_timeout};

/// Answers with the method, the URL and the length of the body; `/slow` a moment later, `/trailer`
/// in chunks with a trailer.
fn describe(req: &IncomingMessage, res: &ServerResponse) {
    let (size, res) = (Rc::new(Cell::new(0)), res.clone());
    let count = size.clone();
    req.on_data(move |bytes| count.set(count.get() + bytes.len()));
    req.on_this(END, move |req, ()| {
        let text = format!("{} {} {}\n", req.method(), req.url(), size.get());
        let res = res.clone();
        match req.url() {
            "/slow" => drop(set_timeout(20, move || res.end(text))),
            "/trailer" => {
                res.set_header("Trailer", "X-Size");
                res.write(text);
                res.add_trailers([("X-Size", size.get().to_string())])
                    .unwrap();
                res.end(());
            }
            _ => res.end(text),
        }
    });
}

/// Runs a program against a server of [`describe`], and returns the number of its connections.
fn serving<F>(program: impl FnOnce(Server, String) -> F + 'static) -> usize
where
    F: Future<Output = ()> + 'static,
{
    let connections = Rc::new(Cell::new(0));
    let count = connections.clone();
    let exit = run(async move {
        let server = http::create_server(describe);
        server.on(CONNECTION, move |_| count.set(count.get() + 1));
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        let base = format!("http://{}", server.address().unwrap());
        program(server.clone(), base).await;
        server.close_all_connections();
        server.close();
    });
    assert_eq!(exit.code(), 0);
    connections.get()
}

/// Runs `curl` without a configuration of the user. `None` if there is no `curl`.
async fn curl(args: &[&str]) -> Option<String> {
    let quiet = ["--disable", "--silent", "--show-error", "--max-time", "60"];
    let args = [&quiet, args].concat();
    Some(output(start("curl", &args)?).await)
}

#[test]
fn curl_uses_one_connection_for_several_requests() {
    let connections = serving(|_, base| async move {
        let urls = ["/one", "/slow", "/trailer"].map(|path| format!("{base}{path}"));
        let [one, slow, trailer] = &urls;
        if let Some(text) = curl(&[one, slow, trailer]).await {
            assert_eq!(text, "GET /one 0\nGET /slow 0\nGET /trailer 0\n");
        }
    });
    assert!(connections <= 1, "{connections} connections");
}

#[test]
fn curl_uploads_with_a_length_in_chunks_and_after_100_continue() {
    serving(|_, base| async move {
        let url = format!("{base}/upload");
        // Curl asks for permission before it sends more than a megabyte.
        let body = "x".repeat(3 << 20);
        let file = std::env::temp_dir().join(format!("phaseloop-upload-{}", std::process::id()));
        std::fs::write(&file, &body).unwrap();
        let data = format!("@{}", file.display());
        let chunked = "Transfer-Encoding: chunked";
        let expected = format!("POST /upload {}\n", body.len());
        if let Some(text) = curl(&["--data-binary", &data, &url]).await {
            assert_eq!(text, expected);
        }
        if let Some(text) = curl(&["--header", chunked, "--data-binary", &data, &url]).await {
            assert_eq!(text, expected);
        }
        std::fs::remove_file(&file).unwrap();
    });
}

#[test]
fn curl_is_understood_in_other_versions_and_methods() {
    serving(|_, base| async move {
        if let Some(text) = curl(&["--http1.0", "--include", &format!("{base}/old")]).await {
            assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
            assert!(text.contains("\r\nConnection: close\r\n"), "{text}");
            assert!(text.ends_with("\r\n\r\nGET /old 0\n"), "{text}");
        }
        if let Some(text) = curl(&["--head", &format!("{base}/head")]).await {
            assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
            assert!(
                text.ends_with("\r\nKeep-Alive: timeout=5\r\n\r\n"),
                "{text}"
            );
        }
        let long = format!("X: {}", "y".repeat(17_000));
        let status = ["--output", "/dev/null", "--write-out", "%{http_code}"];
        let args = [&status[..], &["--header", &long, &base]].concat();
        if let Some(code) = curl(&args).await {
            assert_eq!(code, "431");
        }
    });
}

/// Requests of Node's own client, and its `fetch`. Prints what came back, one line each.
const CLIENT: &str = r#"
const http = require('http');
const base = process.argv[1];
const agent = new http.Agent({ keepAlive: true, maxSockets: 2 });
const ask = (method, path, pieces = [], headers = {}) => new Promise((resolve, reject) => {
  const req = http.request(base + path, { method, agent, headers }, (res) => {
    let text = '';
    res.setEncoding('utf8');
    res.on('data', (piece) => text += piece);
    res.on('end', () => resolve(`${res.statusCode} ${text.trim()} ${JSON.stringify(res.trailers)}`));
  });
  req.on('error', reject);
  req.on('continue', () => console.log('continue'));
  for (const piece of pieces) req.write(piece);
  req.end();
});
(async () => {
  console.log(await ask('GET', '/a'));
  console.log(await ask('POST', '/b', ['one', 'two']));
  console.log(await ask('PUT', '/trailer', [Buffer.alloc(1 << 20)]));
  console.log(await ask('POST', '/c', ['x'], { Expect: '100-continue', 'Content-Length': 1 }));
  const many = await Promise.all(Array.from({ length: 40 }, (_, i) => ask('GET', '/slow?' + i)));
  console.log(new Set(many.map((text) => text.slice(0, 3))).size, many.length);
  agent.destroy();
  const res = await fetch(base + '/fetched', { method: 'POST', body: 'hello' });
  console.log(res.status, (await res.text()).trim());
  process.exit();
})();
"#;

#[test]
fn node_s_client_keeps_two_connections_and_its_fetch_another() {
    let connections = serving(move |_, base| async move {
        let Some(node) = start("node", &["-e", CLIENT, &base]) else {
            return;
        };
        let lines = [
            "200 GET /a 0 {}",
            "200 POST /b 6 {}",
            "200 PUT /trailer 1048576 {\"x-size\":\"1048576\"}",
            "continue",
            "200 POST /c 1 {}",
            "1 40",
            "200 POST /fetched 5",
        ];
        assert_eq!(output(node).await.lines().collect::<Vec<_>>(), lines);
    });
    // None, where Node is missing.
    assert!(connections == 0 || connections == 3, "{connections}");
}

/// A server that prints its port.
const SERVER: &str = r#"
const server = require('http').createServer((req, res) => {
  let size = 0;
  req.on('data', (piece) => size += piece.length);
  req.on('end', () => {
    const text = `${req.method} ${req.url} ${size} ${req.headers['transfer-encoding']}`;
    if (req.url === '/never') return;
    if (req.url === '/cut') return res.write(text, () => req.socket.destroy());
    if (req.url === '/trailer') res.setHeader('Trailer', 'X-Size').write('in ');
    if (req.url === '/trailer') res.addTrailers({ 'X-Size': String(size) });
    res.end(text);
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"#;

/// Sends a request in pieces. Returns the status, the text, and the trailer `X-Size`.
async fn ask(options: RequestOptions, pieces: &[&str]) -> (u16, String, String) {
    let request = http::request(options);
    let response = once(&request, RESPONSE);
    for piece in pieces {
        request.write(*piece);
    }
    request.end(());
    let response = response.await.unwrap();
    let body = response.readable().to_array().await.unwrap().concat();
    let size = response.trailers().get("x-size").unwrap_or_default();
    let status = response.status_code().unwrap();
    (status, String::from_utf8(body).unwrap(), size.to_owned())
}

#[test]
fn node_s_server_understands_the_client_and_its_kept_connection() {
    let Some((_server, port)) = serve("node", &["-e", SERVER]) else {
        return;
    };
    let port: u16 = port.parse().unwrap();
    let exit = run(async move {
        let agent = Agent::builder().keep_alive(true).max_sockets(1).build();
        let to = |method: &str, path: &str| {
            let options = RequestOptions::new(("127.0.0.1", port)).agent(&agent);
            options.method(method).path(path)
        };
        let opened = Rc::new(Cell::new(0));
        let plain = |text: &str| (200, text.to_owned(), String::new());
        assert_eq!(ask(to("GET", "/a"), &[]).await, plain("GET /a 0 undefined"));
        let answer = ask(to("POST", "/b"), &["one", "two"]).await;
        assert_eq!(answer, plain("POST /b 6 chunked"));
        let (_, text, size) = ask(to("PUT", "/trailer"), &["x", &"y".repeat(1 << 20)]).await;
        assert_eq!(
            (&*text, &*size),
            ("in PUT /trailer 1048577 chunked", "1048577")
        );
        assert_eq!((agent.sockets(), agent.free_sockets()), (0, 1));

        // The body waits for the server's word.
        let request = to("POST", "/c")
            .header("Expect", "100-continue")
            .header("Content-Length", 1);
        let request = http::request(request);
        let (count, response) = (opened.clone(), once(&request, RESPONSE));
        request.on_this(CONTINUE, move |request, ()| {
            count.set(count.get() + 1);
            request.end("x");
        });
        let body = response.await.unwrap().readable().to_array().await;
        assert_eq!(body.unwrap().concat(), b"POST /c 1 undefined");
        assert_eq!(opened.get(), 1);
        agent.destroy();
    });
    assert_eq!(exit.code(), 0);
}

#[test]
fn the_client_notices_that_node_s_server_cuts_and_gives_up_waiting_for_it() {
    let Some((_server, port)) = serve("node", &["-e", SERVER]) else {
        return;
    };
    let port: u16 = port.parse().unwrap();
    let exit = run(async move {
        let to = |path: &str| RequestOptions::new(("127.0.0.1", port)).path(path);
        let cut = http::get(to("/cut"));
        let response = once(&cut, RESPONSE).await.unwrap();
        let error = response.readable().to_array().await.unwrap_err();
        assert_eq!(error.code(), Some("ECONNRESET"));

        let controller = AbortController::new();
        let never = http::get(to("/never").signal(&controller.signal()));
        let failed = once(&never, ERROR);
        set_timeout(50, move || controller.abort());
        // An awaited 'error' is a value, not a failure of the wait.
        let error = failed.await.unwrap();
        assert_eq!(error.code(), Some("ABORT_ERR"));
    });
    assert_eq!(exit.code(), 0);
}

/// Runs a load generator for two seconds. `None` if it is not installed.
async fn load(program: &str, args: &[&str]) -> Option<String> {
    Some(output(start(program, args)?).await)
}

#[test]
fn wrk_gets_an_answer_to_each_of_its_requests() {
    serving(|_, base| async move {
        let args = ["-t1", "-c20", "-d2s", &base];
        if let Some(text) = load("wrk", &args).await {
            assert!(text.contains("requests in"), "{text}");
            assert!(!text.contains("Socket errors"), "{text}");
            assert!(!text.contains("Non-2xx"), "{text}");
        }
    });
}

#[test]
fn autocannon_gets_an_answer_to_each_of_its_pipelined_requests() {
    serving(|_, base| async move {
        let args = ["-c", "10", "-p", "4", "-d", "2", "--json", &base];
        if let Some(text) = load("autocannon", &args).await {
            assert!(text.contains("\"errors\":0"), "{text}");
            assert!(text.contains("\"non2xx\":0"), "{text}");
        }
    });
}
