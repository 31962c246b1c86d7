//! What makes a configuration impossible to apply.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::item::{ItemError, identity};
use crate::path::{PathElement, path_text};
use crate::shape::{ListType, Member, Shape, ValueType};

/// A place where a configuration does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: `.spec.containers[0]`.
    pub path: String,
    /// What is wrong.
    pub cause: Cause,
}

/// What is wrong at one place of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The type has no such member.
    #[error("field not declared in schema")]
    Undeclared,
    /// The value is of another type.
    #[error("expected {expected}, got {found}")]
    Type {
        /// What it must be.
        expected: ValueType,
        /// What it is.
        found: Value,
    },
    /// The list has another item with the same identity.
    #[error("duplicate entries for key {0}")]
    Duplicate(String),
    /// The item cannot be told from others.
    #[error("{0}")]
    Item(#[from] ItemError),
}

/// Finds what keeps a configuration from being applied: unknown members, items without identity, items given twice.
pub fn check<S: Shape>(config: &Value, shape: Option<&S>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(shape) = shape {
        walk(config, shape, &mut Vec::new(), &mut problems);
    }
    problems
}

fn walk<S: Shape>(value: &Value, shape: &S, path: &mut Vec<PathElement>, problems: &mut Vec<Problem>) {
    if let Some(expected) = shape.value_type().filter(|expected| !expected.fits(value)) {
        return problems.push(Problem { path: path_text(path), cause: Cause::Type { expected, found: value.clone() } });
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                path.push(PathElement::field(name));
                if shape.membership(name) == Member::Undeclared {
                    problems.push(Problem { path: path_text(path), cause: Cause::Undeclared });
                } else if let Some(shape) = shape.field(name) {
                    walk(value, &shape, path, problems);
                }
                path.pop();
            }
        }
        Value::Array(items) => walk_items(items, shape, path, problems),
        _ => {}
    }
}

fn walk_items<S: Shape>(items: &[Value], shape: &S, path: &mut Vec<PathElement>, problems: &mut Vec<Problem>) {
    let item_shape = shape.item();
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let element = match identity(item, shape) {
            Ok(element) => element,
            Err(cause) => {
                if shape.list_type() != ListType::Atomic {
                    // Without an identity it has no path of its own: the list is named, and the position.
                    problems
                        .push(Problem { path: format!("{}: element {index}", path_text(path)), cause: cause.into() });
                } else if let Some(shape) = &item_shape {
                    path.push(PathElement::Index(index));
                    walk(item, shape, path, problems);
                    path.pop();
                }
                continue;
            }
        };
        if seen.contains(&element) {
            problems.push(Problem { path: path_text(path), cause: Cause::Duplicate(element.to_string()) });
        }
        path.push(element.clone());
        seen.insert(element);
        if let Some(shape) = &item_shape {
            walk(item, shape, path, problems);
        }
        path.pop();
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.cause)
    }
}
