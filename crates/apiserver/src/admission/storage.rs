//! Claims get the default storage class, and volumes in use are protected from deletion.

use serde_json::{Value, json};
use windlass_store::Store;

use super::{Operation, Review, all_stored};
use crate::object::Object;

const CLASSES: &str = "/storage.k8s.io/storageclasses/";
const DEFAULT_MARK: &str = "storageclass.kubernetes.io/is-default-class";

pub(super) fn choose_class(store: &Store, review: &mut Review<'_>) {
    if !review.is(Operation::Create, "", "persistentvolumeclaims") || !review.object["spec"].is_object() {
        return;
    }
    let older_form = review.object.annotation("volume.beta.kubernetes.io/storage-class").is_some();
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

    #[test]
    fn claims_are_protected_once() {
        let user = User::master("test");
        let mut review = creation(&user, "", "persistentvolumeclaims", "red", json!({}));
        protect(&mut review);
        protect(&mut review);
        assert_eq!(review.object.finalizers(), ["kubernetes.io/pvc-protection"]);
    }
}
