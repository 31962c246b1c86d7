//! Which taints of nodes a Pod bears.

use super::cursor::{At, named, one_of};
use crate::{FieldError, names};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks a list of tolerations.
pub(super) fn check(tolerations: &At<'_>, errors: &mut Vec<FieldError>) {
    for toleration in tolerations.items() {
        let (key, operator, effect) =
            (toleration.member("key"), toleration.member("operator"), toleration.member("effect"));
        named(&key, names::qualified, errors);
        let shown = |detail: &str| FieldError::invalid(operator.path.clone(), operator.text(), detail);
        if key.is_absent() && operator.text() != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(shown(detail));
        }
        if !toleration.member("tolerationSeconds").value.is_null() && effect.text() != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(effect.path.clone(), effect.text(), detail));
        }
        // What is wrong with a value is said of the operator.
        let value = At { path: operator.path.clone(), value: toleration.member("value").value };
        match operator.text() {
            "" | "Equal" => {
                let wrong = names::label_value(value.text());
                if !wrong.is_empty() {
                    errors.push(FieldError::invalid(value.path.clone(), value.text(), wrong.join(";")));
                }
            }
            "Exists" if !value.is_absent() => {
                errors.push(value.invalid("value must be empty when `operator` is 'Exists'"));
            }
            "Exists" => {}
            // Only where a feature is on that is not; the error names them all the same.
            "Lt" | "Gt" => {
                let all = &["Equal", "Exists", "Lt", "Gt"];
                errors.push(FieldError::not_supported(operator.path.clone(), operator.text(), all));
            }
            _ => one_of(&operator, &["Equal", "Exists"], errors),
        }
        one_of(&effect, &EFFECTS, errors);
    }
}
