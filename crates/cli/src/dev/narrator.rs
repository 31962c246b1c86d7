//! What happens in `windlass dev`, line by line, for readers that are no terminal.

use super::course::{Event, is_progress};
use super::entry::shorten;
use super::install::KindPath;
use super::resources::Row;
use crate::view::readiness::Readiness;

/// The lines that tell an event; `rows` are the resources before it.
pub(crate) fn tell(event: &Event, rows: &[Row]) -> Vec<String> {
    match event {
        Event::SourcesChanged => vec!["sources changed".to_owned()],
        Event::SamplesChanged => vec!["samples changed".to_owned()],
        Event::BuildSaid(line) if is_progress(line) => vec![format!("build: {}", line.trim())],
        Event::BuildSaid(line) => vec![format!("build | {line}")],
        Event::Built(Ok(took)) => vec![format!("build: ok in {:.1} s", took.as_secs_f32())],
        Event::Built(Err(None)) => vec!["build: failed; what runs goes on".to_owned()],
        Event::Built(Err(Some(why))) => vec![format!("build: failed: {why}")],
        Event::Installed(Ok(installed)) => {
            let kinds: Vec<String> = installed.kinds.iter().map(KindPath::word).collect();
            let kinds = if kinds.is_empty() { "no kind yet".to_owned() } else { kinds.join(", ") };
            vec![format!("cluster: has {kinds}, and the account {}/{}", installed.namespace, installed.account)]
        }
        Event::Installed(Err(why)) => vec![format!("cluster: {why}")],
        Event::Started(_, pid) => vec![format!("operator: started, process {pid}")],
        Event::Said(_, line) => vec![format!("operator | {}", shorten(line).1)],
        Event::Ready(_) => vec!["operator: ready".to_owned()],
        Event::Ended(_, how) => vec![format!("operator: ended ({how}), is started again")],
        Event::Again(_) => Vec::new(),
        Event::Applied(Ok(objects)) => objects.iter().map(|object| format!("samples: {object}")).collect(),
        Event::Applied(Err(why)) => vec![format!("samples: {why}")],
        Event::Seen(now) => changes(rows, now),
    }
}

/// What is new or different among the resources.
fn changes(before: &[Row], now: &[Row]) -> Vec<String> {
    let is_told = |row: &&Row| !before.contains(row);
    let mut lines: Vec<String> = now.iter().filter(is_told).map(line).collect();
    let gone = before.iter().filter(|row| now.iter().all(|other| other.label != row.label));
    lines.extend(gone.map(|row| format!("{} is gone", row.label)));
    lines
}

fn line(row: &Row) -> String {
    let (word, text) = match &row.readiness {
        Readiness::Ready(text) => ("ready", text),
        Readiness::Waiting(text) => ("waiting", text),
        Readiness::Stalled(text) => ("stalled", text),
    };
    let indent = row.rank.indent();
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    format!("{indent}{} {word}{text}", row.label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dev::resources::Rank;

    #[test]
    fn only_what_changed_of_the_resources_is_told() {
        let row = |label: &str, rank, readiness| Row { label: label.into(), rank, readiness };
        let waiting = |text: &str| Readiness::Waiting(text.into());
        let before = [
            row("site/a", Rank::Resource, waiting("0 of 2")),
            row("deployment/a", Rank::Child, waiting("")),
            row("site/b", Rank::Resource, waiting("")),
        ];
        let now = vec![row("site/a", Rank::Resource, Readiness::Ready("2 of 2".into())), before[1].clone()];
        assert_eq!(tell(&Event::Seen(now), &before), ["site/a ready: 2 of 2", "site/b is gone"]);
        assert_eq!(
            tell(&Event::Seen(before.to_vec()), &[]),
            ["site/a waiting: 0 of 2", "  deployment/a waiting", "site/b waiting"]
        );
    }
}
