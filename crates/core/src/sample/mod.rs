//! Values made after a schema, and whether a value is what a schema describes: for checks and tests.

mod conform;
mod pattern;
mod value;

pub use conform::offence;
pub use value::{Dice, Fill, value};
