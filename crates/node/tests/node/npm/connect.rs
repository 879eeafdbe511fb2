//! A port of the package `connect` with its `finalhandler`: a chain of handlers for requests.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use phaseloop_node::http::{
    self, Exchange, IncomingMessage, REQUEST, Server, ServerResponse, status_message,
};
use phaseloop_node::stream::finished;
use phaseloop_node::{Emitter, Reason, catch, set_immediate};

type Done = Rc<dyn Fn(Option<Reason>)>;
type Handle = dyn Fn(&IncomingMessage, &ServerResponse, Next);
type ErrorHandle = dyn Fn(Reason, &IncomingMessage, &ServerResponse, Next);

/// The URL as it was sent: JavaScript's `req.originalUrl`.
pub(crate) struct OriginalUrl(pub(crate) String);

/// An error that chooses the answer: JavaScript's `err.status` and `err.headers`.
#[derive(Debug)]
pub(crate) struct HttpError {
    pub(crate) message: &'static str,
    pub(crate) status: u16,
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message)
    }
}

impl std::error::Error for HttpError {}

enum Handler {
    Request(Box<Handle>),
    Error(Box<ErrorHandle>),
}

struct Layer {
    route: Box<str>,
    handler: Handler,
}

/// A clone is a handle to the same application.
#[derive(Clone)]
pub(crate) struct App {
    stack: Rc<RefCell<Vec<Rc<Layer>>>>,
    is_production: bool,
}

impl App {
    /// JavaScript reads `NODE_ENV` in place of the argument.
    pub(crate) fn new(is_production: bool) -> Self {
        Self {
            stack: Rc::default(),
            is_production,
        }
    }

    pub(crate) fn layer(
        &self,
        route: &str,
        handle: impl Fn(&IncomingMessage, &ServerResponse, Next) + 'static,
    ) {
        self.push(route, Handler::Request(Box::new(handle)));
    }

    pub(crate) fn error_layer(
        &self,
        route: &str,
        handle: impl Fn(Reason, &IncomingMessage, &ServerResponse, Next) + 'static,
    ) {
        self.push(route, Handler::Error(Box::new(handle)));
    }

    pub(crate) fn mount(&self, route: &str, app: &Self) {
        let app = app.clone();
        self.layer(route, move |req, res, next| {
            app.handle(req, res, Rc::new(move |error| next.call(error)));
        });
    }

    /// JavaScript takes the first listener of the server.
    pub(crate) fn mount_server(&self, route: &str, server: &Server) {
        let server = server.clone();
        self.layer(route, move |req, res, _| {
            let (request, response) = (req.clone(), res.clone());
            server.emit(REQUEST, Exchange { request, response });
        });
    }

    fn push(&self, route: &str, handler: Handler) {
        let route = route.strip_suffix('/').unwrap_or(route).into();
        let layer = Rc::new(Layer { route, handler });
        self.stack.borrow_mut().push(layer);
    }

    pub(crate) fn create_server(&self) -> Server {
        let app = self.clone();
        http::create_server(move |req, res| {
            let (request, response) = (req.clone(), res.clone());
            let is_production = app.is_production;
            let done = move |error| final_handler(&request, &response, error, is_production);
            app.handle(req, res, Rc::new(done));
        })
    }

    fn handle(&self, req: &IncomingMessage, res: &ServerResponse, done: Done) {
        let url = req.url();
        req.extensions_mut()
            .get_or_insert_with(|| OriginalUrl(url.to_owned()));
        let walk = Walk {
            app: self.clone(),
            req: req.clone(),
            res: res.clone(),
            done,
            index: Cell::new(0),
            host: host_part(url).to_owned(),
            cut: RefCell::default(),
        };
        Next(Rc::new(walk)).ok();
    }
}

/// One request on its way through the layers of an application.
struct Walk {
    app: App,
    req: IncomingMessage,
    res: ServerResponse,
    done: Done,
    index: Cell<usize>,
    /// What is before the path of a URL that names its host.
    host: String,
    /// The layer whose route is cut off the URL, and whether a slash has taken its place.
    cut: RefCell<Option<(Rc<Layer>, bool)>>,
}

impl Walk {
    fn path(&self) -> &str {
        self.req.url().get(self.host.len()..).unwrap_or_default()
    }

    fn set_path(&self, path: &str) {
        self.req.set_url(format!("{}{path}", self.host));
    }

    fn cut_url(&self, layer: &Rc<Layer>) {
        if layer.route.is_empty() {
            return;
        }
        let rest = &self.path()[layer.route.len()..];
        let needs_slash = self.host.is_empty() && !rest.starts_with('/');
        self.set_path(&format!("{}{rest}", if needs_slash { "/" } else { "" }));
        self.cut.replace(Some((layer.clone(), needs_slash)));
    }

    fn restore_url(&self) {
        if let Some((layer, has_slash)) = self.cut.take() {
            let path = self.path();
            let rest = path.get(usize::from(has_slash)..).unwrap_or_default();
            self.set_path(&format!("{}{rest}", layer.route));
        }
    }
}

