//! C37–C39: `select!`, `join!` and `try_join!`: the forms of tokio's documentation, in programs of
//! our own, and what they mean.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn, ready};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use crate::util::trace::{ms, paused};
use phaseloop::sync::{mpsc, oneshot};
use phaseloop::time::{self, interval, sleep, sleep_until, timeout};
use phaseloop::{block_on, join, select, spawn, try_join};

/// Runs a future on a paused clock.
fn run<T>(future: impl Future<Output = T>) -> T {
    paused().0.block_on(future)
}

async fn after<T>(millis: u64, value: T) -> T {
    sleep(ms(millis)).await;
    value
}

/// Form 1: two branches with blocks and no commas.
#[test]
fn form_01_blocks_need_no_commas() {
    let won = run(async {
        let won;
        select! {
            _ = after(2, ()) => { won = "slow"; }
            _ = after(1, ()) => { won = "fast"; }
        }
        won
    });
    assert_eq!(won, "fast");
}

/// Form 2: expressions with commas, and a trailing one.
#[test]
fn form_02_expressions_have_commas() {
    let value = run(async {
        select! {
            value = after(1, 1) => value + 10,
            value = after(2, 2) => value + 20,
        }
    });
    assert_eq!(value, 11);
}

/// Form 3: the last comma is optional.
#[test]
fn form_03_the_last_comma_is_optional() {
    let value = block_on(async {
        select! { value = ready(1) => value }
    });
    assert_eq!(value, 1);
}

/// Form 4: blocks with commas.
#[test]
fn form_04_blocks_may_have_commas() {
    let value = block_on(async {
        select! {
            _ = pending::<()>() => { 1 },
            value = ready(2) => { value },
        }
    });
    assert_eq!(value, 2);
}

/// Form 5: blocks and expressions mixed.
#[test]
fn form_05_blocks_and_expressions_mix() {
    let value = block_on(async {
        select! {
            _ = pending::<()>() => { 1 }
            _ = pending::<()>() => 2,
            value = ready(3) => { value }
        }
    });
    assert_eq!(value, 3);
}

/// Form 6: `biased;`.
#[test]
fn form_06_biased_is_accepted() {
    let value = block_on(async {
        select! {
            biased;
            value = ready(1) => value,
            value = ready(2) => value,
        }
    });
    assert_eq!(value, 1);
}

/// Form 7 and C37: written order without `biased;`, each time from the first.
#[test]
fn form_07_futures_are_polled_in_the_written_order() {
    let polled = Rc::new(RefCell::new(Vec::new()));
    let branch = |name: u32, polls: u32| {
        let (polled, count) = (polled.clone(), Cell::new(0));
        poll_fn(move |cx| {
            polled.borrow_mut().push(name);
            count.set(count.get() + 1);
            cx.waker().wake_by_ref();
            if count.get() == polls {
                Poll::Ready(name)
            } else {
                Poll::Pending
            }
        })
    };
    let won = block_on(async {
        select! {
            name = branch(1, 9) => name,
            name = branch(2, 3) => name,
            name = branch(3, 3) => name,
        }
    });
    assert_eq!(won, 2);
    assert_eq!(*polled.borrow(), [1, 2, 3, 1, 2, 3, 1, 2]);
}

/// Form 8: a pattern that fails switches its branch off.
#[test]
fn form_08_a_pattern_that_fails_switches_its_branch_off() {
    let value = run(async {
        select! {
            Some(value) = after(1, None::<u32>) => value,
            value = after(2, 7) => value,
        }
    });
    assert_eq!(value, 7);
}

/// Form 9: `else` when all are off.
#[test]
fn form_09_else_runs_when_all_are_off() {
    let (value, polls) = run(async {
        let polls = Cell::new(0);
        let value = select! {
            Some(value) = after(1, None::<u32>) => value,
            Ok(value) = async { polls.set(polls.get() + 1); Err::<u32, ()>(()) } => value,
            else => 9,
        };
        (value, polls.get())
    });
    assert_eq!((value, polls), (9, 1));
}

/// Form 10: `else` with a block, and no comma.
#[test]
fn form_10_else_with_a_block() {
    let value = block_on(async {
        select! {
            Some(value) = ready(None::<u32>) => { value }
            else => { 5 }
        }
    });
    assert_eq!(value, 5);
}

