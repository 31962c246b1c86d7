//! Upgrades of a cluster: what its servers are run from is tried member by member, and taken back if the first one does not start.

use std::collections::BTreeMap;

use windlass::k8s_openapi::api::core::v1::ResourceRequirements;
use windlass::prelude::*;

use super::PostgresOperator;
use super::survey::Survey;
use super::workload::image;
use crate::kind::PostgresCluster;
use crate::wire::Report;

/// How long each member may take to change: it stops, starts, replays its log and catches up.
const MEMBER_MAX: Duration = Duration::from_secs(300);

/// What servers are run from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Build {
    image: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resources: Option<ResourceRequirements>,
}

impl Upgrades for PostgresOperator {
    type Revision = Build;

    fn revision(&self, cluster: &PostgresCluster) -> Build {
        let (parameters, resources) = (cluster.spec.parameters.clone(), cluster.spec.resources.clone());
        Build { image: image(cluster), parameters, resources }
    }

    fn pin(&self, cluster: &mut PostgresCluster, build: Build) {
        cluster.spec.image = Some(build.image);
        cluster.spec.parameters = build.parameters;
        cluster.spec.resources = build.resources;
    }

    fn version(&self, build: &Build) -> String {
        let parameters = build.parameters.iter().map(|(name, value)| format!(" {name}={value}"));
        std::iter::once(build.image.clone()).chain(parameters).collect()
    }

    /// The supervisor in a Pod outlives its server, and counts its starts. Without it, the Pod does not start.
    fn judge(&self, cluster: &PostgresCluster, world: &World) -> Health {
        let survey = Survey::of(cluster, world);
        let reports =
            || (survey.members.iter()).filter_map(|(member, seen)| Some((member, seen, seen.report.as_ref()?)));
        // What members say that run from something else, or were told something else, speaks against nobody.
        let failing = reports().filter(|(_, seen, _)| {
            seen.pod_revision.as_ref() == Some(&survey.revision) && seen.is_told(&survey.settings) && !seen.is_ready
        });
        let worst = failing.max_by_key(|(_, _, report)| report.failed_starts);
        if let Some((member, _, report)) = worst.filter(|(_, _, report)| report.failed_starts > 0) {
            let (member, why) = (member.clone(), report.failure.clone());
            return Health::Failing { member, attempts: report.failed_starts, why };
        }
        let refusing = |(member, _, report): (&String, _, &Report)| Some((member.clone(), report.refused.clone()?));
        if let Some((member, refused)) =
            reports().filter(|(_, seen, _)| seen.is_told(&survey.settings)).find_map(refusing)
        {
            // It runs on without them, and nobody would notice until it is started the next time.
            return Health::Failing { member, attempts: 0, why: format!("settings are refused: {refused}") };
        }
        match Health::of_pods(&world.newest_pods_of(cluster)) {
            Health::Healthy => match reports().find(|(_, seen, _)| !seen.has_read(&survey.settings)) {
                Some((member, ..)) => Health::Progressing(format!("{member} has not read its settings yet")),
                None => Health::Healthy,
            },
            other => other,
        }
    }

    fn deadline(&self, cluster: &PostgresCluster) -> Duration {
        MEMBER_MAX * cluster.spec.instances.max(1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};
    use windlass::names::{APP_INSTANCE, APP_NAME};

    use super::super::workload;
    use super::*;
    use crate::names::{REPORT, REVISION};
    use crate::supervisor::Supervisor;
    use crate::wire;

    fn operator() -> PostgresOperator {
        PostgresOperator { supervisor: Supervisor::of_this_process(), password: String::new }
    }

    fn cluster(spec: Value) -> PostgresCluster {
        let mut whole = json!({"instances": 2, "leaseSeconds": 6});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let mut cluster = PostgresCluster::new("db", from_value(whole).unwrap());
        cluster.metadata.uid = Some("cluster".into());
        cluster
    }

    /// The health of a revision while the second member says that its server was started in vain so often, and both say `more`;
    /// both Pods are made from `pod`.
    fn health(failed_starts: u32, ready: bool, more: Value, pod: &str) -> Health {
        let owner = |uid: &str| json!([{"apiVersion": "v1", "kind": "K", "name": uid, "uid": uid, "controller": true}]);
        let mut world = World::new();
        for (member, failed_starts, ready) in [("db-1", 0, true), ("db-2", failed_starts, ready)] {
            let labels = json!({APP_NAME: "postgres", APP_INSTANCE: "db"});
            let set = json!({"metadata": {"name": member, "uid": member, "ownerReferences": owner("cluster")}});
            let mut report = json!({"member": member, "failedStarts": failed_starts, "failure": "the server ended"});
            report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let pod = json!({
                "metadata": {"name": format!("{member}-0"), "uid": format!("{member}-0"), "labels": labels,
                    "annotations": {REPORT: report.to_string(), REVISION: pod}, "ownerReferences": owner(member)},
                "status": {"conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
            });
            world = world.with::<StatefulSet>(from_value(set).unwrap()).with::<Pod>(from_value(pod).unwrap());
        }
        operator().judge(&cluster(json!({})), &world)
    }

    #[test]
    fn a_server_that_does_not_start_speaks_against_a_revision() {
        let failing = |attempts| Health::Failing { member: "db-2".into(), attempts, why: "the server ended".into() };
        let rows =
            [(0, true, Health::Healthy), (1, false, failing(1)), (3, false, failing(3)), (2, true, Health::Healthy)];
        let (told, wanted) = (wire::settings(&BTreeMap::new()), workload::revision(&cluster(json!({}))));
        for (failed_starts, ready, expected) in rows {
            for more in [json!({}), json!({"settings": told, "hasRead": true})] {
                let health = health(failed_starts, ready, more.clone(), &wanted);
                assert_eq!(health, expected, "{failed_starts} {ready} {more}");
            }
        }
    }

    #[test]
    fn what_was_said_of_other_settings_or_builds_speaks_against_nobody() {
        let (told, wanted) = (wire::settings(&BTreeMap::new()), workload::revision(&cluster(json!({}))));
        let unaware = Health::Progressing("db-1 has not read its settings yet".into());
        let others = json!({"settings": "others", "refused": "work_mem"});
        assert_eq!(health(3, false, others, &wanted), unaware.clone());
        assert_eq!(health(3, false, json!({"settings": told, "hasRead": true}), "before"), Health::Healthy);
        assert_eq!(health(0, true, json!({"settings": told}), &wanted), unaware);
    }

    #[test]
    fn settings_that_servers_run_without_speak_against_a_revision() {
        let settings = wire::settings(&BTreeMap::new());
        let wanted = workload::revision(&cluster(json!({})));
        let why = "settings are refused: work_mem: setting could not be applied".to_owned();
        assert_eq!(
            health(
                0,
                true,
                json!({"settings": settings, "refused": "work_mem: setting could not be applied"}),
                &wanted
            ),
            Health::Failing { member: "db-1".into(), attempts: 0, why }
        );
    }

    #[test]
    fn a_cluster_goes_back_to_another_build_and_keeps_all_else() {
        let good = operator().revision(&cluster(json!({"parameters": {"work_mem": "8MB"}})));
        assert_eq!(operator().version(&good), "postgres:15 work_mem=8MB");
        let mut bad = cluster(json!({"instances": 5, "image": "postgres:15.99"}));
        operator().pin(&mut bad, good.clone());
        assert_eq!((operator().revision(&bad), bad.spec.instances), (good, 5));
    }
}
