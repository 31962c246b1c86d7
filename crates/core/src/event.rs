//! News about an object, for people.

/// Whether an event is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Something was done.
    Normal,
    /// Something is wrong.
    Warning,
}

impl Severity {
    /// The word that the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// One event: a CamelCase reason to match on, and a message to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Good or bad.
    pub severity: Severity,
    /// A short CamelCase word.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Event {
    /// Something was done.
    pub fn normal(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Normal, reason: reason.into(), message: message.into() }
    }

    /// Something is wrong.
    pub fn warning(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, reason: reason.into(), message: message.into() }
    }
}
