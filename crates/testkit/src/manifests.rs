//! Manifests of the code under test, and its rights.

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::TestCluster;

const FIELD_MANAGER: &str = "windlass-testkit";

impl TestCluster {
    /// Applies objects as `kubectl apply --server-side --validate=strict` does: a field that the API does not know fails
    /// the test.
    ///
    /// # Panics
    /// If one is refused.
    pub async fn apply(&self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
            if let Err(error) = apply(self.client(), object).await {
                panic!("{what} is refused: {error}");
            }
        }
    }

    /// Makes a namespace, unless it is there.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn namespace(&self, name: &str) {
        self.apply([json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})]).await;
    }

    /// A client of a service account, with the rights that RBAC gives to it and no others. The account need not be there.
    pub fn client_of_account(&self, namespace: &str, name: &str) -> Client {
        let (name, groups) = account_groups(namespace, name);
        self.client_as(&name, &groups.each_ref().map(String::as_str))
    }
}

/// What a service account is called as a user, and the groups that it is in.
pub(crate) fn account_groups(namespace: &str, name: &str) -> (String, [String; 3]) {
    let of_namespace = format!("system:serviceaccounts:{namespace}");
    let groups = ["system:serviceaccounts".to_owned(), of_namespace, "system:authenticated".to_owned()];
    (format!("system:serviceaccount:{namespace}:{name}"), groups)
}

pub(crate) async fn apply(client: Client, object: Value) -> Result<(), String> {
    let object: DynamicObject = serde_json::from_value(object).map_err(|error| error.to_string())?;
    let types: &TypeMeta = object.types.as_ref().ok_or("it says neither apiVersion nor kind")?;
    let kind = GroupVersionKind::try_from(types).map_err(|error| error.to_string())?;
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let params = PatchParams::apply(FIELD_MANAGER).force().validation_strict();
    let applied = api.patch(&object.name_any(), &params, &Patch::Apply(&object)).await;
    applied.map(drop).map_err(|error| error.to_string())
}
