//! The layers of the crate, checked on its source text: which module may name which, and where the
//! operating system, `unsafe`, thread-locals and clocks may appear.
//!
//! A module may use those of lower layers and of its own; the table is in the order of the layers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules by layer, lowest first. Modules of one layer do not know each other.
const LAYERS: &[&[&str]] = &[
    &["error", "stderr"],
    &[
        "choices",
        "histogram",
        "keeper",
        "kinds",
        "label",
        "macros",
        "numbered",
        "phase_order",
        "raw",
        "site",
        "sorted",
        "task_info",
        "wait_list",
    ],
    &["frame", "metrics", "noted", "sys"],
    &["clock"],
    &["probe", "wire"],
    &["pool"],
    &["executor"],
    &["event_loop"],
    &["report"],
    &["ways_to_wait"],
    &["runtime"],
    &[
        "async_handle",
        "blocking",
        "context",
        "local",
        "phase",
        "shuffle",
        "sim",
        "stream",
        "sync",
        "time",
    ],
    &["io"],
    &["task"],
    &["fs", "os", "signal"],
    &["net"],
    &["cluster", "process", "tty"],
    &["attributes"],
    &["hyper", "tokio", "tokio_io"],
    &["extension", "guide", "unwind_safe"],
];

/// A file longer than this cannot be read in one sitting.
const LONGEST_FILE: usize = 600;

/// What may appear in some files only: a word, where it may stand, and why.
const CONFINED: &[(&str, &[&str], &str)] = &[
    ("target_os", &["sys/"], "platform code lives under sys/"),
    (
        "cfg(unix)",
        &[
            "sys/",
            "extension.rs",
            "fs.rs",
            "hyper.rs",
            "io.rs",
            "io/pipe.rs",
            "net.rs",
            "process.rs",
            "process/child.rs",
            "signal/kind.rs",
            "tokio_io.rs",
        ],
        "platform code lives under sys/; only whole modules are left out elsewhere",
    ),
    ("cfg(windows)", &["sys/"], "platform code lives under sys/"),
    (
        "unsafe {",
        &["raw/", "sys/"],
        "unsafe code lives under raw/, or sys/ if it needs the operating system",
    ),
    (
        "polling::",
        &["sys/poller/"],
        "only the poller knows polling",
    ),
    ("rustix::", &["sys/"], "system calls are made under sys/"),
    (
        "tokio::",
        &["sys/unfilled.rs", "tokio.rs", "tokio_io.rs"],
        "the loop knows a wait hook; only the bridges know tokio",
    ),
    (
        "Instant::now",
        &["sys/clock.rs"],
        "one place reads the clock",
    ),
    (
        "pop_tick(",
        &["executor.rs", "executor/lanes.rs"],
        "only the executor takes entries out of the lanes",
    ),
    (
        "pop_microtask(",
        &["executor.rs", "executor/lanes.rs"],
        "only the executor takes entries out of the lanes",
    ),
    (
        "next_microtask(",
        &["executor.rs", "extension/"],
        "only the extension runs microtasks alone, at the end of its program",
    ),
    (
        "drain_lanes(",
        &["executor.rs", "event_loop.rs", "event_loop/uncaught.rs"],
        "only `dispatch` asks the executor to drain the lanes",
    ),
    (
        "poll_front(",
        &["executor.rs", "event_loop.rs"],
        "only `dispatch` asks the executor to drain the lanes",
    ),
    (
        "thread_local!",
        &[
            "executor.rs",
            "event_loop/current.rs",
            "frame.rs",
            "raw/",
            "shuffle/quiet.rs",
            "sys/",
        ],
        "one thread-local says which loop runs, one what its running poll may still do, one which thread this is, one how deep drops are nested, one which panics are kept from the terminal, one which context is current",
    ),
];

