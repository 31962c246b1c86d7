//! `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::Value;

use super::{Outcome, check as check_one};
use crate::node::Keywords;
use crate::place::Place;
use crate::{FieldError, Schema};

/// Where upstream reports what concerns several schemas at once.
const NOWHERE: &str = "<nil>";

pub(super) fn check(words: &Keywords, value: &Value, path: Place<'_>, outcome: &mut Outcome) {
    if !words.any_of.is_empty() {
        any_of(&words.any_of, value, path, outcome);
    }
    if !words.one_of.is_empty() {
        one_of(&words.one_of, value, path, outcome);
    }
    if !words.all_of.is_empty() {
        all_of(&words.all_of, value, path, outcome);
    }
    if words.not.as_ref().is_some_and(|schema| check_one(schema, value, None, path).errors.is_empty()) {
        outcome.errors.push(composite(format!("\"{path}\" must not validate the schema (not)")));
    }
}

fn any_of(schemas: &[Schema], value: &Value, path: Place<'_>, outcome: &mut Outcome) {
    let mut best: Option<Outcome> = None;
    for schema in schemas {
        let result = check_one(schema, value, None, path);
        if result.errors.is_empty() {
            return outcome.merge(result);
        }
        if best.as_ref().is_none_or(|best| result.seen > best.seen) {
            best = Some(result);
        }
    }
    outcome.errors.push(composite(format!("\"{path}\" must validate at least one schema (anyOf)")));
    outcome.merge(best.unwrap_or_default());
}

fn one_of(schemas: &[Schema], value: &Value, path: Place<'_>, outcome: &mut Outcome) {
    let (mut valid, mut best): (usize, Option<Outcome>) = (0, None);
    for schema in schemas {
        let result = check_one(schema, value, None, path);
        if result.errors.is_empty() {
            valid += 1;
        } else if best.as_ref().is_none_or(|best| result.seen > best.seen) {
            best = Some(result);
        }
    }
    let found = match valid {
        1 => return,
        0 => "Found none valid".to_owned(),
        _ => format!("Found {valid} valid alternatives"),
    };
    outcome.errors.push(composite(format!("\"{path}\" must validate one and only one schema (oneOf). {found}")));
    if valid == 0 {
        outcome.merge(best.unwrap_or_default());
    }
}

fn all_of(schemas: &[Schema], value: &Value, path: Place<'_>, outcome: &mut Outcome) {
    let results: Vec<Outcome> = schemas.iter().map(|schema| check_one(schema, value, None, path)).collect();
    let valid = results.iter().filter(|result| result.errors.is_empty()).count();
    for result in results {
        outcome.merge(result);
    }
    if valid < schemas.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        outcome.errors.push(composite(format!("\"{path}\" must validate all the schemas (allOf){none}")));
    }
}

fn composite(detail: String) -> FieldError {
    FieldError::invalid(NOWHERE, "", detail)
}
