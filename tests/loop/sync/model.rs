//! Random scripts against models: each future is dropped at each point of its wait, and no permit,
//! message or notification is lost.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use phaseloop::sync::mpsc::TryRecvError;
use phaseloop::sync::{AcquireOwned, Notify, OwnedPermit, Semaphore, mpsc, oneshot, watch};
use phaseloop::task::{yield_microtask, yield_now};
use phaseloop::{block_on, spawn};
use tokio_test::task::{Spawn, spawn as mock};

const SCRIPTS: u64 = 10_000;
const STEPS: u64 = 30;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// What a task of the script does in its next poll.
enum Order {
    Ask(usize, usize),
    Poll(usize),
    Drop(usize),
    Release(usize),
}

/// The futures and permits of one task, by the number of the request.
#[derive(Default)]
struct Desk {
    orders: VecDeque<Order>,
    waker: Option<Waker>,
    asked: Vec<(usize, Pin<Box<AcquireOwned>>)>,
    held: Vec<(usize, OwnedPermit)>,
    is_done: bool,
}

impl Desk {
    fn position<T>(list: &[(usize, T)], number: usize) -> usize {
        list.iter().position(|(one, _)| *one == number).unwrap()
    }
}

/// A request as the model sees it.
#[derive(Clone, Debug)]
struct Request {
    number: usize,
    task: usize,
    wants: usize,
    rank: usize,
}

/// A plain list in place of the linked one.
struct Model {
    free: usize,
    waiting: Vec<Request>,
    granted: Vec<Request>,
    /// Not polled yet.
    fresh: Vec<Request>,
    held: Vec<Request>,
    next_rank: usize,
}

impl Model {
    fn grant(&mut self) {
        while let Some(first) = self
            .waiting
            .first()
            .filter(|first| first.wants <= self.free)
        {
            self.free -= first.wants;
            let first = self.waiting.remove(0);
            self.granted.push(first);
        }
    }

    fn take(list: &mut Vec<Request>, number: usize) -> Option<Request> {
        let place = list.iter().position(|one| one.number == number)?;
        Some(list.remove(place))
    }

    fn poll(&mut self, number: usize) -> bool {
        if let Some(granted) = Self::take(&mut self.granted, number) {
            self.held.push(granted);
            return true;
        }
        let fresh = Self::take(&mut self.fresh, number);
        let is_fresh = fresh.is_some();
        let mut request = fresh
            .or_else(|| {
                self.waiting
                    .iter()
                    .find(|one| one.number == number)
                    .cloned()
            })
            .unwrap();
        let mut first = None;
        let is_overtaken = is_fresh && self.waiting.is_empty() && request.wants <= self.free;
        if !is_overtaken {
            // The task takes back what its other futures were granted.
            let own: Vec<_> = self
                .granted
                .iter()
                .filter(|one| one.task == request.task)
                .cloned()
                .collect();
            for other in own {
                if self.free >= request.wants {
                    break;
                }
                Self::take(&mut self.granted, other.number);
                self.free += other.wants;
                let place = self
                    .waiting
                    .iter()
                    .take_while(|one| one.rank <= other.rank)
                    .count();
                first = first.or(Some(other.number));
                self.waiting.insert(place, other);
            }
        }
        if (is_overtaken || first.is_some()) && request.wants <= self.free {
            Self::take(&mut self.waiting, number);
            self.free -= request.wants;
            self.held.push(request);
            self.grant();
            return true;
        }
        if is_fresh {
            request.rank = self.next_rank;
            self.next_rank += 1;
            self.waiting.push(request);
        }
        if let Some(first) = first {
            let mut request = Self::take(&mut self.waiting, number).unwrap();
            let place = self
                .waiting
                .iter()
                .position(|one| one.number == first)
                .unwrap();
            request.rank = self.waiting[place].rank;
            self.waiting.insert(place, request);
            self.grant();
        }
        false
    }

    fn drop(&mut self, number: usize) {
        Self::take(&mut self.fresh, number);
        Self::take(&mut self.waiting, number);
        if let Some(granted) = Self::take(&mut self.granted, number) {
            self.free += granted.wants;
        }
        self.grant();
    }

    fn release(&mut self, number: usize) {
        let held = Self::take(&mut self.held, number).unwrap();
        self.free += held.wants;
        self.grant();
    }
}

