//! The macros `join!`, `try_join!` and `select!`.
//!
//! They are `macro_rules`: a program that uses them builds no further crate. What they expand to
//! calls the functions of [`rt`].

#[doc(hidden)]
pub mod rt;

/// Waits for several futures at once, and returns all outputs as a tuple.
///
/// The futures are polled by the task itself, in the written order: they run one at a time. Spawn
/// tasks to let each be polled alone. `biased;` may stand first, as for tokio, and has no effect.
///
/// A future that has completed is not polled again. Its output is kept until all have completed.
///
/// # Cancel safety
///
/// Dropping the future of the caller drops all futures, and the outputs of those that have
/// completed.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{join, time::sleep};
///
/// async fn fetch(name: &str) -> usize {
///     sleep(Duration::from_millis(1)).await;
///     name.len()
/// }
///
/// #[phaseloop::main]
/// async fn main() {
///     let (one, two) = join!(fetch("one"), fetch("three"));
///     assert_eq!((one, two), (3, 5));
/// }
/// ```
#[macro_export]
macro_rules! join {
    (@ ($($done:ident)*)) => {
        $crate::macros::rt::poll_fn(|cx| {
            let mut is_ready = true;
            $(is_ready &= $crate::macros::rt::Future::poll($done.as_mut(), cx).is_ready();)*
            if !is_ready {
                return $crate::macros::rt::Poll::Pending;
            }
            $crate::macros::rt::Poll::Ready(($($crate::macros::rt::output($done.as_mut()),)*))
        })
        .await
    };
    // Each `future` is another name, by the hygiene of macros.
    (@ ($($done:ident)*) $next:expr $(, $rest:expr)*) => {{
        let mut future = $crate::macros::rt::pin!($crate::macros::rt::maybe_done($next));
        $crate::join!(@ ($($done)* future) $($rest),*)
    }};
    (biased; $($future:expr),* $(,)?) => {
        $crate::join!(@ () $($future),*)
    };
    ($($future:expr),* $(,)?) => {
        $crate::join!(@ () $($future),*)
    };
}

/// Waits for several futures that return a `Result`. Returns all values as a tuple, or the first
/// error.
///
/// The futures are polled as by [`join!`]. The first error ends the wait, and drops the others.
///
/// # Cancel safety
///
/// As of [`join!`].
///
/// # Examples
///
/// ```
/// use std::io;
/// use phaseloop::try_join;
///
/// #[phaseloop::main]
/// async fn main() {
///     let ok = async { Ok::<_, io::Error>(1) };
///     let error = async { Err::<(), _>(io::Error::other("no")) };
///     let both = try_join!(ok, error, std::future::pending::<io::Result<()>>());
///     assert_eq!(both.unwrap_err().to_string(), "no");
/// }
/// ```
#[macro_export]
macro_rules! try_join {
    (@ ($($done:ident)*)) => {
        $crate::macros::rt::poll_fn(|cx| {
            let mut is_ready = true;
            $(
                match $crate::macros::rt::Future::poll($done.as_mut(), cx) {
                    $crate::macros::rt::Poll::Ready($crate::macros::rt::Ok(())) => {}
                    $crate::macros::rt::Poll::Ready($crate::macros::rt::Err(error)) => {
                        return $crate::macros::rt::Poll::Ready($crate::macros::rt::Err(error));
                    }
                    $crate::macros::rt::Poll::Pending => is_ready = false,
                }
            )*
            if !is_ready {
                return $crate::macros::rt::Poll::Pending;
            }
            $crate::macros::rt::Poll::Ready($crate::macros::rt::Ok(
                ($($crate::macros::rt::value($done.as_mut()),)*)
            ))
        })
        .await
    };
    // Each `future` is another name, by the hygiene of macros.
    (@ ($($done:ident)*) $next:expr $(, $rest:expr)*) => {{
        let mut future = $crate::macros::rt::pin!($crate::macros::rt::try_maybe_done($next));
        $crate::try_join!(@ ($($done)* future) $($rest),*)
    }};
    (biased; $($future:expr),* $(,)?) => {
        $crate::try_join!(@ () $($future),*)
    };
    ($($future:expr),* $(,)?) => {
        $crate::try_join!(@ () $($future),*)
    };
}

