//! Sets of fields: which parts of an object somebody owns.

mod codec;
mod of;
mod set;
mod shaped;

pub use codec::FieldsError;
pub use set::FieldSet;
