//! `time::Instant`: a moment on the clock of the loop.

use std::time::{Duration, Instant as RealInstant};

use phaseloop::time::{
    Instant, advance, interval_at, now, sleep, sleep_until, timeout, timeout_at,
};

use crate::util::trace::ms;

#[phaseloop::test(start_paused = true)]
async fn the_time_since_a_moment_follows_the_paused_clock() {
    let (start, at) = (now(), Instant::now());
    assert_eq!(start, at);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(start.elapsed(), Duration::from_secs(60));
    advance(ms(5)).await;
    assert_eq!(Instant::now() - start, Duration::from_secs(60) + ms(5));
    assert_eq!(
        (start + Duration::from_secs(3600)).elapsed(),
        Duration::ZERO
    );
}

#[test]
fn without_a_loop_a_moment_is_of_the_real_clock() {
    let before = RealInstant::now();
    let moment = Instant::now();
    assert!(before <= moment.into_std() && moment.into_std() <= RealInstant::now());
}

#[test]
fn arithmetic_saturates_between_moments_and_is_checked_at_the_ends() {
    let start = Instant::now();
    let mut later = start;
    later += ms(7);
    assert_eq!(later - start, ms(7));
    assert_eq!(start - later, Duration::ZERO);
    assert_eq!(later.duration_since(start), ms(7));
    assert_eq!(start.checked_duration_since(later), None);
    later -= ms(7);
    assert_eq!(later, start);
    assert_eq!(start.checked_add(Duration::MAX), None);
    assert_eq!(start.checked_sub(Duration::MAX), None);
    assert_eq!(start.checked_add(ms(1)), Some(start + ms(1)));
}

#[test]
fn a_moment_converts_from_and_into_that_of_the_standard_library() {
    let real = RealInstant::now();
    assert_eq!(RealInstant::from(Instant::from(real)), real);
    assert_eq!(Instant::from_std(real).into_std(), real);
    assert_eq!(format!("{:?}", Instant::from(real)), format!("{real:?}"));
}

#[phaseloop::test(start_paused = true)]
async fn deadlines_are_moments_of_the_loop_or_of_the_standard_library() {
    let start = now();
    sleep_until(start + ms(1)).await;
    sleep_until((start + ms(2)).into_std()).await;
    assert_eq!(start.elapsed(), ms(2));
    let mut ticks = interval_at((start + ms(5)).into_std(), ms(1));
    assert_eq!(ticks.tick().await, start + ms(5));
    ticks.reset_at((start + ms(9)).into_std());
    assert_eq!(ticks.tick().await, start + ms(9));
    let never = std::future::pending::<()>;
    assert!(timeout_at(start + ms(10), never()).await.is_err());
    assert!(
        timeout_at((start + ms(11)).into_std(), never())
            .await
            .is_err()
    );
    let mut nap = timeout(ms(4), sleep(ms(3))).into_inner();
    nap.reset((start + ms(20)).into_std());
    assert_eq!(nap.deadline(), start + ms(20));
}
