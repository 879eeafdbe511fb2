//! What the macros expand to.
// Marks: the branches of a `select!` become one function (rows `select3`, `join3`).

use std::future::IntoFuture;
use std::pin::Pin;
use std::task::Context;

pub use std::future::{Future, poll_fn};
pub use std::option::Option::{None, Some};
pub use std::pin::pin;
pub use std::result::Result::{Err, Ok};
pub use std::task::Poll;
pub use std::{panic, unreachable};

pub use futures::future::Either;
use futures::future::{MaybeDone, TryFuture, TryMaybeDone};
use pin_project_lite::pin_project;

/// Keeps the output of a future until it is taken.
pub fn maybe_done<F: IntoFuture>(future: F) -> MaybeDone<F::IntoFuture> {
    futures::future::maybe_done(future.into_future())
}

/// Keeps the value of a future until it is taken; an error is returned at once.
pub fn try_maybe_done<F>(future: F) -> TryMaybeDone<F::IntoFuture>
where
    F: IntoFuture,
    F::IntoFuture: TryFuture,
{
    futures::future::try_maybe_done(future.into_future())
}

/// Takes the output of a future that has completed.
#[inline]
pub fn output<F: Future>(future: Pin<&mut MaybeDone<F>>) -> F::Output {
    future.take_output().expect("it has completed")
}

/// Takes the value of a future that has completed.
#[inline]
pub fn value<F: TryFuture>(future: Pin<&mut TryMaybeDone<F>>) -> F::Ok {
    future.take_output().expect("it has completed")
}

/// The branches of a `select!`.
pub trait Branches {
    type Output;

    /// Polls the branches in order. `is_any_on` says whether a branch before these is on.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>, is_any_on: bool) -> Poll<Self::Output>;
}

/// Behind the last branch.
#[derive(Debug)]
pub struct End;

/// No branch is on.
#[derive(Debug)]
pub struct AllOff;

impl Branches for End {
    type Output = AllOff;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>, is_any_on: bool) -> Poll<AllOff> {
        if is_any_on {
            Poll::Pending
        } else {
            Poll::Ready(AllOff)
        }
    }
}

pin_project! {
    /// A branch and those behind it.
    pub struct Branch<F, T, R> {
        // `None` if the branch is off.
        #[pin]
        future: Option<F>,
        test: T,
        #[pin]
        rest: R,
    }
}

/// Makes a branch. `test` returns whether an output matches the pattern, and the output.
#[inline(always)]
pub fn branch<F, T, R>(future: Option<F>, test: T, rest: R) -> Branch<F::IntoFuture, T, R>
where
    F: IntoFuture,
    T: FnMut(F::Output) -> (bool, F::Output),
    R: Branches,
{
    Branch {
        future: future.map(F::into_future),
        test,
        rest,
    }
}

impl<F, T, R> Branches for Branch<F, T, R>
where
    F: Future,
    T: FnMut(F::Output) -> (bool, F::Output),
    R: Branches,
{
    type Output = Either<F::Output, R::Output>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>, is_any_on: bool) -> Poll<Self::Output> {
        let mut this = self.project();
        let mut is_on = false;
        if let Some(future) = this.future.as_mut().as_pin_mut() {
            is_on = true;
            if let Poll::Ready(output) = future.poll(cx) {
                if let (true, output) = (this.test)(output) {
                    return Poll::Ready(Either::Left(output));
                }
                this.future.set(None);
                is_on = false;
            }
        }
        let rest = this.rest.poll(cx, is_any_on || is_on);
        rest.map(Either::Right)
    }
}

pin_project! {
    /// The future of a `select!`.
    pub struct Select<B> {
        #[pin]
        branches: B,
    }
}

/// Makes the future of a `select!`.
#[inline]
pub fn select<B: Branches>(branches: B) -> Select<B> {
    Select { branches }
}

impl<B: Branches> Future for Select<B> {
    type Output = B::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        self.project().branches.poll(cx, false)
    }
}
