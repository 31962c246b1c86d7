//! YAML with gaps for a template engine.

use serde_json::{Map, Value};

/// What begins a scalar that is written as it is.
const RAW: char = '\u{1}';
/// What begins the key of lines that are written as they are; it is the last of all keys.
const LINES: char = '~';
/// Stands for the present indentation in such lines.
pub(super) const INDENT: &str = "%indent%";
/// Stands for the next deeper one.
pub(super) const DEEPER: &str = "%deeper%";
/// Words that some readers take for something else than a text.
const WORDS: [&str; 10] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan"];

/// A scalar that is written as it is.
pub(super) fn raw(text: &str) -> Value {
    Value::String(format!("{RAW}{text}"))
}

/// A line between the items of a list.
pub(super) fn line(text: &str) -> Value {
    Value::String(format!("{RAW}{RAW}{text}"))
}

/// Puts lines after the fields of a map; those that were put first come first.
pub(super) fn add_lines(map: &mut Value, text: impl Into<String>) {
    let Some(fields) = map.as_object_mut() else { return };
    let count = fields.keys().filter(|key| key.starts_with(LINES)).count();
    fields.insert(format!("{LINES}{count}"), Value::String(text.into()));
}

/// The text of an object.
pub(super) fn emit(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(fields) => map(&mut out, fields, 0),
        Value::Array(items) => list(&mut out, items, 0),
        scalar_value => out.push_str(&scalar(scalar_value)),
    }
    out
}

fn map(out: &mut String, fields: &Map<String, Value>, indent: usize) {
    let is_lines = |(key, _): &(&String, &Value)| key.starts_with(LINES);
    for (key, value) in fields.iter().filter(|field| !is_lines(field)) {
        out.push_str(&format!("{:indent$}{}:", "", scalar(&Value::String(key.clone()))));
        child(out, value, indent);
    }
    for (_, text) in fields.iter().filter(is_lines) {
        lines(out, text.as_str().unwrap_or_default(), indent);
    }
}

fn child(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            map(out, fields, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            list(out, items, indent);
        }
        other => out.push_str(&format!(" {}\n", scalar(other))),
    }
}

fn list(out: &mut String, items: &[Value], indent: usize) {
    for item in items {
        match item {
            Value::String(text) if text.starts_with([RAW]) && text[1..].starts_with(RAW) => {
                lines(out, &text[2..], indent);
            }
            Value::Object(fields) if !fields.is_empty() => {
                let mut inner = String::new();
                map(&mut inner, fields, indent + 2);
                out.push_str(&format!("{:indent$}- {}", "", &inner[indent + 2..]));
            }
            other => out.push_str(&format!("{:indent$}- {}\n", "", scalar(other))),
        }
    }
}

fn lines(out: &mut String, text: &str, indent: usize) {
    for line in text.lines() {
        let line = line.replace(INDENT, &indent.to_string()).replace(DEEPER, &(indent + 2).to_string());
        out.push_str(&format!("{:indent$}{line}\n", ""));
    }
}

fn scalar(value: &Value) -> String {
    let Value::String(text) = value else { return value.to_string() };
    if let Some(raw) = text.strip_prefix(RAW) {
        return raw.to_owned();
    }
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
    let is_word = WORDS.contains(&text.to_lowercase().as_str());
    if text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(is_plain) && !is_word {
        return text.clone();
    }
    // A text of the object must not look like a template.
    value.to_string().replace("{{", "{{ \"{{\" }}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_reads_as_what_it_was() {
        let object = json!({
            "texts": ["plain", "on", "1e3", "0x10", "with: colon", "line\nbreak", "", "- dash", "a#b", "~", "é", "12:30"],
            "numbers": [1, -2, 1.5], "flags": [true, false, null], "empty": {"map": {}, "list": []},
            "nested": [{"a": {"b": [{"c": 1, "d": [2]}]}}, {"e": "f"}], "key with space": {"app.kubernetes.io/name": "x"},
        });
        let read: Value = serde_saphyr::from_str(&emit(&object)).unwrap();
        assert_eq!(read, object);
    }

    #[test]
    fn gaps_stay_gaps_and_texts_do_not_become_any() {
        let mut object =
            json!({"a": raw("{{ .Values.a }}"), "b": "{{ no }}", "z": {"list": ["x", line("{{- end }}")]}});
        add_lines(
            &mut object["z"],
            "{{- if .c }}\nc: {{ toYaml . | nindent %indent% }}{{ toYaml . | nindent %deeper% }}",
        );
        add_lines(&mut object["z"], "{{- end }}");
        let expected = "a: {{ .Values.a }}\nb: \"{{ \"{{\" }} no }}\"\nz:\n  list:\n  - x\n  {{- end }}\n  {{- if .c }}\n  c: {{ toYaml . | nindent 2 }}{{ toYaml . | nindent 4 }}\n  {{- end }}\n";
        assert_eq!(emit(&object), expected);
    }
}
