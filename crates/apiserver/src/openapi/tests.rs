//! Documents as clients read them.

use http_body_util::BodyExt;

use super::*;
use crate::registry::Registry;

async fn get(openapi: &OpenApi, registry: &Registry, address: &str) -> (Response<()>, Value) {
    let (path, text) = address.split_once('?').unwrap_or((address, ""));
    let response =
        openapi.respond(path, &Query::parse(Some(text)), &HeaderMap::new(), (&registry.catalog(), &Arc::default()));
    let (parts, body) = response.unwrap().unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    (Response::from_parts(parts, ()), value)
}

#[tokio::test]
async fn the_index_leads_to_documents_that_never_change() {
    let (openapi, registry) = (OpenApi::default(), Registry::new());
    let (_, index) = get(&openapi, &registry, "/openapi/v3").await;
    let address = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let (response, document) = get(&openapi, &registry, &address).await;
    assert!(response.headers()[CACHE_CONTROL].to_str().unwrap().contains("immutable"));
    assert_eq!(document["openapi"], "3.0.0");
    let (moved, _) = get(&openapi, &registry, "/openapi/v3/apis/apps/v1?hash=OLD").await;
    assert_eq!(moved.status(), 301);
    assert_eq!(moved.headers()[LOCATION], address.as_str());
}

#[tokio::test]
async fn patches_say_that_fields_can_be_validated() {
    let (openapi, registry) = (OpenApi::default(), Registry::new());
    let (_, document) = get(&openapi, &registry, "/openapi/v3/apis/apps/v1").await;
    let item = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
    let patch = &item["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "kind": "Deployment", "version": "v1"})
    );
    assert_eq!(patch["operationId"], "patchAppsV1NamespacedDeployment");
    let parameters = patch["parameters"].as_array().unwrap();
    assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation" && parameter["in"] == "query"));
    let scale = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["put"];
    assert_eq!(scale["x-kubernetes-group-version-kind"]["kind"], "Scale");
    let (_, core) = get(&openapi, &registry, "/openapi/v3/api/v1").await;
    assert_eq!(core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/log"]["get"]["x-kubernetes-action"], "get");
    assert_eq!(core["paths"]["/api/v1/namespaces"]["delete"], Value::Null);
}

/// Every reference of a document must lead somewhere in it.
fn dangling(value: &Value, root: &Value, prefix: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                let pointer = target.strip_prefix('#').filter(|_| target.starts_with(prefix));
                if pointer.and_then(|pointer| root.pointer(pointer)).is_none() {
                    found.push(target.to_owned());
                }
            }
            members.values().for_each(|value| dangling(value, root, prefix, found));
        }
        Value::Array(items) => items.iter().for_each(|value| dangling(value, root, prefix, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_document_is_complete() {
    let (openapi, registry) = (OpenApi::default(), Registry::new());
    let (_, index) = get(&openapi, &registry, "/openapi/v3").await;
    for name in index["paths"].as_object().unwrap().keys() {
        let (_, document) = get(&openapi, &registry, &format!("/openapi/v3/{name}")).await;
        let mut found = Vec::new();
        dangling(&document, &document, "#/components/schemas/", &mut found);
        assert_eq!(found, Vec::<String>::new(), "{name}");
    }
    let (_, document) = get(&openapi, &registry, "/openapi/v2").await;
    let mut found = Vec::new();
    dangling(&document, &document, "#/definitions/", &mut found);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(
        document["definitions"]["io.k8s.api.apps.v1.Deployment"]["properties"]["spec"],
        json!({"$ref": "#/definitions/io.k8s.api.apps.v1.DeploymentSpec"})
    );
}

#[tokio::test]
async fn documents_are_kept_while_they_are_true() {
    let (openapi, registry) = (OpenApi::default(), Registry::new());
    let first = openapi.document("apis/apps/v1", &registry.catalog()).unwrap();
    let again = openapi.document("apis/apps/v1", &registry.catalog()).unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    assert!(openapi.document("apis/nothing/v1", &registry.catalog()).is_none());
}

#[test]
fn other_forms_and_paths_are_refused() {
    let (openapi, registry) = (OpenApi::default(), Registry::new());
    let catalog = registry.catalog();
    assert!(openapi.respond("/apis", &Query::default(), &HeaderMap::new(), (&catalog, &Arc::default())).is_none());
    let missing =
        openapi.respond("/openapi/v3/apis/none/v1", &Query::default(), &HeaderMap::new(), (&catalog, &Arc::default()));
    assert_eq!(missing.unwrap().unwrap_err().code, 404);
    let headers: HeaderMap = [(ACCEPT, HeaderValue::from_static("application/octet-stream"))].into_iter().collect();
    let refused = openapi.respond("/openapi/v2", &Query::default(), &headers, (&catalog, &Arc::default()));
    assert_eq!(refused.unwrap().unwrap_err().code, 406);
}

#[tokio::test]
async fn documents_have_a_form_in_protobuf() {
    let (openapi, registry) = (OpenApi::default(), Registry::new());
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(protobuf::ACCEPTED_V3[0]));
    let ask = |path: &str| {
        openapi.respond(path, &Query::parse(None), &headers, (&registry.catalog(), &Arc::default())).unwrap()
    };
    let response = ask("/openapi/v3/apis/apps/v1").unwrap();
    assert_eq!(response.headers()["content-type"], protobuf::CONTENT_TYPE_V3);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&body[..7], b"\x0a\x053.0.0");
    assert_eq!(ask("/openapi/v3").unwrap_err().code, 406);
    assert_eq!(ask("/openapi/v2").unwrap_err().code, 406);
}
