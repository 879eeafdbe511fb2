//! Sequences that move the cursor of a terminal and clear its screen.

use crate::stream::Writable;

/// Which part of a line is cleared; see [`clear_line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the cursor to the left. JavaScript: -1.
    Left,
    /// From the cursor to the right. JavaScript: 1.
    Right,
    /// The whole line. JavaScript: 0.
    Both,
}

/// Moves the cursor to a column, and to a row if there is one; both count from zero. Returns
/// whether the stream takes more. JavaScript: `readline.cursorTo(stream, x, y)`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, process, readline, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let output = process::stdout();
///         readline::cursor_to(&output, 0, None);
///         readline::clear_line(&output, readline::Direction::Right);
///     })
/// }
/// ```
pub fn cursor_to(stream: &Writable<Vec<u8>>, x: usize, y: Option<usize>) -> bool {
    stream.write(to(x, y))
}

/// Moves the cursor by columns and rows. Returns whether the stream takes more. JavaScript:
/// `readline.moveCursor(stream, dx, dy)`.
pub fn move_cursor(stream: &Writable<Vec<u8>>, dx: isize, dy: isize) -> bool {
    stream.write(by(dx, dy))
}

/// Clears the line of the cursor. Returns whether the stream takes more. JavaScript:
/// `readline.clearLine(stream, dir)`.
pub fn clear_line(stream: &Writable<Vec<u8>>, direction: Direction) -> bool {
    stream.write(match direction {
        Direction::Left => "\x1b[1K",
        Direction::Right => "\x1b[0K",
        Direction::Both => "\x1b[2K",
    })
}

/// Clears the screen from the cursor on. Returns whether the stream takes more. JavaScript:
/// `readline.clearScreenDown(stream)`.
pub fn clear_screen_down(stream: &Writable<Vec<u8>>) -> bool {
    stream.write("\x1b[0J")
}

pub(super) fn to(x: usize, y: Option<usize>) -> String {
    match y {
        Some(y) => format!("\x1b[{};{}H", y + 1, x + 1),
        None => format!("\x1b[{}G", x + 1),
    }
}

pub(super) fn by(dx: isize, dy: isize) -> String {
    let part = |steps: isize, back, forth| match steps {
        0 => String::new(),
        ..0 => format!("\x1b[{}{back}", steps.unsigned_abs()),
        _ => format!("\x1b[{steps}{forth}"),
    };
    part(dx, 'D', 'C') + &part(dy, 'A', 'B')
}
