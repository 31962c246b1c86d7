//! What the Go types of a package say beyond the protobuf definitions: JSON names, pointers, `omitempty`, inlining.
//!
//! The files are formatted by gofmt, so a field is a line: name, type, tag.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

/// The types that one package declares.
#[derive(Default)]
pub(super) struct Package {
    /// Structs by name.
    pub(super) structs: BTreeMap<String, Vec<Field>>,
    /// Other named types and what stands behind them.
    pub(super) aliases: BTreeMap<String, String>,
}

/// One field of a struct.
pub(super) struct Field {
    /// The JSON name; empty where the field is inlined.
    pub(super) json: String,
    /// The type, with package names as an error message of Go shows them.
    pub(super) go_type: String,
    /// The protobuf field number.
    pub(super) number: Option<i32>,
    pub(super) omit_empty: bool,
    pub(super) omit_zero: bool,
}

/// Reads the types of the package in `directory`.
pub(super) fn package(directory: &Path) -> anyhow::Result<Package> {
    let name = directory.file_name().and_then(|name| name.to_str()).context("a package directory has a name")?;
    let mut package = Package::default();
    for entry in std::fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))? {
        let path = entry?.path();
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if file.ends_with(".go") && !file.ends_with("_test.go") && !file.contains("generated") {
            read(&std::fs::read_to_string(&path)?, name, &mut package);
        }
    }
    Ok(package)
}

fn read(text: &str, package_name: &str, package: &mut Package) {
    let imports = imports(text);
    let mut current: Option<(String, Vec<Field>)> = None;
    for line in text.lines() {
        if let Some((name, mut fields)) = current.take() {
            if line == "}" {
                package.structs.insert(name, fields);
            } else {
                fields.extend(field(line, &imports, package_name));
                current = Some((name, fields));
            }
        } else if let Some(declaration) = line.strip_prefix("type ") {
            match declaration.split_once(' ') {
                Some((name, "struct {")) => current = Some((name.to_owned(), Vec::new())),
                Some((name, underlying)) => {
                    package.aliases.insert(name.to_owned(), underlying.to_owned());
                }
                None => {}
            }
        }
    }
}

/// The imported packages: the name used in the file, and the name of the package.
fn imports(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim);
    let imports = lines.filter_map(|line| {
        let (alias, path) = line.trim_start_matches("import ").split_once('"')?;
        let path = path.strip_suffix('"')?;
        let package = path.rsplit('/').next()?;
        let alias = alias.trim();
        Some((if alias.is_empty() { package } else { alias }.to_owned(), package.to_owned()))
    });
    imports.collect()
}

fn field(line: &str, imports: &BTreeMap<String, String>, package_name: &str) -> Option<Field> {
    let (declaration, rest) = line.split_once('`')?;
    let tag = rest.split_once('`')?.0;
    let mut words = declaration.split_whitespace();
    let first = words.next()?;
    if first.starts_with("//") {
        return None;
    }
    let go_type = words.next().unwrap_or(first);
    let json = tag_value(tag, "json").unwrap_or_default();
    let mut json = json.split(',');
    let protobuf = tag_value(tag, "protobuf").unwrap_or_default();
    Some(Field {
        json: json.next().unwrap_or_default().to_owned(),
        omit_empty: json.clone().any(|option| option == "omitempty"),
        omit_zero: json.any(|option| option == "omitzero"),
        go_type: qualified(go_type, imports, package_name),
        number: protobuf.split(',').nth(1).and_then(|number| number.parse().ok()),
    })
}

fn tag_value<'a>(tag: &'a str, key: &str) -> Option<&'a str> {
    tag.split_once(&format!("{key}:\""))?.1.split_once('"').map(|(value, _)| value)
}

/// The type with every name qualified by its package.
fn qualified(go_type: &str, imports: &BTreeMap<String, String>, package_name: &str) -> String {
    let mut result = String::new();
    let mut rest = go_type;
    while !rest.is_empty() {
        let end = rest.find(|character: char| !character.is_alphanumeric() && character != '.').unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        match word.split_once('.') {
            Some((alias, name)) => {
                result.push_str(imports.get(alias).map_or(alias, String::as_str));
                result.push('.');
                result.push_str(name);
            }
            None if word.starts_with(|first: char| first.is_uppercase()) => {
                result.push_str(&format!("{package_name}.{word}"));
            }
            None => result.push_str(word),
        }
        let next = tail.chars().next();
        result.extend(next);
        rest = &tail[next.map_or(0, char::len_utf8)..];
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_struct_is_read_with_its_tags() {
        let source = "import (\n\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n)\n\ntype Verbs []string\n\ntype Role struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\t// A `comment` in between.\n\tRules map[Name]*metav1.Time `json:\"rules,omitempty,omitzero\" protobuf:\"bytes,2,rep,name=rules\"`\n}\n";
        let mut package = Package::default();
        read(source, "v1", &mut package);
        assert_eq!(package.aliases["Verbs"], "[]string");
        let fields = &package.structs["Role"];
        assert_eq!(fields.len(), 2);
        assert_eq!((fields[0].json.as_str(), fields[0].go_type.as_str(), fields[0].number), ("", "v1.TypeMeta", None));
        let rules = &fields[1];
        assert_eq!((rules.json.as_str(), rules.go_type.as_str()), ("rules", "map[v1.Name]*v1.Time"));
        assert_eq!((rules.number, rules.omit_empty, rules.omit_zero), (Some(2), true, true));
    }
}
