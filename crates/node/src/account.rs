//! What the agent tells of itself and its Pods, in the kubelet's own paths.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::core::v1::Pod;

use crate::serve::{Body, failure};

/// Metrics as Prometheus reads them.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What there is to tell.
pub(crate) struct Account<'a> {
    pub(crate) node: &'a str,
    pub(crate) pods: Vec<Arc<Pod>>,
    /// How many containers run.
    pub(crate) containers: usize,
}

impl Account<'_> {
    /// Answers a path of the agent's own; `None` if it is none of those.
    pub(crate) fn answer(&self, method: &Method, path: &str) -> Option<Response<Body>> {
        let (media_type, text) = match path {
            "/healthz" | "/healthz/ping" => ("text/plain; charset=utf-8", "ok".to_owned()),
            "/pods" => ("application/json", self.pods()),
            "/metrics" => (METRICS_TYPE, self.metrics()),
            _ => return None,
        };
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Some(failure(StatusCode::METHOD_NOT_ALLOWED, format!("{path} can only be read")));
        }
        let mut response = Response::new(Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        Some(response)
    }

    fn pods(&self) -> String {
        let items: Vec<&Pod> = self.pods.iter().map(Arc::as_ref).collect();
        serde_json::json!({ "kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items }).to_string()
    }

    fn metrics(&self) -> String {
        let Self { node, pods, containers } = self;
        let pods = pods.len();
        format!(
            "# HELP kubelet_node_name The name of the node. The count is always 1.\n\
             # TYPE kubelet_node_name gauge\n\
             kubelet_node_name{{node=\"{node}\"}} 1\n\
             # HELP kubelet_running_pods How many Pods the agent looks after.\n\
             # TYPE kubelet_running_pods gauge\n\
             kubelet_running_pods {pods}\n\
             # HELP kubelet_running_containers How many containers run.\n\
             # TYPE kubelet_running_containers gauge\n\
             kubelet_running_containers{{container_state=\"running\"}} {containers}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_agent_tells_what_it_is_asked_for() {
        let mut pod = Pod::default();
        pod.metadata.name = Some("p".to_owned());
        let account = Account { node: "n", pods: vec![Arc::new(pod)], containers: 2 };
        let ask = async |method: Method, path: &str| {
            let response = account.answer(&method, path)?;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            Some((status, String::from_utf8(body.to_vec()).unwrap()))
        };
        assert_eq!(ask(Method::GET, "/healthz").await, Some((200, "ok".to_owned())));
        let (status, pods) = ask(Method::GET, "/pods").await.unwrap();
        let pods: serde_json::Value = serde_json::from_str(&pods).unwrap();
        assert_eq!((status, pods["items"][0]["metadata"]["name"].as_str()), (200, Some("p")));
        let (_, metrics) = ask(Method::GET, "/metrics").await.unwrap();
        assert!(metrics.contains("kubelet_running_pods 1\n"), "{metrics}");
        assert!(metrics.contains("kubelet_running_containers{container_state=\"running\"} 2\n"), "{metrics}");
        assert_eq!(ask(Method::POST, "/pods").await.map(|(status, _)| status), Some(405));
        assert_eq!(ask(Method::GET, "/configz").await, None);
    }
}
