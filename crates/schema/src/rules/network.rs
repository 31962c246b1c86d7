//! Policies for the network.

use std::collections::HashSet;

use super::cursor::{At, one_of, port, port_or_name};
use super::{address, selector};
use crate::FieldError;

pub(super) fn policy(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let kept = old.map(ranges).unwrap_or_default();
    let spec = object.member("spec");
    selector::check(&spec.member("podSelector"), errors);
    for kind in spec.member("policyTypes").items() {
        one_of(&kind, &["Ingress", "Egress"], errors);
    }
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.member(rules).items() {
            rule.member("ports").items().for_each(|port| port_range(&port, errors));
            rule.member(peers).items().for_each(|one| peer(&one, &kept, errors));
        }
    }
}

fn port_range(entry: &At<'_>, errors: &mut Vec<FieldError>) {
    one_of(&entry.member("protocol"), &["TCP", "UDP", "SCTP"], errors);
    let (first, last) = (entry.member("port"), entry.member("endPort"));
    port_or_name(&first, errors);
    let Some(end) = last.int() else { return };
    match (first.is_set(), first.int()) {
        (false, _) => errors.push(last.invalid("may not be specified when `port` is not specified")),
        (true, None) => errors.push(last.invalid("may not be specified when `port` is non-numeric")),
        (true, Some(begin)) => {
            if end < begin {
                errors.push(last.invalid("must be greater than or equal to `port`"));
            }
            port(&last, errors);
        }
    }
}

/// All ranges that a policy names.
fn ranges<'a>(policy: &At<'a>) -> HashSet<&'a str> {
    let rules = [("ingress", "from"), ("egress", "to")].into_iter().flat_map(|(rules, peers)| {
        let rules = policy.member("spec").member(rules);
        rules.items().flat_map(move |rule| rule.member(peers).items())
    });
    let blocks = rules.map(|peer| peer.member("ipBlock"));
    blocks.flat_map(|block| block.member("except").items().chain([block.member("cidr")])).map(|at| at.text()).collect()
}

/// Ranges that the policy named before are not looked at again.
fn address_block(block: &At<'_>, kept: &HashSet<&str>, errors: &mut Vec<FieldError>) {
    let check = |at: &At<'_>, errors: &mut Vec<FieldError>| {
        let mut wrong = Vec::new();
        let range = address::range(at, &mut wrong);
        errors.extend(wrong.into_iter().filter(|_| !kept.contains(at.text())));
        range
    };
    let cidr = block.member("cidr");
    if cidr.is_absent() {
        return errors.push(cidr.missing(""));
    }
    let Some(whole) = check(&cidr, errors) else { return };
    for except in block.member("except").items() {
        if check(&except, errors).is_some_and(|part| !whole.contains(&part)) {
            errors.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}

fn peer(peer: &At<'_>, kept: &HashSet<&str>, errors: &mut Vec<FieldError>) {
    let (pods, namespaces, block) =
        (peer.member("podSelector"), peer.member("namespaceSelector"), peer.member("ipBlock"));
    selector::check(&pods, errors);
    selector::check(&namespaces, errors);
    if block.is_set() {
        address_block(&block, kept, errors);
    }
    match (pods.is_set() || namespaces.is_set(), block.is_set()) {
        (false, false) => errors.push(peer.missing("must specify a peer")),
        (true, true) => errors.push(peer.forbidden("may not specify both ipBlock and another peer")),
        _ => {}
    }
}
