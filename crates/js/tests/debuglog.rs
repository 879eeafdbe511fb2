//! `util.debuglog` prints the sections that `NODE_DEBUG` names.

use std::process::Command;

const PROGRAM: &str = "
const { debuglog } = require('util');
const log = debuglog('cache');
log('%d entries of %s', 3, 'a', { b: 1 });
debuglog('other')('nothing');
debuglog('cached', (print) => print('first'))('second');
process.stdout.write(`enabled ${log.enabled} ${debuglog('other').enabled}\\n`);
";

/// The variable is one of a process.
#[test]
#[ignore = "the other test starts it, with a variable"]
fn the_program() {
    let exit = phaseloop_node::run(async {
        let engine = phaseloop_js::Engine::new().unwrap();
        engine.run("debug.js", PROGRAM).unwrap();
    });
    assert!(exit.code() == 0);
}

#[test]
fn sections_of_the_variable_print() {
    let run = |sections: Option<&str>| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["the_program", "--ignored", "--exact", "--nocapture", "-q"]);
        command.env_remove("NODE_DEBUG");
        if let Some(sections) = sections {
            command.env("NODE_DEBUG", sections);
        }
        let child = command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let id = child.id();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (id, text(output.stdout), text(output.stderr))
    };
    let (_, out, errors) = run(None);
    assert!(out.contains("enabled false false"), "{out}");
    assert_eq!(errors, "");
    let (id, out, errors) = run(Some("net,CACHE*"));
    assert!(out.contains("enabled true false"), "{out}");
    let lines = [
        format!("CACHE {id}: 3 entries of a {{ b: 1 }}"),
        format!("CACHED {id}: first"),
        format!("CACHED {id}: second"),
    ];
    assert_eq!(errors, lines.map(|line| line + "\n").concat());
}
