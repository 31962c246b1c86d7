//! Pods run as a service account, and find its token, the cluster's CA and their namespace in a volume.

use std::time::Duration;

use rand::Rng;
use serde_json::{Value, json};
use windlass_store::Store;

use super::{Operation, Review, stored};
use crate::ApiError;
use crate::object::Object;

/// How long a Pod waits for the default account of its namespace, which a controller makes.
const DEFAULT_ACCOUNT_WAIT: Duration = Duration::from_secs(2);
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
/// The lifetime that marks the tokens of Pods.
const TOKEN_SECONDS: i64 = 3607;
const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

pub(super) async fn complete(store: &Store, review: &mut Review<'_>) -> Result<(), ApiError> {
    if !review.is(Operation::Create, "", "pods") || review.object.annotation("kubernetes.io/config.mirror").is_some() {
        return Ok(());
    }
    let spec = &review.object["spec"];
    let name = spec["serviceAccountName"].as_str().filter(|name| !name.is_empty());
    let name = name.or(spec["serviceAccount"].as_str().filter(|name| !name.is_empty()));
    let name = name.unwrap_or("default").to_owned();
    let Some(account) = account(store, review.namespace, &name).await else {
        let place = review.namespace;
        let why = format!("error looking up service account {place}/{name}: serviceaccount {name:?} not found");
        return Err(review.refuse(why));
    };
    let spec = &mut review.object["spec"];
    spec["serviceAccountName"] = json!(name);
    spec["serviceAccount"] = json!(name);
    if wants_token(spec, &account) {
        mount_token(spec);
    }
    let secrets = |object: &Value| object["imagePullSecrets"].as_array().is_some_and(|secrets| !secrets.is_empty());
    if !secrets(spec) && secrets(&account) {
        spec["imagePullSecrets"] = account["imagePullSecrets"].clone();
    }
    Ok(())
}

async fn account(store: &Store, namespace: &str, name: &str) -> Option<Value> {
    let key = format!("/core/serviceaccounts/{namespace}/{name}");
    let mut watch = store.watch(&key, store.revision()).ok()?;
    let found = stored(store, &key);
    if found.is_some() || name != "default" {
        return found;
    }
    let made = async {
        while let Ok(event) = watch.next().await {
            if let Some(entry) = event.entry.as_ref().filter(|_| *event.key == *key) {
                return serde_json::from_slice(&entry.value).ok();
            }
        }
        None
    };
    tokio::time::timeout(DEFAULT_ACCOUNT_WAIT, made).await.ok().flatten()
}

/// The Pod's wish comes before that of its account.
fn wants_token(spec: &Value, account: &Value) -> bool {
    let wish = |object: &Value| object["automountServiceAccountToken"].as_bool();
    wish(spec).or_else(|| wish(account)).unwrap_or(true)
}

fn mount_token(spec: &mut Value) {
    let volumes = spec["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = volumes.iter().filter_map(|volume| volume["name"].as_str());
    let present = names.into_iter().find(|name| name.starts_with(VOLUME_PREFIX)).map(str::to_owned);
    let name = present.clone().unwrap_or_else(|| format!("{VOLUME_PREFIX}{}", suffix()));

    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            mounted |= mount(container, &name);
        }
    }
    if mounted && present.is_none() {
        push(spec, "volumes", json!({"name": name, "projected": token_volume()}));
    }
}

/// Whether the volume was mounted; a container that has something else there keeps it.
fn mount(container: &mut Value, volume: &str) -> bool {
    let mounts = container["volumeMounts"].as_array().map(Vec::as_slice).unwrap_or_default();
    if mounts.iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
        return false;
    }
    push(container, "volumeMounts", json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH}));
    true
}

fn token_volume() -> Value {
    json!({
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
            ]}},
        ],
    })
}

fn push(object: &mut Value, list: &str, item: Value) {
    match &mut object[list] {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

fn suffix() -> String {
    let mut random = rand::rng();
    (0..5).map(|_| char::from(SUFFIX_LETTERS[random.random_range(0..SUFFIX_LETTERS.len())])).collect()
}

#[cfg(test)]
mod tests {
    use super::super::review::tests::creation;
    use super::*;
    use crate::auth::User;
    use windlass_store::Write;

    async fn completed(account: Value, pod: Value) -> Result<Value, ApiError> {
        let store = Store::in_memory();
        store.commit(vec![Write::create("/core/serviceaccounts/red/default", account.to_string())]).await.unwrap();
        let user = User::master("test");
        let mut review = creation(&user, "", "pods", "red", pod);
        complete(&store, &mut review).await?;
        Ok(review.object)
    }

    fn pod() -> Value {
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b", "volumeMounts": [{"name": "own", "mountPath": MOUNT_PATH}]}]}})
    }

    #[tokio::test]
    async fn a_pod_gets_the_default_account_and_its_token() {
        let pod = completed(json!({"imagePullSecrets": [{"name": "pull"}]}), pod()).await.unwrap();
        let spec = &pod["spec"];
        assert_eq!(spec["serviceAccountName"], "default");
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "pull"}]));
        let volume = &spec["volumes"][0];
        assert!(volume["name"].as_str().unwrap().starts_with(VOLUME_PREFIX));
        assert_eq!(volume["projected"]["sources"].as_array().map(Vec::len), Some(3));
        assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], volume["name"]);
        assert_eq!(spec["containers"][1]["volumeMounts"].as_array().map(Vec::len), Some(1));
    }

    #[tokio::test]
    async fn the_token_can_be_declined() {
        let account = json!({"automountServiceAccountToken": false});
        assert_eq!(completed(account.clone(), pod()).await.unwrap()["spec"]["volumes"], Value::Null);
        let mut wanting = pod();
        wanting["spec"]["automountServiceAccountToken"] = json!(true);
        assert!(completed(account, wanting).await.unwrap()["spec"]["volumes"].is_array());
    }

    #[tokio::test]
    async fn an_unknown_account_is_refused() {
        let mut pod = pod();
        pod["spec"]["serviceAccountName"] = json!("ghost");
        let error = completed(json!({}), pod).await.unwrap_err();
        assert_eq!(
            error.message,
            "pods \"it\" is forbidden: error looking up service account red/ghost: serviceaccount \"ghost\" not found"
        );
    }

    #[tokio::test]
    async fn a_pod_waits_for_the_default_account() {
        let store = Store::in_memory();
        let user = User::master("test");
        let mut review = creation(&user, "", "pods", "red", pod());
        let make = store.commit(vec![Write::create("/core/serviceaccounts/red/default", "{}")]);
        let (completed, made) = tokio::join!(complete(&store, &mut review), make);
        made.unwrap();
        completed.unwrap();
    }
}
