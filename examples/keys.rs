//! A terminal key by key: prints what each sends, and the window's size whenever it changes. `q` or
//! ctrl-c ends it.
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
    println!("terminals are for Unix");
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
            // Both are cancel safe: what the one that loses would have returned comes next time.
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
        // Dropped here, `tty` puts the terminal back as it was; so would a panic, or an exit.
        output.write_all(b"bye\n").await
    }
}
