//! A program that reads commands line by line: a list of things to do, on Node's `readline`.
//!
//! ```text
//! cargo run --release --package phaseloop-node --example cli         # answers lines of its own, then exits
//! cargo run --release --package phaseloop-node --example cli -- -    # reads standard input; ctrl-d ends it
//! ```

#[cfg(unix)]
fn main() -> phaseloop_node::Exit<()> {
    program::main()
}

// Standard streams with events exist on Unix only.
#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod program {
    use std::cell::RefCell;

    use phaseloop_node::readline::{self, Interface};
    use phaseloop_node::stream::{Readable, Writable};
    use phaseloop_node::{Emitter, Exit, process, run};

    const DEMO: &str = "Ada\nadd milk\nadd bread\ndone 1\nlist\ndance\nquit\n";

    pub(crate) fn main() -> Exit<()> {
        let is_demo = std::env::args().nth(1).is_none();
        run(async move {
            let (input, output) = (input(is_demo), process::stdout());
            let rl = readline::create_interface(&input).output(&output);
            let (talker, out) = (rl.clone(), output.clone());
            // A callback, not a promise: further lines may follow in the same chunk, before a task
            // that awaits the answer goes on.
            let asked = rl.question("What is your name? ", move |name| {
                out.write(format!("Hello, {name}. Commands: add, done, list, quit.\n"));
                talk(&talker, &out);
            });
            asked.expect("the interface is open");
            rl.on(readline::CLOSE, move |()| {
                output.write("Bye.\n");
            });
        })
    }

    fn input(is_demo: bool) -> Readable<Vec<u8>> {
        if is_demo {
            Readable::from_iter([DEMO.as_bytes().to_vec()])
        } else {
            process::stdin()
        }
    }

    fn talk(rl: &Interface, output: &Writable<Vec<u8>>) {
        let (tasks, output) = (RefCell::new(Vec::new()), output.clone());
        rl.on_this(readline::LINE, move |rl, line| {
            match answer(&mut tasks.borrow_mut(), line) {
                Some(answer) => {
                    output.write(answer);
                    rl.prompt();
                }
                None => rl.close(),
            }
        });
        rl.prompt();
    }

    /// Carries out one command. `None` ends the program.
    fn answer(tasks: &mut Vec<String>, line: &str) -> Option<String> {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match (command, rest.parse::<usize>()) {
            ("add", _) if !rest.is_empty() => {
                tasks.push(rest.to_owned());
                format!("{} to do\n", tasks.len())
            }
            ("done", Ok(number)) if (1..=tasks.len()).contains(&number) => {
                format!("{} is done\n", tasks.remove(number - 1))
            }
            ("list", _) => {
                let lines = tasks.iter().enumerate();
                let lines = lines.map(|(n, task)| format!("{}. {task}\n", n + 1));
                lines.collect()
            }
            ("quit", _) => return None,
            _ => format!("I do not understand {line:?}\n"),
        })
    }
}
