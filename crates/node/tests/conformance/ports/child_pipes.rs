//! 922: the pipes of a child.

use phaseloop::signal::SignalKind;
use phaseloop_node::child_process::{
    self, ChildProcess, EXIT, ExecOptions, SpawnOptions, Stdio, exec_with, spawn, spawn_with,
};
use phaseloop_node::events::ERROR;
use phaseloop_node::stream::{CLOSE, END, Readable};
use phaseloop_node::string_decoder::Encoding;
use phaseloop_node::{Deferred, Emitter, Error, Promise, set_timeout, sleep};

use crate::support::{log, text};

super::ports! {
    Real "922-child-pipes" => child_pipes,
}

fn fields(error: &Error) -> String {
    let errno = error.errno().map(|errno| errno.to_string());
    let fields = [
        error.message(),
        error.code().unwrap(),
        errno.as_deref().unwrap_or("-"),
        error.syscall().unwrap_or("-"),
    ];
    fields.join("|")
}

fn ended(exit: child_process::Exit) -> String {
    let code = exit.code.map(|code| code.to_string());
    let signal = exit.signal.and_then(SignalKind::name);
    format!(
        "{} {}",
        code.as_deref().unwrap_or("null"),
        signal.unwrap_or("null")
    )
}

fn shows(emitter: &impl Emitter, name: &'static str) {
    emitter.on(ERROR, move |e| log(format!("{name}.error {}", fields(e))));
    if name != "stdin" {
        emitter.on(END, move |()| log(format!("{name}.end")));
    }
    emitter.on(CLOSE, move |()| log(format!("{name}.close")));
}

fn watch(c: &ChildProcess) -> Promise<()> {
    c.on(ERROR, |e| log(format!("error {}", fields(e))));
    c.on(EXIT, |exit| log(format!("exit {}", ended(*exit))));
    c.on(child_process::CLOSE, |exit| {
        log(format!("close {}", ended(*exit)))
    });
    if let Some(stdin) = c.stdin() {
        shows(stdin, "stdin");
    }
    for (output, name) in [(c.stdout(), "stdout"), (c.stderr(), "stderr")] {
        if let Some(output) = output {
            shows(output, name);
        }
    }
    Promise::new(|deferred: Deferred<()>| {
        c.once(child_process::CLOSE, move |_| {
            set_timeout(20, move || deferred.resolve(()));
        });
    })
}

fn write(c: &ChildProcess, bytes: impl Into<Vec<u8>>, name: &'static str) {
    c.stdin().unwrap().write_with(bytes.into(), move |result| {
        let code = result
            .err()
            .and_then(|error| error.code().map(str::to_owned));
        log(format!("{name} {}", code.as_deref().unwrap_or("fine")));
    });
}

fn piped(line: &str) -> ChildProcess {
    let stdio = vec![Stdio::Pipe, Stdio::Pipe, Stdio::Ignore];
    let options = SpawnOptions {
        stdio,
        ..SpawnOptions::default()
    };
    spawn_with("sh", ["-c", line], options)
}

async fn pause() {
    sleep(50).await.unwrap();
}

async fn output(command: &str, max_buffer: usize, encoding: Encoding) {
    let deferred = Deferred::new();
    let done = deferred.promise();
    let options = ExecOptions {
        max_buffer,
        encoding,
        ..ExecOptions::default()
    };
    exec_with(command, options, move |error, out, _| {
        let code = error.as_ref().and_then(|error| error.code());
        let (name, code) = (encoding.name(), code.unwrap_or("fine"));
        log(format!("{max_buffer} {name} {code} {out}"));
        deferred.resolve(());
    });
    done.await.unwrap();
}

async fn child_pipes() {
    log("missing");
    let c = spawn("no-such-program-here", []);
    let closed = watch(&c);
    write(&c, "abc", "write");
    closed.await.unwrap();
    log("early ends");
    let c = piped("exec 1>&-; read line; sleep 0.1; exit 3");
    let closed = watch(&c);
    pause().await;
    c.stdin().unwrap().end("x\n");
    closed.await.unwrap();
    log(format!("{} {}", c.kill(SignalKind::TERM), c.killed()));
    write(&c, "x", "late");
    pause().await;
    without_readers().await;
    log("killed");
    let c = piped("exec 1>&-; exec sleep 60");
    let closed = watch(&c);
    pause().await;
    let kill = || c.kill(SignalKind::TERM);
    log(format!("{} {} {}", kill(), c.killed(), kill()));
    closed.await.unwrap();
    log(format!("{} {}", kill(), c.killed()));
    log("limits");
    for size in [5, 3, 2] {
        let command = r#"printf "h\303\251\303\251"; sleep 0.2"#;
        output(command, size, Encoding::Utf8).await;
    }
    for size in [3, 2] {
        let command = r#"printf "h\351\351"; sleep 0.2"#;
        output(command, size, Encoding::Latin1).await;
    }
    for encoding in [Encoding::Hex, Encoding::Base64] {
        for size in [3, 2] {
            output("printf abc; sleep 0.2", size, encoding).await;
        }
    }
}

async fn without_readers() {
    log("no reader");
    let c = piped("exec 0<&-; echo ready; sleep 0.1; exec 1>&-; sleep 0.2");
    let this = c.clone();
    c.stdout()
        .unwrap()
        .once(Readable::<Vec<u8>>::DATA, move |d| {
            log(text(d));
            set_timeout(50, move || write(&this, "x", "write"));
        });
    watch(&c).await.unwrap();
    log("large");
    let c = piped("exec 1>&-; sleep 0.1; exec 0<&-; sleep 0.2");
    let closed = watch(&c);
    write(&c, vec![0; 1 << 20], "large");
    write(&c, "x", "small");
    closed.await.unwrap();
}
