//! Keeps a ConfigMap and a Deployment for each Widget, on `kube::runtime::Controller`. `WRITES=apply`, the default, applies
//! them in every pass, as kube's own examples do; `WRITES=compare` reads them first and writes what differs.
//! `CACHES=pruned` keeps and reads as little as kube's guide to optimisation has it.

mod children;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, CustomResource, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracing_subscriber::EnvFilter;

const MANAGER: &str = "bench";
const RETRY: Duration = Duration::from_secs(5);
/// kube's own default is no limit; its documentation advises one for controllers of many objects.
const CONCURRENCY: u16 = 10;
/// Objects in a page of a list, where memory counts.
const PAGE: u32 = 50;

/// A text, and programs that would use it.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "bench.example.com", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
struct WidgetSpec {
    text: String,
    replicas: i32,
}

/// What is known of a Widget.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct WidgetStatus {
    ready: bool,
    observed_generation: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("a child could not be kept: {0}")]
    Child(#[source] kube::Error),
    #[error("the status could not be written: {0}")]
    Status(#[source] kube::Error),
}

struct Context {
    client: Client,
    compares: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let client = Client::try_default().await?;
    let compares = std::env::var("WRITES").is_ok_and(|writes| writes == "compare");
    let context = Arc::new(Context { client: client.clone(), compares });
    let pruned = std::env::var("CACHES").is_ok_and(|caches| caches == "pruned");
    let controller = if pruned { pruned_controller(&client) } else { controller(&client) };
    controller
        .with_config(Config::default().concurrency(CONCURRENCY))
        .shutdown_on_signal()
        .run(reconcile, |_, _, _| Action::requeue(RETRY), context)
        .for_each(|result| async move {
            if let Err(error) = result {
                tracing::warn!(%error, "Reconciling failed");
            }
        })
        .await;
    Ok(())
}

fn controller(client: &Client) -> Controller<Widget> {
    Controller::new(Api::<Widget>::all(client.clone()), watcher::Config::default())
        .owns(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Deployment>::all(client.clone()), watcher::Config::default())
}

/// Small pages, no managed fields, and of children the metadata alone.
fn pruned_controller(client: &Client) -> Controller<Widget> {
    let (reader, writer) = reflector::store();
    let widgets = watcher(Api::<Widget>::all(client.clone()), small_pages())
        .default_backoff()
        .modify(|widget| widget.managed_fields_mut().clear())
        .reflect(writer)
        .applied_objects();
    Controller::for_stream(widgets, reader)
        .owns_stream(metadata_of::<ConfigMap>(client))
        .owns_stream(metadata_of::<Deployment>(client))
}

fn metadata_of<K>(client: &Client) -> impl Stream<Item = watcher::Result<PartialObjectMeta<K>>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher(Api::<PartialObjectMeta<K>>::all(client.clone()), small_pages())
        .default_backoff()
        .modify(|child| child.managed_fields_mut().clear())
        .touched_objects()
}

fn small_pages() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}

async fn reconcile(widget: Arc<Widget>, context: Arc<Context>) -> Result<Action, Error> {
    let namespace = widget.namespace().unwrap_or_default();
    let (config_map, deployment) = (children::config_map(&widget), children::deployment(&widget));
    let is_map = |is: &ConfigMap| is.data == config_map.data;
    context.keep(&namespace, &config_map, is_map).await?;
    let is_deployed = |is: &Deployment| {
        let (is, wanted) = (is.spec.as_ref(), deployment.spec.as_ref());
        let image = |spec: Option<&k8s_openapi::api::apps::v1::DeploymentSpec>| {
            spec.and_then(|spec| spec.template.spec.as_ref()?.containers.first()?.image.clone())
        };
        is.and_then(|spec| spec.replicas) == wanted.and_then(|spec| spec.replicas) && image(is) == image(wanted)
    };
    context.keep(&namespace, &deployment, is_deployed).await?;
    let status = WidgetStatus { ready: true, observed_generation: widget.metadata.generation };
    if widget.status.as_ref() != Some(&status) {
        let widgets: Api<Widget> = Api::namespaced(context.client.clone(), &namespace);
        let patch = Patch::Merge(json!({"status": status}));
        let written = widgets.patch_status(&widget.name_any(), &PatchParams::default(), &patch).await;
        written.map_err(Error::Status)?;
    }
    Ok(Action::await_change())
}

impl Context {
    async fn keep<K>(&self, namespace: &str, child: &K, is_it: impl Fn(&K) -> bool) -> Result<(), Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let name = child.name_any();
        if self.compares && api.get_opt(&name).await.map_err(Error::Child)?.is_some_and(|is| is_it(&is)) {
            return Ok(());
        }
        let params = PatchParams::apply(MANAGER).force();
        api.patch(&name, &params, &Patch::Apply(child)).await.map(drop).map_err(Error::Child)
    }
}
