//! From how little to how much: estimates of sizes and costs, which never overflow.

/// What a string costs per letter that is looked at.
pub(super) const PER_LETTER: f64 = 0.1;
/// What a regular expression costs per letter of it.
pub(super) const PER_PATTERN_LETTER: f64 = 0.25;
/// What it costs to make a list, a map, an object.
pub(super) const LIST: u64 = 10;
pub(super) const MAP: u64 = 30;
pub(super) const OBJECT: u64 = 40;

/// The least and the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    /// Anything.
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    /// Just this much.
    pub(super) const fn exactly(amount: u64) -> Self {
        Self { min: amount, max: amount }
    }

    /// Both together.
    pub(super) fn add(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// One for each of the other.
    pub(super) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// That much for each, rounded up.
    pub(super) fn per(self, factor: f64) -> Self {
        Self { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    /// The one or the other.
    pub(super) fn or(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// `amount` times `factor`, rounded up.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "costs are computed in floating point upstream; the cast saturates"
)]
pub(super) fn scaled(amount: u64, factor: f64) -> u64 {
    (amount as f64 * factor).ceil() as u64
}
