//! How containers are looked at, and what they are told when they start and stop.

use super::cursor::{At, follows, not_negative, one_of, port_or_name, required};
use crate::{FieldError, names};

const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
const COUNTS: [&str; 5] =
    ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];

/// Checks the probes and the hooks of a container that runs on and on.
pub(super) fn check(container: &At<'_>, spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let grace = spec.member("terminationGracePeriodSeconds").int();
    for name in ["postStart", "preStop"] {
        handler(&container.member("lifecycle").member(name), grace, errors);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        probe(&container.member(name), grace, errors);
    }
}

fn probe(probe: &At<'_>, grace: Option<i64>, errors: &mut Vec<FieldError>) {
    if !probe.is_set() {
        return;
    }
    handler(probe, grace, errors);
    not_negative(probe, &COUNTS, errors);
    let (period, threshold) = (probe.member("terminationGracePeriodSeconds"), probe.member("successThreshold"));
    if period.int().is_some_and(|seconds| seconds <= 0) {
        errors.push(period.invalid("must be greater than 0"));
    }
    if probe.path.ends_with("readinessProbe") {
        if period.is_set() {
            errors.push(period.invalid("must not be set for readinessProbes"));
        }
    } else if threshold.int().is_some_and(|threshold| threshold != 1) {
        // A probe that restarts the container succeeds at the first success.
        errors.push(threshold.invalid("must be 1"));
    }
}

/// What is done to look at a container or to tell it something: one thing.
fn handler(handler: &At<'_>, grace: Option<i64>, errors: &mut Vec<FieldError>) {
    if !handler.is_set() {
        return;
    }
    let mut handlers = HANDLERS.iter().map(|name| (*name, handler.member(name))).filter(|(_, at)| at.is_set());
    let Some((name, first)) = handlers.next() else {
        return errors.push(handler.missing("must specify a handler type"));
    };
    match name {
        "exec" => required(&first.member("command"), errors),
        "httpGet" => http_get(&first, errors),
        "sleep" => sleep(&first, grace, errors),
        _ => port_or_name(&first.member("port"), errors),
    }
    errors.extend(handlers.map(|(_, at)| at.forbidden("may not specify more than 1 handler type")));
}

fn http_get(action: &At<'_>, errors: &mut Vec<FieldError>) {
    port_or_name(&action.member("port"), errors);
    one_of(&action.member("scheme"), &["HTTP", "HTTPS"], errors);
    let headers = action.member("httpHeaders");
    for header in headers.items() {
        // The list is named, not its item.
        follows(&header.member("name").renamed(headers.path.clone()), names::header, errors);
    }
}

fn sleep(action: &At<'_>, grace: Option<i64>, errors: &mut Vec<FieldError>) {
    let seconds = action.member("seconds").renamed(action.path.clone());
    let Some(grace) = grace else { return };
    if !(0..=grace).contains(&seconds.int().unwrap_or_default()) {
        errors.push(
            seconds.wrong_number(format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})")),
        );
    }
}