/// What may appear in some files of the crate for Node only.
const CONFINED_IN_NODE: &[(&str, &[&str], &str)] = &[
    (
        "target_os",
        &["net/socket/connecting.rs"],
        "the loop's crate knows the platforms; one of them accepts a second connect",
    ),
    (
        "cfg(unix)",
        &[
            "child_process.rs",
            "fs.rs",
            "lib.rs",
            "net.rs",
            "process.rs",
        ],
        "only whole modules are left out",
    ),
    ("unsafe ", &[], "the layer for Node needs no unsafe code"),
    ("rustix::", &[], "system calls are made by the loop's crate"),
    ("Instant::now", &[], "one place reads the clock"),
    (
        "core.drain(",
        &["run.rs", "timers/pass.rs"],
        "only the engine drains; Node's timers do so through the seam",
    ),
    (
        "thread_local!",
        &["async_hooks/", "report.rs"],
        "one thread-local has the hooks, one the resource in whose scope the program runs, one which panics are caught",
    ),
];

/// What may appear in some files of the crate for JavaScript only.
const CONFINED_IN_JS: &[(&str, &[&str], &str)] = &[
    (
        "unsafe ",
        &["engine.rs", "engine/"],
        "unsafe code lives beside the engine",
    ),
    (
        "rquickjs::",
        &["engine.rs", "engine/"],
        "one module knows the engine",
    ),
    (
        "Instant::now",
        &["engine.rs", "natives/system.rs"],
        "limits of time and `hrtime` read the clock",
    ),
    (
        "thread_local!",
        &["engine/hook.rs"],
        "one thread-local says whether a job was a mark",
    ),
];

