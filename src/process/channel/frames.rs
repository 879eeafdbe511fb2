//! Messages as they travel.
//!
//! A frame is the length of the message (4 bytes, the highest first), the number of its descriptors
//! (1 byte) and the message. The descriptors travel with the first byte, so they are there when the
//! frame begins to arrive; messages take theirs in the order of arrival.
//!
//! The other side may be anything. What it can make this side keep is bounded: a message by its
//! limit (and only what has arrived of it takes memory), descriptors by the number that the message
//! in hand announces and those of one receive.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::Message;
use crate::sys::unix_socket::{self, MOST_DESCRIPTORS};

const HEADER: usize = 5;

pub(super) type Header = [u8; HEADER];

/// How much one receive takes at most, and how much memory stays when there is nothing to keep.
const CHUNK: usize = 64 * 1024;

/// The longest message that a frame can hold.
pub(super) const LONGEST: usize = u32::MAX as usize;

/// What of the last frame is still to be sent. No other one begins before.
#[derive(Default)]
pub(super) struct Outgoing {
    rest: Vec<u8>,
    /// How much of it was sent.
    sent: usize,
}

impl Outgoing {
    /// Sends the rest of the last frame.
    pub(super) fn flush(&mut self, socket: impl AsFd + Copy) -> io::Result<()> {
        while self.sent < self.rest.len() {
            self.sent += unix_socket::send_with(socket, &self.rest[self.sent..], &[])?;
        }
        // Gives the memory back.
        *self = Self::default();
        Ok(())
    }

    /// Begins a frame, the last one being sent. What the socket has no room for is kept.
    pub(super) fn begin(
        &mut self,
        socket: impl AsFd,
        header: Header,
        message: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let frame = [IoSlice::new(&header), IoSlice::new(message)];
        let sent = unix_socket::send_slices_with(socket, &frame, descriptors)?;
        self.rest
            .extend_from_slice(header.get(sent..).unwrap_or(&[]));
        let sent = sent.saturating_sub(HEADER);
        self.rest.extend_from_slice(&message[sent..]);
        Ok(())
    }
}

/// The head of a frame.
///
/// # Errors
///
/// `InvalidInput` for more bytes than `limit`, and for more descriptors than the system sends at
/// once.
pub(super) fn header(
    message: &[u8],
    descriptors: &[BorrowedFd<'_>],
    limit: usize,
) -> io::Result<Header> {
    if message.len() > limit {
        let kind = io::ErrorKind::InvalidInput;
        return Err(too_long(kind, "sent", message.len(), limit));
    }
    let length = u32::try_from(message.len());
    let count = u8::try_from(descriptors.len()).ok();
    let count = count.filter(|_| descriptors.len() <= MOST_DESCRIPTORS);
    let (Ok(length), Some(count)) = (length, count) else {
        let text = format!(
            "a message with {} descriptors was not sent: it can have {MOST_DESCRIPTORS} at most",
            descriptors.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    let [a, b, c, d] = length.to_be_bytes();
    Ok([a, b, c, d, count])
}

/// What has arrived and was not received yet.
#[derive(Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    /// How many of the bytes were received.
    start: usize,
    descriptors: VecDeque<OwnedFd>,
    /// Why nothing more can be received.
    broken: Option<(io::ErrorKind, String)>,
}

impl Incoming {
    /// Takes in what is there; 0 is the end.
    pub(super) fn fill(&mut self, socket: impl AsFd) -> io::Result<usize> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let length = self.bytes.len();
        self.bytes.resize(length + CHUNK, 0);
        let mut descriptors = Vec::new();
        let received =
            unix_socket::receive_with(socket, &mut self.bytes[length..], &mut descriptors);
        let count = received.as_ref().map_or(0, |count| *count);
        self.bytes.truncate(length + count);
        self.descriptors.extend(descriptors);
        match received {
            // The other side went without having received everything: that is its end, too.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(0),
            // Descriptors, and the bytes they came with, are lost: nothing that follows could be
            // told apart.
            Err(error) if error.kind() == io::ErrorKind::Other => {
                Err(self.break_off(io::ErrorKind::Other, error.to_string()))
            }
            received => received,
        }
    }

    /// The next message that is there as a whole.
    ///
    /// # Errors
    ///
    /// For a message that is longer than `limit`, which can be received with a higher one. When the
    /// other side breaks the rules, now and for ever.
    pub(super) fn next(&mut self, limit: usize) -> io::Result<Option<Message>> {
        if let Some((kind, text)) = &self.broken {
            return Err(io::Error::new(*kind, text.clone()));
        }
        let Some((length, count)) = self.header() else {
            self.check_descriptors()?;
            return Ok(None);
        };
        if length > limit {
            return Err(too_long(
                io::ErrorKind::InvalidData,
                "received",
                length,
                limit,
            ));
        }
        if self.left().len() < HEADER + length {
            self.check_descriptors()?;
            return Ok(None);
        }
        if self.descriptors.len() < count {
            let text = format!(
                "broken channel: a message came with {} descriptors and announces {count}",
                self.descriptors.len()
            );
            return Err(self.break_off(io::ErrorKind::InvalidData, text));
        }
        let message = Message {
            bytes: self.take_bytes(length),
            descriptors: self.descriptors.drain(..count).collect(),
        };
        // Found now, so that they are not kept until the next receive, which reports it.
        let _ = self.check_descriptors();
        Ok(Some(message))
    }

    /// Why there is no next message: the other side has disconnected.
    pub(super) fn end(&self) -> io::Result<()> {
        let arrived = self.left().len();
        if arrived == 0 {
            return Ok(());
        }
        let text = match self.header() {
            Some((length, _)) => format!(
                "the other side of the channel has gone after {} of the {length} bytes of a message",
                arrived - HEADER
            ),
            None => {
                "the other side of the channel has gone inside the head of a message".to_owned()
            }
        };
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, text))
    }

    fn left(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// The length and the number of descriptors of the next message.
    fn header(&self) -> Option<(usize, usize)> {
        let [a, b, c, d, count] = *self.left().first_chunk::<HEADER>()?;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        Some((length, usize::from(count)))
    }

    /// Takes the bytes of the next message, which is there as a whole.
    fn take_bytes(&mut self, length: usize) -> Vec<u8> {
        let message = self.start + HEADER..self.start + HEADER + length;
        if length < CHUNK {
            let bytes = self.bytes[message.clone()].to_vec();
            self.start = message.end;
            return bytes;
        }
        // The memory of a long message goes with it.
        let rest = self.bytes.split_off(message.end);
        let mut bytes = std::mem::replace(&mut self.bytes, rest);
        self.start = 0;
        bytes.drain(..message.start);
        bytes.shrink_to_fit();
        bytes
    }

    /// Refuses descriptors that no message announces: those that are there belong to the message
    /// that is arriving. Without effect while a whole one is there.
    fn check_descriptors(&mut self) -> io::Result<()> {
        let announced = match self.header() {
            Some((length, _)) if self.left().len() >= HEADER + length => return Ok(()),
            Some((_, count)) => count,
            // The number follows.
            None if !self.left().is_empty() => MOST_DESCRIPTORS,
            None => 0,
        };
        let count = self.descriptors.len();
        if count <= announced {
            return Ok(());
        }
        let text = format!(
            "broken channel: the other side has sent {} descriptors that no message announces",
            count - announced
        );
        Err(self.break_off(io::ErrorKind::InvalidData, text))
    }

    /// Nothing more is received. Descriptors are closed, and memory is given back.
    fn break_off(&mut self, kind: io::ErrorKind, text: String) -> io::Error {
        *self = Self {
            broken: Some((kind, text.clone())),
            ..Self::default()
        };
        io::Error::new(kind, text)
    }
}

