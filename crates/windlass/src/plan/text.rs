//! A plan as a person reads it.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use super::difference::Field;
use super::{Change, Plan, What};

/// Longer values are cut; `-o json` has them whole.
const VALUE_MAX: usize = 100;

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_more_than_a_report =
            |change: &&Change| change.what != What::Change || !change.fields.is_empty() || change.because.is_some();
        let shown = self.changes.iter().filter(is_more_than_a_report);
        let (asked, done): (Vec<_>, Vec<_>) = shown.partition(|change| change.asked);
        section(f, "You ask for:", &asked)?;
        section(f, "The operator would:", &done)?;
        statuses(f, &self.changes)?;
        lines(f, "And wait:", &self.waits)?;
        lines(f, "And call:", &self.calls)?;
        lines(f, "And say:", &self.said)?;
        lines(f, "The API would refuse:", &self.refused)?;
        if !self.settled {
            writeln!(f, "It did not come to rest: what follows is not known.\n")?;
        }
        let count = |what| done.iter().filter(|change| change.what == what).count();
        let (creates, changes, deletes) = (count(What::Create), count(What::Change), count(What::Delete));
        if creates + changes + deletes == 0 {
            return writeln!(f, "The operator would change nothing.");
        }
        writeln!(f, "{creates} to create, {changes} to change, {deletes} to delete. Nothing was done.")
    }
}

fn section(f: &mut Formatter<'_>, title: &str, changes: &[&Change]) -> fmt::Result {
    if changes.is_empty() {
        return Ok(());
    }
    writeln!(f, "{title}")?;
    for change in changes {
        let because = change.because.as_deref().map(|because| format!(" ({because})")).unwrap_or_default();
        writeln!(f, "  {} {}{because}", change.what.sign(), change.object)?;
        fields(f, &change.fields)?;
    }
    writeln!(f)
}

/// What the operator would report; it is no change to what it manages, so that it is not counted.
fn statuses(f: &mut Formatter<'_>, changes: &[Change]) -> fmt::Result {
    let reported: Vec<_> = changes.iter().filter(|change| !change.status.is_empty()).collect();
    if !reported.is_empty() {
        writeln!(f, "And report:")?;
        for change in &reported {
            writeln!(f, "  ~ {}", change.object)?;
            fields(f, &change.status)?;
        }
        writeln!(f)?;
    }
    Ok(())
}

fn fields(f: &mut Formatter<'_>, fields: &[Field]) -> fmt::Result {
    for field in fields {
        match (&field.from, &field.to) {
            (Some(from), Some(to)) => writeln!(f, "      {}: {} → {}", field.path, short(from), short(to))?,
            (None, Some(to)) => writeln!(f, "    + {}: {}", field.path, short(to))?,
            (from, None) => writeln!(f, "    - {}: {}", field.path, from.as_ref().map(short).unwrap_or_default())?,
        }
    }
    Ok(())
}

fn lines(f: &mut Formatter<'_>, title: &str, lines: &[String]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(f, "{title}")?;
    for line in lines {
        writeln!(f, "  {line}")?;
    }
    writeln!(f)
}

fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) if !text.is_empty() && !text.contains('\n') => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(VALUE_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
