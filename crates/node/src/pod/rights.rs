//! What the program of a container may do, as its security context says.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Capabilities, Container, Pod, SecurityContext};

use crate::sandbox::{Capability, Guard, Rights};

/// All capabilities, in the words of a security context.
const ALL: &str = "ALL";

/// What a container may do; an error is a capability that nobody knows.
pub(crate) fn rights(pod: &Pod, container: &Container) -> Result<Rights, String> {
    let own = container.security_context.clone().unwrap_or_default();
    if own.privileged == Some(true) {
        return Ok(Rights { capabilities: Capability::all().collect(), escalation: true, guard: Guard::Absent });
    }
    Ok(Rights {
        capabilities: capabilities(own.capabilities.as_ref())?,
        escalation: own.allow_privilege_escalation != Some(false),
        guard: guard(pod, &own),
    })
}

/// Those of engines' default, without those that are dropped, with those that are added.
fn capabilities(wanted: Option<&Capabilities>) -> Result<BTreeSet<Capability>, String> {
    let mut kept = Rights::default().capabilities;
    let named = |names: &Option<Vec<String>>| -> Result<BTreeSet<Capability>, String> {
        let names = names.iter().flatten().filter(|name| !name.eq_ignore_ascii_case(ALL));
        names.map(|name| Capability::from_name(name).ok_or_else(|| name.clone())).collect()
    };
    let has_all = |names: &Option<Vec<String>>| names.iter().flatten().any(|name| name.eq_ignore_ascii_case(ALL));
    let Some(Capabilities { add, drop }) = wanted else { return Ok(kept) };
    if has_all(add) {
        kept = Capability::all().collect();
    }
    let (added, dropped) = (named(add)?, named(drop)?);
    if has_all(drop) {
        kept.clear();
    }
    kept.retain(|capability| !dropped.contains(capability));
    kept.extend(added);
    Ok(kept)
}

/// A profile of the machine's own is not read: the default one stands in for it.
fn guard(pod: &Pod, own: &SecurityContext) -> Guard {
    let shared = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()?.seccomp_profile.as_ref());
    match own.seccomp_profile.as_ref().or(shared).map(|profile| profile.type_.as_str()) {
        None | Some("Unconfined") => Guard::Usual,
        Some(_) => Guard::Strict,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(context: Value) -> Result<Rights, String> {
        let container = serde_json::from_value(json!({"name": "c", "securityContext": context})).unwrap();
        let shared = json!({"seccompProfile": {"type": "RuntimeDefault"}});
        let pod = json!({"spec": {"containers": [], "securityContext": shared}});
        rights(&serde_json::from_value(pod).unwrap(), &container)
    }

    #[test]
    fn capabilities_are_dropped_and_added() {
        let check = |capabilities: Value, expect: Option<&[&str]>| {
            let usual = Rights::default().capabilities;
            let found = of(json!({"capabilities": capabilities})).unwrap().capabilities;
            let expect = expect.map(|names| names.iter().filter_map(|name| Capability::from_name(name)).collect());
            assert_eq!(found, expect.unwrap_or(usual), "{capabilities}");
        };
        check(json!({}), None);
        check(json!({"drop": ["ALL"]}), Some(&[]));
        check(json!({"drop": ["all"], "add": ["NET_BIND_SERVICE"]}), Some(&["NET_BIND_SERVICE"]));
        check(json!({"add": ["CAP_CHOWN"]}), None);
        assert_eq!(of(json!({"capabilities": {"add": ["FLY"]}})), Err("FLY".to_owned()));
        assert_eq!(of(json!({"capabilities": {"add": ["ALL"]}})).unwrap().capabilities.len(), 41);
        assert!(of(json!({"capabilities": {"drop": ["KILL"]}})).unwrap().capabilities.len() == 13);
    }

    #[test]
    fn profiles_and_escalation() {
        let guards = [json!({}), json!({"seccompProfile": {"type": "Unconfined"}}), json!({"privileged": true})];
        let found: Vec<Guard> = guards.into_iter().map(|context| of(context).unwrap().guard).collect();
        assert_eq!(found, [Guard::Strict, Guard::Usual, Guard::Absent]);
        assert!(of(json!({})).unwrap().escalation);
        assert!(!of(json!({"allowPrivilegeEscalation": false})).unwrap().escalation);
    }
}
