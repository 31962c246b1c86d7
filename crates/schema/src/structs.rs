//! The structs behind the built-in kinds: protobuf numbers and types, JSON names, and what Go's encoder leaves out.
//!
//! The format of the table is described where it is generated (`xtask generate`).

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use crate::definition::decompress;
use crate::gojson::{Leaf, leaf};

static COMPRESSED: &[u8] = include_bytes!("../data/structs.zst");

/// A bound for the decompressed table; the real one is a third of it.
const TEXT_BYTES_MAX: usize = 1 << 19;

static STRUCTS: LazyLock<Structs> = LazyLock::new(|| {
    let text = decompress(COMPRESSED, TEXT_BYTES_MAX);
    let entries: Vec<Entry> = text
        .lines()
        .map(|text| {
            let name = text.split('\t').next().expect("split gives at least one part");
            Entry { name, text, parsed: OnceLock::new() }
        })
        .collect();
    let by_name = entries.iter().enumerate().map(|(index, entry)| (entry.name, index)).collect();
    Structs { entries, by_name }
});

struct Structs {
    entries: Vec<Entry>,
    by_name: HashMap<&'static str, usize>,
}

struct Entry {
    name: &'static str,
    text: &'static str,
    parsed: OnceLock<Struct>,
}

/// One struct, with the fields in the order of declaration.
#[derive(Debug)]
pub(crate) struct Struct {
    /// The name of its OpenAPI definition.
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// What one JSON value it stands for, where it does.
    pub(crate) leaf: Option<Leaf>,
    pub(crate) fields: Vec<Field>,
}

/// What a struct stands for in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A map that also has `apiVersion` and `kind`.
    Object,
    /// A map.
    Struct,
    /// A list: the first field holds the items.
    List,
}

/// One field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// The JSON name.
    pub(crate) name: &'static str,
    pub(crate) cardinality: Cardinality,
    pub(crate) r#type: Type,
    /// The type in Go, as error messages show it.
    pub(crate) go_type: &'static str,
    /// Absence differs from zero.
    pub(crate) is_pointer: bool,
    pub(crate) omit: Omit,
    /// The members of the struct stand directly in the outer map.
    pub(crate) is_inline: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cardinality {
    Single,
    Repeated,
    /// By string.
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Int32,
    Int64,
    Double,
    String,
    Bytes,
    /// A struct, by its place in the table.
    Message(Reference),
}

/// When Go's JSON encoder leaves a field out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omit {
    Never,
    /// When it is false, 0, nil or empty; structs are never empty.
    Empty,
    /// When it is empty, or a struct of only zeros.
    Zero,
}

/// The struct with the OpenAPI name `name`.
pub(crate) fn find(name: &str) -> Option<&'static Struct> {
    let structs = &*STRUCTS;
    let entry = &structs.entries[*structs.by_name.get(name)?];
    Some(entry.parsed())
}

impl Entry {
    fn parsed(&'static self) -> &'static Struct {
        self.parsed.get_or_init(|| parse(self.text).expect("the generated table of structs is valid"))
    }
}

/// A struct that another one refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference(usize);

impl Reference {
    /// The struct.
    pub(crate) fn target(self) -> &'static Struct {
        STRUCTS.entries[self.0].parsed()
    }
}

impl Struct {
    /// The name in Go, without the package: `DeploymentSpec`.
    pub(crate) fn go_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// The name in Go with the name of its package: `v1.DeploymentSpec`.
    pub(crate) fn go_type(&self) -> String {
        let package = self.name.rsplit('.').nth(1).unwrap_or_default();
        format!("{package}.{}", self.go_name())
    }
}

fn parse(text: &'static str) -> Option<Struct> {
    let mut parts = text.split('\t');
    let name = parts.next()?;
    let form = match parts.next()? {
        "object" => Form::Object,
        "struct" => Form::Struct,
        "list" => Form::List,
        _ => return None,
    };
    Some(Struct { name, form, leaf: leaf(name), fields: parts.map(field).collect::<Option<_>>()? })
}

fn field(text: &'static str) -> Option<Field> {
    let mut words = text.split(' ');
    let number = words.next()?.parse().ok()?;
    let name = words.next()?;
    let (cardinality, r#type) = wire_type(words.next()?)?;
    let go_type = words.next()?;
    let flags = words.next()?;
    let omit = match (flags.contains('z'), flags.contains('e')) {
        (true, _) => Omit::Zero,
        (false, true) => Omit::Empty,
        (false, false) => Omit::Never,
    };
    let (is_pointer, is_inline) = (flags.contains('p'), flags.contains('n'));
    Some(Field { number, name, cardinality, r#type, go_type, is_pointer, omit, is_inline })
}

fn wire_type(text: &'static str) -> Option<(Cardinality, Type)> {
    let (cardinality, text) = match text.as_bytes().first()? {
        b'*' => (Cardinality::Repeated, &text[1..]),
        b'%' => (Cardinality::Map, &text[1..]),
        _ => (Cardinality::Single, text),
    };
    let r#type = match text.split_once(':') {
        Some(("m", name)) => Type::Message(Reference(*STRUCTS.by_name.get(name)?)),
        Some(_) => return None,
        None => match text {
            "b" => Type::Bool,
            "i" => Type::Int32,
            "l" => Type::Int64,
            "d" => Type::Double,
            "s" => Type::String,
            "y" => Type::Bytes,
            _ => return None,
        },
    };
    Some((cardinality, r#type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_struct_parses_and_every_reference_leads_to_one() {
        for entry in &STRUCTS.entries {
            for field in &find(entry.name).unwrap().fields {
                if let Type::Message(reference) = field.r#type {
                    assert!(reference.target().name.starts_with("io.k8s."));
                }
            }
        }
    }

    #[test]
    fn facts_of_json_and_protobuf_are_joined() {
        let spec = find("io.k8s.api.apps.v1.DeploymentSpec").unwrap();
        let replicas = &spec.fields[0];
        assert_eq!((replicas.number, replicas.name, replicas.go_type), (1, "replicas", "*int32"));
        assert_eq!((replicas.r#type, replicas.is_pointer, replicas.omit), (Type::Int32, true, Omit::Empty));
        assert_eq!(find("io.k8s.api.core.v1.Pod").unwrap().form, Form::Object);
        assert!(find("io.k8s.api.core.v1.Volume").unwrap().fields[1].is_inline);
    }
}
