//! The version of a resource in which a webhook wants to see a request.

use serde_json::Value;

use super::{
    ObjectKind, Review,
    matching::{Resource, Rule},
};
use crate::{
    ApiError,
    registry::{Registry, Served},
    rest,
    webhook::Webhooks,
};

/// A resource and kind in one version.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) resource: String,
    pub(super) kind: ObjectKind,
    /// How objects get from the request into this version and back; `None` if they are as they should be.
    conversion: Option<(Served, Served)>,
}

impl Form {
    /// The form of the request itself.
    pub(super) fn own(review: &Review<'_>) -> Self {
        let own = Resource { group: review.group, version: review.version, resource: review.resource };
        Self::new(own, review.kind.clone(), None)
    }

    /// The form in which `rules` are about the request: its own, or that of a version that is as good.
    pub(super) fn find(registry: &Registry, rules: &[Rule], equivalents: bool, review: &Review<'_>) -> Option<Self> {
        let own = Resource { group: review.group, version: review.version, resource: review.resource };
        if rules.iter().any(|rule| rule.matches(review, own)) {
            return Some(Self::new(own, review.kind.clone(), None));
        }
        if !equivalents {
            return None;
        }
        let catalog = registry.catalog();
        let served = catalog.lookup(review.group, review.version, review.resource)?;
        let place = rest::prefix(served, "");
        let others = || {
            let kinds = catalog.kinds().filter(|other| !other.is_same(served));
            kinds.filter(|other| rest::prefix(other, "") == place)
        };
        for rule in rules {
            for other in others() {
                let resource = Resource { group: &other.group, version: &other.version, resource: &other.plural };
                if rule.matches(review, resource)
                    && let Some(kind) = kind_of(other, review.subresource)
                {
                    // The kind of a subresource such as `scale` is the same in all versions.
                    let converts = kind != review.kind;
                    return Some(Self::new(resource, kind, converts.then(|| (served.clone(), other.clone()))));
                }
            }
        }
        None
    }

    fn new(resource: Resource<'_>, kind: ObjectKind, conversion: Option<(Served, Served)>) -> Self {
        Self {
            group: resource.group.to_owned(),
            version: resource.version.to_owned(),
            resource: resource.resource.to_owned(),
            kind,
            conversion,
        }
    }

    /// An object of the request, in this version.
    pub(super) async fn show(&self, webhooks: &Webhooks, object: &Value) -> Result<Value, ApiError> {
        match &self.conversion {
            Some((own, other)) if object.is_object() => rest::convert(webhooks, own, other, object.clone()).await,
            _ => Ok(object.clone()),
        }
    }

    /// An object in this version, as the request has it.
    pub(super) async fn take_back(&self, webhooks: &Webhooks, object: Value) -> Result<Value, ApiError> {
        match &self.conversion {
            Some((own, other)) if object.is_object() => {
                rest::completed(own, rest::convert(webhooks, other, own, object).await?)
            }
            _ => Ok(object),
        }
    }
}

fn kind_of(served: &Served, subresource: &str) -> Option<ObjectKind> {
    let own =
        ObjectKind { group: served.group.clone(), version: served.version.clone(), kind: served.kind().kind.clone() };
    if subresource.is_empty() {
        return Some(own);
    }
    let part = served.subresource(subresource)?;
    Some(ObjectKind { group: part.group.clone(), version: part.version.clone(), kind: part.kind.clone() })
}
