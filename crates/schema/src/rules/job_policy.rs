//! When a Job has succeeded, when it has failed, and what its indexes allow.

use std::collections::HashSet;

use super::cursor::{At, follows, set_one_of};
use super::restart::too_many;
use crate::{FieldError, names};

const INDEXED: &str = "Indexed";
const PARALLELISM_MAX: i64 = 100_000;
const FAILED_INDEXES_MAX: i64 = 100_000;
/// Beyond so many completions, less may fail or run at once.
const MANY: i64 = 100_000;
const OF_MANY_MAX: i64 = 10_000;
const RULES_MAX: u64 = 20;
const CODES_MAX: u64 = 255;
const INDEXES_BYTES_MAX: usize = 64 * 1024;
const MANAGER_BYTES_MAX: usize = 63;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];

/// Checks what goes with indexes only, and how many there are.
pub(super) fn indexes(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let (mode, completions) = (spec.member("completionMode"), spec.member("completions"));
    let (limit, failed) = (spec.member("backoffLimitPerIndex"), spec.member("maxFailedIndexes"));
    if failed.is_set() && !limit.is_set() {
        errors.push(limit.missing("when maxFailedIndexes is specified"));
    }
    set_one_of(&mode, &["NonIndexed", INDEXED], errors);
    if mode.text() != INDEXED {
        if !mode.is_set() || mode.text() == "NonIndexed" {
            let both = [&limit, &failed].into_iter().filter(|at| at.is_set());
            errors.extend(both.map(|at| at.invalid("requires indexed completion mode")));
        }
        return;
    }
    if !completions.is_set() {
        errors.push(completions.missing("when completion mode is Indexed"));
    }
    let parallelism = spec.member("parallelism");
    let above = |at: &At<'_>, max: i64| at.int().is_some_and(|number| number > max);
    if above(&parallelism, PARALLELISM_MAX) {
        let detail = format!("must be less than or equal to {PARALLELISM_MAX} when completion mode is {INDEXED}");
        errors.push(parallelism.invalid(detail));
    }
    if completions.int().is_some_and(|count| above(&failed, count)) {
        errors.push(failed.invalid("must be less than or equal to completions"));
    }
    if above(&failed, FAILED_INDEXES_MAX) {
        errors.push(failed.invalid(format!("must be less than or equal to {FAILED_INDEXES_MAX}")));
    }
    if !above(&completions, MANY) || !limit.is_set() {
        return;
    }
    if !failed.is_set() {
        errors.push(failed.missing(&format!("must be specified when completions is above {MANY}")));
    }
    let detail = format!(
        "must be less than or equal to {OF_MANY_MAX} when completions are above {MANY} and used with backoff limit per index"
    );
    let both = [&parallelism, &failed].into_iter().filter(|at| above(at, OF_MANY_MAX));
    errors.extend(both.map(|at| at.invalid(detail.clone())));
}

/// Checks who looks after a Job.
pub(super) fn managed_by(manager: &At<'_>, errors: &mut Vec<FieldError>) {
    let parts = manager.text().split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty());
    match parts {
        _ if !manager.is_set() => return,
        _ if manager.is_absent() => errors.push(manager.missing("")),
        None => errors.push(manager.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")")),
        Some((host, _)) => {
            let wrong = names::subdomain(host).into_iter();
            errors.extend(wrong.map(|detail| FieldError::invalid(manager.path.clone(), host, detail)));
        }
    }
    if manager.text().len() > MANAGER_BYTES_MAX {
        errors.push(FieldError::too_long(manager.path.clone(), MANAGER_BYTES_MAX as u64));
    }
}

/// Checks which Pods may take up the place of others.
pub(super) fn replacement(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let all: &[&str] =
        if spec.member("podFailurePolicy").is_set() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    set_one_of(&spec.member("podReplacementPolicy"), all, errors);
}

