//! Service-account tokens of a Pod, renewed before they expire.

use std::collections::BTreeMap;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection, Volume};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};

const SECONDS_DEFAULT: i64 = 3607;
/// A token that is said to live shorter is still not asked for more often.
const LIFE_SECONDS_MIN: i64 = 30;

/// The tokens that a Pod has now.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    held: BTreeMap<(String, i64), Held>,
}

#[derive(Debug, Clone)]
struct Held {
    token: String,
    renew: Timestamp,
}

impl Tokens {
    /// When the first token has to be renewed.
    pub(crate) fn renewal(&self) -> Option<Timestamp> {
        self.held.values().map(|held| held.renew).min()
    }

    /// The tokens of a projected volume by path, each fresh, or why there is none.
    pub(crate) async fn for_volume(
        &mut self,
        client: &Client,
        pod: &Pod,
        volume: &Volume,
    ) -> BTreeMap<String, Result<String, String>> {
        let mut tokens = BTreeMap::new();
        let projected = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        for wanted in projected.filter_map(|source| source.service_account_token.as_ref()) {
            tokens.insert(wanted.path.clone(), self.token(client, pod, wanted).await);
        }
        tokens
    }

    async fn token(
        &mut self,
        client: &Client,
        pod: &Pod,
        wanted: &ServiceAccountTokenProjection,
    ) -> Result<String, String> {
        let audience = wanted.audience.clone().unwrap_or_default();
        let seconds = wanted.expiration_seconds.unwrap_or(SECONDS_DEFAULT);
        let key = (audience, seconds);
        if let Some(held) = self.held.get(&key).filter(|held| Timestamp::now() < held.renew) {
            return Ok(held.token.clone());
        }
        match request(client, pod, &key.0, seconds).await {
            Ok(held) => {
                let token = held.token.clone();
                self.held.insert(key, held);
                Ok(token)
            }
            // An old one is better than none; it is tried again soon.
            Err(error) => match self.held.get_mut(&key) {
                Some(held) => {
                    held.renew = Timestamp::now() + SignedDuration::from_secs(30);
                    Ok(held.token.clone())
                }
                None => Err(error.to_string()),
            },
        }
    }
}

async fn request(client: &Client, pod: &Pod, audience: &str, seconds: i64) -> kube::Result<Held> {
    let namespace = pod.namespace().unwrap_or_default();
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: (!audience.is_empty()).then(|| vec![audience.to_owned()]),
            expiration_seconds: Some(seconds),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name_any()),
                uid: pod.uid(),
            }),
        }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
    let account = account.filter(|account| !account.is_empty()).unwrap_or_else(|| "default".to_owned());
    let answer = accounts.create_token_request(&account, &PostParams::default(), &request).await?;
    let status = answer.status.unwrap_or_default();
    let now = Timestamp::now();
    // At four fifths of its life, as kubelet does.
    let life =
        status.expiration_timestamp.map_or(seconds, |time| time.0.duration_since(now).as_secs()).max(LIFE_SECONDS_MIN);
    Ok(Held { token: status.token.unwrap_or_default(), renew: now + SignedDuration::from_secs(life * 4 / 5) })
}
