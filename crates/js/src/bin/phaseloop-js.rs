//! `phaseloop-js app.js args…`: runs a file of JavaScript on the loop.

use phaseloop_node::Exit;

fn main() -> Exit<()> {
    match std::env::args().nth(1) {
        Some(file) => phaseloop_js::main(file),
        None => phaseloop_node::run(async {
            phaseloop_node::throw("a file is missing: phaseloop-js app.js");
        }),
    }
}
