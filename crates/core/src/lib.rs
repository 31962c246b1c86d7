//! What an operator is, as values and traits.
