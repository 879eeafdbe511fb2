//! The `Date` header: the time of the second in which a head is written.

use std::cell::{Cell, RefCell};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::context::Node;
use phaseloop::extension::Loop;

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The date of a loop, formatted once a second.
///
/// A loop on the real clock asks the system again after each second, because the system's clock may
/// be set. On a paused clock the date advances with the time of the loop.
#[derive(Default)]
pub(super) struct HttpDate {
    text: RefCell<String>,
    /// The loop's time and the date when the text was made.
    made: Cell<Option<(u64, SystemTime)>>,
    /// The loop's time from which on the text is out of date.
    until: Cell<u64>,
}

impl HttpDate {
    fn append_to(&self, core: &Loop, bytes: &mut Vec<u8>) {
        let now = core.now();
        if now >= self.until.get() {
            let date = match self.made.get() {
                Some((then, date)) if core.is_clock_paused() => {
                    date + Duration::from_nanos(now.saturating_sub(then))
                }
                _ => SystemTime::now(),
            };
            let since_epoch = date.duration_since(UNIX_EPOCH).unwrap_or_default();
            let rest = 1_000_000_000 - since_epoch.subsec_nanos();
            self.until.set(now.saturating_add(rest.into()));
            self.made.set(Some((now, date)));
            self.text.replace(imf_fixdate(since_epoch.as_secs()));
        }
        bytes.extend_from_slice(self.text.borrow().as_bytes());
    }
}

/// Appends the date of the running loop.
pub(super) fn push_date(bytes: &mut Vec<u8>) {
    let node = Node::current();
    if let Some(core) = node.core() {
        node.http.date.append_to(&core, bytes);
    }
}

/// Formats a date, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn imf_fixdate(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let weekday = DAYS[usize::try_from(days % 7).unwrap_or_default()];
    let month = MONTHS[month];
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Returns the year, the month counted from zero, and the day of the month, for a number of days
/// after the beginning of 1970.
fn civil(days: u64) -> (u64, usize, u64) {
    // The calendar repeats every 400 years, which are 146,097 days. Years are counted from March
    // here, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 10 } else { month + 2 };
    let year = era * 400 + year + u64::from(is_next_year);
    (year, usize::try_from(month).unwrap_or_default(), date)
}

#[cfg(test)]
mod tests {
    use super::imf_fixdate;

    // H20. The values are those of `new Date(seconds * 1000).toUTCString()`.
    #[test]
    fn a_date_is_an_imf_fixdate() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (1_798_761_599, "Thu, 31 Dec 2026 23:59:59 GMT"),
        ] {
            assert_eq!(imf_fixdate(seconds), text);
        }
    }
}
