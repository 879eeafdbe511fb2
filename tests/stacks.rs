//! The async functions between a task and what it waits for, in the tree of tasks.

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::channel::oneshot;
use futures::future::join;
use futures::stream::FuturesUnordered;
use phaseloop::io::{AsyncReadExt as _, AsyncWriteExt as _};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::time::sleep;
use phaseloop::{Builder, EventLoop, LoopHandle, phase, spawn, task};

fn hour() -> Duration {
    Duration::from_secs(3600)
}

#[inline(never)]
async fn leaf() {
    sleep(hour()).await;
}

#[inline(never)]
async fn branch() {
    leaf().await;
}

#[inline(never)]
async fn other_branch() {
    sleep(hour() * 2).await;
}

fn paused() -> EventLoop {
    Builder::new().start_paused(true).build().unwrap()
}

/// The lines of the tree, each with its depth and the first word of functions, or the name of what
/// waits.
fn outline(handle: &LoopHandle) -> Vec<String> {
    let tree = handle.task_tree().with_stacks().to_string();
    tree.lines()
        .map(|line| {
            let text = line.trim_start_matches(['└', '├', '│', ' ']);
            let depth = (line.chars().count() - text.chars().count()) / 2;
            let name = text.split(" (").next().unwrap_or_default();
            let name = name.rsplit("::").next().unwrap_or_default();
            format!("{depth} {name}")
        })
        .collect()
}

#[test]
fn the_functions_between_a_task_and_its_sleep_are_reported() {
    let event_loop = paused();
    event_loop.block_on(async {
        let task = spawn(async { branch().await });
        phase::check().await;
        let handle = LoopHandle::current();
        let lines = outline(&handle);
        let of_task = &lines[1..];
        let me = "the_functions_between_a_task_and_its_sleep_are_reported";
        let expected = [
            "0 task 1".to_owned(),
            format!("1 {me}"),
            "2 branch".to_owned(),
            "3 leaf".to_owned(),
            "4 sleep".to_owned(),
        ];
        assert_eq!(of_task, expected, "{lines:#?}");
        task.abort();
    });
}

#[test]
fn each_wait_is_below_its_own_functions() {
    let event_loop = paused();
    event_loop.block_on(async {
        let task = spawn(async {
            join(branch(), other_branch()).await;
        });
        phase::check().await;
        let tree = LoopHandle::current().task_tree().with_stacks().to_string();
        let lines: Vec<_> = tree.lines().collect();
        let place = |what: &str| lines.iter().position(|line| line.contains(what));
        let (leaf, other) = (place("::leaf").unwrap(), place("::other_branch").unwrap());
        assert!(lines[leaf + 1].contains("due in 3600s"), "{tree}");
        assert!(lines[other + 1].contains("due in 7200s"), "{tree}");
        task.abort();
    });
}

#[test]
fn a_wait_for_a_channel_has_its_functions_too() {
    async fn receives(receiver: oneshot::Receiver<()>) {
        receiver.await.unwrap();
    }

    let event_loop = paused();
    event_loop.block_on(async {
        let (sender, receiver) = oneshot::channel();
        let task = spawn(receives(receiver));
        phase::check().await;
        let lines = outline(&LoopHandle::current());
        let place = lines.iter().position(|line| line.ends_with(" receives"));
        let place = place.unwrap_or_else(|| panic!("{lines:#?}"));
        assert!(
            lines.last().unwrap().contains("something else"),
            "{lines:#?}"
        );
        assert!(place < lines.len() - 1);
        sender.send(()).unwrap();
        task.await.unwrap();
    });
}

#[test]
fn what_other_wakers_wait_for_is_below_who_polls_it() {
    async fn gathers() {
        let mut set: FuturesUnordered<_> = (0..2).map(|_| leaf()).collect();
        set.next().await;
    }

    let event_loop = paused();
    event_loop.block_on(async {
        let task = spawn(gathers());
        phase::check().await;
        let lines = outline(&LoopHandle::current());
        let place = lines.iter().position(|line| line.ends_with(" gathers"));
        let place = place.unwrap_or_else(|| panic!("{lines:#?}"));
        let sleeps = lines[place..]
            .iter()
            .filter(|line| line.ends_with(" sleep"));
        assert_eq!(sleeps.count(), 2, "{lines:#?}");
        task.abort();
    });
}

#[test]
fn tasks_go_on_as_if_they_had_not_been_asked() {
    let event_loop = Builder::new().build().unwrap();
    event_loop.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let echo = spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut byte = [0; 1];
            stream.read_exact(&mut byte).await.unwrap();
            stream.write_all(&byte).await.unwrap();
        });
        let mut stream = TcpStream::connect(address).await.unwrap();
        phase::check().await;
        let handle = LoopHandle::current();
        let before = handle.report().to_string();
        // The byte arrives between the two, and is not read by a poll of the tree.
        stream.write_all(b"x").await.unwrap();
        let tree = handle.task_tree().with_stacks().to_string();
        assert!(tree.contains("tasks_go_on"), "{tree}");
        assert_eq!(handle.report().to_string(), before);
        let mut byte = [0; 1];
        stream.read_exact(&mut byte).await.unwrap();
        assert_eq!(&byte, b"x");
        echo.await.unwrap();
    });
}

#[test]
fn the_main_future_is_asked_from_outside_of_it() {
    async fn waits_in_main() {
        sleep(Duration::from_millis(1)).await;
    }

    let event_loop = paused();
    let handle = event_loop.handle();
    let asked = Rc::new(Cell::new(None));
    let (ask, answer) = (handle.clone(), asked.clone());
    handle.set_immediate(move || answer.set(Some(outline(&ask))));
    event_loop.block_on(async { waits_in_main().await });
    let lines = asked.take().unwrap();
    assert!(lines[0].ends_with("the main future"), "{lines:#?}");
    assert!(lines.contains(&"2 waits_in_main".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"3 sleep".to_owned()), "{lines:#?}");
}

#[test]
fn a_task_that_ends_meanwhile_has_ended() {
    let event_loop = paused();
    event_loop.block_on(async {
        let polls = Rc::new(Cell::new(0));
        let counted = polls.clone();
        let task = task::Builder::new().name("counts").spawn(async move {
            std::future::poll_fn(|_| {
                counted.set(counted.get() + 1);
                match counted.get() {
                    2 => std::task::Poll::Ready(()),
                    _ => std::task::Poll::Pending,
                }
            })
            .await;
        });
        let never = spawn(pending::<()>());
        phase::check().await;
        let tree = LoopHandle::current().task_tree().with_stacks().to_string();
        assert!(!tree.contains("counts"), "{tree}");
        assert!(tree.contains("something else"), "{tree}");
        task.await.unwrap();
        assert_eq!(polls.get(), 2);
        never.abort();
    });
}
