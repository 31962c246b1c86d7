//! Removing what a manager applied before and applies no more.

use std::collections::BTreeMap;

use super::entry::{Entry, Managers};
use super::write::{ConvertError, View, Write};
use crate::fields::FieldSet;
use crate::shape::Shape;
use crate::typed;

/// The merged object without the fields of `last` that the manager no longer applies and nobody else owns.
///
/// `managers` already has the new set of the applying manager.
pub(super) fn prune<'o, S: Shape>(
    write: &Write<'_, S>,
    merged: View<'o, S>,
    managers: &Managers,
    last: &Entry,
) -> Result<View<'o, S>, ConvertError> {
    if last.fields.is_empty() {
        return Ok(merged);
    }
    let Some(in_last_version) = write.converted(&merged, &last.api_version)? else { return Ok(merged) };
    let mut pruned = without(&in_last_version, &named(&last.fields, &in_last_version));
    let owned = by_version(managers, &last.api_version);
    for (version, fields) in &owned {
        pruned = with_owned(write, &in_last_version, pruned, (version, fields))?;
    }
    let gone = gone(write, &in_last_version, &pruned, last)?;
    let gone = match owned.first() {
        // What is left empty is still there for who owns it.
        Some((version, owned)) if *version == last.api_version => gone.difference(owned),
        _ => gone,
    };
    let pruned = without(&in_last_version, &gone);
    Ok(write.converted(&pruned, write.manager.api_version)?.unwrap_or(merged))
}

/// What is owned in each version, beginning with the one in which was pruned.
fn by_version<'m>(managers: &'m Managers, first: &'m str) -> Vec<(&'m str, FieldSet)> {
    let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
    for entry in managers.values() {
        owned.entry(&entry.api_version).or_default().absorb(entry.fields.clone());
    }
    let first = owned.remove_entry(first);
    first.into_iter().chain(owned).collect()
}

/// Puts back what somebody owns in this version.
fn with_owned<'o, S: Shape>(
    write: &Write<'_, S>,
    merged: &View<'o, S>,
    pruned: View<'o, S>,
    (version, owned): (&str, &FieldSet),
) -> Result<View<'o, S>, ConvertError> {
    let views = (write.converted(merged, version)?, write.converted(&pruned, version)?);
    let (Some(merged), Some(pruned_there)) = views else { return Ok(pruned) };
    let kept = named(&pruned_there.fields(), &merged).union(&named(owned, &merged));
    Ok(without(&merged, &named(&merged.fields(), &merged).difference(&kept)))
}

/// What the manager had applied and is gone now; other things may be gone with it, such as fields that nobody owns inside
/// an item, and these stay.
fn gone<S: Shape>(
    write: &Write<'_, S>,
    merged: &View<'_, S>,
    pruned: &View<'_, S>,
    last: &Entry,
) -> Result<FieldSet, ConvertError> {
    let Some(pruned) = write.converted(pruned, &last.api_version)? else { return Ok(FieldSet::new()) };
    let gone = named(&merged.fields(), merged).difference(&named(&pruned.fields(), merged));
    Ok(gone.intersection(&named(&last.fields, merged)))
}

fn named<S: Shape>(fields: &FieldSet, view: &View<'_, S>) -> FieldSet {
    let mut fields = fields.clone();
    fields.name_fields(Some(&view.shape));
    fields
}

fn without<'o, S: Shape>(view: &View<'o, S>, fields: &FieldSet) -> View<'o, S> {
    let object = typed::remove_items(&view.object, fields, Some(&view.shape));
    View { object: std::borrow::Cow::Owned(object), ..view.clone() }
}
