//! What the parser has read of a head: one buffer, and where its parts are.

use super::methods::Method;

/// The head of a message, or its trailers: the parts of the first line, and the header lines.
#[derive(Debug, Default)]
pub(in crate::http) struct Head {
    /// The URL or the status message, then names and values in turn.
    bytes: Vec<u8>,
    /// The length of the URL or status message.
    line_end: usize,
    fields: Vec<Field>,
    pub(super) method: Option<Method>,
    pub(super) status: u16,
    pub(super) version: (u8, u8),
    /// Whether the connection may carry another message.
    pub(super) keep_alive: bool,
    /// Whether the message asks for another protocol on the connection.
    pub(super) upgrade: bool,
}

/// A header line: its name and its value are neighbours in the buffer.
#[derive(Clone, Copy, Debug)]
struct Field {
    start: u32,
    name_end: u32,
    end: u32,
}

impl Head {
    pub(in crate::http) fn method(&self) -> Option<Method> {
        self.method
    }

    pub(in crate::http) fn status(&self) -> u16 {
        self.status
    }

    /// Returns the major and minor version.
    pub(in crate::http) fn version(&self) -> (u8, u8) {
        self.version
    }

    pub(in crate::http) fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    pub(in crate::http) fn is_upgrade(&self) -> bool {
        self.upgrade
    }

    /// Returns the URL of a request, or the status message of a response.
    pub(in crate::http) fn line(&self) -> &[u8] {
        &self.bytes[..self.line_end]
    }

    /// Returns the number of header lines.
    pub(in crate::http) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns names and values as received; values without the blanks around them.
    pub(in crate::http) fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|field| {
            let [start, name_end, end] = field.ends();
            (&self.bytes[start..name_end], &self.bytes[name_end..end])
        })
    }

    // Filled by the parser.

    /// Clears the parts, and keeps the allocations.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
        self.line_end = 0;
        self.method = None;
        self.status = 0;
        self.version = (0, 0);
        self.keep_alive = false;
        self.upgrade = false;
    }

    /// Returns the head without its parts, for another one.
    pub(in crate::http) fn cleared(mut self) -> Self {
        self.clear();
        self
    }

    /// Makes room for a head in an input with `left` bytes.
    pub(super) fn reserve(&mut self, left: usize) {
        self.bytes.reserve(left.min(1024));
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn end_line(&mut self) {
        self.line_end = self.bytes.len();
    }

    /// Returns the bytes from `start` on.
    pub(super) fn since(&self, start: usize) -> &[u8] {
        &self.bytes[start..]
    }

    /// Returns the length of the buffer.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Adds the header line at `start` whose name ends at `name_end`. Drops it if there are `limit`
    /// lines; 0 means no limit.
    pub(super) fn end_field(&mut self, start: usize, name_end: usize, limit: usize) {
        if limit > 0 && self.fields.len() >= limit {
            return self.bytes.truncate(start);
        }
        while self.bytes.len() > name_end && matches!(self.bytes.last(), Some(b' ' | b'\t')) {
            self.bytes.pop();
        }
        if self.fields.capacity() == 0 {
            self.fields.reserve(16);
        }
        self.fields
            .push(Field::new(start, name_end, self.bytes.len()));
    }
}

impl Field {
    fn new(start: usize, name_end: usize, end: usize) -> Self {
        // A head is far below 4 GiB: its size has a limit of 32 bits.
        let [start, name_end, end] = [start, name_end, end].map(|at| at as u32);
        Self {
            start,
            name_end,
            end,
        }
    }

    fn ends(self) -> [usize; 3] {
        [self.start, self.name_end, self.end].map(|at| at as usize)
    }
}
