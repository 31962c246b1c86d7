//! What a client wants of a log, checked.

use windlass_schema::FieldError;

use crate::{ApiError, Subject, query::Query};

/// Refuses options that mean nothing, in the words of upstream.
pub(super) fn check(query: &Query, pod: &str) -> Result<(), ApiError> {
    let number = |name: &str| -> Result<Option<i64>, ApiError> {
        let parse = |text: &str| text.parse().map_err(|_| ApiError::bad_request(format!("{name}={text} is no number")));
        query.get(name).map(parse).transpose()
    };
    let since_seconds = number("sinceSeconds")?;
    let mut errors = Vec::new();
    if let Some(lines) = number("tailLines")?.filter(|lines| *lines < 0) {
        errors.push(FieldError::invalid("tailLines", lines, "must be greater than or equal to 0"));
    }
    if let Some(bytes) = number("limitBytes")?.filter(|bytes| *bytes < 1) {
        errors.push(FieldError::invalid("limitBytes", bytes, "must be greater than 0"));
    }
    match since_seconds {
        Some(_) if query.get("sinceTime").is_some() => {
            errors.push(FieldError::forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
        }
        Some(seconds) if seconds < 1 => {
            errors.push(FieldError::invalid("sinceSeconds", seconds, "must be greater than 0"))
        }
        _ => {}
    }
    if query.get("stream").is_some() {
        errors.push(FieldError::forbidden("stream", "may not be specified"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid_fields(Subject { group: "", resource: "PodLogOptions" }, pod, errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_mean_nothing_are_refused() {
        let verdict = |text: &str| check(&Query::parse(Some(text)), "p").map_err(|error| error.message);
        assert_eq!(verdict("tailLines=0&limitBytes=1&sinceSeconds=1&follow=true"), Ok(()));
        for (text, why) in [
            ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
            ("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"),
            ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
            ("sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z", "at most one of `sinceTime` or `sinceSeconds`"),
            ("tailLines=x", "tailLines=x is no number"),
        ] {
            let message = verdict(text).unwrap_err();
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
