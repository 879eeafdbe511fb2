//! Performs a random program on the loop, as `fuzz/interp.js` does on Node's.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, ready};

use futures::AsyncRead;
#[cfg(unix)]
use phaseloop::io::{PipeReader, PipeWriter, pipe};
#[cfg(not(unix))]
use phaseloop::net::{TcpStream as PipeReader, TcpStream as PipeWriter};
use phaseloop::time;
use phaseloop_node::{
    Deferred, Immediate, Promise, Reason, Timeout, all, call, call_returning, in_callbacks,
    next_tick, process, queue_microtask, race, set_immediate, set_interval, set_timeout,
    set_timeout_mut, thenable,
};

use crate::program::{Action, Actions, Awaited, Function, Program, Step};
use crate::support::{Main, block, end_elsewhere, fs_op, log};

/// How long an `fs` action blocks, in milliseconds.
const FS_SETTLE: u64 = 30;

/// The program's main function, with its listeners for the end.
pub(crate) fn main(program: Program) -> Main {
    Box::pin(async move {
        let machine = Rc::new(Machine::default());
        process::on_warning(|_| ()); // Overflowing delays are part of the programs.
        process::on_uncaught_exception(|uncaught, _| match thrown(uncaught) {
            Some(thrown) => log(format!("!{}", thrown.0)),
            None => panic!("a fault of the interpreter: {uncaught}"),
        });
        let mut later = program.before_exit.into_iter();
        let revived = machine.clone();
        process::on_before_exit(move |_| {
            log("beforeExit");
            if let Some(actions) = later.next() {
                revived.perform(&actions);
            }
        });
        process::on_exit(|_| log("exit"));
        machine.perform(&program.main);
    })
}

/// What a program has made, by its names.
#[derive(Default)]
struct Machine {
    handles: RefCell<HashMap<String, Made>>,
    deferreds: RefCell<HashMap<String, Deferred<()>>>,
    /// How often each `refresh` has taken effect.
    refreshes: RefCell<HashMap<String, u32>>,
}

#[derive(Clone)]
enum Made {
    Timeout(Timeout),
    Immediate(Rc<Immediate>),
    Pipe(Rc<Pipe>),
}

/// What `throw` throws.
struct Thrown(String);

fn thrown(reason: &Reason) -> Option<&Thrown> {
    reason.panic()?.downcast_ref()
}

/// A callback that prints its token and performs its actions, every time it is called.
fn body(machine: &Rc<Machine>, id: &str, actions: &Actions) -> impl Fn() + 'static {
    let (machine, id, actions) = (machine.clone(), id.to_owned(), actions.clone());
    move || {
        log(&*id);
        machine.perform(&actions);
    }
}

impl Machine {
    fn perform(self: &Rc<Self>, actions: &Actions) {
        for action in actions.iter() {
            self.act(action);
        }
    }

    fn act(self: &Rc<Self>, action: &Action) {
        match action {
            Action::Log { id } => log(&**id),
            Action::Block { ms } => block_for(*ms),
            Action::Tick { id, body: actions } => next_tick(body(self, id, actions)),
            Action::Micro { id, body: actions } => queue_microtask(body(self, id, actions)),
            Action::Timeout {
                id,
                ms,
                body: actions,
            } => {
                let call = body(self, id, actions);
                self.name(id, Made::Timeout(set_timeout_mut(*ms, move |_| call())));
            }
            Action::Interval {
                id,
                ms,
                times,
                body,
            } => self.interval(id, *ms, *times, body),
            Action::Immediate { id, body: actions } => {
                let immediate = set_immediate(body(self, id, actions));
                self.name(id, Made::Immediate(Rc::new(immediate)));
            }
            Action::Clear { of } => match self.made(of) {
                Some(Made::Timeout(timeout)) => drop(timeout.close()),
                Some(Made::Immediate(immediate)) => drop(immediate.clear()),
                Some(Made::Pipe(_)) | None => {}
            },
            Action::Refresh { id, of, max } => self.refresh(id, of, *max),
            Action::Ref { of, referenced } => self.set_referenced(of, *referenced),
            Action::Chain { id, links, nest } => chain(id, *links, *nest),
            Action::Async(function) => drop(self.call(function)),
            Action::Then {
                of,
                id,
                body: actions,
            } => {
                let call = body(self, id, actions);
                self.deferred(of).promise().then(move |()| call());
            }
            Action::Resolve { of } => self.deferred(of).resolve(()),
            Action::Fs { id, body: actions } => start_fs(body(self, id, actions)),
            Action::Pipe { id, body } => self.open_pipe(id, body),
            Action::Write { of, bytes } => {
                if let Some(Made::Pipe(pipe)) = self.made(of) {
                    pipe.write(*bytes);
                }
            }
            Action::Close { of, body: actions } => {
                if let Some(Made::Pipe(pipe)) = self.made(of) {
                    pipe.close(body(self, &format!("{of}.close"), actions));
                }
            }
            Action::Throw { id } => resume_unwind(Box::new(Thrown(id.clone()))),
            Action::Try { body, catch } => self.attempt(body, catch),
        }
    }

