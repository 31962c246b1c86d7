//! Namespaces must be there before something is put into them, and nothing begins in one that ends.

use serde::Deserialize;
use windlass_store::Store;

use super::{Operation, Review, stored};
use crate::{ApiError, Cause, Subject};

/// The namespaces that a cluster cannot do without.
const KEPT: [&str; 3] = ["default", "kube-system", "kube-public"];

/// What matters of a namespace: every create looks at one.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Namespace {
    metadata: Metadata,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    deletion_timestamp: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

pub(super) fn check(store: &Store, review: &Review<'_>) -> Result<(), ApiError> {
    if review.is(Operation::Delete, "", "namespaces") {
        let kept = KEPT.contains(&review.name);
        return if kept { Err(review.refuse("this namespace may not be deleted")) } else { Ok(()) };
    }
    let own = review.group.is_empty() && review.resource == "namespaces";
    let inside = !review.namespace.is_empty() && !own;
    if !inside || review.operation != Operation::Create || review.resource == "localsubjectaccessreviews" {
        return Ok(());
    }
    let name = review.namespace;
    let namespace: Namespace = stored(store, &format!("/core/namespaces/{name}"))
        .ok_or_else(|| ApiError::not_found(Subject { group: "", resource: "namespaces" }, name))?;
    if namespace.metadata.deletion_timestamp.is_some() || namespace.status.phase == "Terminating" {
        let why = format!("unable to create new content in namespace {name} because it is being terminated");
        return Err(review.refuse(why).with_cause(Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {name} is being terminated"),
            field: Some("metadata.namespace".to_owned()),
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::review::tests::creation;
    use super::*;
    use crate::auth::User;
    use serde_json::{Value, json};
    use windlass_store::Write;

    #[tokio::test]
    async fn content_needs_a_namespace_that_stays() {
        let store = Store::in_memory();
        let ending = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let writes = vec![
            Write::create("/core/namespaces/live", "{}"),
            Write::create("/core/namespaces/ending", ending.to_string()),
        ];
        store.commit(writes).await.unwrap();
        let user = User::master("test");
        for (namespace, expected) in [("live", None), ("ending", Some("Forbidden")), ("none", Some("NotFound"))] {
            let review = creation(&user, "", "configmaps", namespace, json!({}));
            let reason = check(&store, &review).err().map(|error| error.reason);
            assert_eq!(reason.as_deref(), expected, "{namespace}");
        }
        let mut update = creation(&user, "", "configmaps", "ending", json!({}));
        update.operation = Operation::Update;
        assert!(check(&store, &update).is_ok());
    }

    #[test]
    fn some_namespaces_stay() {
        let user = User::master("test");
        for (name, expected) in [("default", false), ("kube-system", false), ("mine", true)] {
            let mut review = creation(&user, "", "namespaces", name, Value::Null);
            review.operation = Operation::Delete;
            review.name = name;
            assert_eq!(check(&Store::in_memory(), &review).is_ok(), expected, "{name}");
        }
    }
}
