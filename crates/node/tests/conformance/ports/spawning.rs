//! 850–852: options of `spawn`.

use std::cell::RefCell;
use std::fs::File;
use std::rc::Rc;

use phaseloop::signal::SignalKind;
use phaseloop_node::child_process::{CLOSE, EXIT, Exit, Shell, SpawnOptions, Stdio, spawn_with};
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::{AbortController, AbortSignal, Emitter, Error, process, set_immediate};

use crate::support::{log, scratch, text};

super::ports! {
    Real "850-spawn-options" => options,
    Real "851-spawn-extra-pipes" => extra_pipes,
    Real "852-spawn-unref" => unref,
}

/// `code + ' ' + signal`.
fn end(exit: &Exit) -> String {
    let code = exit.code.map_or("null".to_owned(), |code| code.to_string());
    let signal = exit
        .signal
        .map_or("null".to_owned(), |signal| signal.to_string());
    format!("{code} {signal}")
}

async fn start(name: &'static str, program: &str, arguments: &[&str], options: SpawnOptions) {
    let child = spawn_with(program, arguments, options);
    let output: Rc<RefCell<String>> = Rc::default();
    for stream in [child.stdout(), child.stderr()].into_iter().flatten() {
        let output = output.clone();
        stream.on_data(move |bytes| {
            output
                .borrow_mut()
                .push_str(&String::from_utf8_lossy(bytes))
        });
    }
    let has = [
        child.stdin().is_some(),
        child.stdout().is_some(),
        child.stderr().is_some(),
    ];
    let has = has.map(|is_pipe| if is_pipe { "pipe" } else { "null" });
    log(format!("{name} {}", has.join(" ")));
    child.on(ERROR, move |e: &Error| {
        let code = e.code().unwrap_or_default();
        log(format!("{name} error {}|{code}|{}", e.name(), e.message()));
    });
    child.on(EXIT, move |exit| log(format!("{name} exit {}", end(exit))));
    child.on(CLOSE, move |exit| {
        log(format!("{name} close {} {:?}", end(exit), output.borrow()));
    });
    // The error of the start, or of an abort, is no end of this wait.
    let closed = phaseloop_node::Promise::new(|deferred| {
        child.once(CLOSE, move |_| deferred.resolve(()));
    });
    closed.await.unwrap();
}

fn variable(name: &str, value: &str) -> Option<Vec<(std::ffi::OsString, std::ffi::OsString)>> {
    Some(vec![(name.into(), value.into())])
}

async fn options() {
    let default = SpawnOptions::default;
    let shell = Some(Shell::System);
    let script = |line: &'static str| ["-c", line];
    start("plain", "sh", &script("echo out; exit 3"), default()).await;
    let cwd = Some("/".into());
    start("cwd", "pwd", &[], SpawnOptions { cwd, ..default() }).await;
    let env = variable("A", "b");
    start(
        "env",
        "sh",
        &script("echo \"$A-$HOME\""),
        SpawnOptions { env, ..default() },
    )
    .await;
    let argv0 = Some("other".into());
    start(
        "argv0",
        "sh",
        &script("echo $0"),
        SpawnOptions { argv0, ..default() },
    )
    .await;
    let stdio = vec![Stdio::Ignore, Stdio::Ignore, Stdio::Pipe];
    let both = script("echo out; echo err >&2");
    start("ignore", "sh", &both, SpawnOptions { stdio, ..default() }).await;
    let stdio = vec![Stdio::Ignore; 3];
    start(
        "none",
        "sh",
        &script("exit 4"),
        SpawnOptions { stdio, ..default() },
    )
    .await;
    let stdio = vec![Stdio::Ignore];
    start(
        "short",
        "sh",
        &script("cat; echo out"),
        SpawnOptions { stdio, ..default() },
    )
    .await;
    let env = variable("A", "b  c");
    let with_env = SpawnOptions {
        shell: shell.clone(),
        env,
        ..default()
    };
    start("shell", "echo \"$A\"; exit 5", &[], with_env).await;
    let named = SpawnOptions {
        shell: Some("/bin/sh".into()),
        ..default()
    };
    start("shell-path", "echo $0", &[], named).await;
    start(
        "shell-args",
        "echo",
        &["a", "\"b  c\""],
        SpawnOptions { shell, ..default() },
    )
    .await;
    limits().await;
    let cwd = Some("/no/such/directory".into());
    start("no-cwd", "true", &[], SpawnOptions { cwd, ..default() }).await;
    let stdio = vec![Stdio::Ignore; 3];
    start(
        "no-program",
        "no-such-program",
        &[],
        SpawnOptions { stdio, ..default() },
    )
    .await;
    let file = Stdio::from(File::create(scratch("file")).unwrap());
    let stdio = vec![Stdio::Ignore, file.clone(), file];
    start("file", "sh", &both, SpawnOptions { stdio, ..default() }).await;
    log(format!(
        "{:?}",
        std::fs::read_to_string(scratch("file")).unwrap()
    ));
}

