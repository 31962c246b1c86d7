//! What a handler answers.

use std::fmt::Display;
use std::time::Duration;

/// The longest text of a failure that is told to people.
const WORDS_MAX: usize = 1024;

/// Why a handler failed, and so what comes next. Any error becomes a temporary one by `?`.
///
/// The text is shown to people, in conditions, events and the log: a password does not belong into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// May pass: tried again, after this time or as the handler's [`Retry`](super::Retry) has it.
    Temporary {
        /// How long to wait; none is as the policy says.
        after: Option<Duration>,
        /// What failed.
        why: String,
    },
    /// Trying again does not help: it is given up until the resource changes.
    Permanent {
        /// What failed, and what to change.
        why: String,
    },
}

impl Failure {
    /// May pass.
    pub fn temporary(why: impl Display) -> Self {
        Self::Temporary { after: None, why: why.to_string() }
    }

    /// May pass: to be tried again after this time.
    pub fn retry_after(after: Duration, why: impl Display) -> Self {
        Self::Temporary { after: Some(after), why: why.to_string() }
    }

    /// Does not pass before the resource changes.
    pub fn permanent(why: impl Display) -> Self {
        Self::Permanent { why: why.to_string() }
    }

    /// What failed, short enough for a condition.
    pub fn why(&self) -> String {
        let (Self::Temporary { why, .. } | Self::Permanent { why }) = self;
        match why.char_indices().nth(WORDS_MAX) {
            Some((end, _)) => format!("{}…", &why[..end]),
            None => why.clone(),
        }
    }

    /// Whether trying again does not help.
    pub(super) fn is_permanent(&self) -> bool {
        matches!(self, Self::Permanent { .. })
    }

    /// The time that the handler asked for.
    pub(super) fn after(&self) -> Option<Duration> {
        match self {
            Self::Temporary { after, .. } => *after,
            Self::Permanent { .. } => None,
        }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut why = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !why.contains(&cause_text) {
                why = format!("{why}: {cause_text}");
            }
            source = cause.source();
        }
        Self::temporary(why)
    }
}

/// What a handler may return when it succeeds: nothing, or a [`Report`].
pub trait Answer<S>: Send + 'static {
    /// The status to report, if the handler says one.
    fn status(self) -> Option<S>;
}

/// The author's part of the status, as it is to be from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report<S>(pub S);

impl<S> Answer<S> for () {
    fn status(self) -> Option<S> {
        None
    }
}

impl<S: Send + 'static> Answer<S> for Report<S> {
    fn status(self) -> Option<S> {
        Some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot provision")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn any_error_is_temporary_and_tells_its_causes() {
        let failure: Failure = Outer(std::io::Error::other("connection refused")).into();
        assert_eq!(failure, Failure::temporary("cannot provision: connection refused"));
        assert!(!failure.is_permanent());
        assert_eq!(Failure::retry_after(Duration::from_secs(5), "busy").after(), Some(Duration::from_secs(5)));
    }

    #[test]
    fn a_text_without_end_is_cut() {
        let why = Failure::permanent("ä".repeat(5000)).why();
        assert_eq!(why.chars().count(), WORDS_MAX + 1);
    }
}
