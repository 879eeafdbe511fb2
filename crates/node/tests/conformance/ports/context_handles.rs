//! 502, 505–510 and 518: contexts of requests, files, children, datagrams, streams, ports and lines.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::StreamExt as _;
#[cfg(unix)]
use phaseloop_node::child_process::{EXIT as CHILD_EXIT, SPAWN, exec, spawn};
use phaseloop_node::dgram;
use phaseloop_node::events::ERROR;
use phaseloop_node::fs::{self, OPEN, READY};
use phaseloop_node::http::{self, Agent, RESPONSE, RequestOptions, SOCKET};
use phaseloop_node::net::{self, CONNECTION, LISTENING, Server, TIMEOUT};
use phaseloop_node::readline::{CLOSE as LINES_CLOSE, LINE, create_interface};
use phaseloop_node::stream::{
    CLOSE, END, FINISH, Readable, Transform, Writable, finished, pipeline,
};
use phaseloop_node::worker_threads::{CLOSE as PORT_CLOSE, EXIT, MessageChannel, ONLINE, Worker};
use phaseloop_node::{Emitter, Error, async_generator, call, set_immediate, set_timeout};

use super::contexts::{at, enter, exit, run, sees};
use crate::support::{scratch, text};

super::ports! {
    Real "502-context-http" => requests,
    Real "505-context-files" => files,
    #[cfg(unix)]
    Real "506-context-children" => children,
    Real "507-context-datagrams" => datagrams,
    Virtual "508-context-pipes" => pipes,
    Real "509-context-ports" => ports,
    Virtual "510-context-readline" => lines,
    #[cfg(unix)]
    Real "518-context-socket-ends" => socket_ends,
}

async fn requests() {
    let server = run("made", || {
        http::create_server(|q, s| {
            at(format!("request-{}", q.url()));
            let body = Rc::new(RefCell::new(Vec::new()));
            run(&format!("q{}", &q.url()[1..]), || {
                let part = body.clone();
                q.on_data(move |d| {
                    at("data");
                    part.borrow_mut().extend_from_slice(d);
                });
                let answer = s.clone();
                q.on(END, move |()| {
                    at("end");
                    answer.end_with(body.take(), |_| at("sent"));
                });
                s.on(FINISH, |()| at("finish"));
                s.on(CLOSE, |()| at("close"));
            });
        })
    });
    server.on(CONNECTION, |_| at("connection"));
    let agent = Agent::builder().keep_alive(true).max_sockets(1).build();

    fn ask(n: u32, server: &http::Server, agent: &Agent, next: Box<dyn FnOnce()>) {
        run(&format!("ask{n}"), || {
            let options = RequestOptions::new(server.address().unwrap())
                .path(format!("/{n}"))
                .method("POST")
                .agent(agent);
            let next = Cell::new(Some(next));
            let q = http::request(options);
            q.once(RESPONSE, move |s| {
                at("response");
                s.on_data(|d| at(format!("body-{}", text(d))));
                s.on(END, |()| at("over"));
                s.on(CLOSE, move |()| {
                    at("closed");
                    let next = next.take().unwrap();
                    set_immediate(|| exit(next));
                });
            });
            q.on(SOCKET, |_| at("socket"));
            q.on(FINISH, |()| at("asked"));
            q.end(format!("x{n}"));
        });
    }

    run("listen", || {
        server.listen_this(("127.0.0.1", 0), move |server| {
            let server = server.clone();
            exit(|| {
                let (s2, s3, a2) = (server.clone(), server.clone(), agent.clone());
                let close = move || {
                    a2.destroy();
                    run("closer", || s3.close_with(sees("server-closed")));
                };
                let a = agent.clone();
                let second = move || ask(2, &s2, &a, Box::new(close));
                ask(1, &server, &agent, Box::new(second));
            });
        });
    });
}

async fn files() {
    fn handles() {
        let work = run("h", || {
            call(async {
                let h = fs::promises::open(scratch("f"), "r").await.unwrap();
                at("handle");
                enter("h2");
                h.read_file().await.unwrap();
                at("read-file");
                h.close().await.unwrap();
                at("handle-closed");
            })
        });
        work.then(|()| at("done"));
    }

    fn nested() {
        run("open", || {
            fs::open(scratch("f"), "r", |handle| {
                let handle = handle.unwrap();
                at("opened");
                run("inner", || {
                    let closing = handle.clone();
                    fs::read(&handle, 3, Some(0), move |_| {
                        at("read");
                        fs::close(&closing, |_| {
                            at("closed");
                            exit(handles);
                        });
                    });
                });
            });
        });
    }

    fn read() {
        let r = run("read", || fs::create_read_stream(scratch("f")));
        run("on", || {
            r.on(READY, |()| at("ready"));
            r.on_data(|d| at(format!("data-{}", text(d))));
            r.on(END, |()| at("end"));
            r.on(CLOSE, |()| {
                at("r-close");
                exit(nested);
            });
        });
    }

    run("write", || {
        let w = fs::create_write_stream(scratch("f"));
        run("listeners", || {
            w.on(OPEN, |()| at("open"));
            w.on(FINISH, |()| at("finish"));
            w.on(CLOSE, |()| {
                at("w-close");
                exit(read);
            });
        });
        run("w1", || w.write_with("one", |_| at("written-1")));
        run("w2", || w.write_with("two", |_| at("written-2")));
        run("ender", || w.end(()));
    });
}

