//! The rule of acknowledgement of a primary, and how it changes without a moment in which nobody knows it.

use std::collections::BTreeSet;

use crate::wire::{Plan, Quorum};

/// What to do about the rule next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All is as it should be.
    Nothing,
    /// These rules may be in force from now on: to be remembered before anything else happens.
    Remember(Vec<Quorum>),
    /// This rule is to be in force.
    Enforce(Option<Quorum>),
}

/// The rule for a primary of which nothing is known yet: any of the others.
pub(crate) fn first(plan: &Plan, me: &str) -> Option<Quorum> {
    let of: BTreeSet<String> = plan.members.iter().filter(|member| *member != me).cloned().collect();
    (plan.synchronous > 0).then_some(Quorum { need: plan.synchronous, of })
}

/// The rule for a primary that sees which members follow: only these are asked, as long as they are enough.
pub(crate) fn wanted(plan: &Plan, me: &str, following: &BTreeSet<String>) -> Option<Quorum> {
    let first = first(plan, me)?;
    let of: BTreeSet<String> = first.of.intersection(following).cloned().collect();
    Some(if of.len() >= first.need as usize { Quorum { need: first.need, of } } else { first })
}

/// The rule that the server is told.
pub(crate) struct Told<'a> {
    pub(crate) rule: Option<&'a Quorum>,
    /// Whether it is known to be in force, and those that it asks have what was acknowledged before.
    pub(crate) is_confirmed: bool,
}

/// From the rule that the server is told and those that are remembered to the one that is wanted. While a rule changes, the
/// one before and the one after are remembered: who takes over then has to satisfy both.
pub(crate) fn step(wanted: Option<&Quorum>, told: &Told<'_>, remembered: Option<&[Quorum]>) -> Step {
    if wanted == told.rule {
        let only: Vec<Quorum> = wanted.into_iter().cloned().collect();
        let is_done = remembered == Some(&only) || !told.is_confirmed;
        return if is_done { Step::Nothing } else { Step::Remember(only) };
    }
    let all: Vec<Quorum> = match (told.rule, wanted) {
        // From or to no rule at all: there is nothing that could be promised meanwhile.
        (None, _) | (_, None) => Vec::new(),
        (Some(rule), Some(wanted)) if told.is_confirmed => vec![rule.clone(), wanted.clone()],
        (Some(_), Some(wanted)) => {
            let before = remembered.unwrap_or_default().iter().filter(|rule| *rule != wanted);
            before.chain([wanted]).cloned().collect()
        }
    };
    if remembered == Some(&all) { Step::Enforce(wanted.cloned()) } else { Step::Remember(all) }
}

/// The rule as PostgreSQL takes it.
pub(crate) fn setting(rule: Option<&Quorum>) -> String {
    let Some(rule) = rule else { return String::new() };
    let names: Vec<String> = rule.of.iter().map(|name| format!("\"{name}\"")).collect();
    if names.is_empty() { String::new() } else { format!("ANY {} ({})", rule.need, names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(need: u32, of: &[&str]) -> Quorum {
        Quorum { need, of: of.iter().map(|name| (*name).to_owned()).collect() }
    }

    fn plan(synchronous: u32) -> Plan {
        Plan { members: ["a", "b", "c"].map(str::to_owned).to_vec(), synchronous, ..Plan::default() }
    }

    #[test]
    fn only_members_that_follow_are_asked_while_they_are_enough() {
        let check = |synchronous, following: &[&str], expected: Option<Quorum>| {
            let following = following.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(wanted(&plan(synchronous), "a", &following), expected, "{synchronous} {following:?}");
        };
        check(0, &["b"], None);
        check(1, &[], Some(rule(1, &["b", "c"])));
        check(1, &["c"], Some(rule(1, &["c"])));
        check(1, &["b", "c", "stranger"], Some(rule(1, &["b", "c"])));
        check(2, &["c"], Some(rule(2, &["b", "c"])));
    }

    #[test]
    fn a_rule_is_remembered_before_it_is_in_force_and_until_it_is_not() {
        let (old, new) = (rule(1, &["b", "c"]), rule(1, &["c"]));
        let both = [old.clone(), new.clone()];
        fn told(rule: Option<&Quorum>) -> Told<'_> {
            Told { rule, is_confirmed: true }
        }
        let check = |rule: Option<&Quorum>, remembered: Option<&[Quorum]>, expected: Step| {
            assert_eq!(step(Some(&new), &told(rule), remembered), expected);
        };
        check(Some(&old), Some(std::slice::from_ref(&old)), Step::Remember(both.to_vec()));
        check(Some(&old), Some(&both), Step::Enforce(Some(new.clone())));
        check(Some(&new), Some(&both), Step::Remember(vec![new.clone()]));
        check(Some(&new), Some(std::slice::from_ref(&new)), Step::Nothing);
        check(Some(&new), None, Step::Remember(vec![new.clone()]));
        check(None, Some(&[]), Step::Enforce(Some(new.clone())));
        assert_eq!(step(None, &told(Some(&old)), Some(std::slice::from_ref(&old))), Step::Remember(vec![]));
        assert_eq!(step(None, &told(Some(&old)), Some(&[])), Step::Enforce(None));
    }

    #[test]
    fn a_rule_that_is_not_confirmed_forgets_none_before_it() {
        let (first, second, third) = (rule(1, &["b", "c"]), rule(1, &["c"]), rule(1, &["b"]));
        let told = Told { rule: Some(&second), is_confirmed: false };
        let two = [first.clone(), second.clone()];
        let three = [first, second.clone(), third.clone()];
        assert_eq!(step(Some(&second), &told, Some(&two)), Step::Nothing);
        assert_eq!(step(Some(&third), &told, Some(&two)), Step::Remember(three.to_vec()));
        assert_eq!(step(Some(&third), &told, Some(&three)), Step::Enforce(Some(third)));
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(setting(Some(&rule(1, &["db-2", "db-3"]))), r#"ANY 1 ("db-2", "db-3")"#);
        assert_eq!(setting(None), "");
    }
}