    fn name(&self, id: &str, made: Made) {
        let before = self.handles.borrow_mut().insert(id.to_owned(), made);
        drop(before);
    }

    fn made(&self, id: &str) -> Option<Made> {
        self.handles.borrow().get(id).cloned()
    }

    fn interval(self: &Rc<Self>, id: &str, ms: f64, times: f64, actions: &Actions) {
        let (machine, name, actions) = (self.clone(), id.to_owned(), actions.clone());
        let mut calls = 0_u32;
        let interval = set_interval(ms, move |interval| {
            calls += 1;
            log(format!("{name}#{calls}"));
            if f64::from(calls) >= times {
                interval.close();
            }
            machine.perform(&actions);
        });
        self.name(id, Made::Timeout(interval));
    }

    fn refresh(&self, id: &str, of: &str, max: f64) {
        let Some(Made::Timeout(timeout)) = self.made(of) else {
            return;
        };
        let takes_effect = {
            let mut refreshes = self.refreshes.borrow_mut();
            let used = refreshes.entry(id.to_owned()).or_default();
            *used += 1;
            // No limit is no number.
            max.is_nan() || f64::from(*used) <= max
        };
        if takes_effect {
            timeout.refresh();
        }
    }

    fn set_referenced(&self, of: &str, referenced: bool) {
        match (self.made(of), referenced) {
            (Some(Made::Timeout(timeout)), true) => drop(timeout.ref_()),
            (Some(Made::Timeout(timeout)), false) => drop(timeout.unref()),
            (Some(Made::Immediate(immediate)), true) => immediate.ref_(),
            (Some(Made::Immediate(immediate)), false) => immediate.unref(),
            (Some(Made::Pipe(_)) | None, _) => {}
        }
    }

    fn deferred(&self, id: &str) -> Deferred<()> {
        let mut deferreds = self.deferreds.borrow_mut();
        deferreds.entry(id.to_owned()).or_default().clone()
    }

    fn attempt(self: &Rc<Self>, actions: &Actions, catch: &Actions) {
        let attempt = catch_unwind(AssertUnwindSafe(|| self.perform(actions)));
        if let Err(payload) = attempt {
            match payload.downcast::<Thrown>() {
                Ok(thrown) => log(format!("~{}", thrown.0)),
                Err(payload) => resume_unwind(payload),
            }
            self.perform(catch);
        }
    }

    // Async functions.

    fn call(self: &Rc<Self>, function: &Rc<Function>) -> Promise<()> {
        let (machine, called) = (self.clone(), function.clone());
        let steps = async move { machine.steps(&called).await };
        if function.returns_promise {
            call_returning(async {
                steps.await;
                Promise::resolved(())
            })
        } else {
            call(steps)
        }
    }

    async fn steps(self: &Rc<Self>, function: &Function) {
        log(format!("{}>", function.id));
        let mut awaits = 0;
        for step in &function.steps {
            match step {
                Step::Act(action) => self.act(action),
                Step::Await(awaited) => {
                    if let Err(reason) = self.wait_for(awaited).await {
                        rethrow(&reason);
                    }
                    awaits += 1;
                    log(format!("{}.{awaits}", function.id));
                }
            }
        }
    }

