//! The code that the derive writes.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Result};

use crate::attributes::{Attributes, literal};
use crate::column::Column;
use crate::rule::Rule;

/// The kind for a spec type.
pub(crate) fn resource(input: &DeriveInput) -> Result<TokenStream> {
    if !matches!(input.data, Data::Struct(_)) {
        return Err(Error::new(input.ident.span(), "only a struct can be a spec"));
    }
    if !input.generics.params.is_empty() {
        return Err(Error::new(input.ident.span(), "a spec has no type parameters"));
    }
    let attributes = Attributes::parse(input)?;
    let parts = [
        kind(input, &attributes),
        serialization(input, &attributes),
        kube_resource(&attributes),
        custom_resource(input, &attributes),
    ];
    Ok(parts.into_iter().collect())
}

fn kind(input: &DeriveInput, attributes: &Attributes) -> TokenStream {
    let (visibility, spec, status) = (&input.vis, &input.ident, status(attributes));
    let name = format_ident!("{}", attributes.kind.value(), span = attributes.kind.span());
    let doc = &attributes.description;
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug)]
        #visibility struct #name {
            /// Name, namespace, labels and the rest that every object has.
            pub metadata: ::windlass::__private::ObjectMeta,
            /// What is declared.
            pub spec: #spec,
            /// What was reported.
            pub status: ::core::option::Option<::windlass::Status<#status>>,
        }

        impl #name {
            /// An object with this name and spec, not in the API yet.
            pub fn new(name: impl ::core::convert::Into<::std::string::String>, spec: #spec) -> Self {
                let metadata = ::windlass::__private::ObjectMeta {
                    name: ::core::option::Option::Some(name.into()),
                    ..::core::default::Default::default()
                };
                Self { metadata, spec, status: ::core::option::Option::None }
            }
        }
    }
}

fn serialization(input: &DeriveInput, attributes: &Attributes) -> TokenStream {
    let (spec, status) = (&input.ident, status(attributes));
    let name = format_ident!("{}", attributes.kind.value());
    let (kind, api_version) =
        (&attributes.kind, format!("{}/{}", attributes.group.value(), attributes.version.value()));
    quote! {
        const _: () = {
            use ::windlass::__private::serde;

            impl serde::Serialize for #name {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                    use serde::ser::SerializeStruct as _;
                    let fields = 4 + usize::from(self.status.is_some());
                    let mut object = serializer.serialize_struct(#kind, fields)?;
                    object.serialize_field("apiVersion", #api_version)?;
                    object.serialize_field("kind", #kind)?;
                    object.serialize_field("metadata", &self.metadata)?;
                    object.serialize_field("spec", &self.spec)?;
                    if let ::core::option::Option::Some(status) = &self.status {
                        object.serialize_field("status", status)?;
                    }
                    object.end()
                }
            }

            #[derive(serde::Deserialize)]
            #[serde(crate = "::windlass::__private::serde")]
            struct Wire {
                metadata: ::windlass::__private::ObjectMeta,
                spec: #spec,
                #[serde(default = "no_status")]
                status: ::core::option::Option<::windlass::Status<#status>>,
            }

            fn no_status() -> ::core::option::Option<::windlass::Status<#status>> {
                ::core::option::Option::None
            }

            impl<'de> serde::Deserialize<'de> for #name {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> ::core::result::Result<Self, D::Error> {
                    let Wire { metadata, spec, status } = <Wire as serde::Deserialize>::deserialize(deserializer)?;
                    ::core::result::Result::Ok(Self { metadata, spec, status })
                }
            }
        };
    }
}

fn kube_resource(attributes: &Attributes) -> TokenStream {
    let name = format_ident!("{}", attributes.kind.value());
    let (group, version, kind, plural) =
        (&attributes.group, &attributes.version, &attributes.kind, literal(&attributes.plural));
    let scope = if attributes.is_cluster_scoped {
        quote!(::windlass::__private::ClusterResourceScope)
    } else {
        quote!(::windlass::__private::NamespaceResourceScope)
    };
    quote! {
        impl ::windlass::__private::kube::Resource for #name {
            type DynamicType = ();
            type Scope = #scope;

            fn kind(_: &()) -> ::std::borrow::Cow<'_, str> {
                #kind.into()
            }

            fn group(_: &()) -> ::std::borrow::Cow<'_, str> {
                #group.into()
            }

            fn version(_: &()) -> ::std::borrow::Cow<'_, str> {
                #version.into()
            }

            fn plural(_: &()) -> ::std::borrow::Cow<'_, str> {
                #plural.into()
            }

            fn meta(&self) -> &::windlass::__private::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ::windlass::__private::ObjectMeta {
                &mut self.metadata
            }
        }
    }
}

fn custom_resource(input: &DeriveInput, attributes: &Attributes) -> TokenStream {
    let (spec, status) = (&input.ident, status(attributes));
    let name = format_ident!("{}", attributes.kind.value());
    let (group, version, kind, description) =
        (&attributes.group, &attributes.version, &attributes.kind, &attributes.description);
    let (plural, singular) = (&attributes.plural, &attributes.singular);
    let (short_names, categories) = (&attributes.short_names, &attributes.categories);
    let columns = attributes.columns.iter().map(Column::tokens);
    let rules = attributes.rules.iter().map(Rule::tokens);
    let selectable = &attributes.selectable;
    let is_unserved = attributes.is_unserved;
    let deprecated = option(attributes.deprecated.as_ref().map(|warning| quote!(#warning)));
    let scale = option(attributes.scale.as_ref().map(|scale| {
        let (spec, status, selector) =
            (&scale.spec, &scale.status, option(scale.selector.as_ref().map(|s| quote!(#s))));
        quote!(::windlass::Scale { spec: #spec, status: #status, selector: #selector })
    }));
    quote! {
        impl ::windlass::CustomResource for #name {
            type Spec = #spec;
            type Status = #status;

            fn facts() -> ::windlass::Facts {
                ::windlass::Facts {
                    group: #group,
                    version: #version,
                    kind: #kind,
                    plural: #plural,
                    singular: #singular,
                    short_names: &[#(#short_names),*],
                    categories: &[#(#categories),*],
                    description: #description,
                    columns: &[#(#columns),*],
                    scale: #scale,
                    rules: &[#(#rules),*],
                    selectable: &[#(#selectable),*],
                    deprecated: #deprecated,
                    is_unserved: #is_unserved,
                }
            }

            fn spec(&self) -> &#spec {
                &self.spec
            }

            fn status(&self) -> ::core::option::Option<&::windlass::Status<#status>> {
                self.status.as_ref()
            }
        }
    }
}

/// The author's status type, or one without fields.
fn status(attributes: &Attributes) -> TokenStream {
    match &attributes.status {
        Some(status) => quote!(#status),
        None => quote!(::windlass::NoStatus),
    }
}

fn option(tokens: Option<TokenStream>) -> TokenStream {
    match tokens {
        Some(tokens) => quote!(::core::option::Option::Some(#tokens)),
        None => quote!(::core::option::Option::None),
    }
}
