//! A crawler with `fetch`: a bounded number of requests at once, and signals that abort them.
//!
//! ```text
//! cargo run --release --package phaseloop-node --example crawler                            # a site of its own
//! cargo run --release --package phaseloop-node --example crawler -- http://127.0.0.1:8080/
//! ```

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use futures::stream::FuturesUnordered;
use phaseloop::stream::StreamExt as _;
use phaseloop_node::events::once;
use phaseloop_node::http::{self, Server};
use phaseloop_node::net::LISTENING;
use phaseloop_node::stream::CLOSE;
use phaseloop_node::{
    AbortController, AbortSignal, Emitter, Exit, Reason, fetch, run, set_timeout,
};

/// The number of requests in flight.
const AT_ONCE: usize = 4;

/// The number of pages after which the crawler stops.
const MAX_PAGES: usize = 20;

/// How long a page may take, in milliseconds.
const LONGEST_WAIT: u32 = 300;

/// What became of a page: its status and its number of bytes, or an error.
type Outcome = Result<(u16, usize), String>;

fn main() -> Exit<()> {
    let start = std::env::args().nth(1);
    run(async move {
        if let Some(start) = start {
            return print(&crawl(start).await);
        }
        let (server, busiest) = site();
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.expect("a port is free");
        let base = format!("http://{}/", server.address().expect("it listens"));
        print(&crawl(base).await);
        println!("at most {} requests at once", busiest.get());
        server.close_all_connections();
        server.close();
    })
}

fn print(pages: &BTreeMap<String, Outcome>) {
    for (url, outcome) in pages {
        match outcome {
            Ok((status, size)) => println!("{url}: {status}, {size} bytes"),
            Err(error) => println!("{url}: {error}"),
        }
    }
}

/// Visits `start` and the pages of its site that it leads to.
async fn crawl(start: String) -> BTreeMap<String, Outcome> {
    let enough = AbortController::new();
    let mut seen = BTreeSet::from([start.clone()]);
    let mut waiting = VecDeque::from([start]);
    let (mut running, mut pages) = (FuturesUnordered::new(), BTreeMap::new());
    loop {
        while running.len() < AT_ONCE {
            let Some(url) = waiting.pop_front() else {
                break;
            };
            let signal = AbortSignal::any([&enough.signal(), &AbortSignal::timeout(LONGEST_WAIT)]);
            running.push(async move { (visit(&url, &signal).await, url) });
        }
        let Some((visited, url)) = running.next().await else {
            return pages;
        };
        let outcome = match visited {
            Ok((status, text)) => {
                let found = links(&url, &text).into_iter();
                waiting.extend(found.filter(|link| seen.insert(link.clone())));
                Ok((status, text.len()))
            }
            Err(reason) => Err(reason.to_string()),
        };
        pages.insert(url, outcome);
        if pages.len() == MAX_PAGES {
            // The requests in flight end with an `AbortError`, and no other begins.
            enough.abort();
            waiting.clear();
        }
    }
}

/// Fetches a page. The signal ends the request and the reading of its body.
async fn visit(url: &str, signal: &AbortSignal) -> Result<(u16, String), Reason> {
    let response = fetch(url).signal(signal).send().await?;
    Ok((response.status(), response.text().await?))
}

/// Returns the links of a page to its own site.
fn links(url: &str, text: &str) -> Vec<String> {
    let site = url
        .match_indices('/')
        .nth(2)
        .map_or(url, |(at, _)| &url[..at]);
    let targets = text.split("href=\"").skip(1);
    let targets = targets.filter_map(|rest| rest.split('"').next());
    let own = targets.filter(|target| target.starts_with('/'));
    own.map(|target| format!("{site}{target}")).collect()
}

/// A site of 40 pages, each of which takes some time: page 7 is never answered, page 9 is missing.
/// Also returns the largest number of requests that were open at once.
fn site() -> (Server, Rc<Cell<usize>>) {
    let (open, busiest) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let most = busiest.clone();
    let server = http::create_server(move |req, res| {
        open.set(open.get() + 1);
        most.set(most.get().max(open.get()));
        let closed = open.clone();
        res.on(CLOSE, move |()| closed.set(closed.get() - 1));
        let page: usize = req.url()[1..].parse().unwrap_or(0);
        let res = res.clone();
        match page {
            7 => {}
            9 => {
                res.set_status(404);
                res.end("nothing here");
            }
            _ => drop(set_timeout(5, move || {
                let next = [2 * page + 1, 2 * page + 2].into_iter().filter(|n| *n < 40);
                let next = next.map(|n| format!("<a href=\"/{n}\">{n}</a>\n"));
                res.end(format!(
                    "<h1>Page {page}</h1>\n{}",
                    next.collect::<String>()
                ));
            })),
        }
    });
    (server, busiest)
}
