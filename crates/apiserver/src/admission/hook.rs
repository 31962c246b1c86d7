//! One webhook of a configuration, ready to be matched.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::matching::Rule;
use crate::{
    cel::{Expression, Names},
    object::Object,
    rest::LabelSelector,
    webhook::ClientConfig,
};

/// How long a webhook has, unless its configuration says otherwise.
const TIMEOUT_SECONDS_DEFAULT: u64 = 10;

/// One webhook.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    /// What tells it apart from all others.
    pub(super) id: String,
    pub(super) raw: RawHook,
    pub(super) namespaces: LabelSelector,
    pub(super) objects: LabelSelector,
    /// The conditions; an error stands for one that cannot be compiled.
    pub(super) conditions: Vec<Result<Expression, String>>,
}

/// A webhook as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RawHook {
    pub(super) name: String,
    pub(super) client_config: ClientConfig,
    pub(super) rules: Vec<Rule>,
    failure_policy: Option<String>,
    match_policy: Option<String>,
    namespace_selector: Value,
    object_selector: Value,
    side_effects: Option<String>,
    timeout_seconds: Option<u64>,
    pub(super) admission_review_versions: Vec<String>,
    match_conditions: Vec<RawCondition>,
    reinvocation_policy: Option<String>,
}

/// A condition as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawCondition {
    expression: String,
}

impl Hook {
    /// The webhooks of a configuration, in their order.
    pub(super) fn all_of(configuration: &Value) -> Vec<Hook> {
        let hooks = configuration["webhooks"].as_array().into_iter().flatten();
        let hooks = hooks.filter_map(|raw| RawHook::deserialize(raw).ok());
        hooks.enumerate().map(|(index, raw)| Hook::new(configuration.name(), index, raw)).collect()
    }

    fn new(configuration: &str, index: usize, raw: RawHook) -> Self {
        let conditions = raw.match_conditions.iter();
        Self {
            id: format!("{configuration}/{}/{index}", raw.name),
            namespaces: LabelSelector::of_value(&raw.namespace_selector),
            objects: LabelSelector::of_value(&raw.object_selector),
            conditions: conditions.map(|raw| Expression::compile(&raw.expression, Names::default())).collect(),
            raw,
        }
    }

    /// Whether requests go on when the webhook cannot be asked.
    pub(super) fn ignores_failures(&self) -> bool {
        self.raw.failure_policy.as_deref() == Some("Ignore")
    }

    /// Whether other versions of a resource count as the one that a rule names.
    pub(super) fn takes_equivalents(&self) -> bool {
        self.raw.match_policy.as_deref() != Some("Exact")
    }

    /// Whether it may be called for requests that store nothing.
    pub(super) fn allows_dry_run(&self) -> bool {
        matches!(self.raw.side_effects.as_deref(), Some("None" | "NoneOnDryRun"))
    }

    /// Whether it wants to see what others change after it.
    pub(super) fn is_reinvoked(&self) -> bool {
        self.raw.reinvocation_policy.as_deref() == Some("IfNeeded")
    }

    /// How long it has.
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs(self.raw.timeout_seconds.unwrap_or(TIMEOUT_SECONDS_DEFAULT))
    }
}
