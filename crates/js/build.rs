//! Compiles the files of the prelude to the engine's byte code: a program starts with less than half
//! of the instructions that it takes to compile them each time.

#[path = "src/engine/compile.rs"]
mod compile;

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=src/prelude");
    println!("cargo:rerun-if-changed=src/engine/compile.rs");
    let output = env::var("OUT_DIR").expect("cargo sets it");
    let output = Path::new(&output);
    let mut files: Vec<_> = fs::read_dir("src/prelude")
        .expect("the prelude is here")
        .map(|file| file.expect("it can be read").path())
        .filter(|file| file.extension().is_some_and(|it| it == "js"))
        .collect();
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.file_stem().expect("it has a name").to_string_lossy();
        let source = fs::read_to_string(&file).expect("it can be read");
        // The file sees these globals as they were at the start; `base.js` passes them.
        let saved = "Map, Set, WeakMap, WeakSet, WeakRef, Promise";
        let source = match &*name {
            "base" => source,
            _ => source.replacen(
                "(natives, internal)",
                &format!("(natives, internal, {saved})"),
                1,
            ),
        };
        let code = compile::compile(&format!("phaseloop:{name}"), &source).expect("it is correct");
        let compiled = output.join(format!("{name}.bin"));
        fs::write(&compiled, code).expect("it can be written");
        list.push_str(&format!("({name:?}, include_bytes!({compiled:?})),\n"));
    }
    list.push_str("]\n");
    fs::write(output.join("prelude.rs"), list).expect("it can be written");
}
