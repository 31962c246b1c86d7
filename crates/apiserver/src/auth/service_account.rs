//! Tokens of service accounts: issued for an audience and a time, void when what they are bound to is gone.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_store::{Snapshot, Store};

use super::jwt::{self, JwtError, PublicKey, SigningKey};
use super::{User, service_account_groups, service_account_name};

/// The issuer of a cluster that configures none.
pub const ISSUER_DEFAULT: &str = "https://kubernetes.default.svc.cluster.local";
/// Clocks may differ by this much, and a deleted object's tokens live on for it.
const LEEWAY_SECONDS: i64 = 60;

/// An object that a token is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The object's name.
    #[serde(default)]
    pub name: String,
    /// The object's uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// What a token says about itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Claims {
    /// The audiences.
    #[serde(default)]
    pub aud: Vec<String>,
    /// When it ends, in seconds since 1970.
    pub exp: i64,
    /// When it was made.
    pub iat: i64,
    /// Who made it.
    pub iss: String,
    /// The unique id.
    #[serde(default)]
    pub jti: String,
    /// The account and what the token is bound to.
    #[serde(rename = "kubernetes.io")]
    pub kubernetes: Bound,
    /// When it begins.
    pub nbf: i64,
    /// The user name.
    pub sub: String,
}

/// The account of a token and the objects that the token is bound to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Bound {
    /// The namespace of the account.
    pub namespace: String,
    /// The node of the Pod, or the node that the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    /// The Pod that the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    /// The Secret that the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    /// The account.
    pub serviceaccount: Reference,
    /// When clients should have asked for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<i64>,
}

/// Why a token is refused.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The token is not one of ours.
    #[error(transparent)]
    Jwt(#[from] JwtError),
    /// The token is for someone else.
    #[error("token audiences {actual:?} is invalid for the target audiences {expected:?}")]
    Audience {
        /// The token's audiences.
        actual: Vec<String>,
        /// The audiences that were asked for.
        expected: Vec<String>,
    },
    /// The token is over.
    #[error("service account token has expired")]
    Expired,
    /// The token has not begun.
    #[error("service account token is not valid yet")]
    NotYet,
    /// The account, Pod, Secret or node is gone or another one.
    #[error("service account token has been invalidated: {0}")]
    Invalidated(String),
}

/// Issues and checks the tokens of a cluster's service accounts.
#[derive(Debug)]
pub struct TokenIssuer {
    issuer: String,
    key: SigningKey,
    /// Every key whose tokens are accepted, that of `key` first.
    accepted: Vec<PublicKey>,
}

impl TokenIssuer {
    /// An issuer that signs with `key` and accepts what the `older` keys signed, too.
    pub fn new(issuer: impl Into<String>, key: SigningKey, older: impl IntoIterator<Item = PublicKey>) -> Self {
        let accepted = std::iter::once(key.public().clone()).chain(older).collect();
        TokenIssuer { issuer: issuer.into(), key, accepted }
    }

    /// The audiences of the API server itself.
    pub fn audiences(&self) -> Vec<String> {
        vec![self.issuer.clone()]
    }

    /// A token for an account and what it is bound to, valid for `seconds` from `now` on.
    pub fn issue(
        &self,
        bound: Bound,
        audiences: Vec<String>,
        now: Timestamp,
        seconds: i64,
    ) -> Result<String, JwtError> {
        let now = now.as_second();
        self.key.sign(&Claims {
            aud: audiences,
            exp: now + seconds,
            iat: now,
            iss: self.issuer.clone(),
            jti: uuid::Uuid::new_v4().to_string(),
            sub: service_account_name(&bound.namespace, &bound.serviceaccount.name),
            kubernetes: bound,
            nbf: now,
        })
    }

    /// Whether a bearer token claims to be from here; others may be asked about tokens that do not.
    pub fn claims(&self, token: &str) -> bool {
        jwt::read::<Value>(token).is_ok_and(|claims| claims["iss"] == self.issuer.as_str())
    }

