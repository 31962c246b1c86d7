//! Costs as kube-apiserver 1.36.3 counts them: the numbers of `fixtures` were read off its answers.
//!
//! What a rule costs at most was found by the smallest `maxItems` of the list around it that was refused, what it costs
//! when it runs by the longest list that was not.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Answer, Rules,
    check::Declared,
    declaration::Declaration,
    engine::{CALL_COST_MAX, Program, Scope},
    types::Type,
    value::convert,
};

fn fixture(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn rules_are_estimated_as_upstream() {
    let fixture = fixture(include_str!("fixtures/estimates.json"));
    let declaration = Arc::new(Declaration::of(&fixture["schema"]).unwrap());
    let names = [("self", Type::of(&declaration, "selfType"))];
    let mut wrong = Vec::new();
    for row in fixture["rules"].as_array().unwrap() {
        let (rule, expected) = (row[0].as_str().unwrap(), &row[1]);
        let declared = Declared { names: &names, root: Some(&declaration), makes_objects: false };
        let Some(expected) = expected.as_u64() else { continue };
        let found = Program::compile(rule, declared).map(|program| program.cost_max());
        // Upstream told them with six digits.
        if !matches!(found, Ok(Some(cost)) if cost.abs_diff(expected) * 1_000_000 <= expected) {
            wrong.push(format!("{rule}: {found:?}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn rules_that_cost_too_much_are_refused() {
    let fixture = fixture(include_str!("fixtures/estimates.json"));
    for row in fixture["rules"].as_array().unwrap() {
        let mut item = fixture["schema"].clone();
        item["x-kubernetes-validations"] = json!([{"rule": row[0]}]);
        let schema = |most: u64| {
            let list = json!({"type": "array", "maxItems": most, "items": item});
            json!({"type": "object", "properties": {"spec": list}})
        };
        let verdict = |most: u64| Rules::compile(&schema(most)).unwrap().too_expensive();
        if let Some(expected) = row[1].as_str() {
            let errors = verdict(1);
            let found = errors[0].detail.split(" (try").next().unwrap();
            assert_eq!(found, expected, "{row}");
            assert_eq!(errors[0].path, "properties[spec].items.x-kubernetes-validations[0].rule");
        } else if let Some(cost) = row[1].as_u64().filter(|cost| *cost > 0) {
            let most = 10_000_000 / cost;
            assert!(verdict(most).is_empty(), "{row}");
            assert_eq!(verdict(most + 1).len(), 1, "{row}");
        }
    }
}

#[test]
fn a_schema_has_a_budget_of_its_own() {
    let list = |rules: usize| {
        let rules = vec![json!({"rule": "self.all(x, x != '')"}); rules];
        let items = json!({"type": "string", "maxLength": 10});
        json!({"type": "object", "properties": {"spec":
            {"type": "array", "maxItems": 1_000_000, "items": items, "x-kubernetes-validations": rules}}})
    };
    assert!(Rules::compile(&list(10)).unwrap().too_expensive().is_empty());
    let errors = Rules::compile(&list(30)).unwrap().too_expensive();
    let contributed = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
    assert_eq!(errors.iter().filter(|error| error.detail == contributed).count(), 4);
    assert!(errors[4].path.is_empty());
    assert!(errors[4].detail.starts_with(
        "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of "
    ));
}

#[test]
fn rules_cost_what_they_do_upstream_when_they_run() {
    let fixture = fixture(include_str!("fixtures/runs.json"));
    let declaration = Arc::new(Declaration::of(&fixture["schema"]).unwrap());
    let names = [("self", Type::of(&declaration, "selfType"))];
    let mut wrong = Vec::new();
    for row in fixture["rules"].as_array().unwrap() {
        let (rule, expected) = (row[0].as_str().unwrap(), row[1].as_u64().unwrap());
        let declared = Declared { names: &names, root: Some(&declaration), makes_objects: false };
        let program = Program::compile(rule, declared).unwrap();
        let cost = |items: usize| {
            let mut object = fixture["object"].clone();
            object["o"] = vec!["a"; items].into();
            let scope = Scope { bound: vec![("self", convert(&object, &fixture["schema"]))], ..Scope::default() };
            let (answer, cost) = program.evaluate(&scope);
            assert_eq!(answer, Ok(Answer::Bool(true)), "{rule}");
            cost
        };
        // Every item costs the same.
        let (one, two) = (cost(1), cost(2));
        let items = (CALL_COST_MAX - one) / (two - one) + 1;
        if items != expected {
            wrong.push(format!("{}", json!([rule, items])));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
