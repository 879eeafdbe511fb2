//! 378, 379, 917: awaited events, streams from iterators, promises of streams, and small modules.

use futures::StreamExt as _;
use phaseloop_node::events::{self, ERROR, Event, EventEmitter};
use phaseloop_node::stream::promises::{finished, pipeline};
use phaseloop_node::stream::{CLOSE, Readable, Writable};
use phaseloop_node::string_decoder::{Encoding, StringDecoder};
use phaseloop_node::timers::promises::{Options, scheduler};
use phaseloop_node::util::{debuglog, promisify};
use phaseloop_node::{
    AbortController, Emitter, Error, Promise, async_generator, call, fs, net, next_tick,
    set_immediate, set_timeout,
};

use crate::support::{log, say, says, scratch};

super::ports! {
    Virtual "378-events-on-and-from" => events_on_and_from,
    Virtual "379-small-modules" => small_modules,
    Real "917-further" => further,
}

/// Logs when it is dropped: `finally`.
struct Finally(&'static str);

impl Drop for Finally {
    fn drop(&mut self) {
        log(self.0);
    }
}

async fn events_on_and_from() {
    const X: Event<u32> = Event::new("x");
    call(async {
        let (e, c) = (EventEmitter::new(), AbortController::new());
        let signal = c.signal();
        let emits = e.clone();
        set_immediate(move || {
            emits.emit(X, 1);
            emits.emit(X, 2);
            next_tick(say("tick"));
            let mut p = Promise::resolved(());
            for i in 1..=5 {
                p = p.then(move |()| log(format!("c{i}")));
            }
            log("emitted");
            set_timeout(50, move || {
                emits.emit(X, 3);
                set_timeout(50, move || c.abort());
            });
        });
        let mut all = events::on_with_signal(&e, X, &signal);
        while let Some(v) = all.next().await {
            match v {
                Ok(v) => log(format!("on-{v}")),
                Err(err) => log(err.name()),
            }
        }
        log(format!("listeners-{}", e.listener_count(X)));
        let failing = EventEmitter::new();
        let emits = failing.clone();
        set_immediate(move || assert!(emits.emit(ERROR, Error::new("bad"))));
        let failed = events::on(&failing, X).next().await;
        log(failed.unwrap().unwrap_err().to_string());
        streams().await;
    });
}

async fn streams() {
    let r = Readable::from_stream(async_generator(|out| async move {
        let _finally = Finally("gen-finally");
        log("gen-1");
        out.yield_value("a").await;
        log("gen-2");
        out.yield_value("b").await;
        Ok(())
    }));
    r.on(CLOSE, says("r.close"));
    log("made");
    let mut chunks = r.chunks();
    log(format!("item-{}", chunks.next().await.unwrap().unwrap()));
    drop(chunks);
    let whole = Readable::from_chunk("whole").to_array().await.unwrap();
    log(format!("string-{}", whole.len()));
    let w = Writable::objects(|x: u32, done| {
        log(format!("w-{x}"));
        set_immediate(move || done.ok());
    });
    let tenfold = pipeline(&Readable::from_iter([1, 2])).generator(|mut src| {
        async_generator(|out| async move {
            while let Some(x) = src.next().await {
                out.yield_value(x? * 10).await;
            }
            Ok(())
        })
    });
    tenfold.into(&w.build()).await.unwrap();
    log("pipeline");
    let d = Writable::bytes(|_: Vec<u8>, done| done.ok()).build();
    let f = finished(&d);
    d.destroy(None);
    log(format!("finished-{}", f.await.unwrap_err().code().unwrap()));
}

async fn small_modules() {
    fn doubled(x: i32, callback: impl FnOnce(Result<i32, Error>) + 'static) {
        log("called");
        if x < 0 {
            callback(Err(Error::new("neg")));
        } else {
            next_tick(move || callback(Ok(x * 2)));
        }
    }
    let f = |x| promisify(move |done| doubled(x, done));
    call(async move {
        let p = f(21);
        log("after-call");
        log(format!("value-{}", p.await.unwrap()));
        let failed = f(-1).then_result(|x| log(x.unwrap_err().to_string()));
        failed.await.unwrap();
        next_tick(say("tick"));
        let q = f(1);
        next_tick(say("tick2"));
        Promise::resolved(()).then(|()| log("promise"));
        q.await.unwrap();
        log("resumed");
        set_immediate(say("immediate"));
        scheduler::yield_now().await.unwrap();
        log("yielded");
        set_timeout(5, say("timer"));
        scheduler::wait(60).await.unwrap();
        log("waited");
        let c = AbortController::new();
        let options = Options::new().signal(&c.signal());
        set_immediate(move || c.abort());
        let aborted = scheduler::wait_with(60_000, &options);
        log(aborted.await.unwrap_err().name());
        decode();
    });
}

fn decode() {
    let mut d = StringDecoder::new(Encoding::Utf8);
    let euro = "€".as_bytes();
    let first = d.write(&euro[..2]);
    let whole = d.write(&euro[2..]) == "€";
    let kept = d.write(&euro[..1]);
    let replaced = d.end() == "\u{fffd}";
    log(format!(
        "[{first:?},{whole},{kept:?},{replaced},{:?}]",
        d.end()
    ));
    let bad = d.write(&[0x61, 0xe2, 0x28]).replace('\u{fffd}', "?");
    let half = d.write(&[0xf0, 0x9f]);
    let units = d.write(&[0x98, 0x80]).encode_utf16().count();
    log(format!("[{bad:?},{half:?},{units},{:?}]", d.end()));
}

async fn further() {
    let debug = debuglog("phaseloop-further");
    debug.print(format_args!("this is not written {}", 1));
    log(format!("debuglog {}", debug.enabled()));
    let file = scratch("further");
    std::fs::write(&file, "text").unwrap();
    let known = fs::promises::stat(&file).await.unwrap();
    let (user, group) = (known.uid(), known.gid());
    fs::chown(file.clone(), user, group, move |result| {
        log(format!("chown {}", result.map_or("failed", |()| "null")));
        fs::stat(file.clone(), move |stats| {
            let stats = stats.unwrap();
            log(format!(
                "owner {}",
                stats.uid() == user && stats.gid() == group
            ));
            fs::chown(file.with_extension("missing"), user, group, move |result| {
                let error = result.unwrap_err();
                log(format!(
                    "missing {} {}",
                    error.code().unwrap(),
                    error.syscall().unwrap()
                ));
                fs::promises::chown(&file, user, group).then(move |()| {
                    log("promise undefined");
                    std::fs::remove_file(&file).unwrap();
                    exclusive();
                });
            });
        });
    });
}

fn exclusive() {
    // Each server of this crate has a socket of its own.
    let server = net::Server::new();
    server.listen_this(("127.0.0.1", 0), |server| {
        log(format!("exclusive {}", server.is_listening()));
        let (server, address) = (server.clone(), server.address().unwrap());
        let second = net::Server::new();
        second.on(ERROR, move |error| {
            log(format!("second {}", error.code().unwrap()));
            server.on(CLOSE, says("closed"));
            server.close();
        });
        second.listen(address);
    });
}