#[cfg(unix)]
async fn children() {
    fn fails() {
        let f = run("bad", || spawn("/nonexistent/program", []));
        run("err", || {
            f.on(ERROR, |e| at(format!("error-{}", e.code().unwrap())));
        });
    }

    let c = run("spawn", || spawn("sh", ["-c", "cat; exec >&-; sleep 0.2"]));
    run("on", || {
        c.on(SPAWN, |()| at("spawned"));
        let stdout = c.stdout().unwrap();
        stdout.on_data(|d| at(format!("out-{}", text(d))));
        stdout.on(END, |()| at("out-end"));
        c.on(CHILD_EXIT, |_| at("exit"));
        c.on(CLOSE, |()| {
            at("close");
            exit(fails);
        });
    });
    set_timeout(20, move || {
        run("writer", || {
            c.stdin().unwrap().end_with("hi", |_| at("written"));
        });
    });
}

async fn datagrams() {
    let s = run("made", dgram::Socket::new);
    run("on", || {
        s.on(LISTENING, |()| at("listening"));
        s.on_message_this(|s, m| {
            at(format!("message-{}", text(&m.bytes)));
            if m.bytes == b"2" {
                run("closer", || s.close_with(sees("closed")));
            }
        });
        s.on(CLOSE, |()| at("close"));
    });
    run("bind", || {
        s.bind_this(([127, 0, 0, 1], 0).into(), |s| {
            at("bound");
            let (again, to) = (s.clone(), s.address().unwrap());
            run("send1", || {
                s.send_with(b"1", to, move |_| {
                    at("sent-1");
                    run("send2", || again.send_with(b"2", to, |_| at("sent-2")));
                });
            });
        });
    });
}

async fn pipes() {
    fn last() {
        let r = run("r", || Readable::<String>::bytes().read(|_, _| ()).build());
        let chunks = r.clone();
        run("reader", || {
            call(async move {
                let mut chunks = chunks.chunks();
                while let Some(c) = chunks.next().await {
                    at(format!("chunk-{}", c.unwrap()));
                }
                at("over");
            })
        });
        let first = r.clone();
        set_immediate(move || run("push1", || _ = first.push("x".to_owned())));
        set_timeout(5, move || {
            run("push2", || {
                r.push("y".to_owned());
                r.push_end();
            });
        });
    }

    fn next() {
        let work = run("p", || {
            call(async {
                let source = run("src", || {
                    Readable::from_stream(async_generator(|out| async move {
                        at("gen");
                        out.yield_value("a".to_owned()).await;
                        at("gen2");
                        out.yield_value("b".to_owned()).await;
                        Ok(())
                    }))
                });
                let through = Transform::<String, String>::bytes(|c, out| out.ok_with(c)).build();
                let row = pipeline(&source).through(&through);
                let end = row.run(|mut chunks| async move {
                    while let Some(c) = chunks.next().await {
                        at(format!("sink-{}", c?));
                    }
                    Ok::<(), Error>(())
                });
                end.await.unwrap();
                at("piped");
            })
        });
        work.then(|()| {
            at("then");
            exit(last);
        });
    }

    let t = run("t", || {
        Transform::<String, String>::bytes(|c, out| {
            at(format!("transform-{c}"));
            set_immediate(move || out.ok_with(c));
        })
        .flush(|out| {
            at("flush");
            out.ok();
        })
        .build()
    });
    let w = run("w", || {
        Writable::<String>::bytes(|c, done| {
            at(format!("write-{c}"));
            done.ok();
        })
        .end(|done| {
            at("final");
            done.ok();
        })
        .build()
    });
    run("pipe", || t.readable().pipe(&w));
    w.on(FINISH, |()| at("finish"));
    run("one", || t.writable().write("1"));
    run("two", || t.writable().write("2"));
    run("three", || t.writable().end("3"));
    finished(&w).then(|_| {
        at("finished");
        exit(next);
    });
}

