//! Bodies of requests and answers.

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};

use crate::ApiError;

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request or an answer.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// How long the body of a request may be, as upstream has it.
pub(crate) const BODY_BYTES_MAX: usize = 3 << 20;

/// A body that is there at once.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// The whole body of a request, up to the limit.
pub(crate) async fn read(mut body: Body) -> Result<Bytes, ApiError> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let unreadable = |error| ApiError::bad_request(format!("the body of the request could not be read: {error}"));
        let Ok(data) = frame.map_err(unreadable)?.into_data() else { continue };
        if bytes.len() + data.len() > BODY_BYTES_MAX {
            return Err(ApiError::too_large(BODY_BYTES_MAX));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused() {
        assert_eq!(read(full(vec![0; BODY_BYTES_MAX])).await.unwrap().len(), BODY_BYTES_MAX);
        assert_eq!(read(full(vec![0; BODY_BYTES_MAX + 1])).await.unwrap_err().code, 413);
    }
}
