//! Resource quotas.

use std::collections::BTreeSet;

use super::cursor::At;
use crate::{FieldError, quantity::Quantity, quota};

/// The amounts that Pods have, apart from their number.
const COMPUTE: [&str; 6] = ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
/// Sorts of objects that no object can be at once.
const CONFLICTS: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

pub(super) fn check(new: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    for path in ["spec.hard", "status.hard", "status.used"] {
        for (name, amount) in new.at(path).entries() {
            check_amount(name, &amount, errors);
        }
    }
    let spec = new.member("spec");
    let limited: Vec<&str> = spec.member("hard").entries().map(|(name, _)| name).collect();
    check_scopes(&spec.member("scopes"), &limited, errors);
    check_selector(&spec.at("scopeSelector.matchExpressions"), &limited, errors);
    let scopes =
        |at: &At<'_>| at.at("spec.scopes").items().map(|scope| scope.text().to_owned()).collect::<BTreeSet<_>>();
    if old.is_some_and(|old| scopes(old) != scopes(new)) {
        errors.push(spec.member("scopes").invalid("field is immutable"));
    }
}

fn check_amount(name: &str, amount: &At<'_>, errors: &mut Vec<FieldError>) {
    if !name.contains('/') && !quota::is_standard(name) {
        let detail = "must be a standard resource for quota";
        errors.push(FieldError::invalid(amount.path.clone(), name, detail));
    }
    let Some(quantity) = Quantity::parse(amount.text()) else { return };
    if quantity.nanos() < 0 {
        errors.push(amount.invalid("must be greater than or equal to 0"));
    }
    let counted = quota::is_standard(name) && !name.contains(['-', '.']) && !["cpu", "memory"].contains(&name);
    if (counted || name.starts_with("count/") || name.starts_with("services.")) && quantity.round_up() != quantity {
        errors.push(amount.invalid("must be an integer"));
    }
}

fn check_scopes(scopes: &At<'_>, limited: &[&str], errors: &mut Vec<FieldError>) {
    for scope in scopes.items() {
        match fits(scope.text(), limited) {
            None => errors.push(scopes.invalid("unsupported scope")),
            Some(false) => errors.push(scopes.invalid("unsupported scope applied to resource")),
            Some(true) => {}
        }
    }
    let names: Vec<&str> = scopes.items().map(|scope| scope.text()).collect();
    if has_conflict(&names) {
        errors.push(scopes.invalid("conflicting scopes"));
    }
}

fn check_selector(expressions: &At<'_>, limited: &[&str], errors: &mut Vec<FieldError>) {
    for expression in expressions.items() {
        let (scope, operator) = (expression.member("scopeName"), expression.member("operator"));
        match fits(scope.text(), limited) {
            None => errors.push(scope.invalid("unsupported scope")),
            Some(false) => errors.push(expressions.invalid("unsupported scope applied to resource")),
            Some(true) => {}
        }
        if !["PriorityClass", "VolumeAttributesClass"].contains(&scope.text()) && operator.text() != "Exists" {
            errors.push(operator.invalid("must be 'Exists' for this scope"));
        }
        let values = expression.member("values");
        match (operator.text(), values.is_absent()) {
            ("In" | "NotIn", true) => {
                errors.push(
                    values.missing("must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"),
                );
            }
            ("Exists" | "DoesNotExist", false) => errors.push(
                values.invalid("must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"),
            ),
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
            _ => errors.push(operator.invalid("not a valid selector operator")),
        }
    }
    let names: Vec<&str> =
        expressions.items().map(|expression| expression.value["scopeName"].as_str().unwrap_or_default()).collect();
    if has_conflict(&names) {
        errors.push(expressions.invalid("conflicting scopes"));
    }
}

/// Whether everything that is limited has the scope; `None` if there is no such scope.
fn fits(scope: &str, limited: &[&str]) -> Option<bool> {
    let applies = |name: &str| match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&name),
        _ => name == "pods" || COMPUTE.contains(&name),
    };
    const KNOWN: [&str; 7] = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "VolumeAttributesClass",
    ];
    KNOWN.contains(&scope).then(|| limited.iter().filter(|name| quota::is_standard(name)).all(|name| applies(name)))
}

fn has_conflict(scopes: &[&str]) -> bool {
    CONFLICTS.iter().any(|pair| pair.iter().all(|scope| scopes.contains(scope)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(spec: Value) -> Vec<String> {
        let quota = json!({ "spec": spec });
        let mut errors = Vec::new();
        check(&At::root(&quota), None, &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn amounts_have_names_and_signs() {
        assert!(problems(json!({"hard": {"pods": "1", "count/widgets.example.com": "2", "cpu": "500m"}})).is_empty());
        assert_eq!(problems(json!({"hard": {"widgets": "1"}})).len(), 1);
        assert_eq!(problems(json!({"hard": {"pods": "-1"}})).len(), 1);
        assert_eq!(problems(json!({"hard": {"pods": "500m"}})).len(), 1);
    }

    #[test]
    fn scopes_fit_what_is_limited() {
        assert!(problems(json!({"hard": {"pods": "1"}, "scopes": ["BestEffort"]})).is_empty());
        assert_eq!(problems(json!({"hard": {"cpu": "1"}, "scopes": ["BestEffort"]})).len(), 1);
        assert_eq!(problems(json!({"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort"]})).len(), 1);
        assert_eq!(problems(json!({"hard": {"pods": "1"}, "scopes": ["Other"]})).len(), 1);
        let selector = |scope: &str, operator: &str, values: Value| {
            json!({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [
                {"scopeName": scope, "operator": operator, "values": values}]}})
        };
        assert!(problems(selector("PriorityClass", "In", json!(["a"]))).is_empty());
        assert_eq!(problems(selector("PriorityClass", "In", json!([]))).len(), 1);
        assert_eq!(problems(selector("Terminating", "In", json!(["a"]))).len(), 1);
    }
}
