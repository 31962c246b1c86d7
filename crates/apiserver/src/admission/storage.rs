//! Claims get the default storage class and grow only where it allows that, and volumes in use are protected from deletion.

use serde_json::{Value, json};
use windlass_schema::quantity;
use windlass_store::Store;

use super::{Operation, Review, all_stored, stored};
use crate::{ApiError, object::Object};

const CLASSES: &str = "/storage.k8s.io/storageclasses/";
const DEFAULT_MARK: &str = "storageclass.kubernetes.io/is-default-class";
const OLDER_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn choose_class(store: &Store, review: &mut Review<'_>) {
    if !review.is(Operation::Create, "", "persistentvolumeclaims") || !review.object["spec"].is_object() {
        return;
    }
    let older_form = review.object.annotation(OLDER_CLASS).is_some();
    if older_form || !review.object["spec"]["storageClassName"].is_null() {
        return;
    }
    if let Some(name) = default_class(&all_stored(store, CLASSES)) {
        review.object["spec"]["storageClassName"] = json!(name);
    }
}

pub(super) fn protect(review: &mut Review<'_>) {
    let finalizer = if review.is(Operation::Create, "", "persistentvolumeclaims") {
        "kubernetes.io/pvc-protection"
    } else if review.is(Operation::Create, "", "persistentvolumes") {
        "kubernetes.io/pv-protection"
    } else {
        return;
    };
    let mut finalizers: Vec<String> = review.object.finalizers().into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|own| own == finalizer) {
        finalizers.push(finalizer.to_owned());
        review.object.set_finalizers(finalizers);
    }
}

/// Refuses to let a claim ask for more than it did, unless it is bound and its class lets claims grow.
pub(super) fn check_growth(store: &Store, review: &Review<'_>) -> Result<(), ApiError> {
    if !review.is(Operation::Update, "", "persistentvolumeclaims") {
        return Ok(());
    }
    let size = |claim: &Value| {
        let size = claim.pointer("/spec/resources/requests/storage").and_then(Value::as_str);
        size.and_then(quantity::nanos).unwrap_or_default()
    };
    if size(&review.object) <= size(&review.old) {
        return Ok(());
    }
    if review.old["status"]["phase"] != "Bound" {
        return Err(review.refuse("Only bound persistent volume claims can be expanded"));
    }
    let (class, before) = (class_of(&review.object), class_of(&review.old));
    let class = class.filter(|class| Some(*class) == before);
    let class: Option<Value> = class.and_then(|class| stored(store, &format!("{CLASSES}{class}")));
    if class.is_some_and(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    Err(review.refuse(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support \
         resize",
    ))
}

/// The class that a claim names.
fn class_of(claim: &Value) -> Option<&str> {
    claim.annotation(OLDER_CLASS).or_else(|| claim["spec"]["storageClassName"].as_str()).filter(|name| !name.is_empty())
}

/// The newest of the classes that are marked as default.
fn default_class(classes: &[Value]) -> Option<String> {
    let marked = classes.iter().filter(|class| class.annotation(DEFAULT_MARK) == Some("true"));
    let newest = marked.max_by_key(|class| (class.meta("creationTimestamp"), std::cmp::Reverse(class.name())))?;
    Some(newest.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::review::tests::creation;
    use super::*;
    use crate::auth::User;
    use windlass_store::Write;

    fn class(name: &str, time: &str, mark: &str) -> Value {
        json!({"metadata": {"name": name, "creationTimestamp": time, "annotations": {DEFAULT_MARK: mark}}})
    }

    #[test]
    fn the_newest_marked_class_is_the_default() {
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
        assert_eq!(default_class(&[class("a", new, "false")]), None);
        assert_eq!(default_class(&[class("a", new, "true"), class("b", old, "true")]).as_deref(), Some("a"));
        assert_eq!(default_class(&[class("b", new, "true"), class("a", new, "true")]).as_deref(), Some("a"));
    }

    #[tokio::test]
    async fn claims_grow_only_where_their_class_allows_it() {
        let store = Store::in_memory();
        for (name, allows) in [("grows", true), ("stays", false)] {
            let class = json!({"metadata": {"name": name}, "allowVolumeExpansion": allows});
            store.commit(vec![Write::create(format!("{CLASSES}{name}"), class.to_string())]).await.unwrap();
        }
        let user = User::master("test");
        let claim = |class: &str, size: &str, phase: &str| {
            json!({"spec": {"storageClassName": class, "resources": {"requests": {"storage": size}}},
                "status": {"phase": phase}})
        };
        let check = |class: &str, (from, to): (&str, &str), phase: &str, expect: Option<&str>| {
            let mut review = creation(&user, "", "persistentvolumeclaims", "red", claim(class, to, phase));
            review.operation = Operation::Update;
            review.old = claim(class, from, phase);
            let refused = check_growth(&store, &review).err();
            let refused = refused.map(|error| error.message);
            let expect = expect.map(|why| format!("persistentvolumeclaims \"it\" is forbidden: {why}"));
            assert_eq!(refused, expect, "{class} {from} {to} {phase}");
        };
        let resize = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                      support resize";
        check("grows", ("1Gi", "2Gi"), "Bound", None);
        check("grows", ("1Gi", "2Gi"), "Pending", Some("Only bound persistent volume claims can be expanded"));
        check("stays", ("1Gi", "2Gi"), "Bound", Some(resize));
        check("stays", ("1Gi", "1024Mi"), "Bound", None);
        check("missing", ("1Gi", "2Gi"), "Bound", Some(resize));
        check("", ("1Gi", "2Gi"), "Bound", Some(resize));
    }

    #[test]
    fn claims_are_protected_once() {
        let user = User::master("test");
        let mut review = creation(&user, "", "persistentvolumeclaims", "red", json!({}));
        protect(&mut review);
        protect(&mut review);
        assert_eq!(review.object.finalizers(), ["kubernetes.io/pvc-protection"]);
    }
}