/// The error for a message that is longer than the channel takes.
fn too_long(kind: io::ErrorKind, what: &str, length: usize, limit: usize) -> io::Error {
    let text = format!(
        "a message of {length} bytes was not {what}: the limit of this channel is {limit} bytes; \
         raise it at both ends with `Channel::set_max_message_len`, or send parts"
    );
    io::Error::new(kind, text)
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Incoming, Message, Outgoing, header};
    use std::io;
    use std::os::unix::net::UnixStream;

    /// Sends a message of this length and receives it, by turns.
    fn pass(outgoing: &mut Outgoing, incoming: &mut Incoming, length: usize) -> Message {
        let (ours, theirs) = UnixStream::pair().unwrap();
        for stream in [&ours, &theirs] {
            stream.set_nonblocking(true).unwrap();
        }
        let would_block = |result: io::Result<()>| {
            if let Err(error) = result {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            }
        };
        let message: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        let header = header(&message, &[], length).unwrap();
        outgoing.begin(&ours, header, &message, &[]).unwrap();
        loop {
            would_block(outgoing.flush(&ours));
            would_block(incoming.fill(&theirs).map(|_| ()));
            if let Some(received) = incoming.next(usize::MAX).unwrap() {
                assert_eq!(received.bytes, message);
                return received;
            }
        }
    }

    #[test]
    fn the_memory_of_a_long_message_goes_with_it_at_both_ends() {
        let (mut outgoing, mut incoming) = (Outgoing::default(), Incoming::default());
        for length in [0, 1, CHUNK - 5, CHUNK, 3 * CHUNK + 1, 16 << 20, 7] {
            let message = pass(&mut outgoing, &mut incoming, length);
            assert!(message.bytes.capacity() <= length + CHUNK, "{length}");
            assert_eq!(outgoing.rest.capacity(), 0, "{length}");
            assert!(incoming.bytes.capacity() <= 2 * CHUNK, "{length}");
        }
    }

    #[test]
    fn many_short_messages_of_one_receive_come_out_in_their_order() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let mut outgoing = Outgoing::default();
        for number in 0..100_u32 {
            let message = number.to_be_bytes();
            let header = header(&message, &[], 4).unwrap();
            outgoing.begin(&ours, header, &message, &[]).unwrap();
            outgoing.flush(&ours).unwrap();
        }
        drop(ours);
        let mut incoming = Incoming::default();
        let mut received = Vec::new();
        while incoming.fill(&theirs).unwrap() > 0 {
            while let Some(message) = incoming.next(4).unwrap() {
                received.push(u32::from_be_bytes(message.bytes.try_into().unwrap()));
            }
        }
        assert_eq!(received, Vec::from_iter(0..100));
        incoming.end().unwrap();
    }
}
