//! What may be said of a failure: never the contents of an object.

use kube::core::Status;

use crate::reconcile::Error;

/// Longer messages are cut.
pub(crate) const MESSAGE_CHARS_MAX: usize = 500;

/// The beginning of a text.
pub(crate) fn clip(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A failure of a run, in words.
pub(crate) fn of_error(error: &Error) -> String {
    match error {
        Error::Api(error) => of_api(error),
        other => clip(&other.to_string()),
    }
}

/// A refusal of the API, in words. An object that is found invalid is quoted in the answer; of that only the fields are told.
pub(crate) fn of_api(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 422 => {
            let fields = fields(status);
            let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
            format!("the API finds it invalid{fields}")
        }
        kube::Error::Api(status) => clip(&status.message),
        other => clip(&other.to_string()),
    }
}

fn fields(status: &Status) -> Vec<String> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.map(|cause| cause.field.clone()).filter(|field| !field.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(status: serde_json::Value, expected: &str) {
        let status: Status = serde_json::from_value(status).unwrap();
        assert_eq!(of_api(&kube::Error::Api(Box::new(status))), expected);
    }

    #[test]
    fn what_an_object_holds_is_not_told() {
        let causes = json!([{"field": "spec.password", "message": "Invalid value: \"hunter2\""}]);
        let message = "Database db is invalid: spec.password: Invalid value: \"hunter2\"";
        check(
            json!({"code": 422, "reason": "Invalid", "message": message, "details": {"causes": causes}}),
            "the API finds it invalid: spec.password",
        );
        check(json!({"code": 422, "reason": "Invalid", "message": message}), "the API finds it invalid");
        check(json!({"code": 403, "message": "exceeded quota: small"}), "exceeded quota: small");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = "ü".repeat(MESSAGE_CHARS_MAX + 1);
        assert_eq!(clip(&text).chars().count(), MESSAGE_CHARS_MAX + 1);
        assert_eq!(clip("short"), "short");
    }
}
