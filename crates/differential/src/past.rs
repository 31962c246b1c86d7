//! What servers say of versions that they no longer remember.

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use serde_json::json;

use super::call::Call;
use super::control_plane::ControlPlane;
use super::story::{Kind, TABLE};

/// More writes than Windlass remembers.
const FLOOD: usize = 10_100;
/// How many of them are under way at once.
const AT_ONCE: usize = 16;
const FLOODED: &str = "/api/v1/namespaces/diff/configmaps";
/// A token of the first version: `{"v":"meta.k8s.io/v1","rv":1,"start":"a\u0000"}`.
const TOKEN: &str = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0";

/// Makes both servers forget their first versions.
pub(super) async fn forget(kubernetes: &ControlPlane, windlass: &ControlPlane) -> Result<()> {
    compact(kubernetes).await?;
    flood(windlass).await
}

/// Makes etcd forget everything before now.
async fn compact(kubernetes: &ControlPlane) -> Result<()> {
    let now = Call::new("list", "GET", format!("{FLOODED}?labelSelector=none"), None).send(&kubernetes.client).await;
    let etcd = kubernetes.etcd.as_ref().context("there is no etcd")?;
    let wish = json!({"revision": now.body["metadata"]["resourceVersion"], "physical": true});
    let done = Call::new("compact", "POST", "/v3/kv/compaction".to_owned(), Some(wish)).send(etcd).await;
    if done.code != 200 {
        bail!("etcd cannot be compacted: {}", done.body);
    }
    Ok(())
}

/// Makes Windlass forget its first versions by writing more than it remembers.
async fn flood(windlass: &ControlPlane) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flood"}});
    let made = Call::new("create", "POST", FLOODED.to_owned(), Some(object)).send(&windlass.client).await;
    if made.code != 201 {
        bail!("the flood cannot begin: {}", made.body);
    }
    let write = |number: usize| async move {
        let change = json!({"data": {"number": number.to_string()}});
        let mut call = Call::new("flood", "PATCH", format!("{FLOODED}/flood"), Some(change));
        call.content = "application/merge-patch+json";
        call.send(&windlass.client).await.code
    };
    let codes = futures::stream::iter((0..FLOOD).map(write)).buffer_unordered(AT_ONCE);
    let refused = codes.filter(|code| std::future::ready(*code != 200)).count().await;
    if refused > FLOOD / 100 {
        bail!("{refused} writes of the flood were refused");
    }
    let end = Call::new("delete", "DELETE", format!("{FLOODED}/flood"), None).send(&windlass.client).await;
    (end.code == 200).then_some(()).context("the flood cannot end")
}

/// Requests for the first version, which nobody remembers.
pub(super) fn calls(kind: &Kind) -> Vec<Call> {
    let path = &kind.path;
    let get = |verb: &'static str, query: &str| Call::new(verb, "GET", format!("{path}?{query}"), None);
    vec![
        get("past-watch", "watch=true&timeoutSeconds=1&resourceVersion=1"),
        Call { accept: TABLE, ..get("past-watch-table", "watch=true&timeoutSeconds=1&resourceVersion=1") },
        get("past-watch-bookmarks", "watch=true&timeoutSeconds=1&resourceVersion=1&allowWatchBookmarks=true"),
        get("past-list", "resourceVersion=1&resourceVersionMatch=Exact"),
        get("past-page", &format!("limit=1&continue={TOKEN}")),
    ]
}