/// Form 11: a condition.
#[test]
fn form_11_a_condition_switches_a_branch_off() {
    let value = block_on(async {
        let is_on = false;
        select! {
            value = ready(1), if is_on => value,
            value = ready(2), if !is_on => { value }
        }
    });
    assert_eq!(value, 2);
}

/// Form 12 and C38: a condition is read once, before the futures; a future that is off is not made.
#[test]
fn form_12_conditions_are_read_once_and_before_the_futures() {
    let log = RefCell::new(Vec::new());
    let note = |name: &'static str, is_on: bool| {
        log.borrow_mut().push(name);
        is_on
    };
    let made = |name: &'static str| {
        log.borrow_mut().push(name);
        async {}
    };
    run(async {
        select! {
            _ = made("first"), if note("one", false) => {},
            () = async { made("second").await; sleep(ms(1)).await }, if note("two", true) => {},
        }
    });
    assert_eq!(*log.borrow(), ["one", "two", "second"]);
}

/// Form 13: all off by conditions.
#[test]
fn form_13_conditions_and_else() {
    let value = block_on(async {
        select! {
            value = ready(1), if false => value,
            else => 3,
        }
    });
    assert_eq!(value, 3);
}

/// Form 14: no `else`.
#[test]
#[should_panic(expected = "all branches are disabled and there is no else branch")]
fn form_14_all_off_without_else_panics() {
    block_on(async {
        select! {
            Some(()) = ready(None) => {}
            () = ready(()), if false => {}
        }
    });
}

/// Form 15: a future by reference, in a loop.
#[test]
fn form_15_a_pinned_future_goes_on() {
    let ticks = run(async {
        let mut work = pin!(after(10, "done"));
        let mut ticks = 0;
        loop {
            select! {
                done = &mut work => { assert_eq!(done, "done"); break ticks }
                () = sleep(ms(3)) => ticks += 1,
            }
        }
    });
    assert_eq!(ticks, 3);
}

/// Form 16: receivers by reference.
#[test]
fn form_16_receivers_are_awaited_by_reference() {
    let first = block_on(async {
        let (one, mut first) = oneshot::channel::<u32>();
        let (two, mut second) = oneshot::channel();
        spawn(async move { two.send(2).unwrap() }).detach();
        let value = select! {
            value = &mut first => value.unwrap(),
            value = &mut second => value.unwrap(),
        };
        drop(one);
        assert!(first.await.is_err());
        value
    });
    assert_eq!(first, 2);
}

/// Form 17: channels with `else` when both have ended.
#[test]
fn form_17_two_channels_until_both_have_ended() {
    let sum = block_on(async {
        let (one, mut ones) = mpsc::channel(8);
        let (two, mut twos) = mpsc::channel(8);
        spawn(async move {
            for _ in 0..3 {
                one.send(1).await.unwrap();
                two.send(10).await.unwrap();
            }
        })
        .detach();
        let mut sum = 0;
        loop {
            select! {
                Some(value) = ones.recv() => sum += value,
                Some(value) = twos.recv() => sum += value,
                else => break sum,
            }
        }
    });
    assert_eq!(sum, 33);
}

/// Form 18: `?` in a handler.
#[test]
fn form_18_the_question_mark_works_in_handlers() {
    async fn parse() -> Result<u32, std::num::ParseIntError> {
        let value = select! {
            text = ready("x") => text.parse::<u32>()?,
            () = pending() => 0,
        };
        Ok(value)
    }
    assert!(block_on(parse()).is_err());
}

/// Form 19: `?` in a future.
#[test]
fn form_19_the_question_mark_works_in_futures() {
    async fn parse() -> Result<u32, std::num::ParseIntError> {
        let value = select! {
            value = async { "7".parse::<u32>()?; Ok::<_, std::num::ParseIntError>(8) } => value?,
            else => 0,
        };
        Ok(value)
    }
    assert_eq!(block_on(parse()), Ok(8));
}

