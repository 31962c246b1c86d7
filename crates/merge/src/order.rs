//! A total order of JSON values in which a number equals itself however it is written (`1` and `1.0`).

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// A value as a key of a sorted collection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ordered<'a>(pub(crate) &'a Value);

/// Whether both values say the same.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    compare(left, right) == Ordering::Equal
}

/// Orders numbers before strings, booleans, lists, maps and null, as path elements are ordered on the wire.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => compare_lists(left, right),
        (Value::Object(left), Value::Object(right)) => compare_maps(left, right),
        _ => rank(left).cmp(&rank(right)),
    }
}

impl PartialEq for Ordered<'_> {
    fn eq(&self, other: &Self) -> bool {
        same(self.0, other.0)
    }
}

impl Eq for Ordered<'_> {}

impl PartialOrd for Ordered<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.0, other.0)
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal),
    }
}

fn compare_lists(left: &[Value], right: &[Value]) -> Ordering {
    let items = left.iter().zip(right).map(|(left, right)| compare(left, right));
    items.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
}

fn compare_maps(left: &Map<String, Value>, right: &Map<String, Value>) -> Ordering {
    let (left, right) = (sorted(left), sorted(right));
    let members = left
        .iter()
        .zip(&right)
        .map(|((left_name, left), (right_name, right))| left_name.cmp(right_name).then_with(|| compare(left, right)));
    members.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
}

// The map type of serde_json keeps its members sorted or not, depending on a feature of whoever builds the program.
fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = map.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    members
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(left: Value, right: Value, expect: Ordering) {
        assert_eq!(compare(&left, &right), expect, "{left} against {right}");
        assert_eq!(compare(&right, &left), expect.reverse(), "{right} against {left}");
    }

    #[test]
    fn numbers_are_compared_by_what_they_are_worth() {
        check(json!(1), json!(1.0), Ordering::Equal);
        check(json!(-1), json!(u64::MAX), Ordering::Less);
        check(json!(1.5), json!(2), Ordering::Less);
        check(json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64), Ordering::Greater);
    }

    #[test]
    fn kinds_have_an_order() {
        let kinds = [json!(7), json!("a"), json!(false), json!([]), json!({}), json!(null)];
        for pair in kinds.windows(2) {
            check(pair[0].clone(), pair[1].clone(), Ordering::Less);
        }
    }

    #[test]
    fn containers_are_compared_by_content() {
        check(json!([1, 2]), json!([1.0, 2.0]), Ordering::Equal);
        check(json!([1]), json!([1, 2]), Ordering::Less);
        check(json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), Ordering::Equal);
        check(json!({"a": 1}), json!({"b": 0}), Ordering::Less);
        check(json!({"a": 1}), json!({"a": 1, "b": 2}), Ordering::Less);
    }
}
