//! Every property of a cluster, changed and changed back: see `docs/campaigns.md`.

use std::time::Duration;

use memcached_operator::app;
use windlass::serde_json::json;
use windlass_testkit::{Campaign, Profile};

/// More than the minute in which a revision proves itself.
const PROOF: Duration = Duration::from_secs(75);

#[test]
fn every_change_of_a_cluster_can_be_taken_back() {
    let cluster = json!({"kind": "Memcached", "metadata": {"name": "cache"}, "spec": {"size": 2}});
    let report = Campaign::of(app, cluster).profile(Profile::Workloads).settles_after(PROOF).run();
    println!("{report}");
    report.assert();
    assert_eq!(report.coverage(), (3, 3), "{report}");
}