async fn ports() {
    fn stop() {
        let w: Worker<(), ()> = run("stopped", || {
            Worker::new(|_| async move {
                phaseloop_node::set_interval(1000, |_| ());
            })
        })
        .unwrap();
        let stopped = w.clone();
        w.on(ONLINE, move |()| {
            let w = stopped.clone();
            run("terminator", || {
                call(async move {
                    w.terminate().await.unwrap();
                    at("terminated");
                })
            });
        });
    }

    fn worker() {
        let w: Worker<u32, u32> = run("worker", || {
            Worker::new(|port| async move {
                port.on_message_this(|port, m: &u32| {
                    port.post_message(m + 1);
                    port.close();
                });
            })
        })
        .unwrap();
        run("on", || {
            w.on_message(|m| at(format!("message-{m}")));
            w.on(ERROR, |_| at("error"));
            w.on(EXIT, |_| {
                at("exit");
                exit(stop);
            });
        });
        run("poster", || w.post_message(1));
    }

    let MessageChannel { port1, port2, .. } = run("channel", MessageChannel::<&str>::new);
    run("on1", || {
        port1.on_message_this(|port1, m| {
            at(format!("one-{m}"));
            run("closer", || port1.close());
        });
        port1.on(PORT_CLOSE, |()| at("one-closed"));
    });
    run("on2", || {
        port2.on_message_this(|port2, m| {
            at(format!("two-{m}"));
            run("answer", || port2.post_message("b"));
        });
        port2.on(PORT_CLOSE, |()| {
            at("two-closed");
            exit(worker);
        });
    });
    run("post", || port1.post_message("a"));
}

async fn lines() {
    fn iterate() {
        let input = Transform::<Vec<u8>, Vec<u8>>::pass_through();
        let rl = run("rl2", || create_interface(input.readable()));
        run("loop", || {
            call(async move {
                let mut lines = rl.lines();
                while let Some(l) = lines.next().await {
                    at(format!("loop-{}", l.unwrap()));
                }
                at("loop-over");
            })
        });
        run("w3", || input.writable().write("x\n"));
        set_immediate(move || run("w4", || input.writable().end("y\n")));
    }

    let input = run("input", Transform::<Vec<u8>, Vec<u8>>::pass_through);
    let rl = run("rl", || create_interface(input.readable()));
    run("on", || {
        rl.on(LINE, |l| at(format!("line-{l}")));
        rl.on(LINES_CLOSE, |()| {
            at("close");
            exit(iterate);
        });
    });
    run("ask", || {
        rl.question("", |a| at(format!("answer-{a}"))).unwrap();
    });
    run("w1", || input.writable().write("a\nb\n"));
    set_immediate(move || {
        run("w2", || input.writable().write("c\n"));
        set_immediate(move || run("ender", || input.writable().end(())));
    });
}

#[cfg(unix)]
async fn socket_ends() {
    fn command() {
        run("ex", || {
            let c = exec("echo hi", |_, _, _| at("exec-cb"));
            run("o", || {
                c.stdout().unwrap().on_data(|_| at("exec-data"));
                c.on(CHILD_EXIT, |_| at("exec-exit"));
            });
        });
    }

    fn paused() {
        let server = net::create_server(|s| run("sender", || s.end("a")));
        run("lst", || {
            server.listen_this(("127.0.0.1", 0), |server| {
                let c = run("c2", || net::connect(server.address().unwrap()));
                run("r", || {
                    c.readable().pause();
                    let resumed = c.clone();
                    set_timeout(30, move || {
                        run("resumer", || {
                            resumed.on_data(|d| at(format!("d-{}", text(d))));
                            resumed.resume();
                        });
                    });
                    let server = server.clone();
                    c.on(END, move |()| {
                        at("e");
                        server.close();
                        exit(command);
                    });
                });
            });
        });
    }

    fn refused() {
        let c = run("conn", || net::connect(("127.0.0.1", 1)));
        run("err", || {
            c.on(ERROR, |_| at("refused"));
            c.on(CLOSE, |()| {
                at("refused-close");
                exit(paused);
            });
        });
    }

    let server = Server::new();
    server.on_this(CONNECTION, |server, s| {
        let server = Server::clone(server);
        run("srv", || {
            s.on_this(TIMEOUT, |s, ()| {
                at("timeout");
                s.destroy(Some(Error::new("x")));
            });
            s.set_timeout(20);
            s.on(ERROR, |_| at("srv-error"));
            s.on(CLOSE, move |()| {
                at("srv-close");
                run("closer", || server.close());
            });
        });
    });
    run("on-close", || {
        server.on(CLOSE, |()| {
            at("server-close");
            exit(refused);
        });
    });
    server.listen_this(("127.0.0.1", 0), |server| {
        run("cli", || {
            let c = net::connect(server.address().unwrap());
            run("l", || {
                c.on(CLOSE, |()| at("cli-close"));
                c.on(ERROR, |_| at("cli-error"));
                c.resume();
            });
        });
    });
}
