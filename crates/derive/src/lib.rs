//! The resource derive: from a spec type to a kind of the API.

mod attributes;
mod expand;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a kind of the API out of a spec type.
///
/// On `struct MemcachedSpec` with `#[resource(group = "cache.example.com", version = "v1alpha1", kind = "Memcached",
/// status = MemcachedStatus)]` it makes `struct Memcached { metadata, spec, status }` with conditions and the observed
/// generation in its status, and its definition for the API. The first paragraph of the doc comment describes the kind.
///
/// Further attributes: `cluster` (else the kind is namespaced), `plural`, `singular`, `short` and `category` (both may
/// repeat), `scale(".spec.size", ".status.replicas", ".status.selector")`, `column("Size", path = ".spec.size", type =
/// "integer")`, `column("Ready", condition = "Ready")`, `cel("self.a < self.b", message = "…")`.
#[proc_macro_derive(Resource, attributes(resource))]
pub fn derive_resource(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::resource(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
