//! Which requests a policy or a binding is about.

use serde::Deserialize;
use serde_json::Value;
use windlass_store::Store;

use super::{
    Review,
    form::Form,
    matching::{self, Rule},
};
use crate::{ApiError, registry::Registry, rest::LabelSelector};

/// Which requests a policy or a binding is about: the `MatchResources` of the API.
#[derive(Clone, Debug, Default)]
pub(super) struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    takes_equivalents: bool,
    namespaces: LabelSelector,
    objects: LabelSelector,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Raw {
    resource_rules: Vec<Rule>,
    exclude_resource_rules: Vec<Rule>,
    match_policy: Option<String>,
    namespace_selector: Value,
    object_selector: Value,
}

impl Criteria {
    /// Reads a `MatchResources`.
    pub(super) fn read(raw: &Value) -> Self {
        let raw = Raw::deserialize(raw).unwrap_or_default();
        Self {
            rules: raw.resource_rules,
            excluded: raw.exclude_resource_rules,
            takes_equivalents: raw.match_policy.as_deref() != Some("Exact"),
            namespaces: LabelSelector::of_value(&raw.namespace_selector),
            objects: LabelSelector::of_value(&raw.object_selector),
        }
    }

    /// The form in which the criteria are about the request; `None` if they are not.
    ///
    /// # Errors
    /// 404 if the namespace is not there.
    pub(super) fn find(
        &self,
        store: &Store,
        registry: &Registry,
        review: &Review<'_>,
    ) -> Result<Option<Form>, ApiError> {
        if !matching::selects_object(&self.objects, review) {
            return Ok(None);
        }
        let in_namespace = matching::selects_namespace(store, &self.namespaces, review);
        if matches!(in_namespace, Ok(false)) {
            return Ok(None);
        }
        if Form::find(registry, &self.excluded, self.takes_equivalents, review).is_some() {
            return Ok(None);
        }
        let form = match self.rules.is_empty() {
            true => Some(Form::own(review)),
            false => Form::find(registry, &self.rules, self.takes_equivalents, review),
        };
        if form.is_some() {
            in_namespace?;
        }
        Ok(form)
    }
}