/// C31, C32, C34: tasks with several futures each, against a plain list.
#[test]
fn random_scripts_of_permits_do_what_a_plain_list_does() {
    const TASKS: usize = 3;
    block_on(async {
        for script in 0..SCRIPTS {
            let mut random = Random(script);
            let total = 1 + random.below(3);
            let semaphore = Rc::new(Semaphore::new(total));
            let desks: Vec<_> = (0..TASKS)
                .map(|_| Rc::new(RefCell::new(Desk::default())))
                .collect();
            let tasks: Vec<_> = desks
                .iter()
                .map(|desk| spawn(at_desk(desk.clone(), semaphore.clone())))
                .collect();
            let mut model = Model {
                free: total,
                waiting: Vec::new(),
                granted: Vec::new(),
                fresh: Vec::new(),
                held: Vec::new(),
                next_rank: 0,
            };
            let mut numbers = 0;
            yield_microtask().await;
            for step in 0..STEPS {
                let pending: Vec<_> = [&model.fresh, &model.waiting, &model.granted]
                    .into_iter()
                    .flatten()
                    .cloned()
                    .collect();
                let (task, order) = match random.below(6) {
                    0 | 1 => {
                        let (task, wants) = (random.below(TASKS), 1 + random.below(total));
                        model.fresh.push(Request {
                            number: numbers,
                            task,
                            wants,
                            rank: 0,
                        });
                        numbers += 1;
                        (task, Order::Ask(numbers - 1, wants))
                    }
                    2 | 3 if !pending.is_empty() => {
                        let one = &pending[random.below(pending.len())];
                        model.poll(one.number);
                        (one.task, Order::Poll(one.number))
                    }
                    4 if !pending.is_empty() => {
                        let one = &pending[random.below(pending.len())];
                        model.drop(one.number);
                        (one.task, Order::Drop(one.number))
                    }
                    _ if !model.held.is_empty() => {
                        let one = model.held[random.below(model.held.len())].clone();
                        model.release(one.number);
                        (one.task, Order::Release(one.number))
                    }
                    _ => continue,
                };
                order_of(&desks[task], order).await;
                let at = || format!("script {script}, step {step}");
                assert_eq!(semaphore.available(), model.free, "{}", at());
                let mut held: Vec<_> = desks
                    .iter()
                    .flat_map(|desk| {
                        desk.borrow()
                            .held
                            .iter()
                            .map(|(number, _)| *number)
                            .collect::<Vec<_>>()
                    })
                    .collect();
                let mut expected: Vec<_> = model.held.iter().map(|one| one.number).collect();
                held.sort_unstable();
                expected.sort_unstable();
                assert_eq!(held, expected, "{}", at());
                let all = [&model.granted, &model.held]
                    .into_iter()
                    .flatten()
                    .map(|one| one.wants);
                assert_eq!(model.free + all.sum::<usize>(), total, "{}", at());
            }
            for desk in &desks {
                let mut desk = desk.borrow_mut();
                desk.is_done = true;
                let dropped = (
                    std::mem::take(&mut desk.asked),
                    std::mem::take(&mut desk.held),
                );
                let waker = desk.waker.take().unwrap();
                drop(desk);
                drop(dropped);
                waker.wake();
            }
            assert_eq!(semaphore.available(), total, "script {script}");
            for task in tasks {
                task.await.unwrap();
            }
        }
    });
}

async fn order_of(desk: &RefCell<Desk>, order: Order) {
    let waker = {
        let mut desk = desk.borrow_mut();
        desk.orders.push_back(order);
        desk.waker.clone().unwrap()
    };
    waker.wake();
    yield_microtask().await;
    while !desk.borrow().orders.is_empty() {
        // A task that has woken itself often waits for the next turn.
        yield_now().await;
    }
}

