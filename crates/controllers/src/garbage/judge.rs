//! What becomes of one object, given the live state of its owners.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::graph::{Deletion, FOREGROUND, ORPHAN, Uid};

/// What a live look at an owner showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerState {
    /// It is there and stays, or goes without waiting for its dependents.
    Solid,
    /// It is not there: not in this namespace, or not with this UID.
    Absent,
    /// It is there and waits for its dependents to go.
    Waits,
    /// It cannot be there: a cluster-scoped object cannot have an owner in a namespace.
    Impossible,
}

/// How to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// What to do with the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    /// Take away the references to these owners.
    Strip(Vec<Uid>),
    Delete(Propagation),
    /// Its owner and it wait for each other: stop blocking, then delete in the foreground.
    UnblockAndDelete,
}

/// How the dependents of the object stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dependents {
    None,
    Some,
    /// At least one of them waits for its own dependents.
    SomeWait,
}

/// Judges an object that is not itself waiting for dependents.
pub(crate) fn judge(meta: &ObjectMeta, owners: &[(Uid, OwnerState)], dependents: Dependents) -> Verdict {
    let is = |state: OwnerState| owners.iter().filter(move |(_, owner)| *owner == state).map(|(uid, _)| uid.clone());
    let leaves = Deletion::of(meta) != Deletion::None;
    if owners.is_empty() || leaves || is(OwnerState::Impossible).next().is_some() {
        return Verdict::Keep;
    }
    let gone: Vec<Uid> = is(OwnerState::Absent).chain(is(OwnerState::Waits)).collect();
    if is(OwnerState::Solid).next().is_some() {
        return if gone.is_empty() { Verdict::Keep } else { Verdict::Strip(gone) };
    }
    let has = |finalizer: &str| meta.finalizers.iter().flatten().any(|known| known == finalizer);
    match (is(OwnerState::Waits).next(), dependents) {
        (Some(_), Dependents::SomeWait) => Verdict::UnblockAndDelete,
        (Some(_), Dependents::Some) => Verdict::Delete(Propagation::Foreground),
        _ if has(ORPHAN) => Verdict::Delete(Propagation::Orphan),
        _ if has(FOREGROUND) => Verdict::Delete(Propagation::Foreground),
        _ => Verdict::Delete(Propagation::Background),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_goes_when_its_last_owner_has_gone() {
        use {Dependents as D, OwnerState::*, Propagation::*, Verdict::*};
        let check = |owners: &[OwnerState], finalizer: Option<&str>, dependents, expect: Verdict| {
            let meta = ObjectMeta { finalizers: finalizer.map(|name| vec![name.to_owned()]), ..ObjectMeta::default() };
            let owners: Vec<(Uid, OwnerState)> =
                owners.iter().enumerate().map(|(index, state)| (index.to_string(), *state)).collect();
            assert_eq!(judge(&meta, &owners, dependents), expect, "{owners:?}");
        };
        check(&[], None, D::None, Keep);
        check(&[Solid], None, D::None, Keep);
        check(&[Absent], None, D::None, Delete(Background));
        check(&[Absent, Absent], None, D::Some, Delete(Background));
        check(&[Absent, Solid], None, D::None, Strip(vec!["0".into()]));
        check(&[Waits, Solid, Absent], None, D::None, Strip(vec!["2".into(), "0".into()]));
        check(&[Waits], None, D::None, Delete(Background));
        check(&[Waits], None, D::Some, Delete(Foreground));
        check(&[Waits], None, D::SomeWait, UnblockAndDelete);
        check(&[Absent], Some(ORPHAN), D::None, Delete(Orphan));
        check(&[Absent], Some(FOREGROUND), D::None, Delete(Foreground));
        check(&[Impossible], None, D::None, Keep);
    }
}
