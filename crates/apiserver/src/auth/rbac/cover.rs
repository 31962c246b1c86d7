//! Whether somebody's rules cover other rules: the measure against giving away rights that one does not hold.

use std::collections::{BTreeMap, BTreeSet};

use super::Rule;
use super::rule::{matches, path_matches, resource_matches};
use crate::auth::User;

/// The parts of `wanted` that `held` does not cover, one verb on one resource or path each.
pub fn uncovered(held: &[&Rule], wanted: &[Rule]) -> Vec<Rule> {
    let missing: BTreeSet<Rule> =
        wanted.iter().flat_map(parts).filter(|part| !held.iter().any(|rule| covers(rule, part))).collect();
    missing.into_iter().collect()
}

/// The sentence that says which rights `user` would give away without holding them.
pub fn describe_missing(user: &User, missing: &[Rule]) -> String {
    let mut verbs: BTreeMap<Rule, Vec<String>> = BTreeMap::new();
    for part in missing {
        let target = Rule { verbs: Vec::new(), ..part.clone() };
        verbs.entry(target).or_default().extend(part.verbs.iter().cloned());
    }
    let lines: Vec<String> = verbs.into_iter().map(|(target, verbs)| line(&Rule { verbs, ..target })).collect();
    format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        lines.join("\n")
    )
}

fn parts(rule: &Rule) -> Vec<Rule> {
    let mut parts = Vec::new();
    for verb in &rule.verbs {
        for url in &rule.non_resource_urls {
            parts.push(Rule { verbs: vec![verb.clone()], non_resource_urls: vec![url.clone()], ..Rule::default() });
        }
        for (group, resource) in rule.api_groups.iter().flat_map(|g| rule.resources.iter().map(move |r| (g, r))) {
            let part = Rule {
                verbs: vec![verb.clone()],
                api_groups: vec![group.clone()],
                resources: vec![resource.clone()],
                ..Rule::default()
            };
            if rule.resource_names.is_empty() {
                parts.push(part);
                continue;
            }
            let named = |name: &String| Rule { resource_names: vec![name.clone()], ..part.clone() };
            parts.extend(rule.resource_names.iter().map(named));
        }
    }
    parts
}

/// Whether a rule covers one part; a wildcard in the part is covered by the same wildcard alone.
fn covers(rule: &Rule, part: &Rule) -> bool {
    let Some(verb) = part.verbs.first() else { return true };
    if !matches(&rule.verbs, verb) {
        return false;
    }
    if let Some(url) = part.non_resource_urls.first() {
        return rule.non_resource_urls.iter().any(|own| path_matches(own, url));
    }
    let (Some(group), Some(resource)) = (part.api_groups.first(), part.resources.first()) else { return true };
    let (name, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    matches(&rule.api_groups, group)
        && rule.resources.iter().any(|own| own == resource || resource_matches(own, name, subresource))
        && (rule.resource_names.is_empty()
            || part.resource_names.first().is_some_and(|name| rule.resource_names.contains(name)))
}

fn line(rule: &Rule) -> String {
    let fields = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let filled = fields.iter().filter(|(_, values)| !values.is_empty());
    let fields: Vec<String> = filled.map(|(name, values)| format!("{name}:{}", quoted(values))).collect();
    format!("{{{}}}", fields.join(", "))
}

fn quoted(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[{}]", values.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<Rule> {
        let split = |text: &str| -> Vec<String> { text.split(',').map(|item| item.replace("core", "")).collect() };
        let rule = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                [verbs, "url", urls] => Rule { verbs: split(verbs), non_resource_urls: split(urls), ..Rule::default() },
                [verbs, groups, resources, names @ ..] => Rule {
                    verbs: split(verbs),
                    api_groups: split(groups),
                    resources: split(resources),
                    resource_names: names.first().map(|names| split(names)).unwrap_or_default(),
                    ..Rule::default()
                },
                _ => panic!("not a rule: {line}"),
            }
        };
        text.split(';').filter(|line| !line.is_empty()).map(rule).collect()
    }

    fn check(held: &str, wanted: &str, missing: &str) {
        let (held, wanted) = (rules(held), rules(wanted));
        assert_eq!(uncovered(&held.iter().collect::<Vec<_>>(), &wanted), rules(missing));
    }

    #[test]
    fn held_rules_cover_equal_and_narrower_ones() {
        check("* * *", "get,list core pods,pods/log;delete apps deployments x", "");
        check("get,list core pods;watch core pods", "get,list,watch core pods", "");
        check("get core pods", "get core pods one", "");
        check("get * */status", "get apps deployments/status", "");
        check("get url /healthz*", "get url /healthz/etcd", "");
    }

    #[test]
    fn broader_ones_are_missing() {
        check("get core pods", "get,list core pods,secrets", "get core secrets;list core pods;list core secrets");
        check("get core pods one", "get core pods", "get core pods");
        check("get core pods", "get * pods", "get * pods");
        check("get core pods", "get core pods/log", "get core pods/log");
        check("get core pods", "* core pods", "* core pods");
        check("get url /healthz", "get url *", "get url *");
    }

    #[test]
    fn the_sentence_names_what_is_missing() {
        let missing = uncovered(&[], &rules("get,list core pods"));
        let sentence = describe_missing(&User::new("bob", ["ops"]), &missing);
        assert_eq!(
            sentence,
            "user \"bob\" (groups=[\"ops\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}"
        );
    }
}