#[test]
fn modules_name_only_lower_layers() {
    let mut faults = String::new();
    for (path, text) in sources() {
        let Some(from) = module_of(&path) else {
            continue;
        };
        let layer = layer_of(&from)
            .unwrap_or_else(|| panic!("{path}: module `{from}` is in no layer; add it to LAYERS"));
        for (number, line) in code_lines(&text) {
            if line.trim_end().ends_with("crate::{") {
                let _ = writeln!(faults, "{path}:{number}: name the modules one by one");
            }
            for to in crate_paths(line) {
                let allowed = to == from || layer_of(&to).is_some_and(|other| other < layer);
                if !allowed {
                    let _ = writeln!(faults, "{path}:{number}: `{from}` must not know `{to}`");
                }
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

#[test]
fn confined_words_stay_where_they_belong() {
    let mut faults = String::new();
    let crates = [
        (sources(), CONFINED),
        (node_sources(), CONFINED_IN_NODE),
        (js_sources(), CONFINED_IN_JS),
    ];
    for (path, text, confined) in crates.into_iter().flat_map(|(files, confined)| {
        let files = files.into_iter();
        files.map(move |(path, text)| (path, text, confined))
    }) {
        for (number, line) in code_lines(&text) {
            for (word, places, why) in confined {
                if line.contains(word) && !places.iter().any(|place| path.starts_with(place)) {
                    let _ = writeln!(faults, "{path}:{number}: `{word}`: {why}");
                }
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// What prints in the crate and in the code that its attributes expand to: these macros panic when
/// standard error or standard output cannot be written.
#[test]
fn nothing_prints_but_the_helper_that_ignores_errors() {
    const PRINTS: [&str; 3] = ["println!", "print!", "dbg!"];
    const STREAMS: [&str; 2] = ["io::stderr", "io::stdout"];
    // The streams of the program, which return their errors.
    const OWNERS: [&str; 4] = [
        "stderr.rs",
        "io/stdio.rs",
        "process/stdio.rs",
        "sys/stdio/windows.rs",
    ];
    let mut faults = String::new();
    let macros = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/macros/src");
    let files = sources().into_iter().chain(node_sources());
    for (path, text) in files.chain(files_under(&macros)) {
        let is_owner = OWNERS.contains(&path.as_str());
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or(line);
            let prints = PRINTS.iter().any(|word| code.contains(word));
            if prints || !is_owner && STREAMS.iter().any(|word| code.contains(word)) {
                let _ = writeln!(faults, "{path}:{}: use `stderr::print`", index + 1);
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// The most names that the seam for the crate above may have: it is a wall with a door, not the
/// whole of the loop.
const WIDEST_SEAM: usize = 60;

#[test]
fn the_seam_is_narrow() {
    let names = names_of_the_seam(&sources()["extension.rs"]);
    assert!(names.len() > 20, "the seam is read: {names:?}");
    assert!(
        names.len() <= WIDEST_SEAM,
        "{} names: {names:?}",
        names.len()
    );
    let core = names.iter().find(|name| *name == "Core");
    assert_eq!(core, None, "the crate above holds a `Loop`");
}

/// The names that the lines `pub use` and `pub fn` of a file export.
fn names_of_the_seam(text: &str) -> Vec<String> {
    let code: String = code_lines(text)
        .map(|(_, line)| format!("{line} "))
        .collect();
    let mut names = Vec::new();
    for statement in code
        .split(['{', ';'])
        .zip(code.split(';'))
        .map(|(_, whole)| whole)
    {
        if let Some((_, used)) = statement.split_once("pub use ") {
            let list = used.rsplit_once("::").map_or(used, |(_, last)| last);
            let list = used.split_once("::{").map_or(list, |(_, list)| list);
            let names_in = list.trim_end_matches([' ', '}']).split(',');
            names.extend(
                names_in
                    .map(str::trim)
                    .filter(|name| !name.is_empty())
                    .map(|name| name.rsplit(" as ").next().unwrap_or(name).to_owned()),
            );
        }
    }
    names.extend(code.split("pub fn ").skip(1).map(identifier));
    names
}

/// The most methods that `Core` may have. What needs one part of it is a method of that part, so
/// that a reader knows the file of a method from its receiver.
const MOST_METHODS_OF_CORE: usize = 142;

#[test]
fn the_core_has_few_methods() {
    let mut methods = Vec::new();
    for (path, text) in sources() {
        let mut is_in_core = false;
        for (_, line) in code_lines(&text) {
            if line.trim_start().starts_with("impl Core ") {
                is_in_core = true;
            } else if line.starts_with('}') {
                is_in_core = false;
            }
            if let (true, Some((_, name))) = (is_in_core, line.split_once("fn ")) {
                methods.push(format!("{path}: {}", identifier(name)));
            }
        }
    }
    let count = methods.len();
    assert!(count > 50, "the methods are found: {methods:#?}");
    assert!(
        count <= MOST_METHODS_OF_CORE,
        "{count} methods: {methods:#?}"
    );
}

/// The parts of `Core`: the file and the name of each. The rest of the crate uses their methods.
const PARTS: &[(&str, &str)] = &[
    ("executor.rs", "Executor"),
    ("event_loop/phases.rs", "Phases"),
    ("event_loop/io.rs", "Io"),
    ("event_loop/ledger.rs", "Ledger"),
    ("event_loop/wait.rs", "Waits"),
    ("event_loop/host.rs", "Host"),
];

/// The fields that every part uses: the time, the lanes, the tasks, what watches the loop, and what
/// other threads share.
/// Each is a structure with methods of its own, so that a method that returns it would be a detour.
const OPEN: &[&str] = &[
    "pub(crate) clock: Clock,",
    "pub(crate) lanes: Lanes<Runnable>,",
    "pub(crate) probe: Probe,",
    "pub(crate) shared: Arc<Shared>,",
    "pub(crate) stock: Stock<Shared>,",
    "pub(crate) tasks: Rc<Registry>,",
];

#[test]
fn the_fields_of_the_parts_of_the_core_are_private_to_their_files() {
    for (path, name) in PARTS {
        let fields = fields_of(path, name);
        let mut lines = fields.lines().map(str::trim);
        let open = lines.find(|line| line.contains("pub") && !OPEN.contains(line));
        assert_eq!(open, None, "{path}: give `{name}` a method instead");
    }
}

/// The text of a struct's fields, without comments.
fn fields_of(path: &str, name: &str) -> String {
    let sources = sources();
    let start = format!("struct {name} {{\n");
    let (_, rest) = sources[path].split_once(&start).expect("named so");
    let (fields, _) = rest.split_once("\n}").expect("it ends");
    code_lines(fields)
        .map(|(_, line)| format!("{line}\n"))
        .collect()
}

#[test]
fn files_can_be_read_in_one_sitting() {
    let files = sources().into_iter().chain(node_sources());
    for (path, text) in files.chain(js_sources()) {
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE, "{path} has {lines} lines; split it");
    }
}

/// The checks above look at text; here is what they must and must not see.
#[test]
fn the_checks_see_what_they_should() {
    let paths = |line| crate_paths(line).collect::<Vec<_>>();
    assert_eq!(paths("use crate::event_loop::core::Core;"), ["event_loop"]);
    assert_eq!(
        paths("let x: crate::time::Sleep = crate::io::y();"),
        ["time", "io"]
    );
    assert_eq!(
        paths("use crate::{keeper::Keeper, task::{Id, Info}, error};"),
        ["keeper", "task", "error"]
    );
    assert_eq!(paths("use std::rc::Rc;"), Vec::<String>::new());
    assert_eq!(paths("$crate::join!($crate::macros::rt::x)"), ["macros"]);
    assert_eq!(
        names_of_the_seam("pub use a::b;\npub use c::{d, e as f};\npub fn g() {}\nuse h::i;\n"),
        ["b", "d", "f", "g"]
    );
    let text = "//! crate::time\nuse a; // crate::io\n/// [`x`](crate::task::x)\nb();\n";
    let lines: Vec<_> = code_lines(text).collect();
    assert_eq!(lines, [(2, "use a; "), (4, "b();")]);
}

/// All files under `src`, by their path there.
pub(crate) fn sources() -> BTreeMap<String, String> {
    let found = files_under(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(found.len() > 30, "the walk has missed something");
    found
}

/// All files of the crate for JavaScript, by their path in its `src`.
pub(crate) fn js_sources() -> BTreeMap<String, String> {
    let found = files_under(&Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/js/src"));
    assert!(found.len() > 10, "the walk has missed something");
    found
}

/// All files of the crate for Node, by their path in its `src`.
pub(crate) fn node_sources() -> BTreeMap<String, String> {
    let found = files_under(&Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/node/src"));
    assert!(found.len() > 30, "the walk has missed something");
    found
}

/// All files of the three crates, by their paths in the repository.
pub(crate) fn sources_of_all() -> impl Iterator<Item = (String, String)> {
    let crates = [
        ("src", sources()),
        ("crates/node/src", node_sources()),
        ("crates/js/src", js_sources()),
    ];
    let named = |(root, files): (_, BTreeMap<String, String>)| {
        let named = files.into_iter();
        named.map(move |(path, text)| (format!("{root}/{path}"), text))
    };
    crates.into_iter().flat_map(named)
}

/// The text of each file of Rust below a directory, by its path from there.
fn files_under(root: &Path) -> BTreeMap<String, String> {
    fn visit(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("the sources are there") {
            let path = entry.expect("the sources can be listed").path();
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    visit(root, &mut found);
    let name = |path: &Path| {
        let relative = path.strip_prefix(root).expect("found below the root");
        relative.to_string_lossy().replace('\\', "/")
    };
    found
        .iter()
        .map(|path| {
            (
                name(path),
                fs::read_to_string(path).expect("sources are text"),
            )
        })
        .collect()
}

/// The top module of a file; `None` for the crate's root.
fn module_of(path: &str) -> Option<String> {
    let top = path.split('/').next()?.trim_end_matches(".rs");
    (top != "lib").then(|| top.to_owned())
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Lines with their numbers, without comments, up to the tests at the end of a file.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| !line.starts_with("#[cfg(all(test") && *line != "#[cfg(test)]")
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or(line)))
        .filter(|(_, line)| !line.trim().is_empty())
}

/// The top modules that a line reaches by `crate::`, also in a list of several.
fn crate_paths(line: &str) -> impl Iterator<Item = String> + '_ {
    line.match_indices("crate::").flat_map(|(start, word)| {
        let rest = &line[start + word.len()..];
        if let Some(list) = rest.strip_prefix('{') {
            top_level_names(list)
        } else {
            let name = identifier(rest);
            // A macro of the crate is at its root, and in no module.
            let is_macro = rest[name.len()..].starts_with('!');
            Vec::from_iter((!is_macro).then_some(name))
        }
    })
}

/// The first name of each member of a `{…}` list, whose opening brace is gone.
fn top_level_names(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (index, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(identifier(list[start..index].trim()));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(identifier(list[start..index].trim()));
                start = index + 1;
            }
            _ => {}
        }
    }
    names
}

fn identifier(text: &str) -> String {
    text.chars()
        .take_while(|character| character.is_alphanumeric() || *character == '_')
        .collect()
}
