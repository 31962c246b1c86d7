//! A copy of the author's type, out of sight: schemars derives its schema, with our constraints as transforms.
//!
//! A derive cannot add attributes to the type that it stands on, so it adds them to a copy.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Error, Fields, Result, parse_quote};

use super::constraints::{Constraints, Place};

/// The schema of a type.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        let words = "a type with parameters has its schema from schemars: derive schemars::JsonSchema";
        return Err(Error::new(input.ident.span(), words));
    }
    let (name, copy) = (&input.ident, format_ident!("{}Schema", input.ident));
    let (has_default, definition) = (has_default(&input.attrs), definition(input)?);
    let default = has_default.then(|| default(input, &copy)).transpose()?;
    Ok(quote! {
        const _: () = {
            use ::windlass::__private::schemars;

            #definition
            #default

            impl schemars::JsonSchema for #name {
                fn schema_name() -> ::std::borrow::Cow<'static, str> {
                    <#copy as schemars::JsonSchema>::schema_name()
                }

                fn schema_id() -> ::std::borrow::Cow<'static, str> {
                    <#copy as schemars::JsonSchema>::schema_id()
                }

                fn inline_schema() -> bool {
                    <#copy as schemars::JsonSchema>::inline_schema()
                }

                fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                    <#copy as schemars::JsonSchema>::json_schema(generator)
                }
            }
        };
    })
}

/// The copy itself, with constraints in the words of schemars.
fn definition(input: &DeriveInput) -> Result<TokenStream> {
    let mut copy = input.clone();
    let constraints = Constraints::parse(&input.attrs, Place::Container)?;
    let mut immutable = false;
    match &mut copy.data {
        Data::Struct(data) => immutable = translate_fields(&mut data.fields)?,
        Data::Enum(data) => {
            for variant in &mut data.variants {
                variant.attrs.retain(is_of_schemars);
                if translate_fields(&mut variant.fields)? {
                    return Err(Error::new(variant.ident.span(), "only a field of a struct can be immutable"));
                }
            }
        }
        Data::Union(_) => return Err(Error::new(input.ident.span(), "a union has no schema")),
    }
    copy.attrs.retain(is_of_schemars);
    let name = input.ident.to_string();
    copy.ident = format_ident!("{name}Schema");
    copy.attrs.push(parse_quote!(#[schemars(crate = "::windlass::__private::schemars", rename = #name)]));
    if immutable {
        copy.attrs.push(parse_quote!(#[schemars(transform = ::windlass::__private::Immutables)]));
    }
    if !constraints.is_empty() {
        let constraints = constraints.tokens();
        copy.attrs.push(parse_quote!(#[schemars(transform = #constraints)]));
    }
    copy.vis = syn::Visibility::Inherited;
    let copy = copy.into_token_stream();
    Ok(quote! {
        #[derive(::windlass::__private::schemars::JsonSchema)]
        #[allow(dead_code, clippy::struct_excessive_bools)]
        #copy
    })
}

/// Puts the constraints of fields into the words of schemars, and says whether one is immutable.
fn translate_fields(fields: &mut Fields) -> Result<bool> {
    let mut immutable = false;
    for field in fields {
        let constraints = Constraints::parse(&field.attrs, Place::Field(&field.ty))?;
        immutable |= constraints.is_immutable;
        field.attrs.retain(is_of_schemars);
        if !constraints.is_empty() {
            let constraints = constraints.tokens();
            field.attrs.push(parse_quote!(#[schemars(transform = #constraints)]));
        }
    }
    Ok(immutable)
}

/// Schemars reads its own attributes, those of serde, documentation and deprecation.
fn is_of_schemars(attribute: &Attribute) -> bool {
    ["schemars", "serde", "doc", "deprecated", "cfg"].iter().any(|name| attribute.path().is_ident(name))
}

/// Whether absent fields come from the type's own `Default`.
fn has_default(attributes: &[Attribute]) -> bool {
    let mut found = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        // What serde cannot read is serde's to complain about.
        let _ = attribute.parse_nested_meta(|meta| {
            if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            } else if meta.input.peek(syn::token::Paren) {
                let _: proc_macro2::Group = meta.input.parse()?;
            } else {
                found |= meta.path.is_ident("default");
            }
            Ok(())
        });
    }
    found
}

/// The copy has the same default as the original.
fn default(input: &DeriveInput, copy: &syn::Ident) -> Result<TokenStream> {
    let name = &input.ident;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(name.span(), "only a struct takes absent fields from its Default"));
    };
    let members: Vec<_> = data.fields.members().collect();
    Ok(quote! {
        impl ::core::default::Default for #copy {
            fn default() -> Self {
                let original = <#name as ::core::default::Default>::default();
                Self { #(#members: original.#members),* }
            }
        }
    })
}
