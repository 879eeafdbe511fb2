//! The signals of Unix.

use super::{SignalKind, sys};

kinds! {
    /// SIGHUP: the terminal hung up; by convention, a request to reload the configuration. Default
    /// action: terminate.
    HUP = SIGHUP,
    /// SIGINT: interrupt, sent by ctrl-c. Default action: terminate.
    INT = SIGINT,
    /// SIGQUIT: quit, sent by ctrl-\. Default action: terminate with a core dump.
    QUIT = SIGQUIT,
    /// SIGILL: illegal instruction. A listener cannot be started.
    ILL = SIGILL,
    /// SIGTRAP: breakpoint. Default action: terminate with a core dump.
    TRAP = SIGTRAP,
    /// SIGABRT: abort. Default action: terminate with a core dump.
    ABRT = SIGABRT,
    /// SIGBUS: bus error. Default action: terminate with a core dump.
    BUS = SIGBUS,
    /// SIGFPE: arithmetic error. A listener cannot be started.
    FPE = SIGFPE,
    /// SIGKILL: kill unconditionally. It cannot be caught.
    KILL = SIGKILL,
    /// For the program's own use.
    USR1 = SIGUSR1,
    /// SIGSEGV: invalid memory access. A listener cannot be started.
    SEGV = SIGSEGV,
    /// For the program's own use.
    USR2 = SIGUSR2,
    /// SIGPIPE: write to a pipe or socket without a reader. Rust programs ignore it from the start.
    PIPE = SIGPIPE,
    /// SIGALRM: alarm timer. Default action: terminate.
    ALRM = SIGALRM,
    /// SIGTERM: request to terminate. Default action: terminate.
    TERM = SIGTERM,
    /// SIGCHLD: a child has exited, stopped or continued. Default action: ignore.
    CHLD = SIGCHLD,
    /// SIGCONT: continue after a stop.
    CONT = SIGCONT,
    /// SIGSTOP: stop unconditionally. It cannot be caught.
    STOP = SIGSTOP,
    /// SIGTSTP: stop, sent by ctrl-z. Default action: stop.
    TSTP = SIGTSTP,
    /// SIGTTIN: a background process read from the terminal. Default action: stop.
    TTIN = SIGTTIN,
    /// SIGTTOU: a background process wrote to the terminal. Default action: stop.
    TTOU = SIGTTOU,
    /// SIGURG: urgent data on a socket. Default action: ignore.
    URG = SIGURG,
    /// SIGXCPU: CPU time limit exceeded. Default action: terminate with a core dump.
    XCPU = SIGXCPU,
    /// SIGXFSZ: file size limit exceeded. Default action: terminate with a core dump.
    XFSZ = SIGXFSZ,
    /// SIGVTALRM: virtual timer, which counts CPU time. Default action: terminate.
    VTALRM = SIGVTALRM,
    /// SIGPROF: profiling timer. Default action: terminate.
    PROF = SIGPROF,
    /// SIGWINCH: the terminal window was resized. Default action: ignore.
    WINCH = SIGWINCH,
    /// SIGIO: I/O is possible on a descriptor. Default action: terminate.
    IO = SIGIO,
    /// SIGSYS: invalid system call. Default action: terminate with a core dump.
    SYS = SIGSYS,
}
