//! ES modules: imports, top-level `await`, and the exit code of one that never ends.

use std::path::PathBuf;
use std::process::{Command, Output};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder =
            std::env::temp_dir().join(format!("phaseloop-js-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            std::fs::write(folder.join(file), text).unwrap();
        }
        Self(folder)
    }

    /// Runs a file of the folder as a program.
    fn run(&self, file: &str) -> (Option<i32>, String, String) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["the_program", "--ignored", "--exact", "--nocapture", "-q"]);
        command.env("PHASELOOP_JS_PROGRAM", self.0.join(file));
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let out = text(stdout);
        let (_, own) = out.split_once("running 1 test\n").unwrap_or(("", &out));
        (status.code(), own.to_owned(), text(stderr))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
#[ignore = "the other tests start it, with a program"]
fn the_program() {
    let program = std::env::var("PHASELOOP_JS_PROGRAM").expect("the tests set it");
    std::process::exit(phaseloop_js::main(program).code());
}

#[test]
fn a_module_imports_files_packages_and_built_in_modules() {
    let main = "
        import fs, { existsSync } from 'node:fs';
        import { join } from 'path';
        import value, { later } from './other.mjs';
        import common from './common.cjs';
        process.nextTick(() => console.log('tick'));
        Promise.resolve().then(() => console.log('promise'));
        console.log(fs.existsSync === existsSync, join('a', 'b'), value, common.name);
        console.log(await later(), import.meta.filename.endsWith('main.mjs'));
        const again = await import('./other.mjs');
        console.log(again.default === value, typeof require);
    ";
    let other = "export default 7; export const later = () => new Promise((f) => setTimeout(f, 5, 'later'));";
    let files = [
        ("main.mjs", main),
        ("other.mjs", other),
        ("common.cjs", "module.exports = { name: 'common' };"),
    ];
    let (code, out, errors) = Folder::new("imports", &files).run("main.mjs");
    let lines = "true a/b 7 common\npromise\ntick\nlater true\ntrue undefined\n";
    assert_eq!((code, out.as_str(), errors.as_str()), (Some(0), lines, ""));
}

// Node's codes: 13 for an `await` that never ends, unless the program has chosen one.
#[test]
fn the_end_of_a_module_has_a_code() {
    for (source, expected) in [
        ("await new Promise(() => {})", 13),
        ("process.exitCode = 4; await new Promise(() => {})", 4),
        (
            "setTimeout(() => process.exit(), 1); await new Promise(() => {})",
            0,
        ),
        ("await null", 0),
        ("await null; throw new Error('mine')", 1),
        ("import './missing.mjs'", 1),
        ("syntax error", 1),
    ] {
        let folder = Folder::new("codes", &[("main.mjs", source)]);
        let (code, _, errors) = folder.run("main.mjs");
        assert_eq!(code, Some(expected), "{source}: {errors}");
        assert_eq!(errors.is_empty(), expected != 1, "{source}: {errors}");
    }
}

#[test]
fn a_package_makes_its_files_modules() {
    let files = [
        ("package.json", r#"{ "type": "module" }"#),
        (
            "main.js",
            "import { name } from './other.js'; console.log(name)",
        ),
        ("other.js", "export const name = 'other'"),
    ];
    let (code, out, errors) = Folder::new("package", &files).run("main.js");
    assert_eq!(
        (code, out.as_str(), errors.as_str()),
        (Some(0), "other\n", "")
    );
}
