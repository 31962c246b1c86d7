//! Campaigns of small operators.

#![expect(missing_docs, reason = "the kinds are those of a test")]

use serde_json::{Value, json};
use windlass::prelude::*;
use windlass_testkit::Campaign;

/// A label on a box, kept in a ConfigMap.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "desk.example.com", version = "v1", kind = "Label")]
pub struct LabelSpec {
    #[schema(min_length = 1, max_length = 20)]
    pub text: String,
    /// What the box is made of.
    #[schema(immutable)]
    pub material: Material,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub enum Material {
    Wood,
    Paper,
}

struct Labels;

impl Operator for Labels {
    type Resource = Label;

    fn desired(&self, label: &Label, _: &World) -> Outcome<NoStatus> {
        let data = [
            ("text".to_owned(), label.spec.text.clone()),
            ("material".to_owned(), format!("{:?}", label.spec.material)),
        ];
        let data = Some(data.into());
        Desired::new().child(ConfigMap { metadata: named(label.name_any()), data, ..ConfigMap::default() }).settled()
    }
}

fn campaign() -> Campaign {
    let label: Value =
        json!({"kind": "Label", "metadata": {"name": "box"}, "spec": {"text": "tea", "material": "Wood"}});
    Campaign::of(|| windlass::operator(Labels).owns::<ConfigMap>(), label).threads(1)
}

#[test]
fn every_property_is_changed_also_one_that_cannot_change() {
    let report = campaign().inert("/spec/comment").run();
    println!("{report}");
    report.assert();
    assert_eq!(report.coverage(), (3, 3), "{report}");
    let material = &report.properties["/spec/material"];
    assert_eq!((material.accepted, material.refused.len(), material.has_effect), (1, 1, true), "{material:?}");
    assert!(report.properties["/spec/text"].offences >= 3, "{report}");
    // What it took in all runs is what its roles allow, but for what a campaign does not show.
    let unused = report.report.roles(&windlass::operator(Labels).owns::<ConfigMap>());
    unused.assert_enough();
}

#[test]
fn a_property_without_an_effect_is_a_finding_unless_it_is_declared() {
    let report = campaign().run();
    let said: Vec<&String> = report.report.findings.iter().flat_map(|finding| &finding.violations).collect();
    assert!(said.len() == 1 && said[0].starts_with("/spec/comment has no effect"), "{report}");
}

#[test]
fn a_change_has_the_same_schedule_every_time() {
    for text in ["change@/spec/text:long", "change@/spec/material:Paper#4"] {
        let plan = text.parse().expect("it is a plan");
        let (one, report) = campaign().replay(&plan);
        let (other, _) = campaign().replay(&plan);
        assert_eq!(one, other, "{text}");
        assert!(one.lines().count() > 5 && report.findings.is_empty(), "{one}\n{report}");
    }
}
