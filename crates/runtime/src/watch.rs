//! Which objects to watch.

use std::any::TypeId;

use kube::core::{ApiResource, Selector, SelectorExt};

use crate::namespaces::Namespaces;
use crate::object::Object;

/// A request for a watch: a kind, where, and which of its objects.
#[derive(Clone, Debug)]
pub struct Watch<K: Object> {
    dyntype: K::DynamicType,
    namespace: Option<String>,
    /// Narrows further to namespaces that may change.
    namespaces: Namespaces,
    labels: Option<Selector>,
    fields: Option<String>,
    is_compact: bool,
}

/// What makes two watches the same. Whether they are compact does not: the cache is if all who use it want it so.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WatchKey {
    type_id: TypeId,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    namespaces: Option<usize>,
    labels: Option<String>,
    fields: Option<String>,
}

/// A watch as the API knows it, of whatever kind.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) resource: ApiResource,
    /// Whether only the metadata is wanted.
    pub(crate) metadata: bool,
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

impl Target {
    /// A name for people: `deployments.apps`, `pods in kube-system`.
    pub(crate) fn title(&self) -> String {
        let mut title = self.resource.plural.clone();
        if !self.resource.group.is_empty() {
            title = format!("{title}.{}", self.resource.group);
        }
        if self.metadata {
            title.push_str(" (metadata)");
        }
        for (word, value) in [(" in ", &self.namespace), (" with ", &self.labels), (" where ", &self.fields)] {
            if let Some(value) = value {
                title = format!("{title}{word}{value}");
            }
        }
        title
    }
}

impl<K: Object<DynamicType: Default>> Watch<K> {
    /// All objects of a kind that is known at compile time.
    pub fn all() -> Self {
        Self::of(K::DynamicType::default())
    }
}

impl<K: Object> Watch<K> {
    /// All objects of a kind that is known at run time.
    pub fn of(dyntype: K::DynamicType) -> Self {
        Self { dyntype, namespace: None, namespaces: Namespaces::all(), labels: None, fields: None, is_compact: false }
    }

    /// Only those in `namespace`; `None` for all.
    #[must_use]
    pub fn namespace(mut self, namespace: Option<String>) -> Self {
        self.namespace = namespace;
        self
    }

    /// Only those in `namespaces`, as these change.
    #[must_use]
    pub fn within(mut self, namespaces: Namespaces) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Only those with these labels.
    #[must_use]
    pub fn labels(mut self, selector: Selector) -> Self {
        self.labels = Some(selector);
        self
    }

    /// Only those whose fields match, in the syntax of field selectors.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Keeps objects as short texts that are read again whenever one is asked for: where there are many, of which few are
    /// looked at a time.
    #[must_use]
    pub fn compact(mut self) -> Self {
        self.is_compact = true;
        self
    }

    pub(crate) fn is_compact(&self) -> bool {
        self.is_compact
    }

    pub(crate) fn key(&self) -> WatchKey {
        WatchKey {
            type_id: TypeId::of::<K>(),
            group: K::group(&self.dyntype).into_owned(),
            version: K::version(&self.dyntype).into_owned(),
            plural: K::plural(&self.dyntype).into_owned(),
            namespace: self.namespace.clone(),
            namespaces: self.namespaces.identity(),
            labels: self.labels.as_ref().map(ToString::to_string),
            fields: self.fields.clone(),
        }
    }

    /// Where it watches, if that can change.
    pub(crate) fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    pub(crate) fn dyntype(&self) -> &K::DynamicType {
        &self.dyntype
    }

    pub(crate) fn kind(&self) -> String {
        K::kind(&self.dyntype).into_owned()
    }

    /// What is asked of the API.
    pub(crate) fn target(&self) -> Target {
        Target {
            resource: ApiResource::erase::<K>(&self.dyntype),
            metadata: K::metadata_api(),
            namespace: self.namespace.clone(),
            labels: self.labels.as_ref().map(ToString::to_string),
            fields: self.fields.clone(),
        }
    }

    /// Whether the server would send `object`; fields are not judged here.
    pub(crate) fn matches(&self, object: &K) -> bool {
        let meta = object.meta();
        let in_scope = self.namespace.is_none() || self.namespace == meta.namespace;
        in_scope
            && self.namespaces.contains(meta.namespace.as_deref())
            && self
                .labels
                .as_ref()
                .is_none_or(|selector| selector.matches(meta.labels.as_ref().unwrap_or(&Default::default())))
    }

    pub(crate) fn selects_fields(&self) -> bool {
        self.fields.is_some()
    }
}