    async fn wait_for(self: &Rc<Self>, awaited: &Awaited) -> Result<(), Reason> {
        let promise = match awaited {
            Awaited::Resolved => Promise::resolved(()),
            Awaited::Thenable => thenable(|deferred| deferred.resolve(())).into_promise(),
            Awaited::Tick => Promise::new(|deferred| next_tick(move || deferred.resolve(()))),
            Awaited::Sleep { ms } => Promise::new(|deferred| {
                set_timeout(*ms, move || deferred.resolve(()));
            }),
            Awaited::Immediate => Promise::new(|deferred| {
                set_immediate(move || deferred.resolve(()));
            }),
            Awaited::Fs => Promise::new(|deferred| start_fs(move || deferred.resolve(()))),
            Awaited::Defer { of } => self.deferred(of).promise(),
            Awaited::Async(function) => self.call(function),
            Awaited::All(functions) => return all(self.call_all(functions)).await.map(drop),
            Awaited::Race(functions) => race(self.call_all(functions)),
        };
        promise.await
    }

    fn call_all(self: &Rc<Self>, functions: &[Rc<Function>]) -> Vec<Promise<()>> {
        functions
            .iter()
            .map(|function| self.call(function))
            .collect()
    }

    fn open_pipe(self: &Rc<Self>, id: &str, actions: &Actions) {
        let (reader, writer) = pipe().expect("there are descriptors left");
        let pipe = Rc::new(Pipe {
            reader: RefCell::new(Some(reader)),
            writer,
        });
        self.name(id, Made::Pipe(pipe.clone()));
        let (machine, id, actions) = (self.clone(), id.to_owned(), actions.clone());
        in_callbacks(async move {
            while let Some(bytes) = pipe.read().await {
                log(format!("{id}+{bytes}"));
                machine.perform(&actions);
            }
        });
    }
}

fn rethrow(reason: &Reason) -> ! {
    match thrown(reason) {
        Some(Thrown(id)) => resume_unwind(Box::new(Thrown(id.clone()))),
        None => panic!("{reason}"),
    }
}

fn chain(id: &str, links: u64, nest: Option<u64>) {
    let mut last = Promise::resolved(());
    for link in 1..=links {
        let token = format!("{id}.{link}");
        last = if nest == Some(link) {
            last.and_then(move |()| {
                log(token);
                Promise::resolved(())
            })
        } else {
            last.then(move |()| log(token))
        };
    }
}

fn block_for(ms: f64) {
    // Not a number, or negative: not at all.
    block(ms.ceil() as u64);
}

/// One operation that has ended when this returns; its callback is due in the next poll phase.
fn start_fs(callback: impl FnOnce() + 'static) {
    if time::is_paused() {
        end_elsewhere(Box::new(callback));
        block(FS_SETTLE);
    } else {
        fs_op(callback);
    }
}

/// A connection in the place of a pipe.
#[cfg(not(unix))]
fn pipe() -> std::io::Result<(PipeReader, PipeWriter)> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let reader = std::net::TcpStream::connect(listener.local_addr()?)?;
    let (writer, _) = listener.accept()?;
    writer.set_nodelay(true)?;
    Ok((PipeReader::from_std(reader)?, PipeWriter::from_std(writer)?))
}

/// A pipe that is read in callbacks.
struct Pipe {
    reader: RefCell<Option<PipeReader>>,
    writer: PipeWriter,
}

impl Pipe {
    /// What one read callback gets; `None` once the pipe is closed.
    async fn read(&self) -> Option<usize> {
        let mut buffer = [0; 65536];
        poll_fn(|cx| {
            let mut reader = self.reader.borrow_mut();
            let Some(reader) = reader.as_mut() else {
                return Poll::Ready(None);
            };
            let read = ready!(Pin::new(reader).poll_read(cx, &mut buffer));
            Poll::Ready(Some(read.expect("a pipe can be read")))
        })
        .await
    }

    fn write(&self, bytes: usize) {
        if self.reader.borrow().is_some() {
            let written = self.writer.try_write(&vec![b'x'; bytes]);
            assert_eq!(written.ok(), Some(bytes), "a pipe takes that much");
        }
    }

    /// Unread bytes are dropped.
    fn close(&self, callback: impl FnOnce() + 'static) {
        let reader = self.reader.take();
        if let Some(reader) = reader {
            #[cfg(unix)]
            reader.close().then(callback);
            #[cfg(not(unix))]
            reader.close_now().then(callback);
        }
    }
}
