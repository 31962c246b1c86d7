//! Who am I, and whose token is this?

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ApiError;
use crate::auth::{Auth, User};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenSpec {
    token: String,
    audiences: Option<Vec<String>>,
}

/// Whoever asks.
pub(super) fn own(user: &User) -> Value {
    json!({"userInfo": user_info(user)})
}

/// Whoever a token belongs to.
pub(super) fn of_token(auth: &Auth, spec: &TokenSpec) -> Result<Value, ApiError> {
    if spec.token.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences = spec.audiences.as_deref().unwrap_or_default();
    Ok(match auth.user_of_token(&spec.token, audiences) {
        Ok((user, audiences)) => {
            json!({"authenticated": true, "user": user_info(&user), "audiences": audiences})
        }
        Err(why) => json!({"authenticated": false, "user": {}, "error": why}),
    })
}

fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}
