//! Label selectors.

use serde_json::Value;

use super::cursor::At;
use super::metadata::labels;
use crate::{FieldError, names};

/// Checks a label selector.
pub(super) fn check(selector: &At<'_>, errors: &mut Vec<FieldError>) {
    labels(&selector.member("matchLabels"), errors);
    for requirement in selector.member("matchExpressions").items() {
        let (key, operator, values) =
            (requirement.member("key"), requirement.member("operator"), requirement.member("values"));
        match operator.text() {
            "In" | "NotIn" if values.is_absent() => {
                errors.push(values.missing("must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if !values.is_absent() => {
                errors.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(operator.invalid("not a valid selector operator")),
        }
        errors.extend(names::qualified(key.text()).into_iter().map(|detail| key.invalid(detail)));
        for value in values.items() {
            errors.extend(names::label_value(value.text()).into_iter().map(|detail| value.invalid(detail)));
        }
    }
}

/// The selector of a workload: there, not empty, and one that the labels of the template match; whether it can be read,
/// without which nobody looks at the template.
pub(super) fn of_workload(spec: &At<'_>, kind: &str, errors: &mut Vec<FieldError>) -> bool {
    let selector = spec.member("selector");
    if selector.value.is_null() {
        // No selector selects nothing, so the labels do not match it, whatever they are. DaemonSets leave it at that.
        if kind != "daemonset" {
            errors.push(selector.missing(""));
        }
        errors.push(mismatch(spec));
        return true;
    }
    let is_readable = is_readable(&selector, errors);
    if selector.member("matchLabels").is_absent() && selector.member("matchExpressions").is_absent() {
        errors.push(selector.invalid(format!("empty selector is invalid for {kind}")));
    }
    match kind {
        _ if is_readable => match_template(spec, &selector, errors),
        "daemonset" => return true,
        "statefulset" => errors.push(selector.invalid("")),
        _ => errors.push(selector.invalid("invalid label selector")),
    }
    is_readable
}

/// The selector of a Job: there, and one that the labels of the template match.
pub(super) fn matching(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let selector = spec.member("selector");
    if selector.value.is_null() {
        errors.push(selector.missing(""));
        return errors.push(mismatch(spec));
    }
    if is_readable(&selector, errors) {
        match_template(spec, &selector, errors);
    }
}

/// Checks a label selector; whether nothing is wrong with it.
fn is_readable(selector: &At<'_>, errors: &mut Vec<FieldError>) -> bool {
    let before = errors.len();
    check(selector, errors);
    errors.len() == before
}

fn match_template(spec: &At<'_>, selector: &At<'_>, errors: &mut Vec<FieldError>) {
    if !matches(selector.value, spec.at("template.metadata.labels").value) {
        errors.push(mismatch(spec));
    }
}

fn mismatch(spec: &At<'_>) -> FieldError {
    spec.at("template.metadata.labels").invalid("`selector` does not match template `labels`")
}

/// Whether a label selector selects these labels.
pub(super) fn matches(selector: &Value, labels: &Value) -> bool {
    let exact = selector["matchLabels"].as_object().into_iter().flatten();
    let requirements = selector["matchExpressions"].as_array().into_iter().flatten();
    exact.into_iter().all(|(key, value)| labels.get(key) == Some(value))
        && requirements.into_iter().all(|requirement| {
            let label = requirement["key"].as_str().and_then(|key| labels.get(key));
            let is_listed = || {
                requirement["values"].as_array().is_some_and(|values| label.is_some_and(|label| values.contains(label)))
            };
            match requirement["operator"].as_str() {
                Some("In") => is_listed(),
                Some("NotIn") => !is_listed(),
                Some("Exists") => label.is_some(),
                Some("DoesNotExist") => label.is_none(),
                _ => true,
            }
        })
}