async fn limits() {
    let default = SpawnOptions::default;
    let sleep = ["60"];
    let timeout = Some(50.into());
    start(
        "timeout",
        "sleep",
        &sleep,
        SpawnOptions {
            timeout,
            ..default()
        },
    )
    .await;
    let kill_signal = SignalKind::KILL;
    let killing = SpawnOptions {
        timeout,
        kill_signal,
        ..default()
    };
    start("timeout-kill", "sleep", &sleep, killing).await;
    let timeout = Some(60000.into());
    start(
        "in-time",
        "true",
        &[],
        SpawnOptions {
            timeout,
            ..default()
        },
    )
    .await;
    let stopped = AbortController::new();
    stopped.abort();
    let signal = Some(stopped.signal());
    start(
        "aborted",
        "sleep",
        &sleep,
        SpawnOptions {
            signal,
            ..default()
        },
    )
    .await;
    let (signal, kill_signal) = (Some(AbortSignal::timeout(50)), SignalKind::INT);
    let killing = SpawnOptions {
        signal,
        kill_signal,
        ..default()
    };
    start("abort-kill", "sleep", &sleep, killing).await;
    let controller = AbortController::new();
    let signal = Some(controller.signal());
    set_immediate(move || controller.abort());
    start(
        "abort",
        "sleep",
        &sleep,
        SpawnOptions {
            signal,
            ..default()
        },
    )
    .await;
}

async fn extra_pipes() {
    let script = "read a <&3; echo \"got $a\" >&3; echo more >&4; exec 3>&- 3<&-; exit 6";
    let mut stdio = vec![Stdio::Ignore; 6];
    stdio[3] = Stdio::Pipe;
    stdio[4] = Stdio::Pipe;
    let length = stdio.len();
    let child = spawn_with(
        "sh",
        ["-c", script],
        SpawnOptions {
            stdio,
            ..Default::default()
        },
    );
    let (third, fourth) = (child.stdio(3).unwrap(), child.stdio(4).unwrap());
    assert!(child.stdio(0).is_none() && child.stdio(5).is_none());
    log(format!("{length}   socket"));
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    for (number, socket) in [(3, &third), (4, &fourth)] {
        let seen = seen.clone();
        socket.on_data(move |d| seen.borrow_mut().push(format!("{number} {}", text(d))));
    }
    third.write("hello\n");
    let exits = seen.clone();
    child.on(EXIT, move |exit| {
        exits
            .borrow_mut()
            .push(format!("exit {}", exit.code.unwrap()));
    });
    let exit = once(&child, CLOSE).await.unwrap();
    seen.borrow_mut().sort();
    seen.take().into_iter().for_each(log);
    log(format!(
        "close {} {} {}",
        end(&exit),
        third.destroyed(),
        fourth.destroyed()
    ));
}

async fn unref() {
    let detached = SpawnOptions {
        stdio: vec![Stdio::Ignore; 3],
        detached: true,
        ..Default::default()
    };
    let left = spawn_with("sleep", ["60"], detached);
    left.on(EXIT, |_| log("never"));
    left.unref();
    let stdio = vec![Stdio::Ignore; 3];
    let quiet = SpawnOptions {
        stdio,
        ..Default::default()
    };
    let waited = spawn_with("sh", ["-c", "exit 7"], quiet);
    waited.unref();
    waited.ref_();
    waited.on(EXIT, |exit| {
        log(format!("exit {}", exit.code.unwrap()));
        let script =
            "read a b c d e f rest < /proc/$$/stat; [ \"$f\" = $$ ] && echo leader || echo member";
        let options = SpawnOptions {
            stdio: vec![Stdio::Ignore, Stdio::Pipe, Stdio::Ignore],
            detached: true,
            ..Default::default()
        };
        let session = spawn_with("sh", ["-c", script], options);
        session.stdout().unwrap().on_data(|d| log(text(d)));
    });
    process::on_exit(move |_| log(format!("left {}", left.kill(SignalKind::KILL))));
}
