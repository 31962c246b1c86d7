//! What containers ask for and may use.

use std::collections::{BTreeSet, HashSet};

use super::cursor::{At, follows, named, required};
use crate::quantity::Quantity;
use crate::{FieldError, names, quantity, quota};

const HUGE_PAGES: &str = "hugepages-";
const NATIVE: &str = "kubernetes.io/";
/// What containers can ask for without saying whose it is.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Checks what a container asks for and may use, and which of the Pod's `claims` it takes.
pub(super) fn of_container(resources: &At<'_>, claims: &At<'_>, errors: &mut Vec<FieldError>) {
    let (limits, requests) = (resources.member("limits"), resources.member("requests"));
    for (name, amount) in limits.entries().chain(requests.entries()) {
        container_name(name, &amount, errors);
    }
    amounts(resources, errors);
    let known: BTreeSet<&str> =
        claims.items().map(|claim| claim.member("name").text()).filter(|name| !name.is_empty()).collect();
    taken_claims(&resources.member("claims"), &known, errors);
}

/// Checks what a Pod takes beside its containers.
pub(super) fn overhead(overhead: &At<'_>, errors: &mut Vec<FieldError>) {
    // Errors name it as if it were limits.
    for (name, amount) in overhead.renamed(overhead.member("limits").path).entries() {
        container_name(name, &amount, errors);
        amount_of(name, &amount, errors);
    }
}

/// Checks the amounts, and that nothing is asked for that may not be used.
pub(super) fn amounts(resources: &At<'_>, errors: &mut Vec<FieldError>) {
    let (limits, requests) = (resources.member("limits"), resources.member("requests"));
    for (name, amount) in limits.entries().chain(requests.entries()) {
        amount_of(name, &amount, errors);
    }
    for (name, request) in requests.entries() {
        let is_exact = is_huge(name) || !is_native(name);
        let Some(limit) = limits.value.get(name).and_then(serde_json::Value::as_str) else {
            if is_exact {
                errors.push(limits.missing("Limit must be set for non overcommitable resources"));
            }
            continue;
        };
        let (asked, allowed) = (quantity::nanos(request.text()), quantity::nanos(limit));
        let relation = match asked.cmp(&allowed) {
            std::cmp::Ordering::Equal => continue,
            _ if is_exact => "equal to",
            std::cmp::Ordering::Greater => "less than or equal to",
            std::cmp::Ordering::Less => continue,
        };
        let detail = format!("must be {relation} {name} limit of {limit}");
        errors.push(FieldError::invalid(requests.path.clone(), request.text(), detail));
    }
    let all: Vec<&str> = limits.entries().chain(requests.entries()).map(|(name, _)| name).collect();
    if all.iter().any(|name| is_huge(name)) && !all.iter().any(|name| ["cpu", "memory"].contains(name)) {
        errors.push(resources.forbidden("HugePages require cpu or memory"));
    }
}

fn amount_of(name: &str, amount: &At<'_>, errors: &mut Vec<FieldError>) {
    let Some(quantity) = Quantity::parse(amount.text()) else { return };
    if quantity.nanos() < 0 {
        errors.push(amount.invalid("must be greater than or equal to 0"));
    }
    if is_extended(name) && quantity.nanos() % 1_000_000_000 != 0 {
        errors.push(amount.invalid("must be an integer"));
    }
    if is_huge(name) {
        let page = name.strip_prefix(HUGE_PAGES).and_then(Quantity::parse).map(Quantity::nanos);
        let fits = page.is_some_and(|page| page > 0 && page % 1_000_000_000 == 0 && quantity.nanos() % page == 0);
        if !fits {
            let detail = format!("{} is not positive integer multiple of {name}", amount.text());
            errors.push(amount.invalid(detail));
        }
    }
}

fn container_name(name: &str, amount: &At<'_>, errors: &mut Vec<FieldError>) {
    let wrong = |detail: String| FieldError::invalid(amount.path.clone(), name, detail);
    let unreadable = names::qualified(name);
    let is_readable = unreadable.is_empty();
    errors.extend(unreadable.into_iter().map(wrong));
    let is_plain = !name.contains('/');
    if is_readable && is_plain && !is_huge(name) && !quota::is_standard(name) && name != "storage" {
        errors.push(wrong("must be a standard resource type or fully qualified".to_owned()));
    }
    if is_plain && !OF_CONTAINERS.contains(&name) && !is_huge(name) {
        errors.push(wrong("must be a standard resource for containers".to_owned()));
    } else if !is_native(name) && !is_extended(name) {
        errors.push(wrong("doesn't follow extended resource name standard".to_owned()));
    }
}

fn is_huge(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains(NATIVE)
}

fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && names::qualified(&format!("requests.{name}")).is_empty()
}

/// Checks the claims of a Pod to devices.
pub(super) fn pod_claims(claims: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for claim in claims.items() {
        let name = claim.member("name");
        if name.is_absent() {
            errors.push(name.missing(""));
        } else if !seen.insert(name.text()) {
            errors.push(name.again());
        } else {
            named(&name, names::label, errors);
        }
        let references = ["resourceClaimName", "resourceClaimTemplateName"].map(|name| claim.member(name));
        match references.iter().filter(|reference| reference.is_set()).count() {
            0 => errors.push(claim.invalid("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")),
            1 => {}
            _ => errors.push(
                claim.invalid("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
            ),
        }
        references.iter().filter(|reference| reference.is_set()).for_each(|at| follows(at, names::subdomain, errors));
    }
}

fn taken_claims(claims: &At<'_>, known: &BTreeSet<&str>, errors: &mut Vec<FieldError>) {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for claim in claims.items() {
        let (name, request) = (claim.member("name").text(), claim.member("request"));
        if name.is_empty() {
            required(&claim.member("name").renamed(claim.path.clone()), errors);
            continue;
        }
        named(&request, names::label, errors);
        let is_covered = seen.contains(&(name, "")) || seen.contains(&(name, request.text()));
        if is_covered || (request.is_absent() && seen.iter().any(|(other, _)| *other == name)) {
            let whole = request.is_absent() || seen.contains(&(name, ""));
            let shown = if whole { name.to_owned() } else { format!("{name}/{}", request.text()) };
            errors.push(FieldError::duplicate(claim.path.clone(), shown));
        }
        seen.insert((name, request.text()));
        if !known.contains(name) {
            let names: Vec<&str> = known.iter().copied().collect();
            let list = if names.is_empty() { " which is empty".to_owned() } else { format!(": {}", names.join(", ")) };
            let detail = format!("must be one of the names in pod.spec.resourceClaims{list}");
            errors.push(FieldError { detail, ..FieldError::not_found(claim.path.clone(), name) });
        }
    }
}
