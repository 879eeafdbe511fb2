//! The backend of this platform, by the contract.

#[cfg(feature = "test-util")]
use super::RawEvent;
use super::{
    Event, Events, HAS_TIMER, Interest, MAX_KEY, NOTIFY_KEY, Notify as _, Poller, REPORTS_END,
    Ready, Registration,
};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

fn wait(poller: &Poller, events: &mut Events, timeout: u64) -> Vec<Event> {
    poller.wait(events, Some(timeout)).unwrap();
    let next = || events.next().inspect(|_| events.advance());
    let all = std::iter::from_fn(next);
    all.filter(|event| event.key <= MAX_KEY).collect()
}

/// `epoll.rs` relies on this behaviour of `polling`: the key arrives unchanged, and no other
/// event does.
#[test]
fn events_carry_the_key_and_only_real_sources_report() {
    let poller = Rc::new(Poller::new().unwrap());
    let mut events = Events::new();
    assert_eq!(wait(&poller, &mut events, 0), []);

    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let key = 0x1234_5678;
    let registration =
        Registration::new(poller.clone(), ours, key, Interest::Both).map_err(|(_, e)| e);
    let registration = registration.unwrap();
    registration.rearm(key, true, true).unwrap();
    let first = wait(&poller, &mut events, 10_000_000_000);
    assert_eq!(
        first,
        [Event {
            key,
            ready: Ready::WRITE,
        }],
        "a fresh socket is writable"
    );

    theirs.write_all(b"x").unwrap();
    registration.rearm(key, true, false).unwrap();
    let second = wait(&poller, &mut events, 10_000_000_000);
    assert_eq!(second.len(), 1);
    assert!(second[0].ready.intersects(Ready::READ) && second[0].key == key);

    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    registration.rearm(key, true, false).unwrap();
    let third = wait(&poller, &mut events, 10_000_000_000);
    assert!(third[0].ready.intersects(Ready::READ));
    for end in [Ready::READ_FOR_GOOD, Ready::HANG_UP] {
        assert_eq!(third[0].ready.intersects(end), REPORTS_END);
    }

    drop(registration);
    assert_eq!(wait(&poller, &mut events, 0), []);
}

#[cfg(feature = "test-util")]
#[test]
fn an_event_in_memory_has_the_readiness_it_was_made_of() {
    let ended = Ready::READ_FOR_GOOD.with(Ready::HANG_UP);
    let failed = Ready::READ_FOR_GOOD.with(Ready::WRITE_FOR_GOOD);
    let both = Ready::READ.with(Ready::WRITE);
    let all = [
        Ready::READ,
        Ready::WRITE,
        Ready::READ.with(ended),
        both.with(failed),
        both.with(failed).with(Ready::HANG_UP),
    ];
    for ready in all {
        let mut events = Events::new();
        let event = RawEvent::of(Event { key: 1, ready });
        events.put_all(std::iter::once(event));
        let seen = events.next().map(|event| event.ready);
        let known = match REPORTS_END {
            true => ready,
            false => ready.without(failed).without(ended),
        };
        assert_eq!(seen, Some(known));
    }
}

#[test]
fn every_notification_ends_one_wait() {
    let poller = Poller::new().unwrap();
    let notifier = poller.notifier();
    let mut events = Events::new();
    for _ in 0..3 {
        notifier.notify();
        // This would wait for ever if the notification were lost.
        poller.wait(&mut events, None).unwrap();
        let key = events.next().map_or(NOTIFY_KEY, |event| event.key);
        assert_eq!(key, NOTIFY_KEY, "the notifier is not a source");
        assert_eq!(wait(&poller, &mut events, 0), []);
    }
}

#[test]
fn the_timer_ends_a_wait_each_time_it_is_set() {
    let poller = Poller::new().unwrap();
    let mut events = Events::new();
    if !HAS_TIMER {
        assert!(poller.set_timer(Some(1)).is_err());
        return;
    }
    for _ in 0..3 {
        poller.set_timer(Some(1)).unwrap();
        // This would wait for ever if the timer did not fire.
        poller.wait(&mut events, None).unwrap();
        assert!(events.next().is_some_and(|event| event.key > MAX_KEY));
        assert_eq!(wait(&poller, &mut events, 0), []);
        assert_eq!(events.len(), 0, "the timer is quiet until it is set again");
    }
    poller.set_timer(Some(20_000_000)).unwrap();
    poller.set_timer(None).unwrap();
    poller.wait(&mut events, Some(100_000_000)).unwrap();
    assert_eq!(events.len(), 0, "it was stopped");
}

#[test]
fn a_writer_is_told_that_its_reader_was_gone_before_it_was_registered() {
    let poller = Rc::new(Poller::new().unwrap());
    let (reader, writer) = crate::sys::descriptor::pipe().unwrap();
    drop(reader);
    let _registration = Registration::new(poller.clone(), writer, 7, Interest::Both)
        .map_err(|(_, error)| error)
        .unwrap();
    let events = wait(&poller, &mut Events::new(), 10_000_000_000);
    assert!(events[0].key == 7 && events[0].ready.intersects(Ready::WRITE));
}

#[test]
fn a_source_that_cannot_be_polled_comes_back() {
    let poller = Rc::new(Poller::new().unwrap());
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let twin = ours.try_clone().unwrap();
    let _first = Registration::new(poller.clone(), &ours, 1, Interest::Read)
        .map_err(|(_, e)| e)
        .unwrap();
    let (_source, error) = Registration::new(poller.clone(), &ours, 2, Interest::Read)
        .err()
        .unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(
        Registration::new(poller, twin, 3, Interest::Read).is_ok(),
        "another descriptor is another source"
    );
}
