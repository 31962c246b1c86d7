//! The names that quotas limit amounts by.

/// What is counted under a name of its own, apart from `count/…`.
const ALIASES: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

/// The names without a slash that a quota may have.
const STANDARD: [&str; 18] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
];

/// Whether a quota may limit `name`, which has no slash.
pub fn is_standard(name: &str) -> bool {
    let huge = name.starts_with("hugepages-") || name.starts_with("requests.hugepages-");
    STANDARD.contains(&name) || name == "services.loadbalancers" || huge
}

/// The names under which the objects of a resource are counted.
pub(super) fn of_objects(group: &str, resource: &str) -> impl Iterator<Item = String> + use<> {
    let count = if group.is_empty() { format!("count/{resource}") } else { format!("count/{resource}.{group}") };
    let alias = (group.is_empty() && ALIASES.contains(&resource)).then(|| resource.to_owned());
    std::iter::once(count).chain(alias)
}
