//! The token with which a client goes on with a list.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::ApiError;

const VERSION: &str = "meta.k8s.io/v1";

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContinueToken {
    #[serde(rename = "v")]
    version: String,
    /// The revision of the list's first page; negative to go on with whatever is there now.
    #[serde(rename = "rv")]
    pub(crate) revision: i64,
    /// The last key that was shown, relative to the prefix.
    #[serde(rename = "start")]
    pub(crate) after: String,
}

impl ContinueToken {
    pub(crate) fn new(revision: i64, after: &str) -> Self {
        Self { version: VERSION.to_owned(), revision, after: after.to_owned() }
    }

    pub(crate) fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).expect("text and numbers can be written"))
    }

    pub(crate) fn decode(text: &str) -> Result<Self, ApiError> {
        let refused =
            |why: &str| ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|error| refused(&error.to_string()))?;
        let token: Self = serde_json::from_slice(&bytes).map_err(|error| refused(&error.to_string()))?;
        if token.version != VERSION {
            return Err(refused(&format!("server does not recognize this encoded version {}", token.version)));
        }
        if token.revision == 0 {
            return Err(refused("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        if token.after.is_empty() {
            return Err(refused("encoded start key empty (version meta.k8s.io/v1)"));
        }
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_and_nonsense_is_refused() {
        let token = ContinueToken::new(7, "default/a");
        assert_eq!(ContinueToken::decode(&token.encode()).unwrap(), token);
        for text in ["x", "", "eyJ2IjoiMSJ9"] {
            assert_eq!(ContinueToken::decode(text).unwrap_err().code, 400);
        }
    }
}
