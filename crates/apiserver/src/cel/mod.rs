//! CEL: the rules of custom resource schemas (`x-kubernetes-validations`) and the expressions of admission.
//!
//! Only [`engine`] and [`value`] name the CEL library; everything else works on JSON and on the types of `engine`.

mod authority;
mod check;
mod depth;
mod engine;
mod expression;
mod library;
mod macros;
mod rewrite;
mod rule;
mod tree;
mod types;
mod value;
mod walk;

pub(crate) use authority::{Authority, ResourceQuestion};
pub(crate) use engine::Answer;
pub(crate) use expression::{Expression, Facts, Names};
pub(crate) use tree::Rules;
pub(crate) use walk::{Violation, ViolationKind};

#[cfg(test)]
mod tests;
