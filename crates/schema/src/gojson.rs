//! What Go's JSON encoder writes for a struct: which fields it leaves out, and what stands for zero.

use serde_json::{Map, Number, Value};

use crate::structs::{self, Cardinality, Field, Form, Omit, Struct, Type};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const APIEXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";

/// Structs that stand for one JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrString,
    /// Any JSON.
    Json,
    SchemaOrBool,
    SchemaOrList,
    SchemaOrStrings,
}

/// What leaf the struct `name` is.
pub(crate) fn leaf(name: &str) -> Option<Leaf> {
    Some(match name {
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => Leaf::Quantity,
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => Leaf::IntOrString,
        "io.k8s.apimachinery.pkg.runtime.RawExtension" => Leaf::Json,
        _ => match name.strip_prefix(META).or_else(|| name.strip_prefix(APIEXTENSIONS))? {
            ".Time" => Leaf::Time,
            ".MicroTime" => Leaf::MicroTime,
            ".Duration" => Leaf::Duration,
            ".FieldsV1" | ".JSON" => Leaf::Json,
            ".JSONSchemaPropsOrBool" => Leaf::SchemaOrBool,
            ".JSONSchemaPropsOrArray" => Leaf::SchemaOrList,
            ".JSONSchemaPropsOrStringArray" => Leaf::SchemaOrStrings,
            _ => return None,
        },
    })
}

/// The struct of a schema of a custom resource.
pub(crate) fn schema_struct() -> &'static Struct {
    structs::find(&format!("{APIEXTENSIONS}.JSONSchemaProps")).expect("the struct of schemas is in the table")
}

/// The struct of the metadata of objects.
pub(crate) fn object_meta() -> &'static Struct {
    structs::find(&format!("{META}.ObjectMeta")).expect("the struct of metadata is in the table")
}

/// Puts a field into the object as Go's encoder would; `None` is a field that was not set.
pub(crate) fn place(object: &mut Map<String, Value>, field: &Field, value: Option<Value>) {
    let value = match value {
        Some(value) => value,
        None if field.is_pointer || field.cardinality != Cardinality::Single => Value::Null,
        None => zero(field.r#type),
    };
    if field.is_inline {
        if let Value::Object(members) = value {
            object.extend(members);
        }
    } else if field.omit == Omit::Never || !is_empty(field, &value) {
        object.insert(field.name.to_owned(), value);
    }
}

/// Whether the tags of the field leave the value out: a pointer only where it is nil, a struct never by `omitempty`.
fn is_empty(field: &Field, value: &Value) -> bool {
    let is_struct = matches!(field.r#type, Type::Message(reference) if reference.target().form != Form::List);
    let never_empty = is_struct && field.cardinality == Cardinality::Single;
    match value {
        Value::Null => field.is_pointer || !never_empty || field.omit == Omit::Zero,
        _ if field.is_pointer || never_empty => false,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// The JSON of the zero value of a type.
pub(crate) fn zero(r#type: Type) -> Value {
    match r#type {
        Type::Bool => false.into(),
        Type::Int32 | Type::Int64 | Type::Double => 0.into(),
        Type::String => "".into(),
        Type::Bytes => Value::Null,
        Type::Message(reference) => zero_struct(reference.target()),
    }
}

fn zero_struct(known: &'static Struct) -> Value {
    match known.leaf {
        Some(Leaf::Duration) => return "0s".into(),
        Some(Leaf::Quantity) => return "0".into(),
        Some(Leaf::IntOrString) => return 0.into(),
        Some(Leaf::SchemaOrBool) => return false.into(),
        Some(_) => return Value::Null,
        None if known.form == Form::List => return Value::Null,
        None => {}
    }
    let mut object = Map::new();
    for field in &known.fields {
        place(&mut object, field, None);
    }
    Value::Object(object)
}

/// A number as Go writes it: a whole one has no fraction. `None` for what JSON cannot write.
pub(crate) fn double(value: f64) -> Option<Value> {
    const WHOLE_MAX: f64 = 1e15;
    if value.fract() == 0.0 && value.abs() < WHOLE_MAX {
        return Some((value as i64).into());
    }
    Number::from_f64(value).map(Value::Number)
}
