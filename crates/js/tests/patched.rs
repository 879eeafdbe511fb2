//! A program that patches the globals and prototypes which the prelude uses: inside, nothing changes.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_js::{Args, Engine};
use phaseloop_node::process;

/// Patches with functions that throw.
const PATCHES: &str = "const { log } = require('rust:app');\n\
    const wrong = () => { throw new Error('a patched function was called'); };\n\
    const patch = (object) => { const keys = Reflect.ownKeys(object); for (let i = 0; i < keys.length; i++)\n\
      if (keys[i] !== 'constructor' && typeof Object.getOwnPropertyDescriptor(object, keys[i]).value === 'function') object[keys[i]] = wrong; };\n\
    const { setTimeout: sleep } = require('timers/promises'); const { EventEmitter } = require('events');\n\
    patch(Array.prototype); patch(Promise.prototype); patch(Map.prototype); patch(Set.prototype); patch(WeakMap.prototype);\n\
    Function.prototype.call = Function.prototype.apply = Function.prototype.bind = wrong;\n\
    Map = Set = WeakMap = WeakRef = Promise = wrong;\n";

/// What each program logs after the patches, as without them.
const PROGRAMS: [(&str, &str); 9] = [
    ("process.nextTick((a, b) => log(a + b), 'a', 'b')", "ab"),
    ("setTimeout((a, b) => log(a + b), 1, 'a', 'b')", "ab"),
    (
        "const t = setInterval((a) => { log(a); clearInterval(t); }, 1, 'a')",
        "a",
    ),
    (
        "setImmediate((a) => log(a), 'a'); clearImmediate(setImmediate(log, 'b'))",
        "a",
    ),
    ("queueMicrotask(() => log('a'))", "a"),
    (
        "(async () => { await null; await sleep(1); log('a'); })()",
        "a",
    ),
    (
        "const e = new EventEmitter(); const f = (x) => log(x); e.on('x', f); e.prependListener('x', () => log('first')); e.once('x', f);\n\
         e.emit('x', 'a'); e.off('x', f); log(`${e.listenerCount('x')}`); e.removeAllListeners(); log(`${e.emit('x')}`)",
        "first a a 1 false",
    ),
    (
        "const c = new AbortController(); c.signal.addEventListener('abort', () => log('a')); c.signal.onabort = () => log('b');\n\
         c.abort(); log(`${c.signal.aborted}`)",
        "a b true",
    ),
    (
        "process.on('unhandledRejection', (r) => log(`${r}`)); (async () => { throw 'a'; })()",
        "a",
    ),
];

// J30.
#[test]
fn a_program_that_patches_prototypes_changes_nothing_inside() {
    for (source, expected) in PROGRAMS {
        let lines = Rc::new(RefCell::new(Vec::<String>::new()));
        let log = lines.clone();
        let exit = phaseloop_node::run(async move {
            let engine = Engine::new().unwrap();
            let push = move |args: Args| {
                log.borrow_mut().push(args.get(0)?);
                Ok(())
            };
            engine.function("log", push).unwrap();
            let kept = engine.clone();
            process::on_exit(move |_| drop(kept.clone()));
            if let Err(error) = engine.run("patched.js", &format!("{PATCHES}{source}")) {
                phaseloop_node::throw(error);
            }
        });
        assert_eq!(
            (exit.code(), lines.borrow().join(" ").as_str()),
            (0, expected),
            "{source}"
        );
    }
}
