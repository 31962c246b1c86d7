//! Whether the expressions of webhooks and policies can be compiled, said when they are written.

use serde_json::Value;
use windlass_schema::FieldError;

use super::policies::Policy;
use crate::cel::{Expression, Names};

/// What is wrong with the expressions of a configuration; those that were there before are not asked again.
pub(crate) fn check(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    Policy::check(object, |place, detail| {
        // What is missing is told by others.
        if !place.text.trim().is_empty() {
            errors.push(FieldError::invalid(place.path, place.text, detail));
        }
    });
    let known: Vec<&str> = old.map(|old| expressions(old).map(|(_, text)| text).collect()).unwrap_or_default();
    let new = expressions(object).filter(|(_, text)| !text.trim().is_empty() && !known.contains(text));
    for (path, text) in new {
        if let Err(detail) = Expression::compile(text, Names::default()) {
            errors.push(FieldError::invalid(path, text, detail));
        }
    }
    errors
}

/// The conditions of all webhooks, with their paths.
fn expressions(object: &Value) -> impl Iterator<Item = (String, &str)> {
    let hooks = object["webhooks"].as_array().into_iter().flatten().enumerate();
    hooks.flat_map(|(number, hook)| {
        let conditions = hook["matchConditions"].as_array().into_iter().flatten().enumerate();
        conditions.filter_map(move |(index, condition)| {
            let path = format!("webhooks[{number}].matchConditions[{index}].expression");
            Some((path, condition["expression"].as_str()?))
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn new_expressions_must_compile() {
        let hooks = |text: &str| json!({"webhooks": [{"matchConditions": [{"name": "a", "expression": text}]}]});
        assert!(check(&hooks("object.metadata.namespace == 'a'"), None).is_empty());
        let errors = check(&hooks("... [}"), None);
        assert_eq!(errors[0].path, "webhooks[0].matchConditions[0].expression");
        assert!(errors[0].detail.starts_with("compilation failed: "), "{}", errors[0].detail);
        assert!(check(&hooks("nobody == 1"), None)[0].detail.contains("undeclared reference to 'nobody'"));
        assert!(check(&hooks("nobody == 1"), Some(&hooks("nobody == 1"))).is_empty());
    }

    /// The fixture was recorded from kube-apiserver 1.36.3.
    #[test]
    fn policies_are_judged_as_upstream() {
        let fixture: Value = serde_json::from_str(include_str!("../cel/fixtures/policies.json")).unwrap();
        let mut wrong = Vec::new();
        for row in fixture["policies"].as_array().unwrap() {
            let found = check(&json!({"kind": row[0], "spec": row[1]}), None);
            let found: Vec<Value> = found.iter().map(|error| json!([error.path, error.detail])).collect();
            let expected = row[2].as_array().unwrap();
            wrong.extend(
                found.iter().filter(|error| !expected.contains(error)).map(|error| format!("ours:     {error}")),
            );
            wrong.extend(
                expected.iter().filter(|error| !found.contains(error)).map(|error| format!("upstream: {error}")),
            );
        }
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}
