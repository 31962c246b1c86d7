//! Step 2: pages are on the runtime, with the body of their reconcile nearly as it was.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use windlass::runtime::{Action, Context, Controller, Error, Manager, Reconcile};

use crate::before::teams;
use crate::kinds::{self, NAME, Page};
use crate::step1::config;

/// Pages on the runtime, teams as they were.
pub(crate) fn manager(client: Client) -> Manager {
    let mut manager = Manager::new(client, config());
    let maps = manager.informers().all::<ConfigMap>();
    manager.add(Controller::of(&manager, Pages).owns(&maps));
    let client = manager.handle().client;
    manager.add_task(move |stop| teams(client, stop));
    manager
}

struct Pages;

impl Reconcile for Pages {
    type Resource = Page;

    async fn reconcile(&self, page: Arc<Page>, cx: &Context<Page>) -> Result<Action, Error> {
        let namespace = page.namespace().unwrap_or_default();
        let mut map = kinds::config_map(page.name_any(), &page.spec.title, &page.spec.text);
        map.metadata.owner_references = page.controller_owner_ref(&()).map(|owner| vec![owner]);
        let maps: Api<ConfigMap> = Api::namespaced(cx.client(), &namespace);
        maps.patch(&page.name_any(), &PatchParams::apply(NAME).force(), &Patch::Apply(map)).await?;

        let status = json!({"status": {"path": kinds::path(&page.spec.title)}});
        let pages: Api<Page> = Api::namespaced(cx.client(), &namespace);
        pages.patch_status(&page.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(Action::Recheck(Duration::from_secs(300)))
    }
}