/// Form 20: `.await`, `break` and labels in handlers.
#[test]
#[expect(clippy::never_loop, reason = "the labels are what is tested")]
fn form_20_await_and_labels_work_in_handlers() {
    let value = run(async {
        'outer: loop {
            loop {
                select! {
                    value = ready(3) => {
                        sleep(ms(1)).await;
                        break 'outer value;
                    }
                }
            }
        }
    });
    assert_eq!(value, 3);
}

/// Form 21 and C38: handlers borrow what the futures borrowed.
#[test]
fn form_21_handlers_borrow_what_the_futures_borrowed() {
    let list = block_on(async {
        let mut list = vec![1];
        async fn grow(list: &mut Vec<u32>) -> u32 {
            list.push(2);
            2
        }
        let mut other = String::from("a");
        async fn never(_: &mut String) -> &mut String {
            pending().await
        }
        select! {
            _ = never(&mut other) => unreachable!(),
            last = grow(&mut list) => {
                list.push(last + 1);
                other.push('b');
            }
        }
        assert_eq!(other, "ab");
        list
    });
    assert_eq!(list, [1, 2, 3]);
}

/// Form 22 and C38: all futures are dropped before a handler runs.
#[test]
fn form_22_all_futures_are_dropped_before_a_handler_runs() {
    struct Dropped<'a>(&'a Cell<u32>);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let count = Cell::new(0);
    let seen = block_on(async {
        let make = |is_ready: bool| {
            let mark = Dropped(&count);
            async move {
                let _mark = mark;
                if !is_ready {
                    pending::<()>().await;
                }
            }
        };
        select! {
            () = make(false) => 0,
            () = make(true) => count.get(),
            () = make(false) => 0,
        }
    });
    assert_eq!(seen, 3);
}

/// Form 23: `mut` and `ref` anywhere in a pattern.
#[test]
fn form_23_patterns_bind_by_mut_and_ref() {
    let text = block_on(async {
        select! {
            Some(mut text) = ready(Some(String::from("a"))) => { text.push('b'); text }
            (ref one, mut two) = pending::<(String, String)>() => { two.push_str(one); two }
        }
    });
    assert_eq!(text, "ab");
}

/// Form 24: patterns of structs, with bindings, ranges and alternatives.
#[test]
fn form_24_patterns_of_all_kinds() {
    struct Point {
        x: i32,
        y: i32,
    }
    let values = block_on(async {
        let mut values = Vec::new();
        for number in 0..4 {
            values.push(select! {
                1 | 2 = ready(number) => "one or two",
                3.. = ready(number) => "more",
                Point { x: 0, y } = ready(Point { x: number, y: 1 }) => if y == 1 { "origin" } else { "" },
                whole @ Point { .. } = ready(Point { x: 1, y: 2 }) => if whole.x < whole.y { "point" } else { "" },
            });
        }
        values
    });
    assert_eq!(values, ["origin", "one or two", "one or two", "more"]);
}

/// Form 25: method calls, macros and blocks as futures.
#[test]
fn form_25_futures_are_any_expressions() {
    let value = run(async {
        let mut ticks = interval(ms(5));
        ticks.tick().await;
        let start = time::now();
        select! {
            _ = async { sleep(ms(20)).await } => 1,
            value = { let value = 3; after(value, value) } => value,
            _ = ticks.tick() => 2,
            _ = sleep_until(start + ms(30)) => 4,
        }
    });
    assert_eq!(value, 3);
}

/// Form 26: a `JoinHandle`.
#[test]
fn form_26_tasks_are_awaited() {
    let value = run(async {
        let mut slow = spawn(after(10, 1));
        let fast = spawn(after(1, 2));
        select! {
            value = &mut slow => value.unwrap(),
            value = fast => value.unwrap() + slow.await.unwrap(),
        }
    });
    assert_eq!(value, 3);
}

/// Form 27: a time-out of a whole loop.
#[test]
fn form_27_a_deadline_of_a_loop() {
    let count = run(async {
        let mut deadline = pin!(sleep(ms(10)));
        let mut count = 0;
        loop {
            select! {
                biased;
                () = &mut deadline => break,
                () = sleep(ms(4)) => { count += 1; }
            }
        }
        count
    });
    assert_eq!(count, 2);
}

