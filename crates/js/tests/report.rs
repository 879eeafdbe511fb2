//! What is printed of the error that ends a program: the text that Node prints, without the line of
//! the source before it and the version after it.

use std::process::{Command, Stdio};

/// Runs the script of the environment in a process of its own: its report goes to standard error.
#[test]
#[ignore = "the other test starts it, with a script"]
fn the_script_of_the_environment() {
    let source = std::env::var("PHASELOOP_JS_SOURCE").expect("the other test sets it");
    let exit = phaseloop_node::run(async move {
        let engine = phaseloop_js::Engine::new().unwrap();
        let kept = engine.clone();
        phaseloop_node::process::on_exit(move |_| drop(kept.clone()));
        if let Err(error) = engine.run("app.js", &source) {
            phaseloop_node::throw(error);
        }
    });
    std::process::exit(exit.code());
}

/// Returns the report of a script, without the frames of its stacks, and the exit code.
fn report(source: &str) -> (String, Option<i32>) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "the_script_of_the_environment",
            "--ignored",
            "--exact",
            "--nocapture",
            "-q",
        ])
        .env("PHASELOOP_JS_SOURCE", source)
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        !text.contains("phaseloop:"),
        "no frame of the prelude: {text}"
    );
    let is_frame = |line: &&str| line.trim_start().starts_with("at ");
    // The brace of the fields stands after the last frame.
    let lines = text.lines().map(|line| match line.strip_suffix(" {") {
        Some(frame) if is_frame(&frame) => "{",
        _ => line,
    });
    let lines: Vec<_> = lines.filter(|line| !is_frame(line)).collect();
    (lines.join("\n"), output.status.code())
}

#[test]
fn an_uncaught_error_is_printed_once_with_its_own_name() {
    let unhandled = "UnhandledPromiseRejection: This error originated either by throwing inside of an async function \
                     without a catch block, or by rejecting a promise which was not handled with .catch(). \
                     The promise rejected with the reason \"#<Object>\". {\n  code: 'ERR_UNHANDLED_REJECTION'\n}";
    for (source, expected, code) in [
        ("throw new Error('a')", "Error: a", 1),
        (
            "setTimeout(() => { throw new TypeError('a'); }, 1)",
            "TypeError: a",
            1,
        ),
        (
            "queueMicrotask(() => { throw new Error('a'); })",
            "Error: a",
            1,
        ),
        ("Promise.reject(new RangeError('a'))", "RangeError: a", 1),
        ("Promise.reject({ a: 1 })", unhandled, 1),
        ("throw 'text'", "text", 1),
        ("throw undefined", "undefined", 1),
        ("throw { a: 1 }", "{ a: 1 }", 1),
        (
            "throw Object.assign(new Error('a'), { code: 'E' })",
            "Error: a\n{\n  code: 'E'\n}",
            1,
        ),
        (
            "throw new Error('a', { cause: new Error('b') })",
            "Error: a\n{\n  [cause]: Error: b\n}",
            1,
        ),
        (
            "process.on('uncaughtException', () => { throw new Error('b'); }); setTimeout(() => { throw new Error('a'); }, 1)",
            "Error: b",
            7,
        ),
    ] {
        assert_eq!(
            report(source),
            (expected.to_owned(), Some(code)),
            "{source}"
        );
    }
}

// J27: a program that hangs; the report names the lines of the script.
#[test]
fn a_report_names_the_lines_of_the_script() {
    let source = "'use strict';\n\
        const { never } = require('rust:app');\n\
        // The places are those of the calls.\n\
        \n\
        const later = () => {\n\
        \x20 const f = () => {};\n\
        \x20 f();\n\
        \x20 // A line before.\n\
        \n\
        \n\
        \n\
        \x20 setInterval(f, 1e6);\n\
        \x20 [1].forEach(() => { never(); });\n\
        };\n\
        setTimeout(later, 1);\n";
    assert_eq!(source.lines().nth(11), Some("  setInterval(f, 1e6);"));
    let report = |positions: bool| {
        let exit = phaseloop_node::run(async move {
            let engine = phaseloop_js::Engine::builder().positions(positions);
            let engine = engine.build().unwrap();
            let never = async |_: phaseloop_js::Args| {
                std::future::pending::<()>().await;
                Ok(())
            };
            engine.async_function("never", never).unwrap();
            engine.run("app.js", source).unwrap();
            let report = || phaseloop::LoopHandle::current().report().to_string();
            while positions && !report().contains("app.js:13:") {
                phaseloop_node::sleep(1).await.unwrap();
            }
            let hangs = report();
            engine.close();
            drop(engine);
            (hangs, report())
        });
        exit.into_output().unwrap()
    };
    let (hangs, closed) = report(true);
    assert!(hangs.contains("timer of app.js:12:"), "{hangs}");
    let called = "async function of Rust, called at app.js:13:";
    assert!(hangs.contains(called), "{hangs}");
    assert!(!hangs.contains("app.js:15:"), "it has fired: {hangs}");
    assert!(!closed.contains("timer of app.js"), "{closed}");
    assert!(!report(false).0.contains("app.js:"));
}
