//! How a Pod finds names, and how it is called.

use super::address::ip;
use super::cursor::{At, follows, one_of};
use crate::{FieldError, names};

const POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const SERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_BYTES_MAX: usize = 2048;
const HOSTNAME_BYTES_MAX: usize = 64;

/// Checks where the servers of a Pod come from.
pub(super) fn policy(policy: &At<'_>, errors: &mut Vec<FieldError>) {
    one_of(policy, &POLICIES, errors);
}

/// Checks what a Pod says of its servers itself.
pub(super) fn config(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let config = spec.member("dnsConfig");
    let (servers, searches) = (config.member("nameservers"), config.member("searches"));
    if spec.member("dnsPolicy").text() == "None" {
        if !config.is_set() {
            return errors.push(config.missing("must provide `dnsConfig` when `dnsPolicy` is None"));
        }
        if servers.is_absent() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.push(servers.missing(detail));
        }
    }
    if servers.items().count() > SERVERS_MAX {
        errors.push(servers.invalid(format!("must not have more than {SERVERS_MAX} nameservers")));
    }
    servers.items().for_each(|server| ip(&server, errors));
    let texts: Vec<&str> = searches.items().map(|search| search.text()).collect();
    if texts.len() > SEARCHES_MAX {
        errors.push(searches.invalid(format!("must not have more than {SEARCHES_MAX} search paths")));
    }
    if texts.join(" ").len() > SEARCH_BYTES_MAX {
        let detail =
            format!("must not have more than {SEARCH_BYTES_MAX} characters (including spaces) in the search list");
        errors.push(searches.invalid(detail));
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let text = search.text().strip_suffix('.').unwrap_or(search.text());
        let wrong = names::subdomain_with_underscore(text).into_iter();
        errors.extend(wrong.map(|detail| FieldError::invalid(search.path.clone(), text, detail)));
    }
    let nameless = config.member("options").items().filter(|option| option.member("name").is_absent());
    errors.extend(nameless.map(|option| option.missing("must not be empty")));
}

/// Checks the hosts that a Pod knows by itself.
pub(super) fn aliases(aliases: &At<'_>, errors: &mut Vec<FieldError>) {
    for alias in aliases.items() {
        let address = alias.member("ip");
        ip(&At { value: if address.is_set() { address.value } else { &EMPTY }, ..address }, errors);
        alias.member("hostnames").items().for_each(|name| follows(&name, names::subdomain, errors));
    }
}

static EMPTY: serde_json::Value = serde_json::Value::String(String::new());

/// Checks the name that a Pod has instead of the one that follows from its own.
pub(super) fn hostname(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let name = spec.member("hostnameOverride");
    if !name.is_set() {
        return;
    }
    for other in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.member(other).is_true() {
            errors.push(name.forbidden(format!("may not be specified when {other} is true")));
        }
    }
    if name.text().len() > HOSTNAME_BYTES_MAX {
        errors.push(FieldError::too_long(name.path.clone(), HOSTNAME_BYTES_MAX as u64));
    }
    follows(&name, names::subdomain, errors);
}
