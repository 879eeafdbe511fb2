//! What a terminal shows.

use std::fs::File;

/// What is read from the controlling side until `end` comes.
pub(crate) fn read_until(controller: &File, end: &str) -> String {
    use std::io::Read;
    let mut text = String::new();
    let mut buffer = [0; 256];
    while !text.ends_with(end) {
        let mut reader = controller;
        let count = reader.read(&mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    text
}
