//! URLs, forms, headers and responses: `web/urls.expected` is what Node 26 prints for `web/urls.js`.
#![cfg(feature = "fetch")]

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use phaseloop_js::{Engine, Modules};

#[test]
fn urls_forms_and_headers_are_those_of_node() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web");
    let output = Rc::new(RefCell::new(String::new()));
    let (text, file) = (output.clone(), folder.join("urls.js"));
    let exit = phaseloop_node::run(async move {
        let console = move |_: bool, part: &str| text.borrow_mut().push_str(part);
        let engine = Engine::builder().console(console).build().unwrap();
        let kept = engine.clone();
        phaseloop_node::process::on_exit(move |_| drop(kept.clone()));
        engine.run_file(file).unwrap();
    });
    assert_eq!(exit.code(), 0);
    let expected = std::fs::read_to_string(folder.join("urls.expected")).unwrap();
    assert_eq!(output.take(), expected);
}

#[test]
fn an_engine_of_core_modules_has_urls_and_no_fetch() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::builder().modules(Modules::Core).build().unwrap();
        let types = engine.run("a.js", "typeof URL + ' ' + typeof fetch");
        assert_eq!(types.unwrap().to::<String>().unwrap(), "function undefined");
    });
    assert_eq!(exit.code(), 0);
}