/// Checks what is done about Pods that fail.
pub(super) fn failure(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let rules = spec.at("podFailurePolicy.rules");
    too_many(&rules, RULES_MAX, errors);
    for rule in rules.items() {
        let (action, codes, conditions) =
            (rule.member("action"), rule.member("onExitCodes"), rule.member("onPodConditions"));
        if action.text() == "FailIndex" && !spec.member("backoffLimitPerIndex").is_set() {
            errors.push(action.invalid("requires the backoffLimitPerIndex to be set"));
        }
        listed(&action, &ACTIONS, errors);
        if codes.is_set() {
            exit_codes(&codes, spec, errors);
        }
        too_many(&conditions, RULES_MAX, errors);
        for pattern in conditions.items() {
            follows(&pattern.member("type"), names::qualified, errors);
            listed(&pattern.member("status"), &STATUSES, errors);
        }
        let detail = match (codes.is_set(), conditions.is_absent()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.push(FieldError { value: None, ..rule.invalid(detail) });
    }
}

/// The text is there and one of the list, which the error shows as Go prints one.
fn listed(at: &At<'_>, all: &[&str], errors: &mut Vec<FieldError>) {
    if at.is_absent() {
        let shown: Vec<String> = all.iter().map(|one| crate::field::quote(one)).collect();
        errors.push(at.missing(&format!("valid values: [{}]", shown.join(" "))));
    }
    super::cursor::one_of(at, all, errors);
}

fn exit_codes(codes: &At<'_>, spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let (operator, name, values) = (codes.member("operator"), codes.member("containerName"), codes.member("values"));
    listed(&operator, &OPERATORS, errors);
    let lists = ["containers", "initContainers"].map(|list| spec.at("template.spec").member(list));
    let mut containers = lists.iter().flat_map(At::items);
    if name.is_set() && !containers.any(|container| container.member("name").text() == name.text()) {
        errors.push(name.invalid("must be one of the container or initContainer names in the pod template"));
    }
    if values.is_absent() {
        errors.push(values.invalid("at least one value is required"));
    }
    too_many(&values, CODES_MAX, errors);
    let (mut seen, mut last, mut is_ordered) = (HashSet::new(), i64::MIN, true);
    for value in values.items() {
        let code = value.int().unwrap_or_default();
        if operator.text() == "In" && code == 0 {
            errors.push(value.invalid("must not be 0 for the In operator"));
        }
        if !seen.insert(code) {
            errors.push(FieldError::duplicate(value.path.clone(), code));
        }
        is_ordered &= last <= code;
        last = code;
    }
    if !is_ordered {
        errors.push(values.invalid("must be ordered"));
    }
}

/// Checks which indexes are enough.
pub(super) fn success(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let policy = spec.member("successPolicy");
    if !policy.is_set() {
        return;
    }
    if spec.member("completionMode").text() != INDEXED {
        return errors.push(policy.invalid("requires indexed completion mode"));
    }
    let rules = policy.member("rules");
    if rules.is_absent() {
        errors.push(rules.missing("at least one rules must be specified when the successPolicy is specified"));
    }
    too_many(&rules, RULES_MAX, errors);
    let completions = spec.member("completions").int().unwrap_or_default();
    for rule in rules.items() {
        let (count, indexes) = (rule.member("succeededCount"), rule.member("succeededIndexes"));
        if !count.is_set() && !indexes.is_set() {
            errors.push(rule.missing("at least one of succeededCount or succeededIndexes must be specified"));
        }
        if indexes.text().len() > INDEXES_BYTES_MAX {
            errors.push(FieldError::too_long(indexes.path.clone(), INDEXES_BYTES_MAX as u64));
        }
        let total = count_indexes(indexes.text(), completions);
        if let Err(why) = &total {
            errors.push(indexes.invalid(format!("error parsing succeededIndexes: {why}")));
        }
        super::cursor::not_negative(&rule, &["succeededCount"], errors);
        if count.int().is_some_and(|count| count > completions) {
            let detail = format!("must be less than or equal to {completions} (the number of specified completions)");
            errors.push(count.invalid(detail));
        }
        let total = total.unwrap_or_default();
        if indexes.is_set() && count.int().is_some_and(|count| count > total) {
            errors.push(count.invalid(format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            )));
        }
    }
}

/// How many indexes a text like `0-2,5` has.
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let (mut total, mut last) = (0, None);
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let parts: Vec<&str> = interval.split('-').collect();
        if parts.len() > 2 {
            return Err(format!(
                "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
                crate::field::quote(interval)
            ));
        }
        let index = |text: &str| match text.parse::<i64>() {
            Err(_) => Err(format!("cannot convert string to integer for index: {}", crate::field::quote(text))),
            Ok(index) if index >= completions => Err(format!("too large index: {}", crate::field::quote(text))),
            Ok(index) => Ok(index),
        };
        let (first, end) = (index(parts[0])?, parts.get(1).map(|end| index(end)).transpose()?);
        let unordered = |previous, current| format!("non-increasing order, previous: {previous}, current: {current}");
        if let Some(end) = end.filter(|end| first >= *end) {
            return Err(unordered(first, end));
        }
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(unordered(last, first));
        }
        total += end.unwrap_or(first) - first + 1;
        last = Some(end.unwrap_or(first));
    }
    Ok(total)
}
