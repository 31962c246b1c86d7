//! What puts a policy into force.

use serde::Deserialize;
use serde_json::Value;

use super::super::criteria::Criteria;
use crate::{object::Object, rest::LabelSelector};

/// What puts a policy into force: for which requests, with which parameters, with which consequences.
#[derive(Debug)]
pub(in crate::admission) struct Binding {
    pub(super) name: String,
    pub(in crate::admission) policy: String,
    pub(super) parameters: Option<ParameterReference>,
    pub(super) criteria: Option<Criteria>,
    pub(super) actions: Vec<String>,
}

/// Which parameters a binding gives to its policy.
#[derive(Debug)]
pub(super) struct ParameterReference {
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) selector: Option<LabelSelector>,
    /// Whether requests are refused when there are none.
    pub(super) is_required: bool,
}

impl Binding {
    /// Reads a binding of either kind.
    pub(in crate::admission) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let reference = &spec["paramRef"];
        let text = |field: &str| reference[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let parameters = (!reference.is_null()).then(|| ParameterReference {
            name: text("name"),
            namespace: text("namespace"),
            selector: (!reference["selector"].is_null()).then(|| LabelSelector::of_value(&reference["selector"])),
            is_required: reference["parameterNotFoundAction"] == "Deny",
        });
        Self {
            name: object.name().to_owned(),
            policy: spec["policyName"].as_str().unwrap_or_default().to_owned(),
            parameters,
            criteria: (!spec["matchResources"].is_null()).then(|| Criteria::read(&spec["matchResources"])),
            actions: Vec::deserialize(&spec["validationActions"]).unwrap_or_default(),
        }
    }
}
