//! The wire format of messages.
//!
//! A frame is the length of the message (4 bytes, big-endian), the number of its descriptors (1
//! byte) and the message. The descriptors are sent with the first byte, so they have arrived when
//! the frame begins to arrive. Messages take their descriptors in the order of arrival.
//!
//! The peer is not trusted. What it can make this side keep is bounded: a message by its limit
//! (only received bytes take memory), descriptors by the number that the current message announces
//! plus those of one receive.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::Message;
use crate::sys::unix_socket::{self, MOST_DESCRIPTORS};

const HEADER: usize = 5;

pub(super) type Header = [u8; HEADER];

/// The most bytes of one receive, and the capacity that an empty buffer keeps.
const CHUNK: usize = 64 * 1024;

/// The longest message that a frame can hold.
pub(super) const LONGEST: usize = u32::MAX as usize;

/// The unsent rest of the last frame. It is sent before the next frame begins.
#[derive(Default)]
pub(super) struct Outgoing {
    rest: Vec<u8>,
    /// The number of bytes sent.
    sent: usize,
}

impl Outgoing {
    /// Sends the rest of the last frame.
    pub(super) fn flush(&mut self, socket: impl AsFd + Copy) -> io::Result<()> {
        while self.sent < self.rest.len() {
            self.sent += unix_socket::send_with(socket, &self.rest[self.sent..], &[])?;
        }
        // Free the memory of a long message.
        *self = Self::default();
        Ok(())
    }

    /// Begins a frame; the previous one must be complete. Bytes that the socket does not accept are
    /// kept.
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

/// Returns the header of a frame.
///
/// # Errors
///
/// `InvalidInput` for more bytes than `limit`, and for more descriptors than the kernel sends at
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
            "a message with {} descriptors was not sent: the limit is {MOST_DESCRIPTORS}",
            descriptors.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    let [a, b, c, d] = length.to_be_bytes();
    Ok([a, b, c, d, count])
}

/// Bytes and descriptors that have arrived and were not received yet.
#[derive(Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    /// The number of bytes received.
    start: usize,
    descriptors: VecDeque<OwnedFd>,
    /// Why no further message can be received.
    broken: Option<(io::ErrorKind, String)>,
}

impl Incoming {
    /// Reads from the socket; 0 is EOF.
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
            // The peer has closed its end with unread data: that is EOF as well.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(0),
            // Descriptors and the bytes they came with are lost, so the frames that follow cannot
            // be parsed.
            Err(error) if error.kind() == io::ErrorKind::Other => {
                Err(self.break_off(io::ErrorKind::Other, error.to_string()))
            }
            received => received,
        }
    }

    /// Takes the next message if it has arrived whole.
    ///
    /// # Errors
    ///
    /// For a message longer than `limit`, which can be received with a higher limit. If the peer
    /// violates the protocol, from now on.
    #[inline]
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
        // The sum of header and length may exceed 32 bits, so it is not formed.
        if self.left().len() - HEADER < length {
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
        // Checked now, so that unannounced descriptors are closed before the next receive, which
        // returns the error.
        let _ = self.check_descriptors();
        Ok(Some(message))
    }

    /// Returns why no next message exists although the peer has disconnected: `Ok` at a frame
    /// boundary.
    pub(super) fn end(&self) -> io::Result<()> {
        let arrived = self.left().len();
        if arrived == 0 {
            return Ok(());
        }
        let text = match self.header() {
            Some((length, _)) => format!(
                "the peer disconnected after {} of the {length} bytes of a message",
                arrived - HEADER
            ),
            None => "the peer disconnected inside the header of a message".to_owned(),
        };
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, text))
    }

    fn left(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Returns the length and the number of descriptors of the next message.
    fn header(&self) -> Option<(usize, usize)> {
        let [a, b, c, d, count] = *self.left().first_chunk::<HEADER>()?;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        Some((length, usize::from(count)))
    }

    /// Takes the bytes of the next message, which has arrived whole.
    #[inline]
    fn take_bytes(&mut self, length: usize) -> Vec<u8> {
        let message = self.start + HEADER..self.start + HEADER + length;
        if length < CHUNK {
            let bytes = self.bytes[message.clone()].to_vec();
            self.start = message.end;
            return bytes;
        }
        // Free the memory of a long message with it.
        let rest = self.bytes.split_off(message.end);
        let mut bytes = std::mem::replace(&mut self.bytes, rest);
        self.start = 0;
        bytes.drain(..message.start);
        bytes.shrink_to_fit();
        bytes
    }

    /// Rejects descriptors that no message announces: those that have arrived belong to the message
    /// that is arriving. It does nothing while a whole message is buffered.
    fn check_descriptors(&mut self) -> io::Result<()> {
        let announced = match self.header() {
            Some((length, _)) if self.left().len() - HEADER >= length => return Ok(()),
            Some((_, count)) => count,
            // The header is incomplete: the number is still unknown.
            None if !self.left().is_empty() => MOST_DESCRIPTORS,
            None => 0,
        };
        let count = self.descriptors.len();
        if count <= announced {
            return Ok(());
        }
        let text = format!(
            "broken channel: the peer has sent {} descriptors that no message announces",
            count - announced
        );
        Err(self.break_off(io::ErrorKind::InvalidData, text))
    }

    /// Breaks the channel: closes the descriptors and frees the memory.
    fn break_off(&mut self, kind: io::ErrorKind, text: String) -> io::Error {
        *self = Self {
            broken: Some((kind, text.clone())),
            ..Self::default()
        };
        io::Error::new(kind, text)
    }
}

/// Returns the error for a message that exceeds the limit.
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
    use std::io::{self, Write};
    use std::os::unix::net::UnixStream;

    /// Sends a message of this length and receives it, in alternation.
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

    /// The work for a message grows with its length and no faster: bytes that have arrived move
    /// only when the buffer grows, and it doubles.
    #[test]
    fn a_long_message_moves_as_often_as_its_buffer_doubles() {
        const LENGTH: usize = 16 << 20;
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let writer = std::thread::spawn(move || {
            let message = vec![7; LENGTH];
            let header = header(&message, &[], LENGTH).unwrap();
            (&ours).write_all(&header).unwrap();
            (&ours).write_all(&message).unwrap();
        });
        let mut incoming = Incoming::default();
        let (mut fills, mut growths, mut capacity) = (0, 0, 0);
        while incoming.next(LENGTH).unwrap().is_none() {
            match incoming.fill(&theirs) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::yield_now();
                }
                received => assert!(received.unwrap() > 0),
            }
            fills += 1;
            assert_eq!(incoming.start, 0, "nothing is moved to the front");
            if incoming.bytes.capacity() != capacity {
                capacity = incoming.bytes.capacity();
                growths += 1;
            }
        }
        writer.join().unwrap();
        assert!(fills >= LENGTH / CHUNK, "{fills} receives");
        assert!(growths <= 10, "{growths} growths of {fills} receives");
    }

    #[test]
    fn the_longest_length_that_a_header_can_have_is_waited_for() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        for bytes in [&b"\0\0\0\x01\0x"[..], &[255, 255, 255, 255, 0, 1]] {
            (&ours).write_all(bytes).unwrap();
        }
        let mut incoming = Incoming::default();
        incoming.fill(&theirs).unwrap();
        let first = incoming.next(usize::MAX).unwrap();
        assert_eq!(first.unwrap().bytes, b"x");
        assert!(incoming.next(usize::MAX).unwrap().is_none());
        assert_eq!(
            incoming.next(7).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        let end = incoming.end().unwrap_err().to_string();
        assert!(end.contains("1 of the 4294967295 bytes"), "{end}");
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
