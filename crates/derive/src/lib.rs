//! The resource and schema derives: from types to a kind of the API.

mod attributes;
mod column;
mod expand;
mod rule;
mod schema;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a kind of the API out of a spec type.
///
/// On `struct MemcachedSpec` with `#[resource(group = "cache.example.com", version = "v1alpha1", kind = "Memcached",
/// status = MemcachedStatus)]` it makes `struct Memcached { metadata, spec, status }` with conditions and the observed
/// generation in its status, and its definition for the API. The first paragraph of the doc comment describes the kind.
///
/// Further attributes:
/// - `cluster` (else the kind is namespaced), `plural`, `singular`, `short` and `category` (both may repeat);
/// - `scale(".spec.size", ".status.replicas", ".status.selector")`;
/// - `column("Size", path = ".spec.size", type = "integer")`, `column("Ready", condition = "Ready")`, both with
///   `format`, `description` and `priority` (above zero: only with `-o wide`);
/// - `selectable = ".spec.mode"`: for `kubectl get --field-selector` (may repeat);
/// - `deprecated`, or `deprecated = "use v1"`: clients get a warning; `unserved`: clients cannot use it any more;
/// - `cel("self.spec.a < self.spec.b", message = "…")`: a rule on the whole object, as with [`macro@Schema`].
#[proc_macro_derive(Resource, attributes(resource))]
pub fn derive_resource(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::resource(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes the schema of a type: for specs, statuses and whatever is in them.
///
/// It is schemars' derive (its attributes and those of serde work) with constraints that the API server enforces. On
/// fields:
/// - numbers: `min`, `max`, `exclusive_min`, `exclusive_max`, `multiple_of`;
/// - texts: `min_length`, `max_length`, `pattern`, `format`, `one_of("a", "b")`;
/// - lists: `min_items`, `max_items`, `list = "set"` or `"atomic"`, `keys("name")` for items that are told apart by
///   these fields; maps: `min_properties`, `max_properties`, `map = "atomic"`; `items(…)`: constraints on each item or
///   value;
/// - `immutable`: cannot change or go once it is there; `nullable` or `nullable = false`; `default = 3`;
/// - `preserve_unknown`, `embedded`: for objects of any or of another kind;
/// - `cel("self.startsWith('a')", message = "…")` with `message_expression`, `reason`, `field_path` and
///   `optional_old_self`, as often as need be.
///
/// On types: `cel(…)`, `min_properties`, `max_properties`, `map`, `preserve_unknown`.
#[proc_macro_derive(Schema, attributes(schema, schemars))]
pub fn derive_schema(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    schema::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
