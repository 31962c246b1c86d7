//! Why a patch was not applied.

/// Why a patch was not applied. The target is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is wrong, whatever it is applied to (400).
    #[error("invalid patch: {0}")]
    Malformed(String),
    /// The patch has more operations than allowed (413).
    #[error("the allowed maximum operations in a JSON patch is {max}, got {given}")]
    TooManyOperations {
        /// How many are allowed.
        max: usize,
        /// How many there are.
        given: usize,
    },
    /// A `test` did not find what it expects (422).
    #[error("testing value {path} failed: test failed")]
    TestFailed {
        /// The JSON pointer of the test.
        path: String,
    },
    /// A directive of a strategic patch that means nothing where it stands. Kubernetes takes it for a fault of its own
    /// (500).
    #[error("{0}")]
    Senseless(String),
    /// The patch does not fit what it is applied to (422).
    #[error("{0}")]
    Inapplicable(String),
}