    /// The user of a token and those of `audiences` that it is for.
    pub fn verify(
        &self,
        token: &str,
        audiences: &[String],
        store: &Store,
        now: Timestamp,
    ) -> Result<(User, Vec<String>), TokenError> {
        let claims: Claims = jwt::verify(token, &self.accepted)?;
        if claims.iss != self.issuer {
            return Err(JwtError::Signature.into());
        }
        let common: Vec<String> = audiences.iter().filter(|audience| claims.aud.contains(audience)).cloned().collect();
        if common.is_empty() {
            return Err(TokenError::Audience { actual: claims.aud, expected: audiences.to_vec() });
        }
        if now.as_second() > claims.exp + LEEWAY_SECONDS {
            return Err(TokenError::Expired);
        }
        if now.as_second() < claims.nbf - LEEWAY_SECONDS {
            return Err(TokenError::NotYet);
        }
        check_bound(&claims.kubernetes, &store.snapshot(), now)?;
        Ok((user(claims), common))
    }

    /// The document at `/.well-known/openid-configuration`.
    pub fn configuration(&self) -> Value {
        json!({
            "issuer": self.issuer,
            "jwks_uri": format!("{}/openid/v1/jwks", self.issuer.trim_end_matches('/')),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }

    /// The document at `/openid/v1/jwks`.
    pub fn key_set(&self) -> Value {
        json!({"keys": self.accepted.iter().map(PublicKey::to_jwk).collect::<Vec<_>>()})
    }
}

fn check_bound(bound: &Bound, snapshot: &Snapshot, now: Timestamp) -> Result<(), TokenError> {
    let namespace = &bound.namespace;
    let account = &bound.serviceaccount;
    check_object("serviceaccounts", namespace, account, snapshot, now)?;
    if let Some(secret) = &bound.secret {
        check_object("secrets", namespace, secret, snapshot, now)?;
    }
    match (&bound.pod, &bound.node) {
        (Some(pod), _) => check_object("pods", namespace, pod, snapshot, now),
        (None, Some(node)) => check_object("nodes", "", node, snapshot, now),
        (None, None) => Ok(()),
    }
}

fn check_object(
    resource: &str,
    namespace: &str,
    reference: &Reference,
    snapshot: &Snapshot,
    now: Timestamp,
) -> Result<(), TokenError> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Metadata {
        uid: String,
        deletion_timestamp: Option<Timestamp>,
    }
    #[derive(Deserialize)]
    struct Object {
        #[serde(default)]
        metadata: Metadata,
    }
    let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    let key = format!("/core/{resource}/{place}{}", reference.name);
    let gone = |why: &str| TokenError::Invalidated(format!("{resource} {:?} {why}", reference.name));
    let entry = snapshot.get(&key).ok_or_else(|| gone("is gone"))?;
    let object: Object = serde_json::from_slice(&entry.value).map_err(|_| gone("cannot be read"))?;
    if object.metadata.uid != reference.uid {
        return Err(gone("is another one"));
    }
    let deleted = object.metadata.deletion_timestamp;
    if deleted.is_some_and(|deleted| deleted.as_second() + LEEWAY_SECONDS < now.as_second()) {
        return Err(gone("is deleted"));
    }
    Ok(())
}

fn user(claims: Claims) -> User {
    let bound = claims.kubernetes;
    let mut extra = BTreeMap::new();
    let mut add = |key: &str, value: String| {
        if !value.is_empty() {
            extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
        }
    };
    if !claims.jti.is_empty() {
        add("credential-id", format!("JTI={}", claims.jti));
    }
    if let Some(pod) = bound.pod {
        add("pod-name", pod.name);
        add("pod-uid", pod.uid);
    }
    if let Some(node) = bound.node {
        add("node-name", node.name);
        add("node-uid", node.uid);
    }
    User {
        name: service_account_name(&bound.namespace, &bound.serviceaccount.name),
        uid: bound.serviceaccount.uid,
        groups: service_account_groups(&bound.namespace),
        extra,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::jwt::tests::key;
    use windlass_store::{Expect, Write};

    const HOUR: i64 = 3600;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn later(seconds: i64) -> Timestamp {
        Timestamp::from_second(now().as_second() + seconds).unwrap()
    }

    async fn put(store: &Store, key: &str, uid: &str, deleted: Option<Timestamp>) {
        let value = json!({"metadata": {"uid": uid, "deletionTimestamp": deleted}}).to_string();
        store.commit(vec![Write { key: key.into(), expect: Expect::Any, value: Some(value.into()) }]).await.unwrap();
    }

    fn bound(pod: Option<&str>) -> Bound {
        let reference = |name: &str, uid: &str| Reference { name: name.to_owned(), uid: uid.to_owned() };
        Bound {
            namespace: "red".to_owned(),
            serviceaccount: reference("robot", "u1"),
            pod: pod.map(|name| reference(name, "u2")),
            ..Bound::default()
        }
    }

    async fn world() -> (TokenIssuer, Store) {
        let store = Store::in_memory();
        put(&store, "/core/serviceaccounts/red/robot", "u1", None).await;
        put(&store, "/core/pods/red/web", "u2", None).await;
        (TokenIssuer::new(ISSUER_DEFAULT, key(), []), store)
    }

    #[tokio::test]
    async fn a_token_stands_for_its_account() {
        let (issuer, store) = world().await;
        let token = issuer.issue(bound(Some("web")), issuer.audiences(), now(), HOUR).unwrap();
        assert!(issuer.claims(&token));
        let (user, audiences) = issuer.verify(&token, &issuer.audiences(), &store, now()).unwrap();
        assert_eq!(user.name, "system:serviceaccount:red:robot");
        assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:red", "system:authenticated"]);
        assert_eq!(user.uid, "u1");
        assert_eq!(user.extra["authentication.kubernetes.io/pod-name"], ["web"]);
        assert_eq!(audiences, issuer.audiences());
    }

    #[tokio::test]
    async fn a_token_ends_with_its_time_or_audience() {
        let (issuer, store) = world().await;
        let token = issuer.issue(bound(None), vec!["vault".to_owned()], now(), HOUR).unwrap();
        let vault = ["vault".to_owned(), "other".to_owned()];
        assert!(issuer.verify(&token, &vault, &store, later(HOUR)).is_ok());
        let expired = issuer.verify(&token, &vault, &store, later(HOUR + 61));
        assert!(matches!(expired, Err(TokenError::Expired)), "{expired:?}");
        let early = issuer.verify(&token, &vault, &store, later(-61));
        assert!(matches!(early, Err(TokenError::NotYet)), "{early:?}");
        let elsewhere = issuer.verify(&token, &issuer.audiences(), &store, now());
        assert!(matches!(elsewhere, Err(TokenError::Audience { .. })), "{elsewhere:?}");
    }

    #[tokio::test]
    async fn a_token_ends_with_its_pod_and_account() {
        let (issuer, store) = world().await;
        let token = issuer.issue(bound(Some("web")), issuer.audiences(), now(), HOUR).unwrap();
        let check = async |store: &Store, expected: bool| {
            assert_eq!(issuer.verify(&token, &issuer.audiences(), store, now()).is_ok(), expected);
        };
        put(&store, "/core/pods/red/web", "u2", Some(later(-30))).await;
        check(&store, true).await;
        put(&store, "/core/pods/red/web", "u2", Some(later(-61))).await;
        check(&store, false).await;
        put(&store, "/core/pods/red/web", "u3", None).await;
        check(&store, false).await;
        put(&store, "/core/pods/red/web", "u2", None).await;
        check(&store, true).await;
        put(&store, "/core/serviceaccounts/red/robot", "u9", None).await;
        check(&store, false).await;
    }

    #[tokio::test]
    async fn older_keys_are_accepted_when_told() {
        let (issuer, store) = world().await;
        let token = issuer.issue(bound(None), issuer.audiences(), now(), HOUR).unwrap();
        let strange = TokenIssuer::new(ISSUER_DEFAULT, key(), []);
        assert!(strange.verify(&token, &issuer.audiences(), &store, now()).is_err());
        let heir = TokenIssuer::new(ISSUER_DEFAULT, key(), issuer.accepted.clone());
        assert!(heir.verify(&token, &issuer.audiences(), &store, now()).is_ok());
        assert_eq!(heir.key_set()["keys"].as_array().map(Vec::len), Some(2));
    }
}
