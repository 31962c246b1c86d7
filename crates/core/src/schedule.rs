//! Schedules in the language of cron: `*/5 8-18 * * mon-fri`, `@daily`, `@every 90m`.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

/// How far ahead the next moment is looked for: the 29th of February can be eight years away.
const HORIZON_DAYS: i32 = 366 * 8 + 2;

/// More missed moments than this are told: something is wrong with the clock or with whoever serves the schedule.
const MISSED_MAX: usize = 100;

/// How far back the last moment is looked for, step by step: a schedule has few moments in a span that follows an empty
/// one, however many it has in all.
const SPANS: [SignedDuration; 6] = [
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(24),
    SignedDuration::from_hours(24 * 31),
    SignedDuration::from_hours(24 * 366),
    SignedDuration::from_hours(24 * 366 * 4),
    SignedDuration::from_hours(24 * 366 * 9),
];

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// When something is to happen again and again.
#[derive(Clone, Debug)]
pub struct Schedule {
    rule: Rule,
    zone: TimeZone,
}

#[derive(Clone, Debug)]
enum Rule {
    /// When the clocks show one of these times.
    Calendar(Calendar),
    /// This long after the time before, in whole seconds.
    Every(SignedDuration),
}

/// Times on clocks and calendars, each field as bits.
#[derive(Clone, Debug)]
struct Calendar {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether a day has to match both day fields: so while one of them is a star.
    both_days: bool,
}

/// What a schedule says now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// The moment that has come and was not served.
    pub now: Option<Timestamp>,
    /// The next one.
    pub next: Option<Timestamp>,
    /// Whether very many were missed.
    pub many_missed: bool,
}

/// Why a schedule cannot be followed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// There are more or fewer fields.
    #[error("a schedule has five fields (minute, hour, day, month, weekday), not {0}")]
    Fields(usize),
    /// A field cannot be read.
    #[error("{0:?} is not a value, range or step of this field")]
    Field(String),
    /// A word such as `@never`.
    #[error("{0:?} is not a known macro")]
    Macro(String),
    /// Not a time such as `1h30m`.
    #[error("{0:?} is not a time after @every: write it like 90s, 15m or 1h30m")]
    Every(String),
    /// A zone that is nowhere.
    #[error("{0:?} is not a known time zone")]
    Zone(String),
}

impl Schedule {
    /// Reads a schedule for a time zone (UTC, if none is named).
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let zone = match zone {
            None => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|_| ScheduleError::Zone(name.to_owned()))?,
        };
        let rule = match text.trim().strip_prefix("@every ") {
            Some(interval) => Rule::Every(every(interval.trim())?),
            None => Rule::Calendar(Calendar::parse(text.trim())?),
        };
        Ok(Self { rule, zone })
    }

    /// A moment as the clocks of the schedule's zone show it, in RFC 3339.
    pub fn local(&self, moment: Timestamp) -> String {
        let offset = self.zone.to_offset(moment);
        if offset.seconds() == 0 { moment.to_string() } else { moment.display_with_offset(offset).to_string() }
    }

    /// The first moment after `after`; `None` for a schedule such as the 30th of February.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Calendar(calendar) => calendar.next(after, &self.zone),
            Rule::Every(interval) => Timestamp::from_second(after.as_second()).ok()?.checked_add(*interval).ok(),
        }
    }

    /// The last moment after `served` that has come, unless it is longer ago than `late_max`, and the next one.
    pub fn due(&self, served: Timestamp, late_max: Option<SignedDuration>, now: Timestamp) -> Due {
        let earliest = late_max.and_then(|late_max| now.checked_sub(late_max).ok());
        match &self.rule {
            Rule::Calendar(_) => self.due_by_calendar(earliest.map_or(served, |it| served.max(it)), now),
            Rule::Every(interval) => due_every(*interval, served, earliest, now),
        }
    }

    fn due_by_calendar(&self, since: Timestamp, now: Timestamp) -> Due {
        let missed = self.between(since, now).take(MISSED_MAX + 1).count();
        let last = SPANS.iter().find_map(|span| {
            let from = now.checked_sub(*span).map_or(since, |from| from.max(since));
            self.between(from, now).last()
        });
        Due { now: last, next: self.next(now), many_missed: missed > MISSED_MAX }
    }

    /// The moments after `since` up to `now`.
    fn between(&self, since: Timestamp, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        let next = move |moment: &Timestamp| self.next(*moment).filter(|moment| *moment <= now);
        std::iter::successors(next(&since), next)
    }
}

