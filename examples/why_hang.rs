//! Why does it hang? Why did it exit? A program that does both, and prints the reasons.
//!
//! ```text
//! cargo run --example why_hang            # hangs, prints two reports, and exits
//! cargo run --example why_hang -- wait    # hangs until ctrl-c; `kill -USR1 PID` prints a report
//! ```

use std::io;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::io::AsyncReadExt;
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::sync::{Mutex, mpsc, oneshot};
use phaseloop::time::sleep;
use phaseloop::{LoopHandle, Remote, select, task};

/// A server and its client, a task that waits for an order, and two that each hold the lock that
/// the other one needs. Each of them has a bug.
async fn hang() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = async move {
        let (mut stream, _) = listener.accept().await?;
        // The client never closes its end.
        stream.read_to_end(&mut Vec::new()).await
    };
    let server = task::Builder::new().name("server").spawn(server);
    let client = TcpStream::connect(address).await?;

    // No order is ever sent.
    let (order, mut orders) = mpsc::unbounded::<String>();
    let kitchen = async move { while orders.recv().await.is_some() {} };
    task::Builder::new().name("kitchen").spawn(kitchen).detach();

    // Each takes its first lock, and waits for that of the other.
    let accounts = Rc::new(Mutex::new(()).named("accounts"));
    let audit = Rc::new(Mutex::new(()).named("audit"));
    let both = async |first: Rc<Mutex<()>>, second: Rc<Mutex<()>>| {
        let _first = first.lock().await;
        sleep(Duration::from_millis(1)).await;
        let _second = second.lock().await;
    };
    let transfer = both(accounts.clone(), audit.clone());
    task::Builder::new()
        .name("transfer")
        .spawn(transfer)
        .detach();
    let check = both(audit, accounts);
    task::Builder::new().name("check").spawn(check).detach();

    task::Builder::new()
        .name("clock")
        .spawn(sleep(Duration::from_secs(3600)))
        .detach();

    let received = server.await.expect("the server does not panic")?;
    println!("{received} bytes");
    drop((client, order));
    Ok(())
}

/// Prints a report whenever the process gets SIGUSR1. One line in `main` for a program that may
/// hang one day.
#[cfg(unix)]
fn report_on_signal() -> io::Result<()> {
    use phaseloop::Handle;
    use phaseloop::signal::{SignalKind, Signals};

    let mut signals = Signals::new([SignalKind::USR1])?;
    // The listener does not keep the program running.
    signals.unref();
    let report = async move {
        while signals.recv().await.is_some() {
            eprintln!("SIGUSR1:\n{}", LoopHandle::current().report());
        }
    };
    task::Builder::new().name("reporter").spawn(report).detach();
    Ok(())
}

#[cfg(not(unix))]
fn report_on_signal() -> io::Result<()> {
    Ok(())
}

/// Requests a report by a signal and by a remote call, on a thread of its own.
fn watch(remote: &Remote) {
    std::thread::sleep(Duration::from_millis(100));
    #[cfg(unix)]
    raise().expect("the signal is caught");
    std::thread::sleep(Duration::from_millis(100));
    let ask = || eprintln!("another thread:\n{}", LoopHandle::current().report());
    // An error means that the loop has ended already.
    let _ = remote.call(ask);
}

fn main() -> io::Result<()> {
    let waits = std::env::args().nth(1).is_some();
    phaseloop::block_on(async {
        report_on_signal()?;
        if waits {
            println!("try `kill -USR1 {}`", std::process::id());
            return hang().await;
        }
        let remote = LoopHandle::current().remote();
        select! {
            ended = hang() => ended,
            watched = phaseloop::spawn_blocking(move || watch(&remote)) => {
                watched.expect("the watcher does not panic");
                Ok(())
            }
        }
    })?;

    // `run` returns when nothing on the loop can wake the future; `block_on` would wait for ever.
    let (_never, order) = oneshot::channel::<()>();
    let ended = phaseloop::run(order);
    println!("{}", ended.expect_err("no order comes"));
    Ok(())
}

#[cfg(unix)]
fn raise() -> io::Result<()> {
    use rustix::process::{Signal, getpid, kill_process};
    Ok(kill_process(getpid(), Signal::USR1)?)
}
