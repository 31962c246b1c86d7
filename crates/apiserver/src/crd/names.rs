//! Which of the names that a definition wants it gets.

use std::collections::BTreeSet;

use super::definition::{Condition, Definition, Names};

/// The names that others of the group have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

/// What a definition gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) names: Names,
    pub(super) condition: Condition,
}

impl Taken {
    /// Adds the names that a definition or a built-in kind has.
    pub(super) fn add(&mut self, names: &Names) {
        let resources = [&names.plural, &names.singular].into_iter().chain(&names.short_names);
        self.resources.extend(resources.filter(|name| !name.is_empty()).cloned());
        let kinds = [&names.kind, &names.list_kind];
        self.kinds.extend(kinds.into_iter().filter(|name| !name.is_empty()).cloned());
    }
}

/// Decides which names a definition gets; one that is in use is not taken away from its holder.
pub(super) fn accept(definition: &Definition, taken: &Taken) -> Accepted {
    let (wanted, held) = (&definition.spec.names, &definition.status.accepted_names);
    let mut names = held.clone();
    let mut conflict = None;
    let mut take = |wanted: &str, held: &mut String, used: &BTreeSet<String>, reason: &'static str| {
        if wanted != held.as_str() && used.contains(wanted) {
            conflict = Some((reason, in_use(wanted)));
        } else {
            *held = wanted.to_owned();
        }
    };
    take(&wanted.plural, &mut names.plural, &taken.resources, "PluralConflict");
    take(&wanted.singular, &mut names.singular, &taken.resources, "SingularConflict");
    take(&wanted.kind, &mut names.kind, &taken.kinds, "KindConflict");
    take(&wanted.list_kind, &mut names.list_kind, &taken.kinds, "ListKindConflict");
    let clashing: Vec<String> = wanted
        .short_names
        .iter()
        .filter(|name| !held.short_names.contains(name) && taken.resources.contains(*name))
        .map(|name| in_use(name))
        .collect();
    match &clashing[..] {
        [] => names.short_names.clone_from(&wanted.short_names),
        [one] => conflict = Some(("ShortNamesConflict", one.clone())),
        many => conflict = Some(("ShortNamesConflict", format!("[{}]", many.join(", ")))),
    }
    names.categories.clone_from(&wanted.categories);
    let (status, reason, message) = match conflict {
        Some((reason, message)) => ("False", reason, message),
        None => ("True", "NoConflicts", "no conflicts found".to_owned()),
    };
    let condition = Condition {
        r#type: "NamesAccepted".into(),
        status: status.into(),
        reason: reason.into(),
        message,
        ..Condition::default()
    };
    Accepted { names, condition }
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plural: &str, kind: &str, short: &[&str]) -> Names {
        Names {
            plural: plural.into(),
            singular: kind.to_lowercase(),
            kind: kind.into(),
            list_kind: format!("{kind}List"),
            short_names: short.iter().map(|name| (*name).to_owned()).collect(),
            ..Names::default()
        }
    }

    fn check(wanted: Names, held: Names, expected: (&str, &str)) -> Names {
        let mut definition = Definition::default();
        definition.spec.names = wanted;
        definition.status.accepted_names = held;
        let mut taken = Taken::default();
        taken.add(&names("cats", "Cat", &["c"]));
        let accepted = accept(&definition, &taken);
        assert_eq!((accepted.condition.reason.as_str(), accepted.condition.message.as_str()), expected);
        accepted.names
    }

    #[test]
    fn names_in_use_stay_with_their_holder() {
        let free = ("NoConflicts", "no conflicts found");
        let accepted = check(names("dogs", "Dog", &["d"]), Names::default(), free);
        assert_eq!(accepted, names("dogs", "Dog", &["d"]));
        check(names("cats", "Dog", &[]), Names::default(), ("PluralConflict", "\"cats\" is already in use"));
        let accepted =
            check(names("dogs", "Cat", &[]), Names::default(), ("ListKindConflict", "\"CatList\" is already in use"));
        assert_eq!(accepted.plural, "dogs");
        let accepted = check(
            names("dogs", "Dog", &["c", "d"]),
            Names::default(),
            ("ShortNamesConflict", "\"c\" is already in use"),
        );
        assert_eq!(accepted.short_names, Vec::<String>::new());
        check(names("cats", "Cat", &["c"]), names("cats", "Cat", &["c"]), free);
    }
}
