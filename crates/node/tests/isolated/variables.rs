//! The lines of the debug log, which a variable of the environment switches on.

use crate::util::child::in_child;

use phaseloop_node as node;

#[test]
fn the_area_of_this_crate_has_lines_of_its_own() {
    let test = "the_area_of_this_crate_has_lines_of_its_own";
    let child = in_child(&["env", "PHASELOOP_DEBUG=node"], test, || {
        let exit = node::run(async {
            node::set_timeout(1, || ());
        });
        assert_eq!(exit.code(), 0);
    });
    let Some(child) = child else { return };
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    for line in text.lines() {
        assert!(line.starts_with("PHASELOOP NODE "), "{line} in:\n{text}");
    }
    let has = |begin: &str, end: &str| {
        let is_it = |line: &str| line.contains(begin) && line.ends_with(end);
        assert!(text.lines().any(is_it), "{begin} … {end} in:\n{text}");
    };
    has(
        ": set_timeout (crates/node/tests/isolated/variables.rs:",
        ") is set, 1 ms",
    );
    has(": the program exits", " with code 0");
}
