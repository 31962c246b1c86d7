//! CEL: the rules of custom resource schemas (`x-kubernetes-validations`) and the expressions of admission.
//!
//! Only [`engine`] and [`value`] name the CEL library; everything else works on JSON and on the types of `engine`.

mod check;
mod condition;
mod engine;
mod rewrite;
mod rule;
mod tree;
mod value;
mod walk;

pub(crate) use condition::{Condition, Facts};
pub(crate) use tree::Rules;
pub(crate) use walk::{Violation, ViolationKind};

#[cfg(test)]
mod tests;
