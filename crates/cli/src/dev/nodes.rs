//! Nodes that another profile left behind in the same folder: nobody serves them any more.

use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt};
use windlass::k8s_openapi::api::core::v1::{Node, Pod};

use crate::failure::Failure;

/// What nodes that only pretend to run Pods say of what runs them.
const PRETENDED: &str = "fake://";

/// Removes nodes that pretend to run Pods if `real` ones are served, and else the others, with their Pods: controllers then make
/// new ones where something runs them. A cluster that has lost a node would wait five minutes for it first.
pub(crate) async fn forget_others(client: &Client, real: bool) -> Result<(), Failure> {
    let nodes: Api<Node> = Api::all(client.clone());
    for node in nodes.list(&ListParams::default()).await?.items {
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let is_other = info.is_some_and(|info| info.container_runtime_version.starts_with(PRETENDED) == real);
        if !is_other {
            continue;
        }
        let on_it = ListParams::default().fields(&format!("spec.nodeName={}", node.name_any()));
        for pod in Api::<Pod>::all(client.clone()).list(&on_it).await?.items {
            let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
            gone(pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await)?;
        }
        gone(nodes.delete(&node.name_any(), &DeleteParams::default()).await)?;
    }
    Ok(())
}

fn gone<T>(deleted: kube::Result<T>) -> Result<(), Failure> {
    match deleted {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}
