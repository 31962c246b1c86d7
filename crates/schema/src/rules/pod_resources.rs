//! What a Pod as a whole may ask for.

use super::cursor::At;
use super::resources;
use crate::pod_resources::{COMPUTE, of_containers};
use crate::quantity::Quantity;
use crate::{FieldError, quantity};

const HUGE_PAGES: &str = "hugepages-";

/// Checks the resources of a Pod as a whole against themselves and those of its containers.
pub(super) fn check(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let own = spec.member("resources");
    if own.value.is_null() {
        return;
    }
    if spec.at("os.name").text() == "windows" {
        return errors.push(own.forbidden("may not be set for a windows pod"));
    }
    let claims = own.member("claims");
    if !claims.value.is_null() {
        errors.push(claims.forbidden("claims may not be set for Resources at pod-level"));
    }
    for side in ["limits", "requests"] {
        let unknown = |name: &&str| !COMPUTE.contains(name) && !name.starts_with(HUGE_PAGES);
        for (name, amount) in own.member(side).entries().filter(|(name, _)| unknown(name)) {
            errors.push(FieldError::not_supported(amount.path, name, &[COMPUTE[0], HUGE_PAGES, COMPUTE[1]]));
        }
    }
    resources::amounts(&own, errors);
    requests(spec, &own.member("requests"), errors);
    limits(spec, &own, errors);
}

fn requests(spec: &At<'_>, own: &At<'_>, errors: &mut Vec<FieldError>) {
    let asked = of_containers(spec.value, "requests");
    for (name, amount) in own.entries() {
        let (Some(asked), Some(there)) = (asked.get(name), Quantity::parse(amount.text())) else { continue };
        if *asked > there {
            let detail = format!("must be greater than or equal to aggregate container requests of {asked}");
            errors.push(amount.invalid(detail));
        }
    }
}

fn limits(spec: &At<'_>, whole: &At<'_>, errors: &mut Vec<FieldError>) {
    let own = whole.member("limits");
    for (index, container) in spec.member("containers").items().enumerate() {
        for (name, limit) in container.at("resources.limits").entries() {
            let Some(there) = own.value.get(name).and_then(serde_json::Value::as_str) else { continue };
            if quantity::nanos(limit.text()) > quantity::nanos(there) {
                // The path is as upstream has it.
                let path = format!("{}.containers[{index}][{name}].limits", whole.path);
                let detail = format!("must be less than or equal to pod limits of {there}");
                errors.push(FieldError::invalid(path, limit.text(), detail));
            }
        }
    }
}
