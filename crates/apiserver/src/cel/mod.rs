//! CEL: the rules of custom resource schemas (`x-kubernetes-validations`) and the expressions of admission.
//!
//! An expression is parsed (`parser`) and its macros are written out (`macros`), its names and types are checked (`check`)
//! and its constants (`constants`), what it can cost is told by the sizes that its schema allows (`estimate`), and it is
//! evaluated against a meter (`evaluate`).

mod authority;
mod budget;
mod check;
mod constants;
mod conversion;
mod declaration;
mod depth;
mod engine;
mod estimate;
mod evaluate;
mod expression;
mod format;
mod functions;
mod kind_type;
mod lexer;
mod library;
mod literal;
mod macros;
mod meter;
mod operation;
mod parser;
mod price;
mod range;
mod rule;
mod signature;
mod source;
mod surroundings;
mod syntax;
mod tree;
mod types;
mod unification;
mod value;
mod walk;
mod wording;

pub(crate) use authority::{Authority, ResourceQuestion};
pub(crate) use engine::Answer;
pub(crate) use expression::{Expression, Facts, Known, Names, Purpose};
pub(crate) use kind_type::KindType;
pub(crate) use rule::Fault;
pub(crate) use tree::Rules;
pub(crate) use walk::{Violation, ViolationKind};

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod verdict_tests;