/// Form 28: a value that moves into the branch that wins.
#[test]
fn form_28_handlers_move_values() {
    let text = block_on(async {
        let text = String::from("moved");
        select! {
            () = ready(()) => text,
            () = pending() => { drop(text); String::new() }
        }
    });
    assert_eq!(text, "moved");
}

/// Form 29: `select!` in `select!`, and in `join!`.
#[test]
fn form_29_macros_nest() {
    let values = run(async {
        join!(
            async {
                select! {
                    value = async { select! { value = after(2, 2) => value, _ = after(3, 3) => 9 } } => value,
                    else => 0,
                }
            },
            async { try_join!(async { Ok::<_, ()>(after(1, 1).await) }, async { Ok(2) }) },
        )
    });
    assert_eq!(values, (2, Ok((1, 2))));
}

/// Form 30: many branches.
#[test]
fn form_30_many_branches() {
    async fn length(text: &str) -> usize {
        sleep(ms(1)).await;
        text.len()
    }
    let value = run(async {
        let on = true;
        select! {
            _ = pending::<()>() => 0, _ = pending::<()>() => 0, _ = pending::<()>() => 0,
            _ = pending::<()>() => 0, _ = pending::<()>() => 0, _ = pending::<()>() => 0,
            _ = pending::<()>() => 0, _ = pending::<()>() => 0, _ = pending::<()>() => 0,
            _ = pending::<()>() => 0, _ = pending::<()>() => 0, _ = pending::<()>() => 0,
            _ = pending::<()>() => 0, _ = pending::<()>() => 0, _ = pending::<()>() => 0,
            _ = pending::<()>() => 0, _ = pending::<()>() => 0, _ = pending::<()>() => 0,
            length = length("four"), if on => length,
            length = length("three") => length,
        }
    });
    assert_eq!(value, 4);
}

/// A guard in a condition is released before the futures are polled.
#[test]
fn the_temporaries_of_a_condition_end_with_it() {
    let cell = RefCell::new(1);
    block_on(async {
        select! {
            () = async { *cell.borrow_mut() += 1 }, if *cell.borrow() == 1 => {}
        }
    });
    assert_eq!(*cell.borrow(), 2);
}

/// C39: tuples of any number, in the written order, on the waker of the task.
#[test]
fn c39_join_polls_in_order_and_keeps_what_has_completed() {
    let log = RefCell::new(Vec::new());
    let step = |name: u32, millis| {
        let log = &log;
        async move {
            log.borrow_mut().push(name);
            sleep(ms(millis)).await;
            name
        }
    };
    let values = run(async { join!(step(1, 3), step(2, 1), step(3, 2)) });
    assert_eq!((values, log.take()), ((1, 2, 3), vec![1, 2, 3]));
    block_on(async {
        let () = join!();
        let (one,) = join!(ready(1));
        let (a, b) = join!(biased; ready(2), ready(3),);
        let many = join!(
            ready(1),
            ready(2),
            ready(3),
            ready(4),
            ready(5),
            ready(6),
            ready(7),
            ready(8),
            ready(9),
            ready(10),
            ready(11),
            ready(12),
        );
        assert_eq!((one, a, b, many.11), (1, 2, 3, 12));
    });
}

/// C39: the first error drops the rest.
#[test]
fn c39_the_first_error_ends_a_join() {
    let alive = Rc::new(());
    let kept = alive.clone();
    let error = run(async {
        let result = try_join!(
            async { Err::<(), _>(after(2, "late").await) },
            async { Err::<(), _>(after(1, "early").await) },
            async move {
                let _kept = kept;
                pending::<Result<(), &str>>().await
            },
        );
        assert_eq!(Rc::strong_count(&alive), 1, "the others are dropped");
        result.unwrap_err()
    });
    assert_eq!(error, "early");
    let both = block_on(async { try_join!(ready(Ok::<_, ()>(1)), ready(Ok("two"))) });
    assert_eq!(both, Ok((1, "two")));
}

#[test]
fn a_join_is_timed_out_as_a_whole() {
    let result = run(async {
        let both = async { join!(after(1, 1), pending::<()>()) };
        timeout(ms(5), both).await
    });
    assert!(result.is_err());
}
