//! Several datagrams in one buffer: the kernel cuts what is sent and joins what is received, or
//! each of them is sent alone. The datagrams are the same.

use crate::util::tcp::run;
use std::io::ErrorKind;

use phaseloop::net::{Batch, Segments, UdpSocket};

/// Two sockets that are connected to each other.
async fn udp_pair() -> (UdpSocket, UdpSocket) {
    let one = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    one.connect(other.local_addr().unwrap()).await.unwrap();
    other.connect(one.local_addr().unwrap()).await.unwrap();
    (one, other)
}

/// Bytes that are different in each of the segments.
fn content(length: usize, size: usize) -> Vec<u8> {
    (0..length).map(|index| (index / size) as u8).collect()
}

fn lengths(segments: Segments<'_>) -> Vec<usize> {
    segments.map(<[u8]>::len).collect()
}

/// Receives until all bytes have come, and returns the datagrams.
async fn receive(socket: &UdpSocket, bytes: usize) -> Vec<Vec<u8>> {
    let (mut all, mut count) = (Vec::new(), 0);
    let mut buffer = vec![0; 65_535];
    while count < bytes {
        let length = socket.recv(&mut buffer).await.unwrap();
        all.push(buffer[..length].to_vec());
        count += length;
    }
    all
}

#[test]
fn segments_arrive_as_datagrams() {
    run(async {
        let (one, other) = udp_pair().await;
        let mut batch = Batch::new(4, 5000);
        let bytes = content(2500, 1000);
        batch.push_segments_to_peer(&bytes, 1000).unwrap();
        batch.push_to_peer(b"alone").unwrap();
        let to = other.local_addr().unwrap();
        batch.push_segments(&bytes[..2000], 1000, to).unwrap();
        batch.push_segments(&bytes[..9], 1000, to).unwrap();
        assert_eq!(batch.len(), 4);
        one.send_batch(&mut batch).await.unwrap();
        assert!(batch.is_empty());
        let all = receive(&other, 2500 + 5 + 2000 + 9).await;
        let lengths: Vec<_> = all.iter().map(Vec::len).collect();
        assert_eq!(lengths, [1000, 1000, 500, 5, 1000, 1000, 9]);
        assert_eq!(all[..3].concat(), bytes);
        assert_eq!(all[3], b"alone");
        assert_eq!(all[4..6].concat(), bytes[..2000]);
    });
}

/// The kernel cuts at most 64 or 128 of them, by its version.
#[test]
fn more_segments_than_the_kernel_cuts_are_sent_one_by_one() {
    run(async {
        let (one, other) = udp_pair().await;
        let mut batch = Batch::new(1, 20_000);
        let bytes = content(20_000, 100);
        batch.push_segments_to_peer(&bytes, 100).unwrap();
        one.send_batch(&mut batch).await.unwrap();
        let all = receive(&other, bytes.len()).await;
        assert_eq!(all.len(), 200);
        assert_eq!(all.concat(), bytes);
    });
}

#[test]
fn each_buffer_has_a_segment_size_of_its_own() {
    run(async {
        let (one, other) = udp_pair().await;
        let mut batch = Batch::new(8, 3000);
        let mut expected = Vec::new();
        for (length, size) in [(3000, 1000), (7, 2), (90, 1), (500, 500), (2400, 1200)] {
            batch
                .push_segments_to_peer(&content(length, size), size)
                .unwrap();
            expected.extend(content(length, size).chunks(size).map(<[u8]>::to_vec));
        }
        one.send_batch(&mut batch).await.unwrap();
        let bytes = expected.iter().map(Vec::len).sum();
        assert_eq!(receive(&other, bytes).await, expected);
    });
}

