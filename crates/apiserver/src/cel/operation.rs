//! Operations on values: arithmetic, comparison, members.

use std::{cmp::Ordering, collections::HashMap, sync::Arc};

use kube_cel::cel::{
    ExecutionError, Value as CelValue,
    common::ast::operators,
    objects::{Key, Map, OptionalValue},
};

/// What an operation yields.
pub(super) type Outcome = Result<CelValue, ExecutionError>;

/// A value that may be absent, as expressions see it.
pub(super) fn optional(value: Option<CelValue>) -> CelValue {
    CelValue::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// What is in an optional value; `None` if the value is not optional.
pub(super) fn inside(value: &CelValue) -> Option<Option<CelValue>> {
    let CelValue::Opaque(opaque) = value else { return None };
    opaque.downcast_ref::<OptionalValue>().map(|optional| optional.value().cloned())
}

/// What a binary operator makes of two values; `None` if it is no such operator.
pub(super) fn binary(operator: &str, left: CelValue, right: CelValue) -> Option<Outcome> {
    let truth = |holds: bool| Ok(CelValue::Bool(holds));
    Some(match operator {
        operators::EQUALS => truth(left == right),
        operators::NOT_EQUALS => truth(left != right),
        operators::ADD => add(left, right),
        operators::SUBSTRACT => left - right,
        operators::MULTIPLY => left * right,
        operators::DIVIDE => left / right,
        operators::MODULO => left % right,
        operators::LESS => compared(&left, &right, Ordering::is_lt),
        operators::LESS_EQUALS => compared(&left, &right, Ordering::is_le),
        operators::GREATER => compared(&left, &right, Ordering::is_gt),
        operators::GREATER_EQUALS => compared(&left, &right, Ordering::is_ge),
        operators::IN => contains(&right, left).map(CelValue::Bool),
        _ => return None,
    })
}

fn add(left: CelValue, right: CelValue) -> Outcome {
    match (left, right) {
        (CelValue::Bytes(mut left), CelValue::Bytes(right)) => {
            Arc::make_mut(&mut left).extend_from_slice(&right);
            Ok(CelValue::Bytes(left))
        }
        (left, right) => left + right,
    }
}

fn compared(left: &CelValue, right: &CelValue, wanted: fn(Ordering) -> bool) -> Outcome {
    let order = match (left, right) {
        (CelValue::Bytes(left), CelValue::Bytes(right)) => Some(left.cmp(right)),
        (CelValue::Null, _) => return Err(ExecutionError::NoSuchOverload),
        _ => left.partial_cmp(right),
    };
    let number = |value: &CelValue| matches!(value, CelValue::Int(_) | CelValue::UInt(_) | CelValue::Float(_));
    match order {
        Some(order) => Ok(CelValue::Bool(wanted(order))),
        // What is no number is neither less nor greater.
        None if number(left) && number(right) => Ok(CelValue::Bool(false)),
        None => Err(ExecutionError::NoSuchOverload),
    }
}

fn contains(container: &CelValue, value: CelValue) -> Result<bool, ExecutionError> {
    match container {
        CelValue::List(items) => Ok(items.contains(&value)),
        CelValue::Map(members) => Ok(key(value).is_ok_and(|key| members.map.contains_key(&key))),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// A value as the key of a map.
pub(super) fn key(value: CelValue) -> Result<Key, ExecutionError> {
    match value {
        CelValue::Int(number) => Ok(Key::Int(number)),
        CelValue::UInt(number) => Ok(Key::Uint(number)),
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
        CelValue::Float(number) if number.fract() == 0.0 && number.abs() < 9e18 => Ok(Key::Int(number as i64)),
        CelValue::Bool(value) => Ok(Key::Bool(value)),
        CelValue::String(text) => Ok(Key::String(text)),
        other => Err(ExecutionError::UnsupportedKeyType(other)),
    }
}

/// A member of a map, or an item of a list.
pub(super) fn member(container: &CelValue, name: CelValue) -> Outcome {
    match container {
        CelValue::Map(members) => {
            let key = key(name)?;
            let absent = || ExecutionError::NoSuchKey(Arc::new(key.to_string()));
            members.map.get(&key).cloned().ok_or_else(absent)
        }
        CelValue::List(items) => {
            let index = match key(name)? {
                Key::Int(index) => usize::try_from(index).map_err(|_| index),
                Key::Uint(index) => usize::try_from(index).map_err(|_| i64::MAX),
                _ => return Err(ExecutionError::NoSuchOverload),
            };
            let outside = |index: i64| ExecutionError::IndexOutOfBounds(CelValue::Int(index));
            let index = index.map_err(outside)?;
            items.get(index).cloned().ok_or_else(|| outside(i64::try_from(index).unwrap_or(i64::MAX)))
        }
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// Whether there is such a member.
pub(super) fn has(container: &CelValue, name: &str) -> Outcome {
    match container {
        CelValue::Map(members) => Ok(CelValue::Bool(members.map.contains_key(&Key::String(Arc::new(name.to_owned()))))),
        _ => match inside(container) {
            Some(Some(inner)) => has(&inner, name),
            Some(None) => Ok(CelValue::Bool(false)),
            None => Err(ExecutionError::NoSuchOverload),
        },
    }
}

/// The indices and items of a list, or the keys and values of a map.
pub(super) fn pairs(container: &CelValue) -> Result<Vec<(CelValue, CelValue)>, ExecutionError> {
    match container {
        CelValue::List(items) => {
            let index = |index: usize| CelValue::Int(i64::try_from(index).unwrap_or(i64::MAX));
            Ok(items.iter().enumerate().map(|(number, item)| (index(number), item.clone())).collect())
        }
        CelValue::Map(members) => {
            // In an order, so that an expression says the same every time.
            let mut members: Vec<_> = members.map.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            Ok(members.into_iter().map(|(key, value)| (CelValue::from(key), value.clone())).collect())
        }
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// A map.
pub(super) fn map(members: HashMap<Key, CelValue>) -> CelValue {
    CelValue::Map(Map { map: Arc::new(members) })
}

/// Puts what a turn of a loop yields into the map that the loop makes.
pub(super) fn insert(into: CelValue, entry: &[CelValue]) -> Outcome {
    let CelValue::Map(Map { map: mut members }) = into else { return Err(ExecutionError::NoSuchOverload) };
    let twice = |key: &Key| ExecutionError::FunctionError {
        function: "insert".to_owned(),
        message: format!("insert failed: key {key} already exists"),
    };
    let all = Arc::make_mut(&mut members);
    match entry {
        [name, value] => {
            let name = key(name.clone())?;
            if all.contains_key(&name) {
                return Err(twice(&name));
            }
            all.insert(name, value.clone());
        }
        [CelValue::Map(entries)] => {
            for (name, value) in entries.map.iter() {
                if all.contains_key(name) {
                    return Err(twice(name));
                }
                all.insert(name.clone(), value.clone());
            }
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    }
    Ok(CelValue::Map(Map { map: members }))
}

/// A list in the order of the keys in another one.
pub(super) fn sorted_by(list: &CelValue, keys: &CelValue) -> Outcome {
    let (CelValue::List(items), CelValue::List(keys)) = (list, keys) else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let mut keyed: Vec<_> = keys.iter().zip(items.iter()).collect();
    let mut comparable = true;
    keyed.sort_by(|(left, _), (right, _)| {
        left.partial_cmp(right).unwrap_or_else(|| {
            comparable = false;
            Ordering::Equal
        })
    });
    match comparable {
        true => Ok(CelValue::List(Arc::new(keyed.into_iter().map(|(_, item)| item.clone()).collect()))),
        false => Err(ExecutionError::NoSuchOverload),
    }
}
