//! The Secret that holds the keys: one for all replicas, written by whoever is first.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

use super::keys::Keys;

/// How often to begin again when another replica was faster.
const ATTEMPTS_MAX: usize = 5;

/// Reads the keys, and renews them when it is time.
pub(super) struct Keeper {
    api: Api<Secret>,
    namespace: String,
    name: String,
    names: BTreeSet<String>,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeeperError {
    #[error("cannot {verb} the Secret {namespace}/{name}: {source}")]
    Secret {
        verb: &'static str,
        namespace: String,
        name: String,
        #[source]
        source: kube::Error,
    },
    #[error("cannot make certificates: {0}")]
    Make(#[from] rcgen::Error),
    #[error("others keep changing the Secret {0}")]
    Contended(String),
}

impl Keeper {
    /// For the Secret `name`, with certificates for servers of these `names`.
    pub(super) fn new(client: Client, namespace: String, name: String, names: BTreeSet<String>) -> Self {
        Self { api: Api::namespaced(client, &namespace), namespace, name, names }
    }

    /// The keys as they should be `now`, which are in the Secret when this returns.
    pub(super) async fn keys(&self, now: Timestamp, is_known: bool) -> Result<Keys, KeeperError> {
        for _ in 0..ATTEMPTS_MAX {
            let secret = self.api.get_opt(&self.name).await.map_err(|source| self.failed("get", source))?;
            let known = secret.as_ref().and_then(|secret| Keys::read(secret.data.as_ref()?));
            let keys = Keys::at(known.as_ref(), &self.names, now, is_known)?;
            if known.as_ref() == Some(&keys) || self.write(secret, &keys).await? {
                return Ok(keys);
            }
        }
        Err(KeeperError::Contended(self.name.clone()))
    }

    /// Writes the keys unless another did since `secret` was read; says whether it did.
    async fn write(&self, secret: Option<Secret>, keys: &Keys) -> Result<bool, KeeperError> {
        let (verb, written) = match secret {
            Some(mut secret) => {
                secret.data = Some(keys.write());
                ("update", self.api.replace(&self.name, &PostParams::default(), &secret).await)
            }
            None => {
                let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
                let secret = Secret { metadata, data: Some(keys.write()), ..Secret::default() };
                ("create", self.api.create(&PostParams::default(), &secret).await)
            }
        };
        match written {
            Ok(_) => {
                tracing::info!(secret = %self.name, "Certificates were made or renewed");
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(source) => Err(self.failed(verb, source)),
        }
    }

    fn failed(&self, verb: &'static str, source: kube::Error) -> KeeperError {
        KeeperError::Secret { verb, namespace: self.namespace.clone(), name: self.name.clone(), source }
    }
}