/// The kernel refuses more than a datagram can carry, though each segment would fit.
#[test]
fn more_bytes_than_a_datagram_has_are_sent_one_by_one() {
    run(async {
        let (one, other) = udp_pair().await;
        other.set_recv_buffer_size(1 << 20).unwrap();
        let mut batch = Batch::new(3, 140_000);
        let bytes = content(72_000, 9000);
        batch.push_segments_to_peer(&bytes, 9000).unwrap();
        // Segments that no datagram can carry. The first is an error, and those behind it go with it.
        batch
            .push_segments_to_peer(&vec![9; 140_000], 65_520)
            .unwrap();
        batch.push_to_peer(b"after").unwrap();
        assert!(one.send_batch(&mut batch).await.is_err());
        let failed = batch.failed().unwrap();
        assert_eq!(
            (failed.bytes().len(), failed.segment_size()),
            (140_000, 65_520)
        );
        one.send_batch(&mut batch).await.unwrap();
        assert!(batch.is_empty() && batch.failed().is_none());
        let all = receive(&other, bytes.len() + 5).await;
        assert_eq!(
            (all.len(), all.concat()),
            (9, [&bytes[..], b"after"].concat())
        );
        // The batch is as good as a new one.
        batch.push_segments_to_peer(&bytes[..18_000], 9000).unwrap();
        one.send_batch(&mut batch).await.unwrap();
        assert_eq!(receive(&other, 18_000).await.len(), 2);
    });
}

/// What the kernel has joined before stays joined, and comes without its lengths.
#[test]
fn datagrams_that_wait_while_joining_is_switched_off_stay_joined() {
    run(async {
        let (one, other) = udp_pair().await;
        if other.set_gro(true).is_err() {
            return;
        }
        let bytes = content(3000, 1000);
        let mut batch = Batch::new(1, 65_535);
        batch.push_segments_to_peer(&bytes, 1000).unwrap();
        one.send_batch(&mut batch).await.unwrap();
        other.readable().await.unwrap();
        other.set_gro(false).unwrap();
        other.recv_batch(&mut batch).await.unwrap();
        let datagram = batch.iter().next().unwrap();
        assert_eq!(lengths(datagram.segments()), [3000]);
        batch.clear();
        batch.push_segments_to_peer(&bytes, 1000).unwrap();
        one.send_batch(&mut batch).await.unwrap();
        assert_eq!(receive(&other, 3000).await.len(), 3);
    });
}

#[test]
fn what_was_joined_is_reported_by_segments_and_goes_back_as_it_came() {
    run(async {
        let (one, other) = udp_pair().await;
        match other.set_gro(true) {
            Err(error) => return assert_eq!(error.kind(), ErrorKind::Unsupported),
            Ok(()) => assert!(other.gro().unwrap()),
        }
        let bytes = content(9 * 1200 + 7, 1200);
        let mut batch = Batch::new(8, 65_535);
        batch.push_segments_to_peer(&bytes, 1200).unwrap();
        batch.push_to_peer(b"").unwrap();
        one.send_batch(&mut batch).await.unwrap();
        let (mut all, mut most) = (Vec::new(), 0);
        while all.len() < 11 {
            other.recv_batch(&mut batch).await.unwrap();
            for datagram in &batch {
                assert_eq!(datagram.address(), one.local_addr().ok());
                all.extend(datagram.segments().map(<[u8]>::to_vec));
                most = most.max(datagram.segments().count());
            }
            other.send_batch(&mut batch).await.unwrap();
        }
        assert_eq!(all.concat(), bytes);
        assert!(all[..9].iter().all(|one| one.len() == 1200));
        assert_eq!((all[9].len(), all[10].len()), (7, 0));
        // The loopback interface never cuts what it delivers to such a socket.
        assert_eq!(most, 10);
        let back = receive(&one, bytes.len()).await;
        assert_eq!(back.concat(), bytes);
        assert_eq!(back.len(), 10);
        other.set_gro(false).unwrap();
        assert!(!other.gro().unwrap());
    });
}

