//! Schemas of Rust types, in the form that the API takes.

use kube::core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{AddNullable, Transform, transform_subschemas};
use serde_json::Value;

/// The structural schema of a type, nothing referred to.
pub(crate) fn structural<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(AddNullable::default())
        .with_transform(StructuralSchemaRewriter)
        .with_transform(OptionalEnum)
        .with_transform(OptionalIntOrString)
        .with_transform(Known);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// Replaces or drops what the API does not know: the formats of unsigned numbers, titles, and `null` as a default,
/// which is what absence means already. A `u32` gets the limit that its format no longer says: an object beyond it would
/// be stored, and no operator could read it.
#[derive(Clone, Debug)]
struct Known;

impl Transform for Known {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        let is_u32 = schema.get("format").is_some_and(|format| format == "uint32");
        if is_u32 && ["maximum", "exclusiveMaximum"].into_iter().all(|word| schema.get(word).is_none()) {
            schema.insert("maximum".into(), u32::MAX.into());
        }
        let known = match schema.get("format").and_then(Value::as_str) {
            Some("uint8" | "uint16" | "int8" | "int16") => Some("int32"),
            Some("uint32" | "uint64" | "uint" | "int") => Some("int64"),
            _ => None,
        };
        if let Some(known) = known {
            schema.insert("format".into(), known.into());
        }
        if schema.get("default").is_some_and(Value::is_null) {
            schema.remove("default");
        }
        transform_subschemas(self, schema);
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::json;

    use super::*;

    #[derive(Serialize, JsonSchema)]
    struct Sizes {
        plain: u32,
        #[schemars(range(max = 16))]
        limited: u32,
        small: u8,
        signed: i32,
    }

    #[test]
    fn numbers_that_no_operator_could_read_are_not_stored() {
        let schema = structural::<Sizes>();
        let expect = json!({
            "plain": {"type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX},
            "limited": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 16},
            "small": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 255},
            "signed": {"type": "integer", "format": "int32"},
        });
        assert_eq!(schema["properties"], expect);
    }
}
