//! A listener that gets its object does not keep the object alive: what the program drops is freed,
//! also where the object never closes. The tests count the objects by what their listeners own.

use crate::util::trace::paused;

use std::cell::Cell;
use std::rc::Rc;

use phaseloop_node::events::{EventEmitterAsyncResource, WeakThis, once};
use phaseloop_node::http::{self, Agent, RESPONSE, RequestOptions};
use phaseloop_node::net::{self, LISTENING};
use phaseloop_node::stream::{CLOSE, Duplex, Readable, Transform, Writable};
use phaseloop_node::worker_threads::MessageChannel;
use phaseloop_node::{Emitter, EventEmitter, dgram, readline, run_on, sleep};

/// Counts objects by the listeners that are alive, which every object has two of.
#[derive(Clone, Default)]
struct Census(Rc<()>);

impl Census {
    /// Adds a listener that gets the object, one that is called often and one that is called once.
    fn enter<E: Emitter + WeakThis>(&self, object: &E) {
        let (often, once) = (self.0.clone(), self.0.clone());
        object.on_this(CLOSE, move |_, ()| drop(often.clone()));
        object.once_this(CLOSE, move |_, ()| drop(once));
    }

    fn living(&self) -> usize {
        (Rc::strong_count(&self.0) - 1) / 2
    }
}

fn in_loop<F: Future<Output = ()> + 'static>(program: impl FnOnce(Census) -> F + 'static) {
    let (mut event_loop, _, _) = paused();
    let census = Census::default();
    let exit = run_on(&mut event_loop, async move { program(census).await });
    assert_eq!(exit.code(), 0);
}

/// Makes an object, drops it, and looks whether it is gone.
async fn is_freed<E: Emitter + WeakThis>(what: &str, object: E) {
    let census = Census::default();
    census.enter(&object);
    assert_eq!(census.living(), 1);
    drop(object);
    sleep(1).await.unwrap();
    assert_eq!(census.living(), 0, "{what}");
}

#[test]
fn objects_that_never_close_are_freed_when_they_are_dropped() {
    in_loop(|_| async {
        let numbers = || Readable::<u32>::from_iter([1]);
        let sink = || Writable::objects(|_: u32, done| done.ok()).build();
        let bytes = || Readable::<Vec<u8>>::from_iter([vec![b'a']]);
        is_freed("emitter", EventEmitter::new()).await;
        is_freed("resource", EventEmitterAsyncResource::new("R")).await;
        is_freed("readable", numbers()).await;
        is_freed("writable", sink()).await;
        is_freed("transform", Transform::<u32, u32>::pass_through()).await;
        let halves = (
            Readable::<u32>::objects(),
            Writable::objects(|_: u32, done| done.ok()),
        );
        is_freed("duplex", Duplex::new(halves.0, halves.1)).await;
        is_freed("socket", net::Socket::new()).await;
        is_freed("server", net::create_server(|_| ())).await;
        is_freed("http server", http::create_server(|_, _| ())).await;
        is_freed("agent", Agent::builder().build()).await;
        is_freed("datagrams", dgram::Socket::new()).await;
        is_freed("interface", readline::create_interface(&bytes())).await;
        is_freed("port", MessageChannel::<u32, u32>::new().port1).await;
    });
}

#[test]
fn messages_of_a_kept_connection_are_freed() {
    in_loop(|census| async move {
        let counted = census.clone();
        let requests = Rc::new(Cell::new(0));
        let count = requests.clone();
        let server = http::create_server(move |req, res| {
            counted.enter(req);
            counted.enter(res);
            count.set(count.get() + 1);
            req.on_data_this(|_, _| ());
            res.end("x");
        });
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        let agent = Agent::builder().keep_alive(true).build();
        for _ in 0..3 {
            let options = RequestOptions::new(server.address().unwrap()).agent(&agent);
            let request = http::request(options.method("POST"));
            census.enter(&request);
            let response = once(&request, RESPONSE);
            request.end("body");
            let response = response.await.unwrap();
            census.enter(&response);
            let ended = once(&response, CLOSE);
            response.readable().resume();
            ended.await.unwrap();
        }
        // The last messages are let go when their connection has nothing more to send.
        sleep(10).await.unwrap();
        assert_eq!((requests.get(), server.connections()), (3, 1));
        assert_eq!(census.living(), 0);
        agent.destroy();
        server.close();
    });
}

#[cfg(unix)]
#[test]
fn children_are_freed_after_their_close() {
    use phaseloop_node::child_process;

    in_loop(|census| async move {
        let child = child_process::spawn("true", []);
        let closed = once(&child, child_process::CLOSE);
        let held = census.0.clone();
        let calls = Rc::new(Cell::new(0));
        let count = calls.clone();
        child.on_this(child_process::CLOSE, move |child, exit| {
            assert!(child.pid().is_some() && exit.code == Some(0));
            count.set(count.get() + 1);
            drop(held.clone());
        });
        // The program does not hold the child: its events still come.
        drop(child);
        closed.await.unwrap();
        sleep(1).await.unwrap();
        assert_eq!((calls.get(), Rc::strong_count(&census.0)), (1, 1));
    });
}
