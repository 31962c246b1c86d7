//! How a command fails: what went wrong, what to do, and the exit code.

use std::fmt::Display;
use std::process::ExitCode;

use serde_json::{Value, json};

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    advice: Option<String>,
    code: u8,
}

/// Something went wrong.
const FAILED: u8 = 1;
/// There is no cluster to talk to.
const NO_CLUSTER: u8 = 3;
/// What was waited for did not come in time.
const TIMED_OUT: u8 = 4;

impl Failure {
    /// A failure in one sentence, without a full stop.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), advice: None, code: FAILED }
    }

    /// There is no cluster to talk to.
    pub(crate) fn no_cluster(message: impl Into<String>) -> Self {
        Self { code: NO_CLUSTER, ..Self::new(message) }
    }

    /// What was waited for did not come in time.
    pub(crate) fn timed_out(message: impl Into<String>) -> Self {
        Self { code: TIMED_OUT, ..Self::new(message) }
    }

    /// Adds what the reader can do about it.
    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Adds advice unless there is some already.
    pub(crate) fn or_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice.get_or_insert_with(|| advice.into());
        self
    }

    /// The failure for another process of this program.
    pub(crate) fn as_json(&self) -> Value {
        json!({"error": self.message, "advice": self.advice, "code": self.code})
    }

    /// A failure that another process of this program told.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let message = value["error"].as_str()?.to_owned();
        let code = value["code"].as_u64().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED);
        Some(Self { message, advice: value["advice"].as_str().map(str::to_owned), code })
    }

    /// Puts what was being done in front.
    pub(crate) fn context(mut self, doing: impl Display) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }

    /// The failure and the advice in one line.
    pub(crate) fn text(&self) -> String {
        self.advice.as_ref().map_or_else(|| self.message.clone(), |advice| format!("{}; {advice}", self.message))
    }

    /// Prints the failure and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("error: {}", self.message);
        if let Some(advice) = &self.advice {
            eprintln!("  {advice}");
        }
        ExitCode::from(self.code)
    }

    /// The sentence.
    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                let reason = if status.reason.is_empty() { String::new() } else { format!(" ({})", status.reason) };
                Self::new(format!("{}{reason}", status.message))
            }
            kube::Error::Service(source) => Self::no_cluster(format!("cannot reach the cluster: {}", chain(&*source)))
                .advice("start one with `windlass up`, or name another with --kubeconfig"),
            kube::Error::HyperError(source) => {
                Self::no_cluster(format!("cannot reach the cluster: {}", chain(&source)))
            }
            other => Self::new(chain(&other)),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// An error and its causes in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
