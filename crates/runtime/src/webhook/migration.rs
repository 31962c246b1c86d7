//! After the storage version of a kind has changed: all objects are written anew, so that the old version can go.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;
use windlass_core::Chain;

/// How many objects are listed at once.
const PAGE: u32 = 100;
/// How soon to look again while something is left to do.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// What an attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrated {
    /// Nothing is stored as another version: so many objects were written anew.
    Done(usize),
    /// The definition in the API is not the one that is known here.
    OtherDefinition,
    /// So many objects could not be written.
    Left(usize),
}

/// The move of all objects to their storage version, once conversion is served.
pub(super) struct Migration {
    pub(super) client: Client,
    /// The operator's name.
    pub(super) name: String,
    pub(super) chains: Vec<Chain>,
    pub(super) clock: Clock,
    /// Whether the operator serves all namespaces. Else objects of others are none of its business: it tells what to do.
    pub(super) serves_all: bool,
}

impl Migration {
    pub(super) async fn run(self, mut served: watch::Receiver<bool>, stop: CancellationToken) {
        let work = async {
            if served.wait_for(|served| *served).await.is_err() {
                return;
            }
            for chain in self.chains.iter().filter(|chain| chain.converts()) {
                match self.serves_all {
                    true => self.migrate(chain).await,
                    false => self.tell(chain).await,
                }
            }
        };
        tokio::select! {
            () = work => {}
            () = stop.cancelled() => {}
        }
    }

    /// Tries until nothing is stored as another version.
    async fn migrate(&self, chain: &Chain) {
        let name = chain.definition().name_any();
        loop {
            match migrate(&self.client, chain).await {
                Ok(Migrated::Done(_)) => return,
                Ok(Migrated::OtherDefinition) => {
                    tracing::info!(definition = %name, "Its storage version is not {}: nothing is moved", chain.stored());
                }
                Ok(Migrated::Left(count)) => {
                    tracing::warn!(definition = %name, "{count} objects could not be moved to the storage version");
                }
                Err(error) => tracing::warn!(%error, definition = %name, "Cannot move objects to the storage version"),
            }
            self.clock.sleep(RETRY_INTERVAL).await;
        }
    }

    /// Says how objects of all namespaces get to the storage version.
    async fn tell(&self, chain: &Chain) {
        let (definition, stored) = (chain.definition().name_any(), chain.stored());
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        match definitions.get(&definition).await {
            Ok(found) if stored_versions(&found) != [stored] => tracing::warn!(
                %definition,
                "Some objects are stored as {:?}, and this operator serves some namespaces only: to move all to {stored}, \
                 somebody with a right to all of them runs: {} migrate",
                stored_versions(&found),
                self.name
            ),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, %definition, "Cannot tell in which versions objects are stored"),
        }
    }
}

fn stored_versions(definition: &CustomResourceDefinition) -> Vec<String> {
    definition.status.as_ref().and_then(|status| status.stored_versions.clone()).unwrap_or_default()
}

/// Writes all objects of a kind anew, so that they are stored as its storage version, and strikes off the others. It takes a
/// right to the objects of all namespaces and to the status of the definition, and somebody who serves conversion.
///
/// # Errors
/// When the API refuses.
pub async fn migrate(client: &Client, chain: &Chain) -> kube::Result<Migrated> {
    attempt(client, chain, &chain.definition().name_any()).await
}

async fn attempt(client: &Client, chain: &Chain, name: &str) -> kube::Result<Migrated> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = definitions.get(name).await?;
    let stored = chain.stored();
    if !definition.spec.versions.iter().any(|version| version.name == stored && version.storage) {
        return Ok(Migrated::OtherDefinition);
    }
    let before = stored_versions(&definition);
    if before == [stored] {
        return Ok(Migrated::Done(0));
    }
    tracing::info!(definition = %name, "Moving objects from {before:?} to {stored}");
    let (moved, left) = rewrite_all(client, &definition, stored).await?;
    if left > 0 {
        return Ok(Migrated::Left(left));
    }
    // With the revision, so that a change of the storage version meanwhile is not overlooked.
    let patch = json!({
        "metadata": {"resourceVersion": definition.metadata.resource_version},
        "status": {"storedVersions": [stored]},
    });
    definitions.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    tracing::info!(definition = %name, "{moved} objects are stored as {stored}");
    Ok(Migrated::Done(moved))
}

/// Writes every object as it is; returns how many, and how many could not be written.
async fn rewrite_all(
    client: &Client,
    definition: &CustomResourceDefinition,
    version: &str,
) -> kube::Result<(usize, usize)> {
    let (spec, mut params) = (&definition.spec, ListParams::default().limit(PAGE));
    let resource = ApiResource {
        group: spec.group.clone(),
        version: version.into(),
        api_version: format!("{}/{version}", spec.group),
        kind: spec.names.kind.clone(),
        plural: spec.names.plural.clone(),
    };
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let (mut moved, mut left) = (0, 0);
    loop {
        let page = all.list_metadata(&params).await?;
        for object in &page.items {
            let api: Api<DynamicObject> = match object.namespace() {
                Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
                None => all.clone(),
            };
            let meta = &object.metadata;
            let patch = json!({"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}});
            match api.patch_metadata(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
                Ok(_) => moved += 1,
                // Gone, or written by somebody since: either way it is not stored as before.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => {
                    tracing::warn!(%error, object = %object.name_any(), "Cannot be moved to the storage version");
                    left += 1;
                }
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok((moved, left)),
        }
    }
}
