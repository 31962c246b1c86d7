//! `resolv.conf`: the machine's, and the one that a Pod gets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::api::core::v1::PodSpec;

/// What resolvers take of each; kubelet keeps to the same.
const SERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
/// Names with fewer dots are tried below the search domains first.
const DOTS: &str = "ndots:5";

/// What a `resolv.conf` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resolver {
    servers: Vec<String>,
    searches: Vec<String>,
    options: Vec<String>,
}

/// The cluster that a Pod's resolver finds names in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cluster<'a> {
    pub(crate) server: Ipv4Addr,
    pub(crate) domain: &'a str,
}

impl Resolver {
    /// The machine's; one without the file knows no server.
    pub(crate) fn of_machine() -> Self {
        Self::parse(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut resolver = Self::default();
        for line in text.lines() {
            let line = line.split(['#', ';']).next().unwrap_or_default();
            let mut words = line.split_whitespace().map(str::to_owned);
            match words.next().as_deref() {
                Some("nameserver") => resolver.servers.extend(words.next()),
                // The last one counts.
                Some("search" | "domain") => resolver.searches = words.collect(),
                Some("options") => resolver.options.extend(words),
                _ => {}
            }
        }
        resolver
    }

    /// The servers that can be asked.
    pub(crate) fn servers(&self) -> impl Iterator<Item = IpAddr> {
        self.servers.iter().filter_map(|server| server.parse().ok()).take(SERVERS_MAX)
    }

    /// What a Pod gets on a machine with this resolver; without a cluster's server every policy means the machine's.
    pub(crate) fn for_pod(&self, spec: &PodSpec, namespace: &str, cluster: Option<Cluster<'_>>) -> Self {
        let host_network = spec.host_network == Some(true);
        let mut resolver = match (spec.dns_policy.as_deref().unwrap_or("ClusterFirst"), cluster) {
            ("None", _) => Self::default(),
            ("ClusterFirst", Some(cluster)) if !host_network => self.below(namespace, cluster),
            ("ClusterFirstWithHostNet", Some(cluster)) => self.below(namespace, cluster),
            _ => self.clone(),
        };
        if let Some(config) = &spec.dns_config {
            resolver.servers.extend(config.nameservers.clone().unwrap_or_default());
            resolver.searches.extend(config.searches.clone().unwrap_or_default());
            for option in config.options.iter().flatten() {
                let Some(name) = &option.name else { continue };
                resolver.options.retain(|known| known.split(':').next() != Some(name));
                resolver.options.push(match &option.value {
                    Some(value) => format!("{name}:{value}"),
                    None => name.clone(),
                });
            }
        }
        resolver.trim();
        resolver
    }

    /// The cluster's server, and its names before those of the machine.
    fn below(&self, namespace: &str, Cluster { server, domain }: Cluster<'_>) -> Self {
        let mut searches = vec![format!("{namespace}.svc.{domain}"), format!("svc.{domain}"), domain.to_owned()];
        searches.extend(self.searches.iter().filter(|search| *search != ".").cloned());
        Self { servers: vec![server.to_string()], searches, options: vec![DOTS.to_owned()] }
    }

    /// Drops repetitions and what resolvers do not take.
    fn trim(&mut self) {
        for (list, max) in [(&mut self.servers, SERVERS_MAX), (&mut self.searches, SEARCHES_MAX)] {
            let mut seen = std::collections::HashSet::new();
            list.retain(|item| seen.insert(item.clone()));
            list.truncate(max);
        }
    }
}

impl fmt::Display for Resolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.searches.is_empty() {
            writeln!(formatter, "search {}", self.searches.join(" "))?;
        }
        for server in &self.servers {
            writeln!(formatter, "nameserver {server}")?;
        }
        if !self.options.is_empty() {
            writeln!(formatter, "options {}", self.options.join(" "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MACHINE: &str =
        "# made by hand\nnameserver 192.0.2.1\nsearch example.com ; office\noptions edns0 timeout:2\n";

    fn check(spec: Value, expect: &str) {
        let mut spec: Value = spec;
        spec["containers"] = json!([]);
        let spec: PodSpec = serde_json::from_value(spec).unwrap();
        let cluster = Cluster { server: Ipv4Addr::new(127, 64, 0, 10), domain: "cluster.local" };
        let resolver = Resolver::parse(MACHINE).for_pod(&spec, "n", Some(cluster));
        assert_eq!(resolver.to_string(), expect, "{spec:?}");
    }

    #[test]
    fn the_policy_decides_whom_a_pod_asks() {
        let machine = "search example.com\nnameserver 192.0.2.1\noptions edns0 timeout:2\n";
        let cluster = "search n.svc.cluster.local svc.cluster.local cluster.local example.com\n\
                       nameserver 127.64.0.10\noptions ndots:5\n";
        check(json!({}), cluster);
        check(json!({"dnsPolicy": "ClusterFirst"}), cluster);
        check(json!({"dnsPolicy": "Default"}), machine);
        check(json!({"dnsPolicy": "ClusterFirst", "hostNetwork": true}), machine);
        check(json!({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true}), cluster);
    }

    #[test]
    fn what_a_pod_says_itself_is_added() {
        let config = json!({"nameservers": ["1.1.1.1"], "searches": ["a.b"], "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}]});
        check(
            json!({"dnsPolicy": "None", "dnsConfig": config}),
            "search a.b\nnameserver 1.1.1.1\noptions ndots:2 rotate\n",
        );
        check(
            json!({"dnsConfig": config}),
            "search n.svc.cluster.local svc.cluster.local cluster.local example.com a.b\n\
             nameserver 127.64.0.10\nnameserver 1.1.1.1\noptions ndots:2 rotate\n",
        );
    }
}
