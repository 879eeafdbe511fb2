//! The signals of Windows.

use super::{SignalKind, sys};

kinds! {
    /// SIGHUP: the console window is closed. The process ends some seconds later, whatever it does.
    HUP = SIGHUP,
    /// SIGINT: interrupt, sent by ctrl-c. Default action: terminate.
    INT = SIGINT,
    /// SIGQUIT: quit. It never arrives; sent to a process, it terminates the process.
    QUIT = SIGQUIT,
    /// SIGILL: illegal instruction. A listener cannot be started.
    ILL = SIGILL,
    /// SIGFPE: arithmetic error. A listener cannot be started.
    FPE = SIGFPE,
    /// SIGKILL: kill unconditionally. It cannot be caught.
    KILL = SIGKILL,
    /// SIGSEGV: invalid memory access. A listener cannot be started.
    SEGV = SIGSEGV,
    /// SIGTERM: request to terminate. It never arrives; sent to a process, it terminates the
    /// process.
    TERM = SIGTERM,
    /// SIGBREAK: ctrl-break in the console. Default action: terminate. Windows only.
    BREAK = SIGBREAK,
    /// SIGABRT: abort. It never arrives.
    ABRT = SIGABRT,
    /// SIGWINCH: the console window was resized. It never arrives.
    WINCH = SIGWINCH,
}
