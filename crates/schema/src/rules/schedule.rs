//! When a CronJob runs.

use super::cursor::At;
use crate::{FieldError, duration};

const MACROS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

const ZONE_PART_BYTES_MAX: usize = 14;

/// Checks the schedule of a CronJob; `allows_zone` where the old one had a time zone in it.
pub(super) fn check(schedule: &At<'_>, allows_zone: bool, zone: &At<'_>, errors: &mut Vec<FieldError>) {
    if schedule.is_absent() {
        return errors.push(schedule.missing(""));
    }
    let plain = match schedule.text().split_once(' ') {
        Some((first, rest)) if first.starts_with("TZ=") || first.starts_with("CRON_TZ=") => rest.trim(),
        _ => schedule.text(),
    };
    errors.extend(wrong_schedule(plain).map(|detail| schedule.invalid(detail)));
    match (schedule.text().contains("TZ"), allows_zone) {
        (true, true) if zone.is_set() => {
            errors.push(schedule.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
        }
        (true, false) => {
            errors.push(schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
        }
        _ => {}
    }
}

/// Checks the time zone of a CronJob.
pub(super) fn zone(zone: &At<'_>, errors: &mut Vec<FieldError>) {
    if !zone.is_set() {
        return;
    }
    let name = zone.text();
    if name.is_empty() {
        return errors.push(zone.invalid("timeZone must be nil or non-empty string"));
    }
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b".-_+".contains(&letter);
    let is_part = |part: &str| {
        (1..=ZONE_PART_BYTES_MAX).contains(&part.len())
            && ![".", ".."].contains(&part)
            && !part.starts_with('-')
            && part.bytes().all(is_plain)
    };
    let unknown = || zone.invalid(format!("unknown time zone {name}"));
    if !name.split('/').all(is_part) {
        return errors.push(unknown());
    }
    if name.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(zone.invalid(detail));
    }
    // A machine without time zones knows none: there every name that can be one is taken.
    let knows_zones = jiff::tz::db().available().next().is_some();
    if name != "Local" && knows_zones && jiff::tz::TimeZone::get(name).is_err() {
        errors.push(unknown());
    }
}

/// What is wrong with a schedule, as far as its form tells.
fn wrong_schedule(schedule: &str) -> Option<String> {
    if MACROS.contains(&schedule) {
        return None;
    }
    if let Some(interval) = schedule.strip_prefix("@every ") {
        let wrong = || format!("failed to parse duration {schedule}: time: invalid duration {interval:?}");
        return duration::nanos(interval).is_none().then(wrong);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if schedule.starts_with('@') {
        return Some(format!("unrecognized descriptor: {schedule}"));
    }
    if fields.len() != 5 {
        let found = fields.len();
        return Some(format!("expected exactly 5 fields, found {found}: [{}]", fields.join(" ")));
    }
    let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    fields.iter().zip(bounds).find_map(|(field, (min, max))| wrong_field(field, min, max))
}

fn wrong_field(field: &str, min: u32, max: u32) -> Option<String> {
    field.split(',').find_map(|part| {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        if step.is_some_and(|step| step.parse::<u32>().is_ok_and(|step| step == 0)) {
            return Some(format!("step of range should be a positive number: {part}"));
        }
        range.split('-').find_map(|bound| match bound.parse::<u32>() {
            Ok(number) if number < min => Some(format!("beginning of range ({number}) below minimum ({min}): {part}")),
            Ok(number) if number > max => Some(format!("end of range ({number}) above maximum ({max}): {part}")),
            Ok(_) => None,
            // Names of months and days, and the wildcards.
            Err(_) if matches!(bound, "*" | "?") || (bound.len() == 3 && max <= 12) => None,
            Err(_) => {
                Some(format!("failed to parse int from {bound}: strconv.Atoi: parsing \"{bound}\": invalid syntax"))
            }
        })
    })
}
