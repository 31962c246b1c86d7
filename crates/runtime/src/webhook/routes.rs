//! From a path and a body to an answer.

use std::time::{Duration, Instant};

use kube::core::conversion::{ConversionRequest, ConversionResponse, ConversionReview};
use serde_json::{Value, json};
use windlass_core::Chain;
use windlass_core::admission::{Answer, DecideError, Hook, Question, Review};

use super::registration::{CONVERT_PATH, Registration};

/// How long a function is asked again that cannot see what it asks for, and how often. The API server waits for longer.
const BLIND_TIME_MAX: Duration = Duration::from_secs(3);
const BLIND_PAUSE: Duration = Duration::from_millis(20);

/// What can be asked at which path.
pub(super) struct Routes {
    hooks: Vec<(String, Hook)>,
    chains: Vec<Chain>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum RouteError {
    #[error("there is no webhook at {0}")]
    Path(String),
    #[error("this is no review: {0}")]
    Body(#[from] serde_json::Error),
    #[error("the review has no request")]
    Empty,
    #[error("the operator cannot judge: {0}")]
    Blind(String),
}

/// Asks a function, again for a while if it cannot see what it asks for: caches fill within moments of a start. The caller may
/// block.
fn decide(hook: &Hook, question: &Question) -> Result<Answer, DecideError> {
    let asked = Instant::now();
    loop {
        match hook.decide(question) {
            Err(DecideError::Blind(_)) if asked.elapsed() < BLIND_TIME_MAX => std::thread::sleep(BLIND_PAUSE),
            decided => return decided,
        }
    }
}

fn unreadable(question: &Question, error: &serde_json::Error) -> Answer {
    let message = format!("the object cannot be read: {error}");
    let status = json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": message});
    Answer { uid: question.uid.clone(), status: Some(status), ..Answer::default() }
}

impl Routes {
    pub(super) fn new(registration: &Registration) -> Self {
        let hooks = registration.hooks.iter().map(|hook| (hook.path(), hook.clone())).collect();
        Self { hooks, chains: registration.chains.clone() }
    }

    /// All paths at which something answers.
    pub(super) fn paths(&self) -> Vec<String> {
        let convert = (!self.chains.is_empty()).then(|| CONVERT_PATH.to_owned());
        self.hooks.iter().map(|(path, _)| path.clone()).chain(convert).collect()
    }

    /// Whether something answers at `path`.
    pub(super) fn has(&self, path: &str) -> bool {
        path == CONVERT_PATH || self.hooks.iter().any(|(known, _)| known == path)
    }

    /// The answer to `body`, of a time that its size and the author's function determine.
    pub(super) fn answer(&self, path: &str, body: &[u8]) -> Result<Vec<u8>, RouteError> {
        if path == CONVERT_PATH {
            return self.convert(body);
        }
        let found = self.hooks.iter().find(|(known, _)| known == path);
        let (_, hook) = found.ok_or_else(|| RouteError::Path(path.to_owned()))?;
        let review: Review = serde_json::from_slice(body)?;
        let question = review.request.as_ref().ok_or(RouteError::Empty)?;
        let answer = match decide(hook, question) {
            Ok(answer) => answer,
            Err(DecideError::Unreadable(error)) => unreadable(question, &error),
            Err(DecideError::Blind(why)) => return Err(RouteError::Blind(why)),
        };
        Ok(serde_json::to_vec(&review.answered(answer))?)
    }

    fn convert(&self, body: &[u8]) -> Result<Vec<u8>, RouteError> {
        let review: ConversionReview = serde_json::from_slice(body)?;
        let mut request = ConversionRequest::from_review(review).map_err(|_| RouteError::Empty)?;
        let (objects, to) = (std::mem::take(&mut request.objects), request.desired_api_version.clone());
        let converted: Result<Vec<Value>, String> =
            objects.into_iter().map(|object| self.convert_one(object, &to)).collect();
        let response = ConversionResponse::for_request(request);
        let response = match converted {
            Ok(objects) => response.success(objects),
            Err(why) => response.failure(kube::core::Status::failure(&why, "Invalid")),
        };
        Ok(serde_json::to_vec(&response.into_review())?)
    }

    fn convert_one(&self, object: Value, to: &str) -> Result<Value, String> {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) =
            (text(&object["kind"]), format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"])));
        let chain = self.chains.iter().find(|chain| chain.is_of(&kind, to));
        let chain = chain.ok_or_else(|| format!("no {kind} is converted to {to} here"))?;
        chain.convert(object, to).map_err(|error| format!("{kind} {name}: {error}"))
    }
}
