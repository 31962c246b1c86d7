//! Which of the objects in its namespace a controller has, takes (adopts) and lets go (releases).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{Selector, SelectorExt};

use crate::owners;

/// What a controller does with one object that it might own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It owns the object and the selector matches.
    Keep,
    /// Nobody controls the object and the selector matches: take it.
    Adopt,
    /// It owns the object, and the selector no longer matches: let it go.
    Release,
    /// The object is none of its business.
    Ignore,
}

/// Decides about `object` for the controller with `owner` metadata and `selector`.
pub(crate) fn claim(owner: &ObjectMeta, selector: &Selector, object: &ObjectMeta) -> Claim {
    let matches = selector.matches(object.labels.as_ref().unwrap_or(&Default::default()));
    let owner_leaves = owner.deletion_timestamp.is_some();
    match owners::controller(object) {
        Some(reference) if Some(&reference.uid) != owner.uid.as_ref() => Claim::Ignore,
        Some(_) if matches => Claim::Keep,
        Some(_) if owner_leaves => Claim::Ignore,
        Some(_) => Claim::Release,
        None if owner_leaves || !matches || object.deletion_timestamp.is_some() => Claim::Ignore,
        None => Claim::Adopt,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference, Time};

    use super::*;

    fn meta(uid: &str, controller: Option<&str>, app: &str, leaves: bool) -> ObjectMeta {
        let reference =
            |uid: &str| OwnerReference { uid: uid.to_owned(), controller: Some(true), ..OwnerReference::default() };
        ObjectMeta {
            uid: Some(uid.to_owned()),
            labels: Some([("app".to_owned(), app.to_owned())].into()),
            owner_references: controller.map(|uid| vec![reference(uid)]),
            deletion_timestamp: leaves.then_some(Time(Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn controllers_claim_by_reference_then_by_label() {
        let selector = LabelSelector {
            match_labels: Some([("app".to_owned(), "a".to_owned())].into()),
            ..LabelSelector::default()
        };
        let selector = Selector::try_from(selector).unwrap();
        let check = |owner_leaves, controller, app, leaves, expect| {
            let owner = meta("me", None, "", owner_leaves);
            assert_eq!(claim(&owner, &selector, &meta("pod", controller, app, leaves)), expect);
        };
        check(false, Some("me"), "a", false, Claim::Keep);
        check(false, Some("me"), "a", true, Claim::Keep);
        check(false, Some("me"), "b", false, Claim::Release);
        check(false, Some("you"), "a", false, Claim::Ignore);
        check(false, None, "a", false, Claim::Adopt);
        check(false, None, "a", true, Claim::Ignore);
        check(false, None, "b", false, Claim::Ignore);
        check(true, None, "a", false, Claim::Ignore);
        check(true, Some("me"), "b", false, Claim::Ignore);
        check(true, Some("me"), "a", false, Claim::Keep);
    }
}
