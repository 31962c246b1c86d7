//! Limit ranges.

use super::cursor::{At, unique};
use crate::{FieldError, quantity};

/// Pairs of amounts of which the first may not be greater: the field that is reported, both names, and how they are called.
const ORDER: [(&str, [(&str, &str); 2]); 6] = [
    ("min", [("min", "min value"), ("max", "max value")]),
    ("defaultRequest", [("min", "min value"), ("defaultRequest", "default request value")]),
    ("defaultRequest", [("defaultRequest", "default request value"), ("max", "max value")]),
    ("defaultRequest", [("defaultRequest", "default request value"), ("default", "default limit value")]),
    ("default", [("min", "min value"), ("default", "default value")]),
    ("default", [("default", "default value"), ("max", "max value")]),
];

pub(super) fn limit_range(object: &At<'_>, errors: &mut Vec<FieldError>) {
    let limits = object.at("spec.limits");
    for limit in limits.items() {
        if limit.member("type").text() == "Pod" {
            let members = ["default", "defaultRequest"].map(|name| limit.member(name));
            let set = members.iter().filter(|member| !member.is_absent());
            errors.extend(set.map(|member| member.forbidden("may not be specified when `type` is 'Pod'")));
        }
        for (reported, pair) in ORDER {
            order(&limit, reported, pair, errors);
        }
    }
    unique(&limits, "type", errors);
}

fn order(limit: &At<'_>, reported: &str, [lesser, greater]: [(&str, &str); 2], errors: &mut Vec<FieldError>) {
    for (resource, low) in limit.member(lesser.0).entries() {
        let Some(high) = limit.value[greater.0][resource].as_str() else { continue };
        if quantity::nanos(low.text()) > quantity::nanos(high) {
            let detail = format!("{} {} is greater than {} {high}", lesser.1, low.text(), greater.1);
            let value = if reported == lesser.0 { low.text() } else { high };
            errors.push(FieldError::invalid(format!("{}.{reported}[{resource}]", limit.path), value, detail));
        }
    }
}