/// Calls the next layer: JavaScript's `next`.
#[derive(Clone)]
pub(crate) struct Next(Rc<Walk>);

impl Next {
    pub(crate) fn ok(&self) {
        self.call(None);
    }

    pub(crate) fn fail(&self, error: impl Into<Reason>) {
        self.call(Some(error.into()));
    }

    pub(crate) fn call(&self, mut error: Option<Reason>) {
        let walk = &*self.0;
        let (req, res) = (&walk.req, &walk.res);
        loop {
            walk.restore_url();
            let index = walk.index.replace(walk.index.get() + 1);
            let layer = walk.app.stack.borrow().get(index).cloned();
            let Some(layer) = layer else {
                let done = walk.done.clone();
                set_immediate(move || done(error));
                return;
            };
            if !is_below(path_of(walk.path()), &layer.route) {
                continue;
            }
            walk.cut_url(&layer);
            let called = match (&layer.handler, &error) {
                (Handler::Request(handle), None) => catch(|| handle(req, res, self.clone())),
                (Handler::Error(handle), Some(error)) => {
                    catch(|| handle(error.clone(), req, res, self.clone()))
                }
                _ => continue,
            };
            match called {
                Ok(()) => return,
                Err(thrown) => error = Some(thrown),
            }
        }
    }
}

/// The route ends where the path does, or before a slash or a dot.
fn is_below(path: &str, route: &str) -> bool {
    let start = path.get(..route.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(route))
        && matches!(path.as_bytes().get(route.len()), None | Some(b'/' | b'.'))
}

fn host_part(url: &str) -> &str {
    if url.starts_with('/') {
        return "";
    }
    let scheme = url.find("://").filter(|at| !url[..*at].contains('?'));
    let path = scheme.and_then(|at| Some(at + 3 + url[at + 3..].find('/')?));
    &url[..path.unwrap_or(0)]
}

fn path_of(url: &str) -> &str {
    let path = url.split(['?', '#']).next();
    path.filter(|path| !path.is_empty()).unwrap_or("/")
}

/// Answers what no layer has answered.
fn final_handler(
    req: &IncomingMessage,
    res: &ServerResponse,
    error: Option<Reason>,
    is_production: bool,
) {
    if error.is_none() && res.headers_sent() {
        return;
    }
    let (mut status, mut message, mut headers) = (404, String::new(), [].as_slice());
    if let Some(error) = &error {
        let chosen = error.downcast_ref::<HttpError>();
        let chosen = chosen.filter(|error| (400..600).contains(&error.status));
        headers = chosen.map_or(headers, |error| error.headers);
        let of_response = Some(res.status()).filter(|status| (400..600).contains(status));
        status = chosen.map_or(of_response.unwrap_or(500), |error| error.status);
        message = match is_production {
            true => status_message(status).unwrap_or_default().to_owned(),
            false => format!("{}: {error}", error.name()),
        };
        let text = format!("{}: {error}", error.name());
        set_immediate(move || eprintln!("{text}"));
    } else if let Some(OriginalUrl(url)) = req.extensions().get() {
        let path = path_of(&url[host_part(url).len()..]);
        message = format!("Cannot {} {}", req.method(), encode_url(path));
    }
    if res.headers_sent() {
        req.socket().destroy(None);
        return;
    }
    let send = {
        let (res, is_head) = (res.clone(), req.method() == "HEAD");
        move || send(&res, status, headers, &message, is_head)
    };
    if req.complete() && !req.readable().is_readable() {
        return send();
    }
    finished(req.readable()).then(move |_| send());
    req.resume();
}

fn send(
    res: &ServerResponse,
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    message: &str,
    is_head: bool,
) {
    let message = escape_html(message)
        .replace('\n', "<br>")
        .replace("  ", " &nbsp;");
    let body = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>Error</title>\n</head>\n<body>\n<pre>{message}</pre>\n</body>\n</html>\n"
    );
    res.set_status(status);
    for &(name, value) in headers {
        res.set_header(name, value);
    }
    res.set_header("Content-Security-Policy", "default-src 'none'")
        .set_header("X-Content-Type-Options", "nosniff")
        .set_header("Content-Type", "text/html; charset=utf-8")
        .set_header("Content-Length", body.len().to_string());
    match is_head {
        true => res.end(()),
        false => res.end(body),
    }
}

fn escape_html(text: &str) -> String {
    let escape = |c| match c {
        '"' => "&quot;".to_owned(),
        '&' => "&amp;".to_owned(),
        '\'' => "&#39;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        _ => String::from(c),
    };
    text.chars().map(escape).collect()
}

/// Encodes what a URL cannot have, and leaves what is encoded already.
fn encode_url(url: &str) -> String {
    let mut encoded = String::new();
    for (at, byte) in url.bytes().enumerate() {
        let digits = url.as_bytes().get(at + 1..at + 3).unwrap_or_default();
        let is_encoded = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
        let is_plain = match byte {
            b'%' => is_encoded,
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => false,
            _ => byte.is_ascii_graphic(),
        };
        match is_plain {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
