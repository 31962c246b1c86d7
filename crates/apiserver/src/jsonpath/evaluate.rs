//! From steps to values.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Comparison, Filter, Operand, RESULTS_MAX, Slice, Step};

/// The values that `steps` name, starting at `start`.
pub(super) fn run<'a>(steps: &[Step], start: &'a Value, root: &'a Value) -> Vec<&'a Value> {
    let mut values = vec![start];
    for step in steps {
        let mut next = Vec::new();
        for value in values {
            take(step, value, root, &mut next);
            if next.len() >= RESULTS_MAX {
                next.truncate(RESULTS_MAX);
                break;
            }
        }
        values = next;
    }
    values
}

fn take<'a>(step: &Step, value: &'a Value, root: &'a Value, out: &mut Vec<&'a Value>) {
    match step {
        Step::Field(name) => out.extend(value.as_object().and_then(|object| object.get(name))),
        Step::Wildcard => children(value, out),
        Step::Recursive => descend(value, out),
        Step::Slice(slice) => out.extend(value.as_array().into_iter().flat_map(|items| cut(items, *slice))),
        Step::Union(parts) => parts.iter().for_each(|part| take(part, value, root, out)),
        Step::Filter(filter) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            out.extend(items.iter().filter(|item| holds(filter, item, root)));
        }
    }
}

fn children<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => out.extend(items),
        Value::Object(object) => out.extend(object.values()),
        _ => {}
    }
}

fn descend<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    if out.len() >= RESULTS_MAX {
        return;
    }
    out.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| descend(item, out)),
        Value::Object(object) => object.values().for_each(|item| descend(item, out)),
        _ => {}
    }
}

fn cut(items: &[Value], slice: Slice) -> impl Iterator<Item = &Value> {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let position = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
    let start = position(slice.start.unwrap_or(0));
    let end = if slice.single { start.saturating_add(1) } else { position(slice.end.unwrap_or(length)) };
    let in_range = start >= 0 && start < length && end > start;
    let start = if in_range { usize::try_from(start).unwrap_or(0) } else { 0 };
    let end = if in_range { usize::try_from(end.min(length)).unwrap_or(0) } else { 0 };
    items[start..end].iter().step_by(usize::try_from(slice.step).unwrap_or(1))
}

fn holds(filter: &Filter, item: &Value, root: &Value) -> bool {
    let Some(left) = operand(&filter.left, item, root) else { return false };
    let Some((comparison, right)) = &filter.comparison else { return true };
    let Some(right) = operand(right, item, root) else { return false };
    let order = compare(left, right);
    match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

fn operand<'a>(operand: &'a Operand, item: &'a Value, root: &'a Value) -> Option<&'a Value> {
    match operand {
        Operand::Literal(value) => Some(value),
        Operand::Path(steps) => run(steps, item, root).into_iter().next(),
    }
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        _ => (left == right).then_some(Ordering::Equal),
    }
}
