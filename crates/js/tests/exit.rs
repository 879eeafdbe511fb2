//! The ends of programs: from where, with which code, and what runs before it. Node 26 prints the
//! same lines and ends with the same codes.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_js::Engine;
use phaseloop_node::process;

/// Runs a script as a program; returns the exit code, and what the program has printed.
fn ended(source: &str) -> (i32, String) {
    let lines = Rc::new(RefCell::new(String::new()));
    let (output, source) = (lines.clone(), source.to_owned());
    let exit = phaseloop_node::run(async move {
        let console = move |is_error: bool, text: &str| {
            if !is_error {
                output.borrow_mut().push_str(text);
            }
        };
        let engine = Engine::builder().console(console).build().unwrap();
        let kept = engine.clone();
        process::on_exit(move |_| drop(kept.clone()));
        if let Err(error) = engine.run("exit.js", &source) {
            phaseloop_node::throw(error);
        }
    });
    let code = exit.code();
    (code, lines.take())
}

/// What each program begins with: a line at the end, and one that must not be printed.
const HEAD: &str = "process.on('exit', (c) => console.log('exit', c));\n\
     const no = () => console.log('no'); setTimeout(no, 50); process.nextTick(() => {});\n\
     const emitter = new (require('events'))();\n";

// J17: neither `catch` nor `finally` runs after `process.exit`, nor what was queued.
#[test]
fn an_exit_ends_javascript_from_everywhere() {
    for (place, source) in [
        ("main", "process.exit(3); no()"),
        ("finally", "try { process.exit(3); } finally { no(); }"),
        (
            "inside finally",
            "try { throw 1; } finally { process.exit(3); }",
        ),
        ("catch", "try { process.exit(3); } catch { no(); }"),
        (
            "timer",
            "setTimeout(() => { try { process.exit(3); } finally { no(); } }, 1)",
        ),
        (
            "immediate",
            "setImmediate(() => process.exit(3)); setImmediate(no)",
        ),
        (
            "tick",
            "process.nextTick(() => process.exit(3)); process.nextTick(no)",
        ),
        (
            "job",
            "Promise.resolve().then(() => { process.exit(3); }).finally(no); Promise.resolve().then(no)",
        ),
        (
            "async function",
            "(async () => { try { await null; process.exit(3); } catch { no(); } finally { no(); } })()",
        ),
        (
            "generator",
            "const g = (function* () { try { yield 1; } finally { process.exit(3); } })(); g.next(); g.return(); no()",
        ),
        (
            "microtask",
            "queueMicrotask(() => process.exit(3)); queueMicrotask(no)",
        ),
        (
            "listener",
            "emitter.on('x', () => process.exit(3)); emitter.on('x', no); emitter.emit('x'); no()",
        ),
        (
            "nested emit",
            "emitter.on('x', () => { try { emitter.emit('y'); } finally { no(); } });\n\
             emitter.on('y', () => setImmediate(() => { [1].map(() => process.exit(3)); no(); })); emitter.emit('x')",
        ),
        (
            "a sort's comparison",
            "[2, 1].sort(() => { process.exit(3); }); no()",
        ),
        (
            "listener of uncaughtException",
            "process.on('uncaughtException', () => process.exit(3)); setTimeout(() => { throw 1; }, 1)",
        ),
        (
            "listener of unhandledRejection",
            "process.on('unhandledRejection', () => process.exit(3)); Promise.reject(1)",
        ),
        (
            "code",
            "process.exitCode = 3; setTimeout(() => process.exit(), 1)",
        ),
    ] {
        // The nested emit ends the first function, which is no exit.
        let expected = match place {
            "nested emit" => "no\nexit 3\n",
            _ => "exit 3\n",
        };
        let (code, lines) = ended(&format!("{HEAD}{source}"));
        assert_eq!((code, lines.as_str()), (3, expected), "{place}");
    }
}

// J17: a listener of `exit` may change the code, and may exit again.
#[test]
fn a_listener_of_exit_has_the_last_word() {
    for (source, code, expected) in [
        (
            "process.on('exit', (c) => { console.log('first', c); process.exit(5); });\n\
             process.on('exit', (c) => console.log('second', c)); process.exit(3)",
            5,
            "first 3\n",
        ),
        (
            "process.on('exit', (c) => { console.log('first', c); process.exitCode = 6; });\n\
             process.on('exit', (c) => console.log('second', c)); process.exit(3)",
            6,
            "first 3\nsecond 3\n",
        ),
        (
            "process.on('exit', () => { setTimeout(() => console.log('no'), 1); process.nextTick(() => console.log('no')); })",
            0,
            "",
        ),
        (
            "let left = 2; process.on('beforeExit', (c) => { console.log('before', c); if (left-- > 0) setImmediate(() => {}); })",
            0,
            "before 0\nbefore 0\nbefore 0\n",
        ),
        (
            "process.on('beforeExit', () => console.log('no')); process.exit(0)",
            0,
            "",
        ),
    ] {
        assert_eq!(ended(source), (code, expected.to_owned()), "{source}");
    }
}

// J11, J12.
#[test]
fn the_codes_of_an_end_are_those_of_node() {
    for (source, code) in [
        ("", 0),
        ("process.exitCode = 0", 0),
        ("setTimeout(() => { throw new Error('a'); }, 1)", 1),
        ("throw new Error('a')", 1),
        ("process.nextTick(() => { throw new Error('a'); })", 1),
        ("queueMicrotask(() => { throw new Error('a'); })", 1),
        ("Promise.reject(new Error('a'))", 1),
        ("(async () => { throw null; })()", 1),
        (
            "process.on('uncaughtException', () => {}); setTimeout(() => { throw 5; }, 1)",
            0,
        ),
        (
            "process.on('uncaughtException', () => { throw 6; }); setTimeout(() => { throw 5; }, 1)",
            7,
        ),
        (
            "process.on('uncaughtException', () => { throw 6; }); throw 5",
            7,
        ),
        (
            "process.on('unhandledRejection', () => {}); Promise.reject(5)",
            0,
        ),
        (
            "process.on('unhandledRejection', () => { throw 6; }); Promise.reject(5)",
            1,
        ),
        ("process.on('exit', () => { throw 6; })", 1),
        ("process.exitCode = 9; setTimeout(() => { throw 5; }, 1)", 1),
    ] {
        assert_eq!(ended(source).0, code, "{source}");
    }
}
