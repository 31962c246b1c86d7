//! Texts without what servers are free in.

/// What comes before the words of a parser of the Go library, or before a value as Go prints it.
const PARSERS: [&str; 8] = [
    " in record (",
    " ({",
    "unable to parse requirement:",
    "continue key is not valid:",
    ", got ",
    "patch: Invalid value:",
    // Words of Go's converter of maps to structs.
    "unable to convert unstructured object to",
    // A difference of two objects, as Go prints it, on lines of its own.
    "\n",
];
/// Addresses of Services: each server takes any that is free.
const ADDRESSES: &str = "10.0.0.";
/// What comes before the version that a definition has, where another was asked for.
const FOUND: &str = "ResourceVersion in object meta: ";
/// What comes before the oldest version that a server remembers.
const OLDEST: &str = "too old resource version: 1 (";
/// What stories put before the part of a name that a server makes.
const GENERATED: &str = "-g-";
/// What is said of a field that a schema does not have.
const UNKNOWN: &str = "field not declared in schema";
/// What comes before a value that Go prints by the names of its own fields, and before a list of such.
const VALUES: [&str; 2] = ["Invalid value: {", "Invalid value: [{"];

/// The text without versions, addresses, generated names, identities and words that only a parser would say.
pub(super) fn plain(text: &str) -> String {
    // Each on a line, as they come out of a Go map.
    if let Some((before, errors)) = text.split_once("errors:\n") {
        let mut errors: Vec<String> = errors.lines().map(|line| plain(line.trim_start())).collect();
        // Kubernetes stops at an unknown field, wherever it stands in a map that has no order.
        if errors.iter().any(|error| error.ends_with(UNKNOWN)) {
            errors.retain(|error| error.ends_with(UNKNOWN));
        }
        errors.sort();
        return match errors.as_slice() {
            [only] => plain(before) + only,
            several => plain(before) + "errors: " + &several.join("; "),
        };
    }
    let text = PARSERS.iter().find_map(|parser| text.find(parser)).map_or(text, |end| &text[..end]);
    let text = without_identities(text);
    let text = without_run(&text, ADDRESSES, |letter| letter.is_ascii_digit());
    let text = without_run(&text, FOUND, |letter| letter.is_ascii_digit());
    let text = without_run(&text, OLDEST, |letter| letter.is_ascii_digit());
    let text = text
        .replace("\\x00", "\\u0000")
        .replace(" value: []:", " value: null:")
        .replace(" value: {}:", " value: null:");
    without_objects(&without_run(&text, GENERATED, |letter| letter.is_ascii_alphanumeric()))
}

/// The text without the letters that follow a mark.
fn without_run(text: &str, mark: &str, belongs: fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + mark + "*" + part.trim_start_matches(belongs))
}

/// The text without values in braces.
fn without_objects(text: &str) -> String {
    let found = VALUES.iter().find_map(|value| text.find(value).map(|start| start + "Invalid value: {".len()));
    let Some(start) = found else { return text.to_owned() };
    let mut depth = 1;
    let end = text[start..].find(|letter| {
        depth += i32::from(matches!(letter, '{' | '[')) - i32::from(matches!(letter, '}' | ']'));
        depth == 0
    });
    let rest = end.map_or("", |end| &text[start + end..]);
    format!("{}*{rest}", &text[..start])
}

/// The text with every UUID replaced.
fn without_identities(text: &str) -> String {
    let is_uuid = |word: &str| {
        let parts: Vec<usize> = word.split('-').map(str::len).collect();
        parts == [8, 4, 4, 4, 12] && word.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-')
    };
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    let replace = |word: &str| {
        let (core, end) = word.split_at(word.len().min(36));
        if word.is_char_boundary(core.len()) && is_uuid(core) { format!("(uuid){end}") } else { word.to_owned() }
    };
    words.map(|word| if word.is_ascii() { replace(word) } else { word.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_servers_choose_is_left_out() {
        assert_eq!(plain("is 10.0.0.17 of story-1-g-x7k2p."), "is 10.0.0.* of story-1-g-*.");
        assert_eq!(plain("spec: Invalid value: {\"a\":{\"b\":1}}: immutable"), "spec: Invalid value: {*}: immutable");
        assert_eq!(plain("v: Invalid value: [{\"Name\":[1]},{}]: not one"), "v: Invalid value: [*]: not one");
        let errors = "failed: errors:\n  .b: expected string, got 1\n  .a: not known";
        assert_eq!(plain(errors), "failed: errors: .a: not known; .b: expected string");
        let unknown = "failed: errors:\n  .a: expected string\n  .b: field not declared in schema";
        assert_eq!(plain(unknown), plain("failed: .b: field not declared in schema"));
        assert_eq!(plain("may not change\ncore.PodSpec{"), "may not change");
    }
}
