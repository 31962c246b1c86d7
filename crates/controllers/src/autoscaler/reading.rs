//! What a metric says of a Pod.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// What a metric says of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// In thousandths.
    pub(super) value: i64,
    pub(super) at: Timestamp,
    /// How long before `at` the time began that the value is of.
    pub(super) window: SignedDuration,
}

/// Readings by the name of the Pod.
pub(super) type Readings = BTreeMap<String, Reading>;
