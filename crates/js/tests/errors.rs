//! Errors of both languages: their texts, their lines, their classes.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_js::{Args, Engine, Error};
use phaseloop_node::process;

// J16: a panic of a function is uncaught, and JavaScript does not see it.
#[test]
fn a_panic_of_a_function_leaves_the_engine_usable() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::new().unwrap();
        let panic = |_: Args| -> Result<(), Error> { panic!("at fault") };
        engine.function("panic", panic).unwrap();
        let reported = Rc::new(RefCell::new(String::new()));
        let text = reported.clone();
        process::on_uncaught_exception(move |reason, _| *text.borrow_mut() = reason.to_string());
        let source = "setTimeout(() => { try { require('rust:app').panic(); } catch { globalThis.seen = 1; } }, 1)";
        engine.run("panic.js", source).unwrap();
        phaseloop_node::sleep(10).await.unwrap();
        assert_eq!(*reported.borrow(), "at fault");
        let seen = engine.run("after.js", "typeof seen").unwrap();
        assert_eq!(seen.to::<String>().unwrap(), "undefined");
    });
    assert_eq!(exit.code(), 0);
}

// J14, J15.
#[test]
fn errors_have_their_lines_and_their_classes() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::new().unwrap();
        let fail = |_: Args| Err::<(), _>(Error::new("RangeError", "too far"));
        engine.function("fail", fail).unwrap();
        let source = "let is; try { require('rust:app').fail(); } catch (e) { is = e instanceof RangeError; } is";
        assert!(engine.run("a.js", source).unwrap().to::<bool>().unwrap());
        let folder = std::env::temp_dir().join(format!("phaseloop-js-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("line.js");
        std::fs::write(&file, "null.x;\n").unwrap();
        let error = engine.run_file(&file).unwrap_err();
        assert!(error.stack().contains("line.js:1:"), "{}", error.stack());
        assert!(!error.stack().contains("phaseloop:"), "{}", error.stack());
        std::fs::remove_dir_all(folder).unwrap();
    });
    assert_eq!(exit.code(), 0);
}

// J13.
#[test]
fn the_text_of_an_error_is_its_name_message_and_stack() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::new().unwrap();
        let source = "const e = new (require('events'))();\n\
             e.on('x', function listener() { throw new RangeError('far'); });\n\
             e.emit('x')";
        let error = engine.run("app.js", source).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("RangeError: far\n"), "{text}");
        assert!(text.contains("listener (app.js:2:"), "{text}");
        assert!(text.contains("app.js:3:"), "{text}");
        assert!(
            !text.contains("phaseloop:") && !text.contains("(native)"),
            "{text}"
        );
        let plain = engine.run("app.js", "throw 'text'").unwrap_err();
        assert_eq!((plain.name(), plain.to_string().as_str()), ("", "text"));
    });
    assert_eq!(exit.code(), 0);
}

// J14: the wrapper of CommonJS shifts neither lines nor columns, also after `#!`.
#[test]
fn lines_and_columns_are_those_of_the_file() {
    let folder = std::env::temp_dir().join(format!("phaseloop-js-lines-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let folder_of = folder.clone();
    let exit = phaseloop_node::run(async move {
        let engine = Engine::new().unwrap();
        for (source, place) in [
            ("throw new Error('a')", "main.js:1:"),
            ("let a;\n  throw new Error('a')", "main.js:2:"),
            ("#!/usr/bin/env node\nthrow new Error('a')", "main.js:2:"),
        ] {
            let file = folder_of.join("main.js");
            std::fs::write(&file, source).unwrap();
            let error = engine.run_file(&file).unwrap_err();
            let column = source.lines().last().unwrap().find("new").unwrap() + 1;
            let found = error.stack().split(place).nth(1).unwrap_or_default();
            let found: String = found.chars().take_while(char::is_ascii_digit).collect();
            let found: usize = found.parse().unwrap();
            assert!(
                (column..column + 10).contains(&found),
                "{source}: {}",
                error.stack()
            );
        }
    });
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(exit.code(), 0);
}

// J15: an error of Rust is one of Node in JavaScript, and comes back as itself.
#[test]
fn an_error_of_rust_has_the_fields_of_node() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::new().unwrap();
        let seen = engine.run(
            "a.js",
            "(() => { try { require('fs').readFileSync('/no/such/file'); } catch (e) {\n\
             return [e instanceof Error, e.name, e.code, e.errno, e.syscall, e.path, e.message].join('|'); } })()",
        );
        assert_eq!(
            seen.unwrap().to::<String>().unwrap(),
            "true|Error|ENOENT|-2|open|/no/such/file|ENOENT: no such file or directory, open '/no/such/file'"
        );
        for class in ["TypeError", "RangeError", "SyntaxError", "Error"] {
            let fail = move |_: Args| Err::<(), _>(Error::new(class, "no"));
            engine.function("fail", fail).unwrap();
            let source = format!(
                "(() => {{ try {{ require('rust:app').fail(); }} catch (e) {{ return e instanceof {class} && e.name === '{class}'; }} }})()"
            );
            assert!(
                engine.run("b.js", &source).unwrap().to::<bool>().unwrap(),
                "{class}"
            );
        }
    });
    assert_eq!(exit.code(), 0);
}

// J12: in the frame of the rejection, once; handled later: reported as handled.
#[test]
fn rejections_are_reported_once_and_when_they_are_handled() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::new().unwrap();
        let source = "globalThis.lines = []; const log = (...a) => lines.push(a.join(' '));\n\
             process.on('unhandledRejection', (r, p) => { log('unhandled', r, p === late); });\n\
             process.on('rejectionHandled', (p) => log('handled', p === late));\n\
             const late = Promise.reject('late'); const early = Promise.reject('early'); early.catch(() => log('caught'));\n\
             setTimeout(() => late.catch(() => log('caught late')), 5);";
        engine.run("a.js", source).unwrap();
        sleep_until(&engine, 4.0).await;
        let lines = engine.run("b.js", "lines.join(', ')").unwrap();
        assert_eq!(
            lines.to::<String>().unwrap(),
            "caught, unhandled late true, caught late, handled true"
        );
    });
    assert_eq!(exit.code(), 0);
}

async fn sleep_until(engine: &Engine, lines: f64) {
    let count = || engine.run("n.js", "lines.length").unwrap().to::<f64>();
    while count().unwrap() < lines {
        phaseloop_node::sleep(5).await.unwrap();
    }
}
