//! The audit log with bodies, and with what admission has to say.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::{Value, json};
use windlass_apiserver::{
    Config,
    audit::{AuditLog, Policy},
};
use world::World;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";
/// What is not written by then will not be.
const WAIT_MAX: Duration = Duration::from_secs(90);
const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: RequestResponse, verbs: [create], resources: [{group: '', resources: [configmaps]}]}
- {level: Request, verbs: [patch], resources: [{group: '', resources: [configmaps]}]}
";

/// The lines of the log, once there are this many.
async fn lines(path: &Path, count: usize) -> Vec<Value> {
    let written = async {
        loop {
            let text = std::fs::read_to_string(path).unwrap();
            let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            if lines.len() >= count {
                return lines;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_MAX, written).await.expect("the lines are written")
}

/// Lets a policy say something of every ConfigMap.
async fn annotate(world: &World) {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]});
    let policy = json!({"metadata": {"name": "policy.example"}, "spec": {
        "matchConstraints": {"resourceRules": [rule]},
        "auditAnnotations": [{"key": "name", "valueExpression": "'saw ' + object.metadata.name"}],
    }});
    world.post(&format!("{POLICIES}/validatingadmissionpolicies"), &policy).await.expect(201);
    let binding = json!({"metadata": {"name": "binding.example"}, "spec": {
        "policyName": "policy.example", "validationActions": ["Deny"],
    }});
    world.post(&format!("{POLICIES}/validatingadmissionpolicybindings"), &binding).await.expect(201);
}

#[tokio::test]
async fn bodies_and_annotations_are_logged() {
    let folder = std::env::temp_dir().join(format!("windlass-audit-bodies-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("audit.log");
    let log = AuditLog::open(&path, Policy::parse(POLICY).unwrap()).unwrap();
    let world = World::with(Config { audit: Some(Arc::new(log)), ..Config::default() }).await;
    annotate(&world).await;
    let map = json!({"metadata": {"name": "a"}, "data": {"key": "value"}});
    let created = world.post(MAPS, &map).await.expect(201);
    let patch = json!({"data": {"key": "other"}});
    world.patch(&format!("{MAPS}/a"), "merge-patch+json", &patch).await.expect(200);
    world.user("nobody").post(MAPS, &map).await.expect(403);

    let lines = lines(&path, 3).await;
    let [create, change, refused] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(create["level"], "RequestResponse");
    assert_eq!(create["objectRef"]["name"], "a");
    assert_eq!(create["requestObject"], map);
    assert_eq!(create["responseObject"], created);
    assert_eq!(create["annotations"]["policy.example/name"], "saw a");
    assert_eq!(create["annotations"]["authorization.k8s.io/decision"], "allow");
    assert_eq!(change["level"], "Request");
    assert_eq!(change["requestObject"], patch);
    assert_eq!(change["responseObject"], Value::Null);
    assert_eq!(refused["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(refused["responseObject"]["kind"], "Status");
    std::fs::remove_dir_all(&folder).unwrap();
}
