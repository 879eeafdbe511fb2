//! Child processes that block, that are forked, and that are refused. Node 26 prints the same lines.
#![cfg(unix)]

use std::process::{Command, Output};

use phaseloop_js::{Engine, Files};

/// What Node prints for the program below.
const NODE: &str = "\
hi
given
3 Command failed: exit 3
ENOENT spawnSync no-such-program spawnSync no-such-program ENOENT no-such-program []
null SIGKILL <Buffer > undefined
300000 3
ERR_UNKNOWN_SIGNAL Unknown signal: SIGNO
ERR_INVALID_ARG_VALUE The argument 'file' cannot be empty. Received ''
ERR_INVALID_ARG_TYPE The \"args\" argument must be of type object. Received type number (1)
ERR_INVALID_ARG_VALUE The argument 'stdio' is invalid. Received 'x'
ESRCH kill ESRCH kill
true
parent 1 a,b
parent 2 a,b
disconnected false
exit 4 null
";

const PROGRAM: &str = r"
const { fork, execSync, execFileSync, spawnSync, spawn } = require('child_process');
if (process.argv.includes('child')) {
  process.on('message', (m) => process.send({ n: m.n, args: ['a', 'b'] }));
  process.on('disconnect', () => { process.exitCode = 4; });
  return;
}
console.log(execSync('echo hi; echo err 1>&2', { encoding: 'utf8', stdio: 'pipe' }).trim());
console.log(String(execFileSync('cat', { input: 'given' })));
try { execSync('exit 3', { stdio: 'ignore' }); } catch (e) { console.log(e.status, e.message); }
try { execFileSync('no-such-program'); } catch (e) { console.log(e.code, e.syscall, e.message, e.path, e.spawnargs); }
const r = spawnSync('sh', ['-c', 'kill -9 $$']);
console.log(r.status, r.signal, r.stdout, r.error);
const big = spawnSync('cat', { input: Buffer.alloc(300000, 'x') });
console.log(big.stdout.length, big.output.length);
const s = spawn('sleep', ['10'], { stdio: 'ignore' });
try { s.kill('SIGNO'); } catch (e) { console.log(e.code, e.message); }
s.kill();
for (const args of [[''], ['a', 1], ['a', [], { stdio: 'x' }]]) try { spawn(...args); } catch (e) { console.log(e.code, e.message); }
try { process.kill(1 << 30, 0); } catch (e) { console.log(e.code, e.message, e.syscall); }
console.log(process.kill(process.pid, 0));
const options = process.env.PHASELOOP_JS_PROGRAM ? {
  execArgv: ['the_program', '--ignored', '--exact', '--nocapture', '-q'], stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  env: { ...process.env, PHASELOOP_JS_ARGUMENT: 'child' },
} : {};
const child = fork(__filename, ['child'], options);
child.on('message', (m) => { console.log('parent', m.n, m.args.join()); if (m.n === 2) child.disconnect(); else child.send({ n: m.n + 1 }); });
child.on('disconnect', () => console.log('disconnected', child.connected));
child.on('exit', (code, signal) => console.log('exit', code, signal));
child.send({ n: 1 });
";

#[test]
#[ignore = "the test below starts it, with a program"]
fn the_program() {
    let program = std::env::var("PHASELOOP_JS_PROGRAM").expect("the test sets it");
    let exit = phaseloop_node::run(async move {
        let argument = std::env::var("PHASELOOP_JS_ARGUMENT").ok();
        let argv = [String::from("program"), program.clone()];
        let builder = Engine::builder().argv(argv.into_iter().chain(argument));
        let engine = builder.build().unwrap();
        let kept = engine.clone();
        phaseloop_node::process::on_exit(move |_| drop(kept.clone()));
        engine.run_file(program).unwrap();
    });
    std::process::exit(exit.code());
}

#[test]
fn children_that_block_and_children_that_talk() {
    let file = std::env::temp_dir().join(format!("phaseloop-children-{}.js", std::process::id()));
    std::fs::write(&file, PROGRAM).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["the_program", "--ignored", "--exact", "--nocapture", "-q"]);
    command.env("PHASELOOP_JS_PROGRAM", &file);
    let Output { stdout, stderr, .. } = command.output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let text = String::from_utf8(stdout).unwrap();
    let (_, own) = text.split_once("running 1 test\n").unwrap_or(("", &text));
    assert_eq!(own, NODE, "{}", String::from_utf8_lossy(&stderr));
}

// A program could read any file.
#[test]
fn an_engine_without_all_files_starts_no_process() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::builder().files(Files::None).build().unwrap();
        for call in [
            "spawn('true')",
            "exec('true')",
            "execFile('true')",
            "execSync('true')",
            "fork('x.js')",
        ] {
            let source = format!("require('child_process').{call}");
            let error = engine.run("a.js", &source).unwrap_err();
            assert_eq!(error.code(), Some("ERR_ACCESS_DENIED"), "{call}");
        }
        let error = engine.run("a.js", "process.kill(1, 0)").unwrap_err();
        assert_eq!(error.code(), Some("ERR_ACCESS_DENIED"));
    });
    assert_eq!(exit.code(), 0);
}
