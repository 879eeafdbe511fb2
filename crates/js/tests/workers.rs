//! Workers: messages, errors, ends, and the ends of their scripts. Node 26 prints the same lines.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_js::Engine;

/// What Node prints for the program below.
const NODE: &str = "\
in worker { n: Map(1) { 1 => 2 } } [ 'x', '3' ] y
main { got: { a: [ 1, 'ö', 1970-01-01T00:00:00.000Z ] } }
exit 7
in worker { n: Map(1) { 1 => 2 } } [ 'x', '3' ] y
main spinning
exit 1
terminated 1
in worker { n: Map(1) { 1 => 2 } } [ 'x', '3' ] y
error text
exit 1
in worker { n: Map(1) { 1 => 2 } } [ 'x', '3' ] y
error { a: 1 }
exit 1
in worker { n: Map(1) { 1 => 2 } } [ 'x', '3' ] y
error [ 'RangeError', 'bad', 'E_BAD', 'RangeError: bad' ]
exit 1
ERR_WORKER_PATH The worker script or module filename must be an absolute path or a relative path starting with './' or '../'. Received \"x.js\"
ERR_INVALID_ARG_TYPE The \"filename\" argument must be of type string or an instance of URL. Received type number (1)
DataCloneError () => {} could not be cloned.
MODULE_NOT_FOUND
exit 1
";

const PROGRAM: &str = r"
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
if (!isMainThread) {
  console.log('in worker', workerData, process.argv.slice(2), process.env.X);
  parentPort.on('message', (m) => {
    if (m === 'exit') process.exit(7);
    if (m === 'spin') { parentPort.postMessage('spinning'); for (;;); }
    if (m === 'text') throw 'text';
    if (m === 'object') throw { a: 1 };
    if (m === 'error') throw Object.assign(new RangeError('bad'), { code: 'E_BAD' });
    parentPort.postMessage({ got: m });
  });
  return;
}
const run = (...messages) => new Promise((resolve) => {
  const w = new Worker(__filename, { workerData: { n: new Map([[1, 2]]) }, argv: ['x', 3], env: { X: 'y' } });
  w.on('message', (m) => { console.log('main', m); if (m === 'spinning') w.terminate().then((c) => console.log('terminated', c)); });
  w.on('error', (e) => console.log('error', e instanceof Error ? [e.name, e.message, e.code, e.stack.split('\n')[0]] : e));
  w.on('exit', (c) => { console.log('exit', c); setImmediate(resolve); });
  for (const m of messages) w.postMessage(m);
});
(async () => {
  await run({ a: [1, 'ö', new Date(0)] }, 'exit');
  await run('spin');
  await run('text');
  await run('object');
  await run('error');
  for (const bad of ['x.js', 1]) try { new Worker(bad); } catch (e) { console.log(e.code, e.message); }
  const w = new Worker('./nope.js');
  w.on('error', (e) => console.log(e.code));
  w.on('exit', (c) => console.log('exit', c));
  try { w.postMessage(() => {}); } catch (e) { console.log(e.name, e.message); }
})();
";

/// Runs a file as a program, and returns what it has printed.
fn printed(source: &str) -> String {
    let name = format!("phaseloop-workers-{}.js", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, source).unwrap();
    let output = Rc::new(RefCell::new(String::new()));
    let (text, path) = (output.clone(), file.clone());
    let exit = phaseloop_node::run(async move {
        let console = move |_: bool, part: &str| text.borrow_mut().push_str(part);
        let engine = Engine::builder().console(console).build().unwrap();
        let kept = engine.clone();
        phaseloop_node::process::on_exit(move |_| drop(kept.clone()));
        engine.run_file(path).unwrap();
    });
    std::fs::remove_file(file).unwrap();
    assert_eq!(exit.code(), 0);
    output.take()
}

#[test]
fn workers_answer_fail_and_end() {
    assert_eq!(printed(PROGRAM), NODE);
}

// J22: the engine ends what it has started, also a script that never returns.
#[test]
fn an_engine_that_is_closed_ends_its_workers() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::new().unwrap();
        let source = "const { Worker } = require('worker_threads');
            new Promise((resolve) => {
              const source = 'require(\"worker_threads\").parentPort.postMessage(1); for (;;);';
              for (let i = 0; i < 3; i++) new Worker(source, { eval: true }).on('message', resolve);
            })";
        let begun = engine.run("a.js", source).unwrap().into_promise();
        begun.await.unwrap();
    });
    assert_eq!(exit.code(), 0);
}
