//! Why a run of a container did not start.

/// Why a run did not start.
pub(super) struct Refusal {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Refusal {
    /// What the event says: of an image that cannot be had, another one tells why.
    pub(super) fn spoken(&self) -> &str {
        match self.reason {
            "ErrImagePull" | "ErrImageNeverPull" | "InvalidImageName" => self.reason,
            _ => &self.message,
        }
    }
}