/// What is due of the moments that follow `served` at an interval. They are counted from what was served, not from now: or
/// each look would put the next one off.
fn due_every(interval: SignedDuration, served: Timestamp, earliest: Option<Timestamp>, now: Timestamp) -> Due {
    let served = Timestamp::from_second(served.as_second()).unwrap_or(served);
    let elapsed_seconds = now.duration_since(served).as_secs().max(0);
    let count = elapsed_seconds / interval.as_secs();
    let moment = |count: i64| {
        let since = interval.as_secs().checked_mul(count).map(SignedDuration::from_secs)?;
        served.checked_add(since).ok()
    };
    let last = moment(count).filter(|it| count > 0 && earliest.is_none_or(|earliest| *it > earliest));
    let many_missed = last.is_some() && usize::try_from(count).is_ok_and(|count| count > MISSED_MAX);
    Due { now: last, next: moment(count + 1), many_missed }
}

impl Calendar {
    fn parse(text: &str) -> Result<Self, ScheduleError> {
        let text = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other if other.starts_with('@') => return Err(ScheduleError::Macro(other.to_owned())),
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(ScheduleError::Fields(fields.len()));
        };
        let is_star = |field: &str| field.starts_with('*') || field == "?";
        let mut weekday_bits = field(weekdays, (0, 7), &WEEKDAYS, 0)?;
        // Both 0 and 7 are Sunday.
        weekday_bits = (weekday_bits & 0x7f) | (weekday_bits >> 7 & 1);
        Ok(Self {
            minutes: field(minutes, (0, 59), &[], 0)?,
            hours: field(hours, (0, 23), &[], 0)?,
            days: field(days, (1, 31), &[], 0)?,
            months: field(months, (1, 12), &MONTHS, 1)?,
            weekdays: weekday_bits,
            both_days: is_star(days) || is_star(weekdays),
        })
    }

    fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = after.to_zoned(zone.clone()).datetime();
        let mut date = local.date();
        for _ in 0..HORIZON_DAYS {
            if self.has_day(date) {
                let found = self.moments(date, zone).find(|moment| *moment > after);
                if found.is_some() {
                    return found;
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn moments(&self, date: Date, zone: &TimeZone) -> impl Iterator<Item = Timestamp> {
        let hours = (0..24i8).filter(|hour| self.hours >> hour & 1 == 1);
        let times = hours.flat_map(|hour| (0..60i8).filter(|m| self.minutes >> m & 1 == 1).map(move |m| (hour, m)));
        times.filter_map(move |(hour, minute)| {
            let local: DateTime = date.at(hour, minute, 0, 0);
            let zoned = zone.to_ambiguous_zoned(local);
            // A moment that the clocks jump over does not happen.
            zoned.compatible().ok().filter(|zoned| zoned.datetime() == local).map(|zoned| zoned.timestamp())
        })
    }

    fn has_day(&self, date: Date) -> bool {
        let day = self.days >> date.day() & 1 == 1;
        let weekday = self.weekdays >> date.weekday().to_sunday_zero_offset() & 1 == 1;
        let month = self.months >> date.month() & 1 == 1;
        month && if self.both_days { day && weekday } else { day || weekday }
    }
}

/// The time after `@every`, at least a second, whole seconds.
fn every(text: &str) -> Result<SignedDuration, ScheduleError> {
    let is_plain = text.starts_with(|first: char| first.is_ascii_digit()) && !text.contains(char::is_whitespace);
    let interval = is_plain.then(|| text.parse::<SignedDuration>().ok()).flatten();
    let interval = interval.ok_or_else(|| ScheduleError::Every(text.to_owned()))?;
    Ok(SignedDuration::from_secs(interval.as_secs().max(1)))
}

/// The values of a field as bits.
fn field(text: &str, limits: (u32, u32), names: &[&str], first_name: u32) -> Result<u64, ScheduleError> {
    let error = || ScheduleError::Field(text.to_owned());
    let value = |word: &str| {
        let named = names.iter().position(|name| word.eq_ignore_ascii_case(name));
        let named = named.and_then(|index| u32::try_from(index).ok()).map(|index| index + first_name);
        named.or_else(|| word.parse().ok()).filter(|value| (limits.0..=limits.1).contains(value)).ok_or_else(error)
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                (range, Some(step.parse::<usize>().ok().filter(|step| *step > 0).ok_or_else(error)?))
            }
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" || range == "?" => limits,
            Some((first, last)) => (value(first)?, value(last)?),
            None if step.is_some() => (value(range)?, limits.1),
            None => (value(range)?, value(range)?),
        };
        if first > last {
            return Err(error());
        }
        (first..=last).step_by(step.unwrap_or(1)).for_each(|value| bits |= 1u64 << value);
    }
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_moment_is_found() {
        let check = |text: &str, after: &str, expect: &str| {
            let next = Schedule::parse(text, None).unwrap().next(after.parse().unwrap());
            assert_eq!(next.map(|next| next.to_string()).unwrap_or_default(), expect, "{text} after {after}");
        };
        check("*/5 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z");
        check("*/5 * * * *", "2026-01-01T00:04:59Z", "2026-01-01T00:05:00Z");
        check("30 8-10 * * *", "2026-01-01T08:30:00Z", "2026-01-01T09:30:00Z");
        check("0 0 1 * *", "2026-01-31T12:00:00Z", "2026-02-01T00:00:00Z");
        check("0 0 * * mon", "2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z");
        check("0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z");
        check("0 0 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        check("0 12 29 feb *", "2026-01-01T00:00:00Z", "2028-02-29T12:00:00Z");
        check("0 0 30 2 *", "2026-01-01T00:00:00Z", "");
        check("10/20 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z");
        check("@hourly", "2026-01-01T00:10:00Z", "2026-01-01T01:00:00Z");
    }

    #[test]
    fn an_interval_is_counted_from_what_was_served() {
        let check = |text: &str, late_max: Option<i64>, now: &str, expect: (&str, &str, bool)| {
            let schedule = Schedule::parse(text, None).unwrap();
            let (served, now) = ("2026-01-01T00:00:00.7Z".parse().unwrap(), now.parse().unwrap());
            let due = schedule.due(served, late_max.map(SignedDuration::from_secs), now);
            let text = |moment: Option<Timestamp>| moment.map(|moment| moment.to_string()).unwrap_or_default();
            assert_eq!((text(due.now).as_str(), text(due.next).as_str(), due.many_missed), expect, "at {now}");
        };
        let day = |time: &str| format!("2026-01-01T{time}Z");
        check("@every 90m", None, &day("01:29:59"), ("", &day("01:30:00"), false));
        check("@every 1h30m", None, &day("01:30:00"), (&day("01:30:00"), &day("03:00:00"), false));
        check("@every 1.5h", None, &day("07:00:00"), (&day("06:00:00"), &day("07:30:00"), false));
        check("@every 90m", Some(600), &day("07:00:00"), ("", &day("07:30:00"), false));
        check("@every 90m", Some(600), &day("06:09:59"), (&day("06:00:00"), &day("07:30:00"), false));
        check("@every 10ms", None, &day("00:01:40"), (&day("00:01:40"), &day("00:01:41"), false));
        check("@every 1s", None, &day("00:01:41"), (&day("00:01:41"), &day("00:01:42"), true));
        // A clock that goes back.
        check("@every 1h", None, "2025-12-31T23:00:00Z", ("", &day("01:00:00"), false));
    }

    #[test]
    fn what_is_not_a_schedule_is_refused() {
        let intervals = ["@every", "@every soon", "@every -5m", "@every 5", "@every PT5M", "@every 5 m"];
        let others = ["* * * *", "60 * * * *", "*/0 * * * *", "5-1 * * * *", "a * * * *", "@never"];
        for text in intervals.into_iter().chain(others) {
            assert!(Schedule::parse(text, None).is_err(), "{text}");
        }
        assert_eq!(
            Schedule::parse("* * * * *", Some("Moon/Base")).unwrap_err(),
            ScheduleError::Zone("Moon/Base".into())
        );
    }
}
