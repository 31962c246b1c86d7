//! What an object storage answered, in words that help people and that show nothing of theirs.

use std::error::Error;

use object_store::client::{HttpError, HttpErrorKind};

use super::StorageError;

/// How much of an answer is told.
const WORDS_CHARS_MAX: usize = 200;

/// What storages say to credentials that will not do. Not all of them say it as "forbidden", and not to every request; the last is
/// what versitygw says of an access key that it does not know.
const DENIALS: [&str; 7] = [
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "InvalidTokenId",
    "XAdminUserNotFound",
];

/// Which storage, for messages.
#[derive(Clone, Debug)]
pub(super) struct Whereabouts {
    pub(super) endpoint: String,
    pub(super) bucket: String,
}

impl Whereabouts {
    /// The error that an answer stands for. Of its text only the code is told: the rest may repeat what was sent.
    pub(super) fn fault(&self, path: &str, error: &object_store::Error) -> StorageError {
        let (endpoint, bucket, path) = (self.endpoint.clone(), self.bucket.clone(), path.to_owned());
        let text = error.to_string();
        let code = code(&text);
        if code.as_deref() == Some("NoSuchBucket") {
            return StorageError::NoBucket { endpoint, bucket };
        }
        if let Some(why) = unreached(error) {
            return StorageError::Away { endpoint, why };
        }
        let is_denied =
            matches!(error, object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. });
        let is_known = code.as_deref().is_some_and(|code| DENIALS.contains(&code));
        if is_denied || is_known || text.contains(" 403 Forbidden") || text.contains(" 401 Unauthorized") {
            let code = code.unwrap_or_else(|| "AccessDenied".into());
            return StorageError::Denied { endpoint, bucket, path, code };
        }
        StorageError::Remote { endpoint, bucket, path, answer: code.unwrap_or_else(|| plain(&text)) }
    }

    /// Whether an answer says that the object is not there. Nothing else will do: a bucket that is not there, or keys that are not
    /// known, come as "not found" from some, and an archive that seems to end is restored as far as it seems to go.
    pub(super) fn is_absence(error: &object_store::Error) -> bool {
        matches!(error, object_store::Error::NotFound { .. })
            && code(&error.to_string()).as_deref() == Some("NoSuchKey")
    }

    /// An operation that took too long.
    pub(super) fn late(&self) -> StorageError {
        StorageError::Away { endpoint: self.endpoint.clone(), why: "it did not answer in time".into() }
    }

    /// Something that this side cannot do.
    pub(super) fn refused(&self, path: &str, answer: impl Into<String>) -> StorageError {
        let (endpoint, bucket) = (self.endpoint.clone(), self.bucket.clone());
        StorageError::Remote { endpoint, bucket, path: path.to_owned(), answer: answer.into() }
    }
}

/// The storage's word for an error: `<Code>AccessDenied</Code>`.
fn code(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let is_word = code.len() < 64 && code.chars().all(|char| char.is_ascii_alphanumeric());
    is_word.then(|| code.to_owned())
}

/// What an answer says before what was sent or received is quoted.
fn plain(text: &str) -> String {
    text.split('<').next().unwrap_or_default().trim().chars().take(WORDS_CHARS_MAX).collect()
}

/// Why no answer came, if none did.
fn unreached(error: &object_store::Error) -> Option<String> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        let is_away = |error: &HttpError| !matches!(error.kind(), HttpErrorKind::Decode | HttpErrorKind::Unknown);
        if let Some(error) = error.downcast_ref::<HttpError>().filter(|error| is_away(error)) {
            let mut innermost: &dyn Error = error;
            while let Some(source) = innermost.source() {
                innermost = source;
            }
            return Some(innermost.to_string());
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whereabouts() -> Whereabouts {
        Whereabouts { endpoint: "https://s3.example.com".into(), bucket: "backups".into() }
    }

    #[test]
    fn of_an_answer_the_code_is_told_and_nothing_that_was_sent() {
        let body = "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?><Error>\
                    <Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>canary</AWSAccessKeyId></Error>";
        let error = object_store::Error::PermissionDenied { path: "a".into(), source: body.into() };
        let text = whereabouts().fault("a", &error).to_string();
        assert!(text.contains("SignatureDoesNotMatch") && text.contains("Secret"), "{text}");
        assert!(!text.contains("canary"), "{text}");
    }

    #[test]
    fn an_absent_bucket_is_not_an_absent_object() {
        let absent = |code: &str| object_store::Error::NotFound {
            path: "a".into(),
            source: format!("<Error><Code>{code}</Code></Error>").into(),
        };
        assert!(Whereabouts::is_absence(&absent("NoSuchKey")));
        assert!(!Whereabouts::is_absence(&absent("NoSuchBucket")));
        assert!(!Whereabouts::is_absence(&absent("InvalidAccessKeyId")), "some know no better word");
        let fault = whereabouts().fault("a", &absent("InvalidAccessKeyId"));
        assert!(matches!(fault, StorageError::Denied { .. }), "{fault}");
        let fault = whereabouts().fault("a", &absent("NoSuchBucket"));
        assert!(matches!(fault, StorageError::NoBucket { .. }), "{fault}");
    }

    #[test]
    fn a_page_of_somebody_else_is_not_quoted() {
        let source = "Server returned non-2xx status code: 502 Bad Gateway: <html>canary".into();
        let error = object_store::Error::Generic { store: "S3", source };
        let text = whereabouts().fault("a", &error).to_string();
        assert!(text.contains("502 Bad Gateway") && !text.contains("canary"), "{text}");
    }
}
