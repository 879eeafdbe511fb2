//! The stack of the calling thread, and the names of functions.
// Marks: not inlined: the frames above it are counted.

use std::ptr;

/// Returns the addresses of the calls of this thread, innermost first.
#[inline(never)]
pub(crate) fn addresses() -> Vec<usize> {
    let mut addresses = Vec::new();
    backtrace::trace(|frame| {
        addresses.push(frame.ip().addr());
        true
    });
    addresses
}

/// Returns the addresses of the calls of this thread without those that it shares with `outer`, an
/// earlier stack.
pub(crate) fn inside(outer: &[usize]) -> Vec<usize> {
    let mut addresses = addresses();
    let shared = addresses.iter().rev().zip(outer.iter().rev());
    let shared = shared.take_while(|(one, other)| one == other).count();
    addresses.truncate(addresses.len() - shared);
    addresses
}

/// Calls `f` with the name and the line of each function at an address; several, innermost first,
/// if functions are inlined.
pub(crate) fn resolve(address: usize, mut f: impl FnMut(String)) {
    backtrace::resolve(ptr::with_exposed_provenance_mut(address), |symbol| {
        let Some(name) = symbol.name() else {
            return;
        };
        let name = format!("{name:#}");
        f(match (symbol.filename(), symbol.lineno()) {
            (Some(file), Some(line)) => format!("{name} ({}:{line})", file.display()),
            (Some(file), None) => format!("{name} ({})", file.display()),
            _ => name,
        });
    });
}

/// Names the functions of the program at the addresses, outermost first: without those of this
/// crate and of the standard library, and an async function by its name alone.
pub(crate) fn functions(addresses: &[usize]) -> Vec<String> {
    let mut names = Vec::new();
    for &address in addresses {
        resolve(address, |name| names.push(name));
    }
    let directory = directory();
    let of_program = |name: &&String| !is_ours(name) && !is_glue(name);
    let names = names.iter().rev().filter(of_program);
    let mut names: Vec<_> = names
        .map(|name| shortened(&without_closures(name), &directory))
        .collect();
    names.dedup();
    names
}

/// Returns a name without the marks of closures, which the body of an async function is.
fn without_closures(name: &str) -> String {
    let (function, place) = match name.split_once(" (") {
        Some((function, place)) => (function, format!(" ({place}")),
        None => (name, String::new()),
    };
    let mut function = function;
    while let Some(outer) = function.strip_suffix("::{{closure}}") {
        function = outer;
    }
    format!("{function}{place}")
}

/// Returns the prefix of paths that are printed without it.
pub(crate) fn directory() -> String {
    let directory = std::env::current_dir().unwrap_or_default();
    format!("({}/", directory.display())
}

/// Shortens the path in a name: paths below `directory`, and those of the standard library.
pub(crate) fn shortened(name: &str, directory: &str) -> String {
    const STANDARD: &str = "(/rustc/";
    if let Some((function, path)) = name.rsplit_once(STANDARD) {
        // The number of a commit comes first.
        if let Some((_, path)) = path.split_once('/') {
            return format!("{function}({path}");
        }
    }
    name.replacen(directory, "(", 1)
}

/// The directory of the source of this crate, as debug information names it.
pub(crate) fn own_source() -> &'static str {
    const THIS: &str = "raw/stack.rs";
    match file!().strip_suffix(THIS) {
        Some(source) if source.starts_with('/') => source,
        _ => concat!(env!("CARGO_MANIFEST_DIR"), "/src/"),
    }
}

/// Returns whether a function is of this crate, or of the one that holds its tasks.
pub(crate) fn is_ours(name: &str) -> bool {
    // The first word is the type or the function; others may be its parameters. Debug information
    // of line tables alone has no modules, but files.
    let function = name.trim_start_matches(['<', '&', '*']);
    let known = ["phaseloop::", "async_task::", "backtrace::"];
    known.iter().any(|ours| function.starts_with(ours))
        || name.contains(&format!("({}", own_source()))
}

/// Returns whether a function is of the standard library.
pub(crate) fn is_glue(name: &str) -> bool {
    let function = name.trim_start_matches(['<', '&', '*']);
    let known = ["core::", "std::", "alloc::", "__rust_try"];
    known.iter().any(|glue| function.starts_with(glue)) || name.contains("(/rustc/")
}

#[cfg(test)]
mod tests {
    use super::{addresses, functions, inside, is_glue, is_ours, own_source, without_closures};

    #[test]
    fn what_two_stacks_share_is_left_out() {
        let outer = addresses();
        assert!(outer.len() > 5);
        let same = inside(&outer);
        assert!(same.len() <= 8 && same.len() < outer.len(), "{same:?}");
        assert_eq!(inside(&[]).len(), outer.len() + 1);
    }

    #[test]
    fn functions_of_the_crate_and_of_the_standard_library_are_left_out() {
        // Below this function are the threads of the C library and the test harness.
        let outer = addresses();
        assert_eq!(functions(&inside(&outer)), [""; 0]);
        assert!(is_ours("<phaseloop::time::Sleep as Future>::poll"));
        assert!(is_ours(&format!(
            "{{async_fn#0}} ({}net.rs:3)",
            own_source()
        )));
        assert!(!is_ours("<app::Server<phaseloop::net::TcpStream>>::run"));
        assert!(is_glue("<core::pin::Pin<P> as core::future::Future>::poll"));
        assert!(!is_glue("app::main (src/main.rs:3)"));
    }

    #[test]
    fn an_async_function_has_its_name() {
        let name = "app::serve::{{closure}}::{{closure}} (src/main.rs:3)";
        assert_eq!(without_closures(name), "app::serve (src/main.rs:3)");
        assert_eq!(without_closures("app::serve"), "app::serve");
    }
}
