//! How a stream ended, in the words that clients read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause, StatusDetails};

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The program ended with this code.
    Exited(i32),
    /// The stream itself failed.
    Failed(String),
}

impl Outcome {
    /// The object that clients of version 4 and later get.
    pub(super) fn status(&self) -> Status {
        let failure = |reason: &str, message: String| Status {
            status: Some("Failure".to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message),
            ..Status::default()
        };
        match self {
            Self::Exited(0) => Status { status: Some("Success".to_owned()), ..Status::default() },
            Self::Exited(code) => {
                let cause = StatusCause {
                    reason: Some("ExitCode".to_owned()),
                    message: Some(code.to_string()),
                    ..StatusCause::default()
                };
                let details = StatusDetails { causes: Some(vec![cause]), ..StatusDetails::default() };
                let message = format!("command terminated with non-zero exit code: exit status {code}");
                Status { details: Some(details), ..failure("NonZeroExitCode", message) }
            }
            Self::Failed(why) => {
                let message = format!("Internal error occurred: {why}");
                Status { code: Some(500), ..failure("InternalError", message) }
            }
        }
    }

    /// What it says on the error channel: since version 4 always an object, before that a sentence about failures.
    pub(super) fn bytes(&self, as_object: bool) -> Option<Vec<u8>> {
        let status = self.status();
        if as_object {
            return Some(serde_json::to_vec(&status).expect("a status is plain data"));
        }
        let message = status.message.filter(|_| *self != Self::Exited(0));
        message.map(String::into_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_find_the_exit_code() {
        let text = |outcome: Outcome, as_object| outcome.bytes(as_object).map(|b| String::from_utf8(b).unwrap());
        let status: serde_json::Value = serde_json::from_str(&text(Outcome::Exited(3), true).unwrap()).unwrap();
        assert_eq!(status["reason"], "NonZeroExitCode");
        assert_eq!(status["details"]["causes"][0], serde_json::json!({"reason": "ExitCode", "message": "3"}));
        assert_eq!(text(Outcome::Exited(0), false), None);
        assert!(text(Outcome::Exited(0), true).unwrap().contains("Success"));
        assert_eq!(text(Outcome::Failed("x".to_owned()), false).unwrap(), "Internal error occurred: x");
    }
}
