//! The structs of the wire format: protobuf numbers and types joined with what the Go types say of JSON.
//!
//! One line for each message: `name TAB form TAB field TAB field…`. The form is `object` (carries `apiVersion` and `kind`),
//! `struct` or `list` (a message that stands for a list). A field is `number json type go-type flags`; the type is
//! a letter (`b`ool, `i`nt32, `l`ong, `d`ouble, `s`tring, b`y`tes, `m`essage with `:name`) after `*` (repeated) or `%` (map
//! by string); the flags are `p`ointer, omit-`e`mpty, omit-`z`ero, i`n`line, or `-`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto};
use protox::Compiler;
use protox::file::{File, FileResolver};

use super::gotypes::{self, Package};
use super::openapi::Definitions;
use super::source::Source;

/// Renders the structs of every package that a definition comes from.
pub(super) fn lines(source: &Source, definitions: &Definitions) -> anyhow::Result<String> {
    let packages: BTreeSet<String> =
        definitions.keys().filter_map(|name| name.rsplit_once('.')).map(|(package, _)| import_path(package)).collect();
    let mut compiler = Compiler::with_file_resolver(Modules(source.clone()));
    for package in &packages {
        compiler.open_file(format!("{package}/generated.proto")).with_context(|| format!("compiling {package}"))?;
    }
    let mut lines = Vec::new();
    for file in compiler.include_imports(true).file_descriptor_set().file {
        let import = file.name().trim_end_matches("/generated.proto");
        let package = gotypes::package(&source.locate(import)?)?;
        for message in &file.message_type {
            let name = openapi_name(&format!("{}.{}", file.package(), message.name()));
            lines.push(line(&name, message, &package).with_context(|| format!("message {name}"))?);
        }
    }
    lines.sort();
    Ok(lines.concat())
}

/// Finds the `.proto` files in the downloaded modules.
struct Modules(Source);

impl FileResolver for Modules {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let not_found = || protox::Error::file_not_found(name);
        let path = self.0.locate(name).map_err(|_| not_found())?;
        // By source, not by path: the directory of a module carries its version, the import path does not.
        File::from_source(name, &std::fs::read_to_string(path).map_err(|_| not_found())?)
    }
}

/// `io.k8s.api.core.v1` → `k8s.io/api/core/v1`.
fn import_path(package: &str) -> String {
    package.replacen("io.k8s.", "k8s.io.", 1).replace('.', "/").replacen("k8s/io", "k8s.io", 1)
}

/// `.k8s.io.api.core.v1.Pod` → `io.k8s.api.core.v1.Pod`.
fn openapi_name(message: &str) -> String {
    message.trim_start_matches('.').replacen("k8s.io.", "io.k8s.", 1).replace('_', "-")
}

fn line(name: &str, message: &DescriptorProto, package: &Package) -> anyhow::Result<String> {
    let go = package.structs.get(message.name()).map(Vec::as_slice).unwrap_or_default();
    let form = if go.iter().any(|field| field.go_type == "v1.TypeMeta") {
        "object"
    } else if package.aliases.get(message.name()).is_some_and(|underlying| underlying.starts_with("[]")) {
        "list"
    } else {
        "struct"
    };
    let go: BTreeMap<i32, &gotypes::Field> = go.iter().filter_map(|field| Some((field.number?, field))).collect();
    let mut line = format!("{name}\t{form}");
    for field in &message.field {
        let go = go.get(&field.number()).copied();
        let go_type = go.map_or("-", |go| go.go_type.as_str());
        let json = match go.map(|go| go.json.as_str()) {
            // A field without a JSON tag belongs to a type that encodes itself.
            None | Some("-" | "") => field.name(),
            Some(json) => json,
        };
        let r#type = wire_type(field, message)?;
        line.push_str(&format!("\t{} {json} {type} {go_type} {}", field.number(), flags(go)));
    }
    line.push('\n');
    Ok(line)
}

fn flags(go: Option<&gotypes::Field>) -> String {
    let Some(go) = go else { return "-".to_owned() };
    let inline = go.json.is_empty();
    let flags = [(go.go_type.starts_with('*'), 'p'), (go.omit_empty, 'e'), (go.omit_zero, 'z'), (inline, 'n')];
    let flags: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect();
    if flags.is_empty() { "-".to_owned() } else { flags }
}

fn wire_type(field: &FieldDescriptorProto, message: &DescriptorProto) -> anyhow::Result<String> {
    let entry = message.nested_type.iter().find(|nested| field.type_name().ends_with(&format!(".{}", nested.name())));
    if let Some(entry) = entry {
        let [key, value] = entry.field.as_slice() else { bail!("a map entry has a key and a value") };
        if key.r#type() != Type::String {
            bail!("{}: only maps by string are known", field.name());
        }
        return Ok(format!("%{}", scalar(value)?));
    }
    let repeated = if field.label() == Label::Repeated { "*" } else { "" };
    Ok(format!("{repeated}{}", scalar(field)?))
}

fn scalar(field: &FieldDescriptorProto) -> anyhow::Result<String> {
    Ok(match field.r#type() {
        Type::Bool => "b".to_owned(),
        Type::Int32 => "i".to_owned(),
        Type::Int64 => "l".to_owned(),
        Type::Double => "d".to_owned(),
        Type::String => "s".to_owned(),
        Type::Bytes => "y".to_owned(),
        Type::Message => format!("m:{}", openapi_name(field.type_name())),
        other => bail!("{}: {other:?} is not used by upstream so far", field.name()),
    })
}
