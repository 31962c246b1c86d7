//! Settings of the kernel that a Pod asks for, as far as they are its own.

use k8s_openapi::api::core::v1::Pod;

/// What a Pod may set: each container has this for itself.
const OWN: [&str; 1] = ["kernel.shm_rmid_forced"];
/// What a Pod may set of its network. Where Pods share that of the machine, they stay as they are.
const OF_NETWORK: [&str; 11] = [
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// What each container of a Pod has to set: names and values.
pub(crate) fn own(pod: &Pod, has_network: bool) -> Vec<(String, String)> {
    let is_own = |name: &str| OWN.contains(&name) || has_network && OF_NETWORK.contains(&name);
    wanted(pod).into_iter().filter(|(name, _)| is_own(name)).collect()
}

/// The setting that keeps a Pod from running, as a reason and a message for its status.
pub(crate) fn forbidden(pod: &Pod) -> Option<(String, String)> {
    let is_allowed = |name: &str| OWN.contains(&name) || OF_NETWORK.contains(&name);
    let (name, _) = wanted(pod).into_iter().find(|(name, _)| !is_allowed(name))?;
    Some(("SysctlForbidden".to_owned(), format!("Pod was rejected: forbidden sysctl: {name:?} not allowlisted")))
}

/// Names are written with dots or with slashes.
fn wanted(pod: &Pod) -> Vec<(String, String)> {
    let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let settings = context.into_iter().flat_map(|context| context.sysctls.iter().flatten());
    settings.map(|setting| (setting.name.replace('/', "."), setting.value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_sets_what_is_its_own() {
        let check = |name: &str, has_network: bool, sets: bool, runs: bool| {
            let context = json!({"sysctls": [{"name": name, "value": "1"}]});
            let pod = json!({"spec": {"containers": [], "securityContext": context}});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            assert_eq!((!own(&pod, has_network).is_empty(), forbidden(&pod).is_none()), (sets, runs), "{name}");
        };
        check("kernel.shm_rmid_forced", false, true, true);
        check("kernel/shm_rmid_forced", true, true, true);
        check("net.ipv4.tcp_syncookies", false, false, true);
        check("net.ipv4.tcp_syncookies", true, true, true);
        check("kernel.msgmax", true, false, false);
        check("vm.swappiness", false, false, false);
    }
}