#[test]
fn sizes_that_no_segment_has_are_refused() {
    let mut batch = Batch::new(2, 100);
    let to = "127.0.0.1:9".parse().unwrap();
    for (length, size) in [(10, 0), (10, 65_536), (101, 50)] {
        let error = batch.push_segments(&vec![0; length], size, to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(batch.is_empty());
    }
    batch.push_segments(&[0; 100], 65_535, to).unwrap();
    batch.push_segments(&[], 7, to).unwrap();
    let error = batch.push_segments(&[0], 1, to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    let mut datagrams = batch.iter();
    let (one, none) = (datagrams.next().unwrap(), datagrams.next().unwrap());
    assert_eq!(
        (one.segment_size(), lengths(one.segments())),
        (100, vec![100])
    );
    assert_eq!(
        (none.segment_size(), lengths(none.segments())),
        (0, vec![0])
    );
}

#[test]
fn changed_segments_keep_their_size_and_new_content_is_one_datagram() {
    let mut batch = Batch::new(2, 100);
    batch.push_segments_to_peer(&[1; 50], 20).unwrap();
    let mut datagram = batch.iter_mut().next().unwrap();
    datagram.set_len(90);
    let datagram = batch.iter().next().unwrap();
    assert_eq!(lengths(datagram.segments()), [20, 20, 20, 20, 10]);
    let mut datagram = batch.iter_mut().next().unwrap();
    datagram.set_bytes(&[2; 70]).unwrap();
    assert_eq!(lengths(batch.iter().next().unwrap().segments()), [70]);
    // The room of a datagram that is gone is taken by a plain one.
    batch.clear();
    batch.push_segments_to_peer(&[1; 50], 20).unwrap();
    batch.clear();
    batch.push_to_peer(&[1; 50]).unwrap();
    assert_eq!(lengths(batch.iter().next().unwrap().segments()), [50]);
}

#[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
mod refused {
    use super::{Batch, content, receive, udp_pair};
    use crate::util::faults::with_faults;
    use crate::util::tcp::run;
    use std::io::ErrorKind;

    /// Sends segments between plain datagrams, and expects all of them in order.
    fn send_all() {
        run(async {
            let (one, other) = udp_pair().await;
            let mut batch = Batch::new(8, 4000);
            let bytes = content(3500, 1000);
            for _ in 0..2 {
                batch.push_to_peer(b"before").unwrap();
                batch.push_segments_to_peer(&bytes, 1000).unwrap();
                batch.push_to_peer(b"after").unwrap();
                batch.push_segments_to_peer(&bytes, 1000).unwrap();
                one.send_batch(&mut batch).await.unwrap();
                let all = receive(&other, 2 * 3500 + 11).await;
                assert_eq!(all.len(), 10);
                let rest = [b"before", &bytes[..], b"after", &bytes[..]].concat();
                assert_eq!(all.concat(), rest);
            }
        });
    }

    // `sendmmsg` first sends the datagram before the segments, and then meets the segments.
    #[test]
    fn a_device_without_segmentation_gets_them_one_by_one() {
        let test = "refused::a_device_without_segmentation_gets_them_one_by_one";
        with_faults(test, &["sendmmsg:error=EIO:when=1"], || {
            // The first call fails for a datagram without segments: that is an error.
            run(async {
                let (one, _other) = udp_pair().await;
                let mut batch = Batch::new(8, 4000);
                batch.push_to_peer(b"plain").unwrap();
                assert!(one.send_batch(&mut batch).await.is_err());
            });
            send_all();
        });
    }

    fn segments_alone() {
        run(async {
            let (one, other) = udp_pair().await;
            let mut batch = Batch::new(8, 4000);
            let bytes = content(3500, 1000);
            for _ in 0..3 {
                batch.push_segments_to_peer(&bytes, 1000).unwrap();
                // An attempt that would block leaves the datagrams that it has not sent.
                let mut attempts = 0;
                while let Err(error) = one.try_send_batch(&mut batch) {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    attempts += 1;
                    assert!(attempts < 10);
                }
                assert!(batch.is_empty());
                let all = receive(&other, 3500).await;
                assert_eq!(all.iter().map(Vec::len).max(), Some(1000));
                assert_eq!(all.concat(), bytes);
            }
        });
    }

    #[test]
    fn a_refusal_is_no_error() {
        let test = "refused::a_refusal_is_no_error";
        with_faults(test, &["sendmmsg:error=EIO"], segments_alone);
    }

    #[test]
    fn segments_that_do_not_fit_are_no_error() {
        let test = "refused::segments_that_do_not_fit_are_no_error";
        with_faults(test, &["sendmmsg:error=EINVAL"], segments_alone);
    }

    /// Each datagram is sent once.
    #[test]
    fn a_full_buffer_amid_the_segments_loses_and_repeats_none() {
        let test = "refused::a_full_buffer_amid_the_segments_loses_and_repeats_none";
        let faults = ["sendmmsg:error=EIO:when=1", "sendmsg:error=EAGAIN:when=3+2"];
        with_faults(test, &faults, segments_alone);
    }
}
