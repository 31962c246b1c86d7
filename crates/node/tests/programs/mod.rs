//! Pods whose programs end by themselves, with what each must have said and how it must have ended, whoever runs it.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use serde_json::{Value, json};

use crate::ground::{create, ended, once};

/// A Pod and its end.
struct Program {
    pod: Value,
    code: i32,
    reason: &'static str,
    /// Its log, or its termination message where it leaves one.
    says: &'static str,
}

/// Runs all of them at once and looks at their ends.
pub(crate) async fn check_all(pods: &Api<Pod>) {
    let all = all();
    for program in &all {
        create(pods, program.pod.clone()).await;
    }
    let mut wrong = Vec::new();
    for Program { pod, code, reason, says } in all {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let end = ended(pods, name).await;
        let log =
            pods.logs(name, &LogParams { container: Some("c".to_owned()), ..LogParams::default() }).await.unwrap();
        let said = end.message.clone().unwrap_or(log);
        let (is, should) = ((end.exit_code, end.reason.as_deref(), said.as_str()), (code, Some(reason), says));
        if is != should {
            wrong.push(format!("{name}: {is:?} instead of {should:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn all() -> Vec<Program> {
    let good = |pod: Value, says| Program { pod, code: 0, reason: "Completed", says };
    vec![
        Program { code: 7, reason: "Error", ..good(once("code", "echo out; exit 7"), "out\n") },
        Program {
            code: 143,
            reason: "Error",
            ..good(once("signal", "sh -c 'kill -TERM $$$$'; exit $?"), "Terminated\n")
        },
        good(once("message", "echo done > /dev/termination-log"), "done\n"),
        good(read_only(), "refused, written\n"),
        good(user(), "1234 77\n"),
        good(rights("rights-none", json!({"capabilities": {"drop": ["ALL"]}})), "0000000000000000\n"),
        good(
            rights("rights-some", json!({"capabilities": {"drop": ["ALL"], "add": ["CHOWN", "NET_BIND_SERVICE"]}})),
            "0000000000000401\n",
        ),
        good(privileges(), "1\n"),
        good(volumes(), "part\n"),
        good(before(), "first second\n"),
        Program { code: 137, reason: "OOMKilled", ..good(memory(), "") },
        good(processes(), "few\n"),
        good(once("names", "cat /etc/hostname; hostname"), "names\nnames\n"),
    ]
}

fn with_context(mut pod: Value, context: Value) -> Value {
    pod["spec"]["containers"][0]["securityContext"] = context;
    pod
}

fn with_volume(mut pod: Value, mount: Value) -> Value {
    pod["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    pod["spec"]["containers"][0]["volumeMounts"] = json!([mount]);
    pod
}

fn read_only() -> Value {
    let script = "touch /new 2>/dev/null || printf 'refused, '; touch /data/new && echo written";
    let pod = with_volume(once("read-only", script), json!({"name": "v", "mountPath": "/data"}));
    with_context(pod, json!({"readOnlyRootFilesystem": true}))
}

fn user() -> Value {
    with_context(once("user", "echo $(id -u) $(id -g)"), json!({"runAsUser": 1234, "runAsGroup": 77}))
}

fn rights(name: &str, context: Value) -> Value {
    with_context(once(name, "sed -n 's/CapBnd:.//p' /proc/self/status"), context)
}

fn privileges() -> Value {
    let script = "sed -n 's/NoNewPrivs:.//p' /proc/self/status";
    with_context(once("privileges", script), json!({"allowPrivilegeEscalation": false}))
}

fn volumes() -> Value {
    let script = "echo part > /part/file; cat /whole/inner/file";
    let mut pod = with_volume(once("volumes", script), json!({"name": "v", "mountPath": "/whole"}));
    let part = json!({"name": "v", "mountPath": "/part", "subPath": "inner"});
    pod["spec"]["containers"][0]["volumeMounts"].as_array_mut().unwrap().push(part);
    pod
}

/// An init container that ends, then one that stays, then the program.
fn before() -> Value {
    let script = "until [ -e /data/second ]; do sleep 0.05; done; echo $(cat /data/first /data/second)";
    let mut pod = with_volume(once("before", script), json!({"name": "v", "mountPath": "/data"}));
    let container = |name: &str, script: &str| {
        json!({"name": name, "image": "host", "command": ["/bin/sh", "-c", script],
            "volumeMounts": [{"name": "v", "mountPath": "/data"}]})
    };
    let mut stays = container("stays", "echo second > /data/second; trap 'exit 0' TERM; while :; do sleep 0.1; done");
    stays["restartPolicy"] = json!("Always");
    pod["spec"]["initContainers"] = json!([container("ends", "echo first > /data/first"), stays]);
    pod
}

fn memory() -> Value {
    let mut pod = once("memory", "exec perl -e '$x = \"x\" x (256 << 20); sleep 60'");
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "48Mi"}});
    pod
}

/// It sees no processes but its own.
fn processes() -> Value {
    once("processes", "set -- /proc/[0-9]*; [ $# -lt 9 ] && echo few")
}
