//! CEL: the rules of custom resource schemas (`x-kubernetes-validations`) and the expressions of admission.
//!
//! An expression is parsed, its macros are written out (`macros`), its names and types are checked (`check`), what it can
//! cost is told by the sizes that its schema allows (`estimate`), and it is evaluated against a meter (`evaluate`).

mod authority;
mod budget;
mod check;
mod declaration;
mod depth;
mod engine;
mod estimate;
mod evaluate;
mod expression;
mod library;
mod macros;
mod meter;
mod operation;
mod price;
mod range;
mod rule;
mod signature;
mod tree;
mod types;
mod value;
mod walk;

pub(crate) use authority::{Authority, ResourceQuestion};
pub(crate) use engine::Answer;
pub(crate) use expression::{Expression, Facts, Names};
pub(crate) use rule::Fault;
pub(crate) use tree::Rules;
pub(crate) use walk::{Violation, ViolationKind};

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod tests;
