//! The agents of the nodes, asked what their Pods use.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, future::BoxFuture, stream};
use http::Request;
use http_body_util::BodyExt;
use windlass_schema::kubelet::{SUMMARY_PATH, Summary};

use crate::{Body, NodeProxy};

/// How long a node may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an answer may be: some hundred bytes for each container.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How many nodes are asked at the same time.
const NODES_AT_ONCE_MAX: usize = 16;

/// What each of the nodes says; those that do not answer are left out.
pub(super) async fn ask(proxy: Option<&Arc<dyn NodeProxy>>, nodes: BTreeSet<String>) -> HashMap<String, Summary> {
    let Some(proxy) = proxy else { return HashMap::new() };
    let asked = nodes.into_iter().filter(|node| !node.is_empty()).map(|node| ask_one(proxy, node));
    let answers: Vec<Option<(String, Summary)>> =
        stream::iter(asked).buffer_unordered(NODES_AT_ONCE_MAX).collect().await;
    answers.into_iter().flatten().collect()
}

fn ask_one(proxy: &Arc<dyn NodeProxy>, node: String) -> BoxFuture<'_, Option<(String, Summary)>> {
    Box::pin(async move {
        let why = match tokio::time::timeout(ANSWER_TIME_MAX, summary(proxy.as_ref(), &node)).await {
            Ok(Ok(summary)) => return Some((node, summary)),
            Ok(Err(why)) => why,
            Err(_) => "timed out".to_owned(),
        };
        tracing::debug!(node, why, "a node does not tell what its Pods use");
        None
    })
}

async fn summary(proxy: &dyn NodeProxy, node: &str) -> Result<Summary, String> {
    let request = Request::get(SUMMARY_PATH).body(Body::default()).map_err(|error| error.to_string())?;
    let response = proxy.call(node, request).await.map_err(|error| error.to_string())?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("it answered {status}"));
    }
    let (mut body, mut text) = (response.into_body(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| error.to_string())?.into_data() else { continue };
        if text.len() + data.len() > ANSWER_BYTES_MAX {
            return Err(format!("it answered with more than {ANSWER_BYTES_MAX} bytes"));
        }
        text.extend_from_slice(&data);
    }
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}
