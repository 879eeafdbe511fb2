//! What `os`, `process` and `fs` report is true, or is not there.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use phaseloop_js::{Engine, FromJs};

/// Runs a script that returns a value.
fn value<T: FromJs + 'static>(source: &str) -> T {
    let source = format!("(() => {{ const fs = require('fs'), os = require('os'); {source} }})()");
    let exit = phaseloop_node::run(async move {
        let engine = Engine::new().unwrap();
        engine.run("facts.js", &source).unwrap().to::<T>().unwrap()
    });
    exit.into_output().unwrap()
}

/// Returns code and message of what a script throws.
fn thrown(source: &str) -> String {
    value(&format!(
        "try {{ {source}; return 'nothing' }} catch (e) {{ return `${{e.code}} ${{e.message}}` }}"
    ))
}

/// A folder for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("phaseloop-js-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(folder.join("full/deep")).unwrap();
        std::fs::write(folder.join("full/deep/file"), "").unwrap();
        Self(folder)
    }

    /// Returns a path in the folder, as a text of JavaScript.
    fn at(&self, name: &str) -> String {
        format!("{:?}", self.0.join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_machine_is_reported_as_it_is() {
    let threads = std::thread::available_parallelism().unwrap().get();
    assert_eq!(
        value::<f64>("return os.availableParallelism()"),
        threads as f64
    );
    assert_eq!(value::<String>("return process.execPath"), exe());
    let absent = "return [process.memoryUsage().external, process.memoryUsage().arrayBuffers]\
                  .every((it) => it === undefined)";
    assert!(value::<bool>(absent));
}

fn exe() -> String {
    std::env::current_exe()
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_is_asked() {
    use phaseloop::os;
    assert_eq!(value::<String>("return os.type()"), "Linux");
    let cpus = os::cpus().unwrap();
    assert_eq!(value::<f64>("return os.cpus().length"), cpus.len() as f64);
    assert_eq!(value::<String>("return os.cpus()[0].model"), cpus[0].model);
    // The nice value is one of the thread: the test changes its own alone.
    let before = os::priority(None).unwrap();
    let after =
        value::<f64>("os.setPriority(Math.min(os.getPriority() + 1, 19)); return os.getPriority()");
    assert_eq!(after, f64::from((before + 1).min(19)));
    assert_eq!(os::priority(None).unwrap(), (before + 1).min(19));
    assert_eq!(
        thrown("os.setPriority(99999999, 19)"),
        "ERR_SYSTEM_ERROR A system error occurred: uv_os_setpriority returned ESRCH (no such process)"
    );
}

#[cfg(unix)]
#[test]
fn the_heap_grows_with_what_it_holds() {
    let source = "const a = process.memoryUsage(); globalThis.kept = new Array(1e5).fill(0).map((_, i) => ({ i }));\
                  const b = process.memoryUsage(); return b.heapUsed - a.heapUsed > 1e6 && b.heapTotal > a.heapTotal + 1e6 && b.heapTotal >= b.heapUsed";
    assert!(value::<bool>(source));
}

#[test]
fn a_file_is_read_byte_by_byte() {
    let folder = Folder::new("bytes");
    let all: Vec<u8> = (0..=255).collect();
    std::fs::write(folder.0.join("all"), &all).unwrap();
    let at = folder.at("all");
    assert_eq!(
        value::<Vec<u8>>(&format!("return fs.readFileSync({at})")),
        all
    );
    let hex = value::<String>(&format!("return fs.readFileSync({at}, 'hex')"));
    assert!(
        hex.starts_with("000102") && hex.ends_with("fdfeff"),
        "{hex}"
    );
    assert_eq!(
        thrown(&format!("fs.readFileSync({at}, 'utf9')")),
        "ERR_INVALID_ARG_VALUE The argument 'encoding' is invalid encoding. Received 'utf9'"
    );
    let flag = thrown(&format!("fs.readFileSync({at}, {{ flag: 'a+' }})"));
    assert_eq!(
        flag,
        "ERR_METHOD_NOT_IMPLEMENTED The option \"flag\" of fs.readFileSync() is not implemented"
    );
}

#[test]
fn a_callback_gets_the_bytes_that_were_written() {
    let folder = Folder::new("callback");
    let lines = Rc::new(RefCell::new(String::new()));
    let output = lines.clone();
    let at = folder.at("some");
    let exit = phaseloop_node::run(async move {
        let console = move |_: bool, text: &str| output.borrow_mut().push_str(text);
        let engine = Engine::builder().console(console).build().unwrap();
        let source = format!(
            "const fs = require('fs'); fs.writeFile({at}, new Uint8Array([0, 255, 128]), () => {{\n\
             fs.readFile({at}, (e, bytes) => console.log([...bytes]));\n\
             fs.readFile({at}, 'latin1', (e, text) => console.log(text.length)); }})"
        );
        engine.run("callback.js", &source).unwrap();
        phaseloop_node::process::on_exit(move |_| drop(engine.clone()));
    });
    assert_eq!(exit.code(), 0);
    let mut lines: Vec<_> = lines.borrow().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["3", "[ 0, 255, 128 ]"]);
}

#[test]
fn writes_go_to_the_standard_streams_or_fail() {
    // A descriptor that the script has not opened.
    for fd in [0, 3, 7] {
        let error = thrown(&format!("fs.writeSync({fd}, 'x')"));
        assert_eq!(error, "EBADF EBADF: bad file descriptor, write");
    }
    let error = thrown("fs.writeSync(1, new Uint8Array(3), 1)");
    assert!(
        error.starts_with("ERR_METHOD_NOT_IMPLEMENTED An offset"),
        "{error}"
    );
}

#[test]
fn a_removal_takes_what_its_options_allow() {
    let folder = Folder::new("rm");
    let [full, none] = ["full", "none"].map(|name| folder.at(name));
    let error = thrown(&format!("fs.rmSync({full})"));
    assert!(
        error.starts_with("ERR_FS_EISDIR Path is a directory: rm returned EISDIR"),
        "{error}"
    );
    assert!(thrown(&format!("fs.rmSync({none}, {{ recursive: true }})")).starts_with("ENOENT"));
    assert_eq!(
        thrown(&format!("fs.rmSync({none}, {{ force: true }})")),
        "nothing"
    );
    let error = thrown(&format!(
        "fs.rmSync({full}, {{ recursive: true, maxRetries: 1 }})"
    ));
    assert!(error.starts_with("ERR_METHOD_NOT_IMPLEMENTED"), "{error}");
    assert!(folder.0.join("full/deep/file").exists());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.0.join("full"), folder.0.join("link")).unwrap();
        assert_eq!(
            thrown(&format!("fs.rmSync({})", folder.at("link"))),
            "nothing"
        );
        assert!(
            folder.0.join("full/deep/file").exists(),
            "the link alone is removed"
        );
    }
    assert_eq!(
        thrown(&format!("fs.rmSync({full}, {{ recursive: true }})")),
        "nothing"
    );
    assert!(!folder.0.join("full").exists());
}

// The texts are those that Node 26 prints.
#[test]
fn a_list_that_is_longer_than_a_line_is_shown_in_lines() {
    let long = "return require('util').inspect([200, 'application/json', 'x'.repeat(48)])";
    let lines = format!(
        "[\n  200,\n  'application/json',\n  '{}'\n]",
        "x".repeat(48)
    );
    assert_eq!(value::<String>(long), lines);
    let deep = "return require('util').inspect({ a: { b: { c: {}, d: [], e: [1] } } })";
    assert_eq!(
        value::<String>(deep),
        "{ a: { b: { c: {}, d: [], e: [Array] } } }"
    );
    let names = "return require('util').format({ [Symbol('k')]: 1, 'a-b': 2, [Symbol()]: 3 })";
    assert_eq!(
        value::<String>(names),
        "{ 'a-b': 2, Symbol(k): 1, Symbol(): 3 }"
    );
}
