//! Macros that define each operation with a callback and with a promise.

/// Defines each operation as a function with a callback, and with a promise in the module
/// `promised`.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $kind:ty),*) -> $output:ty = $future:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Panics
            ///
            /// When no loop runs on this thread.
            pub fn $name($($argument: $kind,)* callback: impl FnOnce(Result<$output, Error>) + 'static) {
                let future = $future;
                in_callbacks_as("FSREQCALLBACK", async move { callback(future.await.map_err(Into::into)) });
            }
        )*

        pub(super) mod promised {
            use super::*;

            $(
                $(#[$doc])*
                ///
                /// # Panics
                ///
                /// When no loop runs on this thread.
                pub fn $name($($argument: $kind,)*) -> Promise<$output> {
                    promise_of(|callback| super::$name($($argument,)* callback))
                }
            )*
        }
    };
}

/// Defines each operation as a method that returns a promise, and as a function with a callback.
macro_rules! handle_operations {
    ($($(#[$doc:meta])* $method:ident, $function:ident($($argument:ident: $kind:ty),*) -> $output:ty = |$file:ident| $future:expr;)*) => {
        impl FileHandle {
            $(
                $(#[$doc])*
                ///
                /// # Panics
                ///
                /// When no loop runs on this thread.
                pub fn $method(&self, $($argument: $kind,)*) -> Promise<$output> {
                    promise_of(|callback| $function(self, $($argument,)* callback))
                }
            )*
        }

        $(
            $(#[$doc])*
            ///
            /// # Panics
            ///
            /// When no loop runs on this thread.
            pub fn $function(
                handle: &FileHandle,
                $($argument: $kind,)*
                callback: impl FnOnce(Result<$output, Error>) + 'static,
            ) {
                let opened = handle.opened(stringify!($function));
                in_callbacks_as("FSREQCALLBACK", async move {
                    let result = match opened {
                        Ok($file) => $future.await.map_err(Error::from),
                        Err(error) => {
                            phaseloop::phase::poll().await;
                            Err(error)
                        }
                    };
                    callback(result);
                });
            }
        )*
    };
}
