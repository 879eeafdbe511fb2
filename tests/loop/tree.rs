//! The tree of tasks: who waits for whom, down to what the loop waits for.

use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;

use crate::util::sites::without_columns;
use crate::util::trace::{ms, paused, turn};
use futures::FutureExt;
use phaseloop::net::TcpListener;
use phaseloop::task::{CancellationToken, JoinSet, scope};
use phaseloop::time::sleep;
use phaseloop::{JoinHandle, LoopHandle, block_on, phase, spawn, task};

/// The tree as text, without file names and columns.
fn tree(handle: &LoopHandle) -> String {
    let text = handle.task_tree().to_string();
    assert_eq!(format!("{:?}", handle.task_tree()), text);
    without_columns(&text, file!())
}

#[test]
fn the_tree_goes_from_the_main_future_down_to_what_the_loop_waits_for() {
    let (event_loop, handle, _) = paused();
    let ask = handle.clone();
    let text = Rc::new(RefCell::new(String::new()));
    let asked = text.clone();
    handle.set_immediate(move || *asked.borrow_mut() = tree(&ask));
    let first = line!() + 1;
    event_loop.block_on(async move {
        let inner = spawn(sleep(ms(3_200)));
        let server = task::Builder::new().name("server");
        let server = server.spawn(async move { inner.await.unwrap() });
        let kitchen = task::Builder::new().name("kitchen").spawn(pending::<()>());
        kitchen.detach();
        server.await.unwrap();
    });
    let expected = format!(
        "\
the main future (#{first})
└ task 2 \"server\" (#{})
  └ task 1 (#{})
    └ sleep (#{}): due in 3.2s
task 3 \"kitchen\" (#{})
└ something else (another crate's channel or lock, another thread)
",
        first + 3,
        first + 1,
        first + 1,
        first + 4,
    );
    assert_eq!(*text.borrow(), expected);
}

#[test]
fn a_task_that_waits_for_several_has_a_branch_for_each() {
    let (mut event_loop, handle, _) = paused();
    let mut set = JoinSet::new();
    let line = line!() + 1;
    set.spawn_on(async { sleep(ms(5)).await }, &handle);
    set.spawn_on(pending(), &handle);
    let joiner = handle.spawn(async move {
        let waits = futures::future::join(sleep(ms(7)), set.join_next());
        waits.await;
    });
    turn(&mut event_loop);
    let expected = format!(
        "\
task 3 (#{})
├ sleep (#{}): due in 7ms
├ task 1 (#{line})
│ └ sleep (#{line}): due in 5ms
└ task 2 (#{})
  └ something else (another crate's channel or lock, another thread)
",
        line + 2,
        line + 3,
        line + 1,
    );
    assert_eq!(tree(&handle), expected);
    drop(joiner);
}

#[test]
fn a_circle_of_tasks_ends_where_it_began() {
    let (mut event_loop, handle, _) = paused();
    let slot: Rc<RefCell<Option<JoinHandle<()>>>> = Rc::default();
    let other = slot.clone();
    let line = line!() + 1;
    let one = handle.spawn(async move {
        phase::check().await;
        let other = other.take().unwrap();
        other.await.unwrap();
    });
    let two = handle.spawn(async move { one.await.unwrap() });
    slot.replace(Some(two));
    turn(&mut event_loop);
    let expected = format!(
        "\
task 1 (#{line})
└ task 2 (#{})
  └ task 1 (#{line}) (above)
",
        line + 5
    );
    assert_eq!(tree(&handle), expected);
}

#[test]
fn thousands_of_branches_alike_are_one_with_a_count() {
    let (mut event_loop, handle, _) = paused();
    let line = line!() + 2;
    for number in 0..5_000 {
        let task = handle.spawn(async move { sleep(ms(1_000 + number)).await });
        task.detach();
    }
    turn(&mut event_loop);
    let text = tree(&handle);
    let expected = format!("5000 × task spawned at #{line}\n└ sleep (#{line})\n");
    assert_eq!(text, expected);
}

/// Printing is not recursive without a limit, and no line is wider than a terminal.
#[test]
fn a_chain_of_thousands_of_tasks_is_printed_in_pieces() {
    let (mut event_loop, handle, _) = paused();
    let mut last = handle.spawn(async { sleep(ms(1)).await });
    for _ in 0..9_999 {
        last = handle.spawn(async move { last.await.unwrap() });
    }
    turn(&mut event_loop);
    let text = tree(&handle);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("task 10000 ("), "{}", lines[0]);
    let pieces = lines
        .iter()
        .filter(|line| line.ends_with("(below)"))
        .count();
    assert_eq!(
        lines.len(),
        10_001 + pieces,
        "each task once, and the sleep"
    );
    assert!(pieces > 100);
    let innermost = lines.iter().filter(|line| line.contains("sleep (")).count();
    assert_eq!(innermost, 1);
    last.abort();
}

#[test]
fn leaves_have_the_names_of_the_report() {
    block_on(async {
        let handle = LoopHandle::current();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let name = format!("└ TcpListener {} (", listener.local_addr().unwrap());
        let accept = spawn(async move { listener.accept().await.map(drop) });
        phase::check().await;
        let text = handle.task_tree().to_string();
        assert!(text.contains(&name), "{text}");
        assert!(text.contains("): a reader is waiting\n"), "{text}");
        assert!(text.contains("): is being polled\n"), "{text}");
        accept.abort();
        let text = handle.task_tree().to_string();
        assert!(text.contains("): was woken, will be polled\n"), "{text}");
        accept.map(drop).await;
    });
}

#[test]
fn an_empty_loop_has_an_empty_tree() {
    let (event_loop, handle, _) = paused();
    assert_eq!(handle.task_tree().to_string(), "");
    drop(event_loop);
    assert_eq!(handle.task_tree().to_string(), "");
}

#[test]
fn a_cancellation_and_a_task_of_a_scope_are_named() {
    let (mut event_loop, handle, _) = paused();
    let token = CancellationToken::new();
    let line = line!() + 1;
    let one = handle.spawn(async move { token.cancelled().await });
    let other = handle.spawn(scope(async |scope| {
        let inner = scope.spawn(pending::<()>());
        inner.await.unwrap();
    }));
    turn(&mut event_loop);
    let expected = format!(
        "\
task 1 (#{line})
└ cancellation (#{line})
task 2 (#{})
└ scoped task (#{})
",
        line + 1,
        line + 2
    );
    assert_eq!(tree(&handle), expected);
    drop((one, other));
}

#[test]
fn a_cancellation_that_has_come_is_not_named() {
    let (mut event_loop, handle, _) = paused();
    let token = CancellationToken::new();
    let waits = token.clone();
    let task = handle.spawn(async move {
        let mut cancelled = waits.cancelled();
        (&mut cancelled).await;
        pending::<()>().await;
        drop(cancelled);
    });
    turn(&mut event_loop);
    assert!(tree(&handle).contains("└ cancellation ("));
    token.cancel();
    turn(&mut event_loop);
    assert!(
        tree(&handle).contains("└ something else ("),
        "{}",
        tree(&handle)
    );
    drop(task);
}
