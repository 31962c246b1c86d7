//! What holds of own writes: whoever wrote something sees it, however late the watch is.

use std::sync::Arc;

use crate::notes::{Note, Running, app, edit, note, write};
use tokio::sync::mpsc;
use windlass::Program;
use windlass::kube::Resource as _;
use windlass::kube::api::{Api, PostParams};
use windlass::prelude::*;
use windlass::serde_json::json;
use windlass_runtime::tap::Intercept;
use windlass_runtime::{Controller, Informer, Manager, ManagerConfig};
use windlass_testkit::TestCluster;

/// Makes one ConfigMap with a name of chance for each note, if the cache has none yet.
struct Maker {
    maps: Informer<ConfigMap>,
    ran: mpsc::UnboundedSender<usize>,
}

impl Reconcile for Maker {
    type Resource = Note;

    async fn reconcile(&self, note: Arc<Note>, cx: &Context<Note>) -> Result<Action, Error> {
        let known = self.maps.owned_by(note.metadata.uid.as_deref().unwrap());
        if known.is_empty() {
            let mut map = ConfigMap::default();
            map.metadata.generate_name = Some("note-".into());
            map.metadata.owner_references = note.controller_owner_ref(&()).map(|owner| vec![owner]);
            let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
            api.create(&PostParams::default(), &map).await?;
        }
        self.ran.send(known.len()).unwrap();
        Ok(Action::Await)
    }
}

/// Keeps all events of ConfigMaps back for ever; lists are answered.
pub(crate) fn stale_config_maps() -> Intercept {
    Arc::new(|call, request, next| {
        if call.verb == "watch" && call.resource == "configmaps" {
            return Box::pin(std::future::pending());
        }
        next(request)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_cache_never_leads_to_a_double_create() {
    let cluster = TestCluster::start().await;
    cluster.define(app().crds()).await;
    let mut manager = Manager::new(cluster.client(), ManagerConfig::new("test"));
    manager.tap().intercept(Some(stale_config_maps()));
    let maps = manager.informers().all::<ConfigMap>();
    let (ran, mut runs) = mpsc::unbounded_channel();
    let controller = Controller::of(&manager, Maker { maps: maps.clone(), ran }).owns(&maps);
    manager.add(controller);
    let running = Running::start(manager);
    let notes = cluster.api::<Note>();
    write(&notes, note("n", "0")).await;
    assert_eq!(runs.recv().await, Some(0), "it was made in the first run");
    for count in 1..20 {
        edit(&notes, "n", json!({"spec": {"text": count.to_string()}})).await;
        assert_eq!(runs.recv().await, Some(1), "and is known in all others");
    }
    let made = cluster.list::<ConfigMap>().await;
    assert_eq!(made.iter().filter(|map| map.name_any().starts_with("note-")).count(), 1);
    running.end().await;
}
