//! A line of an operator's log, as short as it can be told.

use crate::view::paint::Colour;

/// A line of the log without what is the same in all of them: the day, the fractions of a second, the module. Of a run there
/// remains what it is about.
pub(crate) fn shorten(line: &str) -> (Option<Colour>, String) {
    let Some((time, rest)) = line.split_once(' ') else { return (None, line.to_owned()) };
    let clock = time.strip_suffix('Z').and_then(|time| time.split_once('T')).and_then(|(_, time)| time.get(..8));
    let (Some(clock), Some((level, rest))) = (clock, rest.trim_start().split_once(' ')) else {
        return (None, line.to_owned());
    };
    let (subject, rest) = match rest.strip_prefix("reconcile{").and_then(|rest| rest.split_once("}: ")) {
        Some((keys, rest)) => (subject(keys), rest),
        None => (String::new(), rest),
    };
    let text = match rest.split_once(": ") {
        Some((module, text)) if !module.contains(' ') => text,
        _ => rest,
    };
    match level {
        "ERROR" => (Some(Colour::Red), format!("{clock} error: {subject}{text}")),
        "WARN" => (Some(Colour::Yellow), format!("{clock} warning: {subject}{text}")),
        _ => (None, format!("{clock} {subject}{text}")),
    }
}

/// `site/sample: `, with the namespace if it is not the default one.
fn subject(keys: &str) -> String {
    let value = |key: &str| {
        let start = format!("{key}=\"");
        let found = keys.split(' ').find_map(|word| word.strip_prefix(&start)?.strip_suffix('"'));
        found.unwrap_or_default()
    };
    match value("namespace") {
        "" | "default" => format!("{}/{}: ", value("controller"), value("name")),
        namespace => format!("{}/{} in {namespace}: ", value("controller"), value("name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_in_all_lines_is_left_out() {
        let check = |line: &str, expected: &str| assert_eq!(shorten(line).1, expected);
        check("2026-01-01T10:20:30.123456Z  INFO windlass::command: Starting n=1", "10:20:30 Starting n=1");
        check("2026-01-01T10:20:30.1Z  WARN x::y: careful: it is hot", "10:20:30 warning: careful: it is hot");
        check(
            "2026-01-01T10:20:30.1Z  INFO reconcile{controller=\"site\" controllerKind=\"Site\" namespace=\"default\" \
             name=\"sample\" reconcileID=\"b7\"}: windlass_runtime::engine: Created Deployment sample reason=Created",
            "10:20:30 site/sample: Created Deployment sample reason=Created",
        );
        check(
            "2026-01-01T10:20:30.1Z ERROR reconcile{controller=\"site\" namespace=\"a\" name=\"s\"}: x: no",
            "10:20:30 error: site/s in a: no",
        );
        check("thread 'main' panicked at src/main.rs:1", "thread 'main' panicked at src/main.rs:1");
    }
}
