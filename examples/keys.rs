//! Raw terminal input: prints the bytes of each key, and the size of the window whenever it
//! changes. `q` or ctrl-c exits.
//!
//! ```text
//! cargo run --example keys --features tty
//! ```

#[cfg(unix)]
fn main() -> std::io::Result<()> {
    phaseloop::block_on(unix::keys())
}

#[cfg(not(unix))]
fn main() {
    println!("Terminals are supported on Unix only.");
}

#[cfg(unix)]
mod unix {
    use std::io::{self, IsTerminal};

    use futures::future::{Either, select};
    use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
    use phaseloop::tty::{Mode, Tty};

    const CTRL_C: u8 = 3;

    pub(crate) async fn keys() -> io::Result<()> {
        if !io::stdin().is_terminal() {
            println!("standard input is not a terminal: there are no keys to show");
            return Ok(());
        }
        let tty = Tty::from_fd(io::stdin())?;
        let mut resizes = tty.resizes()?;
        tty.set_mode(Mode::Raw)?;
        let (mut input, mut output) = (&tty, &tty);
        output.write_all(b"press keys; q ends\n").await?;
        let mut buffer = [0; 32];
        loop {
            // Both are cancel safe: the future that loses the race loses no data.
            let resize = std::pin::pin!(resizes.recv());
            let line = match select(input.read(&mut buffer), resize).await {
                Either::Left((count, _)) => match &buffer[..count?] {
                    [] | [b'q' | CTRL_C] => break,
                    bytes => format!("{}\n", bytes.escape_ascii()),
                },
                Either::Right((Some(size), _)) => {
                    let size = size?;
                    format!("{} columns, {} rows\n", size.columns, size.rows)
                }
                Either::Right((None, _)) => break,
            };
            output.write_all(line.as_bytes()).await?;
        }
        // Dropping `tty` restores the terminal; so would a panic, or an exit.
        output.write_all(b"bye\n").await
    }
}