/// Waits for the first of several futures, drops all, and runs the handler of the one that has
/// completed.
///
/// ```text
/// select! {
///     <pattern> = <future> => <handler>,
///     <pattern> = <future>, if <condition> => <handler>,
///     else => <handler>,
/// }
/// ```
///
/// The grammar is that of tokio's macro: a handler that is a block needs no comma behind it.
///
/// - The futures are polled in the written order, each time from the first. `biased;` may stand
///   first, and has no effect. A branch that is always ready keeps those behind it from their turn.
/// - All conditions are evaluated first, in order, once. A future whose condition is `false` is not
///   made.
/// - An output that does not match its pattern switches its branch off, and the others go on.
/// - `else` runs when all branches are off.
/// - All futures are dropped before a handler runs: it may borrow what they borrowed. `?`,
///   `break` and `.await` work in handlers. The macro has the value of the handler.
///
/// To go on with a future after another one has won, pin it and pass `&mut future`.
///
/// # Panics
///
/// If all branches are off and there is no `else`.
///
/// # Cancel safety
///
/// The futures that lose are dropped. What that means is stated by each of them, under "Cancel
/// safety". In a loop, pass `&mut future` of what must not begin anew.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{select, sync::mpsc, time::sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = mpsc::channel(1);
///     sender.send(3).await.unwrap();
///     drop(sender);
///     let mut sum = 0;
///     loop {
///         select! {
///             Some(number) = receiver.recv() => sum += number,
///             () = sleep(Duration::from_secs(5)), if sum > 100 => break,
///             else => break, // the channel has ended
///         }
///     }
///     assert_eq!(sum, 3);
/// }
/// ```
#[macro_export]
macro_rules! select {
    // The futures, from the first to the last: a branch and the rest.
    (@futures) => { $crate::macros::rt::End };
    (@futures { $on:ident $pattern:pat, $future:expr, $handler:expr } $($rest:tt)*) => {
        $crate::macros::rt::branch(
            if $on {
                $crate::macros::rt::Some($future)
            } else {
                $crate::macros::rt::None
            },
            |output| {
                let mut is_match = false;
                // A guard has the bindings by reference, so the output stays whole.
                #[allow(unused_variables, unused_mut, unreachable_patterns, clippy::all)]
                match output {
                    $pattern if { is_match = true; false } => $crate::macros::rt::unreachable!(),
                    _ => {}
                }
                (is_match, output)
            },
            $crate::select!(@futures $($rest)*),
        )
    };
    // The handlers, in the same order.
    (@handlers $output:ident ($otherwise:expr)) => {
        match $output {
            $crate::macros::rt::AllOff => $otherwise,
        }
    };
    (@handlers $output:ident ($otherwise:expr)
        { $on:ident $pattern:pat, $future:expr, $handler:expr } $($rest:tt)*
    ) => {
        match $output {
            $crate::macros::rt::Either::Left(output) => {
                #[allow(unreachable_patterns)]
                match output {
                    $pattern => $handler,
                    _ => $crate::macros::rt::unreachable!("the pattern was tested"),
                }
            }
            $crate::macros::rt::Either::Right(output) => {
                $crate::select!(@handlers output ($otherwise) $($rest)*)
            }
        }
    };
    (@run ($otherwise:expr) $($branches:tt)*) => {{
        let output = $crate::macros::rt::select($crate::select!(@futures $($branches)*)).await;
        $crate::select!(@handlers output ($otherwise) $($branches)*)
    }};
    // One branch after the other; `on` is another name each time, by the hygiene of macros.
    (@parse ($($branches:tt)*)) => {
        $crate::select!(
            @run
            ($crate::macros::rt::panic!("all branches are disabled and there is no else branch"))
            $($branches)*
        )
    };
    (@parse ($($branches:tt)*) else => $handler:expr $(,)?) => {
        $crate::select!(@run ($handler) $($branches)*)
    };
    (@parse ($($branches:tt)*)
        $pattern:pat = $future:expr, if $condition:expr => $handler:block, $($rest:tt)*
    ) => {
        $crate::select!(@add ($($branches)*) ($condition) ($pattern, $future, $handler) $($rest)*)
    };
    (@parse ($($branches:tt)*) $pattern:pat = $future:expr => $handler:block, $($rest:tt)*) => {
        $crate::select!(@add ($($branches)*) (true) ($pattern, $future, $handler) $($rest)*)
    };
    (@parse ($($branches:tt)*)
        $pattern:pat = $future:expr, if $condition:expr => $handler:block $($rest:tt)*
    ) => {
        $crate::select!(@add ($($branches)*) ($condition) ($pattern, $future, $handler) $($rest)*)
    };
    (@parse ($($branches:tt)*) $pattern:pat = $future:expr => $handler:block $($rest:tt)*) => {
        $crate::select!(@add ($($branches)*) (true) ($pattern, $future, $handler) $($rest)*)
    };
    (@parse ($($branches:tt)*)
        $pattern:pat = $future:expr, if $condition:expr => $handler:expr $(, $($rest:tt)*)?
    ) => {
        $crate::select!(
            @add ($($branches)*) ($condition) ($pattern, $future, $handler) $($($rest)*)?
        )
    };
    (@parse ($($branches:tt)*)
        $pattern:pat = $future:expr => $handler:expr $(, $($rest:tt)*)?
    ) => {
        $crate::select!(@add ($($branches)*) (true) ($pattern, $future, $handler) $($($rest)*)?)
    };
    (@add ($($branches:tt)*) ($condition:expr) ($($branch:tt)*) $($rest:tt)*) => {{
        let on: bool = $condition;
        $crate::select!(@parse ($($branches)* { on $($branch)* }) $($rest)*)
    }};
    // What users write.
    (biased; $($branches:tt)+) => { $crate::select!(@parse () $($branches)+) };
    ($($branches:tt)+) => { $crate::select!(@parse () $($branches)+) };
}
