//! Rules and policies as kube-apiserver 1.36.3 judges them: what `fixtures` says was read off its answers.

use serde_json::{Value, json};

use super::Rules;

fn fixture(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// What becomes of a rule: null if it compiles and holds, `false` if it does not hold, otherwise what is wrong.
fn outcome(schema: &Value, object: &Value, rule: &str) -> Value {
    let mut schema = schema.clone();
    schema["x-kubernetes-validations"] = json!([{"rule": rule, "message": "no"}]);
    let schema = json!({"type": "object", "properties": {"spec": schema}});
    let rules = match Rules::compile(&schema) {
        Ok(rules) => match rules.too_expensive().into_iter().next() {
            Some(error) => return error.detail.into(),
            None => rules,
        },
        Err(errors) => return errors[0].detail.clone().into(),
    };
    match rules.check(&json!({"spec": object}), None).violations.first() {
        None => Value::Null,
        Some(violation) if violation.detail == "no" => false.into(),
        Some(violation) => {
            let detail = violation.detail.split(" evaluating rule: ").next().unwrap_or_default();
            detail.split(" for rule: ").next().unwrap_or_default().into()
        }
    }
}

#[test]
fn rules_are_judged_as_upstream() {
    let fixture = fixture(include_str!("fixtures/rules.json"));
    let mut wrong = Vec::new();
    for row in fixture["rules"].as_array().unwrap() {
        let rule = row[0].as_str().unwrap();
        let found = outcome(&fixture["schema"], &fixture["object"], rule);
        if found != row[1] {
            wrong.push(format!("{rule}\n  found    {found}\n  upstream {}", row[1]));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
