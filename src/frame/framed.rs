//! A future with a frame of its own.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::{Frame, Restored};

pin_project! {
    /// A future that is polled and dropped in a frame of its own. A change of the frame inside of a
    /// poll stays for the next.
    #[derive(Debug)]
    pub(crate) struct Framed<F> {
        frame: Frame,
        // `None` while it is dropped.
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Framed<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let frame = std::mem::take(this.frame);
            frame.run(|| this.future.set(None));
        }
    }
}

impl<F> Framed<F> {
    pub(crate) fn new(frame: Frame, future: F) -> Self {
        Self {
            frame,
            future: Some(future),
        }
    }
}

impl<F: Future> Future for Framed<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _outer = Restored(Some(std::mem::take(this.frame).enter()));
        let future = this.future.as_pin_mut();
        let polled = future.expect("it is not dropped").poll(cx);
        *this.frame = Frame::current();
        polled
    }
}