/// A task that polls, drops and releases as it is ordered to, and nothing else when it is woken.
async fn at_desk(desk: Rc<RefCell<Desk>>, semaphore: Rc<Semaphore>) {
    poll_fn(|cx| {
        let mut desk = desk.borrow_mut();
        desk.waker = Some(cx.waker().clone());
        while let Some(order) = desk.orders.pop_front() {
            match order {
                Order::Ask(number, wants) => {
                    let future = Box::pin(semaphore.clone().acquire_owned(wants));
                    desk.asked.push((number, future));
                }
                Order::Poll(number) => {
                    let place = Desk::position(&desk.asked, number);
                    let polled = desk.asked[place].1.as_mut().poll(cx);
                    if let Poll::Ready(permit) = polled {
                        drop(desk.asked.remove(place));
                        desk.held.push((number, permit.unwrap()));
                    }
                }
                Order::Drop(number) => {
                    let place = Desk::position(&desk.asked, number);
                    drop(desk.asked.remove(place));
                }
                Order::Release(number) => {
                    let place = Desk::position(&desk.held, number);
                    drop(desk.held.remove(place));
                }
            }
        }
        if desk.is_done {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
}

/// C33, C34: what is received is what was sent, in order, and each place comes back.
#[test]
fn random_scripts_of_a_channel_lose_no_message_and_no_place() {
    for script in 0..SCRIPTS {
        let mut random = Random(script);
        let capacity = 1 + random.below(3);
        let (sender, mut receiver) = mpsc::channel(capacity);
        let mut sends: Vec<Spawn<_>> = Vec::new();
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        let mut messages = Vec::new();
        for number in 0..STEPS {
            match random.below(5) {
                0 => {
                    sends.push(mock(sender.send(number)));
                    messages.push(number);
                }
                1 if !sends.is_empty() => {
                    let place = random.below(sends.len());
                    if let Poll::Ready(result) = sends[place].poll() {
                        result.unwrap();
                        drop(sends.remove(place));
                        sent.push(messages.remove(place));
                    }
                }
                2 if !sends.is_empty() => {
                    let place = random.below(sends.len());
                    drop(sends.remove(place));
                    messages.remove(place);
                }
                3 => {
                    if sender.try_send(number).is_ok() {
                        sent.push(number);
                    }
                }
                _ => match receiver.try_recv() {
                    Ok(message) => received.push(message),
                    Err(error) => {
                        assert_eq!(error, TryRecvError::Empty);
                        assert_eq!(sent.len(), received.len());
                    }
                },
            }
            let queued = sent.len() - received.len();
            assert_eq!(receiver.len(), queued, "script {script}");
            assert!(sender.capacity() + queued <= capacity, "script {script}");
        }
        sends.clear();
        while let Ok(message) = receiver.try_recv() {
            received.push(message);
        }
        assert_eq!(received, sent, "script {script}");
        assert_eq!(sender.capacity(), capacity, "script {script}");
    }
}

/// A notification by `notify_one` is stored, under way, or has ended one wait.
#[test]
fn random_scripts_of_notifications_do_what_a_plain_list_does() {
    for script in 0..SCRIPTS {
        let mut random = Random(script);
        let notify = Notify::new();
        // Each wait: polled, notified by one, notified by all.
        let mut waits: Vec<(Spawn<_>, bool, bool, bool)> = Vec::new();
        let mut permit = false;
        for step in 0..STEPS {
            let place = random.below(waits.len().max(1));
            match random.below(6) {
                0 | 1 => waits.push((mock(notify.notified()), false, false, false)),
                2 if !waits.is_empty() => {
                    let (future, polled, one, all) = &mut waits[place];
                    let is_ready = *one || *all || !*polled && std::mem::take(&mut permit);
                    *polled = true;
                    assert_eq!(future.poll().is_ready(), is_ready, "{script} {step}");
                    if is_ready {
                        // Those behind keep their order.
                        drop(waits.remove(place));
                    }
                }
                3 if !waits.is_empty() => {
                    let (_, _, one, _) = waits[place];
                    drop(waits.remove(place));
                    if one {
                        notify_first(&mut waits, &mut permit);
                    }
                }
                4 => {
                    notify.notify_one();
                    notify_first(&mut waits, &mut permit);
                }
                _ if random.below(4) == 0 => {
                    notify.notify_all();
                    for (_, _, _, all) in &mut waits {
                        *all = true;
                    }
                }
                _ => {}
            }
            // The order of the list is that of the first polls.
            waits.sort_by_key(|(_, polled, _, _)| !*polled);
        }
        drop(waits);
    }

    fn notify_first<T>(waits: &mut [(Spawn<T>, bool, bool, bool)], permit: &mut bool) {
        let waiting = waits
            .iter_mut()
            .find(|(_, polled, one, all)| *polled && !one && !all);
        match waiting {
            Some((_, _, one, _)) => *one = true,
            None => *permit = true,
        }
    }
}

/// Each end of the small channels is dropped, closed or used at each point.
#[test]
fn random_scripts_of_oneshots_and_watches_end_every_wait() {
    for script in 0..SCRIPTS {
        let mut random = Random(script);
        let (sender, receiver) = oneshot::channel();
        let (mut sender, mut receiver) = (Some(sender), Some(mock(receiver)));
        let mut expected = None;
        for number in 0..8 {
            match random.below(5) {
                0 => {
                    if let Some(sender) = sender.take() {
                        let is_sent = sender.send(number).is_ok();
                        assert_eq!(is_sent, receiver.is_some());
                        expected = is_sent.then_some(number);
                    }
                }
                1 => drop(sender.take()),
                2 => drop(receiver.take()),
                _ => {
                    if let Some(mut waits) = receiver.take() {
                        match waits.poll() {
                            Poll::Ready(value) => assert_eq!(value.ok(), expected),
                            Poll::Pending => {
                                assert!(sender.is_some());
                                receiver = Some(waits);
                            }
                        }
                    }
                }
            }
        }

        let (sender, mut receiver) = watch::channel(0);
        let (mut seen, mut last) = (0, 0);
        let mut sender = Some(sender);
        for value in 1..12 {
            match (random.below(5), &sender) {
                (0, Some(sender)) => {
                    sender.send(value).unwrap();
                    last = value;
                }
                (1, _) if random.below(4) == 0 => sender = None,
                _ => {
                    // The wait is dropped after one poll.
                    let polled = mock(receiver.changed()).poll();
                    match polled {
                        Poll::Ready(Ok(())) => {
                            assert_ne!(seen, last);
                            seen = *receiver.borrow();
                            assert_eq!(seen, last);
                        }
                        Poll::Ready(Err(_)) => assert!(sender.is_none() && seen == last),
                        Poll::Pending => assert!(sender.is_some() && seen == last),
                    }
                }
            }
        }
    }
}
