//! From steps to values.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Comparison, Filter, Operand, RESULTS_MAX, Slice, Step, TURNS_MAX};

/// The values that `steps` name, starting at `start`.
pub(super) fn run<'a>(steps: &[Step], start: &'a Value, left: &mut Allowance) -> Vec<&'a Value> {
    let mut values = vec![start];
    for step in steps {
        let mut next = Vec::new();
        for value in values {
            if next.len() >= RESULTS_MAX || !left.take_turn() {
                break;
            }
            take(step, value, left, &mut next);
        }
        next.truncate(RESULTS_MAX);
        values = next;
    }
    values
}

/// How much may still be looked at: filters in filters multiply what they look at.
pub(super) struct Allowance(usize);

impl Allowance {
    pub(super) const fn new() -> Self {
        Self(TURNS_MAX)
    }

    /// Whether one more value may be looked at.
    fn take_turn(&mut self) -> bool {
        let turn = self.0.checked_sub(1);
        self.0 = turn.unwrap_or(0);
        turn.is_some()
    }
}

fn take<'a>(step: &Step, value: &'a Value, left: &mut Allowance, out: &mut Vec<&'a Value>) {
    match step {
        Step::Field(name) => out.extend(value.as_object().and_then(|object| object.get(name))),
        Step::Wildcard => children(value, out),
        Step::Recursive => descend(value, left, out),
        Step::Slice(slice) => out.extend(value.as_array().into_iter().flat_map(|items| cut(items, *slice))),
        Step::Union(parts) => parts.iter().for_each(|part| take(part, value, left, out)),
        Step::Filter(filter) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            out.extend(items.iter().filter(|item| left.take_turn() && holds(filter, item, left)));
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

fn descend<'a>(value: &'a Value, left: &mut Allowance, out: &mut Vec<&'a Value>) {
    if out.len() >= RESULTS_MAX || !left.take_turn() {
        return;
    }
    out.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| descend(item, left, out)),
        Value::Object(object) => object.values().for_each(|item| descend(item, left, out)),
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

fn holds(filter: &Filter, item: &Value, allowance: &mut Allowance) -> bool {
    let Some(left) = operand(&filter.left, item, allowance) else { return false };
    let Some((comparison, right)) = &filter.comparison else { return true };
    let Some(right) = operand(right, item, allowance) else { return false };
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

fn operand<'a>(operand: &'a Operand, item: &'a Value, left: &mut Allowance) -> Option<&'a Value> {
    match operand {
        Operand::Literal(value) => Some(value),
        Operand::Path(steps) => run(steps, item, left).into_iter().next(),
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
