//! The existing operator: two controllers of `kube::runtime`, side by side.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::kinds::{self, NAME, Page, Team};

/// Works until `stop`.
pub(crate) async fn run(client: Client, stop: CancellationToken) -> Result<(), Infallible> {
    tokio::join!(pages(client.clone(), stop.clone()), teams(client, stop));
    Ok(())
}

pub(crate) async fn pages(client: Client, stop: CancellationToken) {
    Controller::new(Api::<Page>::all(client.clone()), Config::default())
        .owns(Api::<ConfigMap>::all(client.clone()), Config::default())
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(reconcile_page, |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(client))
        .for_each(|_| ready(()))
        .await;
}

async fn reconcile_page(page: Arc<Page>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let namespace = page.namespace().unwrap_or_default();
    let mut map = kinds::config_map(page.name_any(), &page.spec.title, &page.spec.text);
    map.metadata.owner_references = page.controller_owner_ref(&()).map(|owner| vec![owner]);
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    maps.patch(&page.name_any(), &PatchParams::apply(NAME).force(), &Patch::Apply(map)).await?;

    let status = json!({"status": {"path": kinds::path(&page.spec.title)}});
    let pages: Api<Page> = Api::namespaced((*client).clone(), &namespace);
    pages.patch_status(&page.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(Action::requeue(Duration::from_secs(300)))
}

pub(crate) async fn teams(client: Client, stop: CancellationToken) {
    Controller::new(Api::<Team>::all(client.clone()), Config::default())
        .owns(Api::<ServiceAccount>::all(client.clone()), Config::default())
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(reconcile_team, |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(client))
        .for_each(|_| ready(()))
        .await;
}

async fn reconcile_team(team: Arc<Team>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let accounts: Api<ServiceAccount> = Api::namespaced((*client).clone(), &team.namespace().unwrap_or_default());
    let params = PatchParams::apply(NAME).force();
    accounts.patch(&team.name_any(), &params, &Patch::Apply(kinds::account(&team))).await?;
    Ok(Action::await_change())
}
