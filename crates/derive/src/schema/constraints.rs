//! What `#[schema(…)]` says of a field, or of a type.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, Ident, Lit, LitBool, LitInt, LitStr, Result, Token, Type, UnOp, parenthesized,
};

use super::shape::Shape;
use crate::attributes::in_parentheses;
use crate::rule::Rule;

const KNOWN: &str = "min, max, exclusive_min, exclusive_max, multiple_of, min_length, max_length, pattern, format, \
                     one_of(…), min_items, max_items, list, keys(…), min_properties, max_properties, map, items(…), \
                     nullable, immutable, default, preserve_unknown, embedded, cel(…)";

/// What is asked of a value.
#[derive(Default)]
pub(super) struct Constraints {
    /// Keywords of the schema with their values.
    keywords: Vec<(&'static str, TokenStream)>,
    rules: Vec<Rule>,
    items: Option<Box<Constraints>>,
    is_not_null: bool,
    pub(super) is_immutable: bool,
    lowest: Option<f64>,
    shortest: Option<u64>,
}

/// What attributes stand on.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// A field of this type.
    Field(&'a Type),
    /// The items of a field of this type.
    Items(&'a Type),
    /// A type of the author's.
    Container,
}

impl Constraints {
    /// Reads the `#[schema(…)]` among `attributes`.
    pub(super) fn parse(attributes: &[Attribute], place: Place) -> Result<Self> {
        let mut constraints = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("schema")) {
            attribute.parse_nested_meta(|meta| constraints.take(&meta, place))?;
        }
        Ok(constraints)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keywords.is_empty()
            && self.rules.is_empty()
            && self.items.is_none()
            && !self.is_not_null
            && !self.is_immutable
    }

    fn take(&mut self, meta: &ParseNestedMeta, place: Place) -> Result<()> {
        let name = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
        if matches!(place, Place::Container)
            && !matches!(name.as_str(), "cel" | "min_properties" | "max_properties" | "map" | "preserve_unknown")
        {
            return Err(meta.error("on a type there are cel(…), min_properties, max_properties, map and preserve_unknown; the rest goes on fields"));
        }
        match name.as_str() {
            "min" | "max" | "exclusive_min" | "exclusive_max" | "multiple_of" => self.number(meta, place, &name),
            "min_length" | "max_length" => self.size(meta, place, Shape::Text, &name),
            "min_items" | "max_items" => self.size(meta, place, Shape::List, &name),
            "min_properties" | "max_properties" => self.size(meta, place, Shape::Map, &name),
            "pattern" | "format" => {
                fits(meta, place, Shape::Text)?;
                let text: LitStr = meta.value()?.parse()?;
                self.keywords.push((if name == "pattern" { "pattern" } else { "format" }, quote!(#text)));
                Ok(())
            }
            "one_of" => self.one_of(meta),
            "list" | "keys" => self.list(meta, place, &name),
            "map" => self.map(meta),
            "items" => self.items(meta, place),
            _ => self.take_rest(meta, place, &name),
        }
    }

    fn take_rest(&mut self, meta: &ParseNestedMeta, place: Place, name: &str) -> Result<()> {
        match name {
            "nullable" if meta.input.peek(Token![=]) => {
                let wanted: LitBool = meta.value()?.parse()?;
                self.is_not_null = !wanted.value;
                if wanted.value {
                    self.keywords.push(("nullable", quote!(true)));
                }
            }
            "nullable" => self.keywords.push(("nullable", quote!(true))),
            "immutable" if matches!(place, Place::Field(_)) => self.is_immutable = true,
            "immutable" => return Err(meta.error("only a field can be immutable")),
            "default" => {
                let value: Expr = meta.value()?.parse()?;
                self.keywords.push(("default", quote!(#value)));
            }
            "preserve_unknown" => self.keywords.push(("x-kubernetes-preserve-unknown-fields", quote!(true))),
            "embedded" => self.keywords.push(("x-kubernetes-embedded-resource", quote!(true))),
            "cel" => self.rules.push(in_parentheses(meta.input)?),
            _ => return Err(meta.error(format!("unknown constraint; known are {KNOWN}"))),
        }
        Ok(())
    }

    fn number(&mut self, meta: &ParseNestedMeta, place: Place, name: &str) -> Result<()> {
        fits(meta, place, Shape::Number)?;
        let value: Expr = meta.value()?.parse()?;
        let number = number(&value)?;
        let keyword = match name {
            "multiple_of" => "multipleOf",
            "min" | "exclusive_min" => "minimum",
            _ => "maximum",
        };
        match (keyword, self.lowest) {
            ("minimum", _) => self.lowest = Some(number),
            ("maximum", Some(lowest)) if number < lowest => {
                return Err(Error::new(value.span(), format!("nothing is at least {lowest} and at most {number}")));
            }
            _ => {}
        }
        self.keywords.push((keyword, quote!(#value)));
        match name {
            "exclusive_min" => self.keywords.push(("exclusiveMinimum", quote!(true))),
            "exclusive_max" => self.keywords.push(("exclusiveMaximum", quote!(true))),
            _ => {}
        }
        Ok(())
    }

    fn size(&mut self, meta: &ParseNestedMeta, place: Place, shape: Shape, name: &str) -> Result<()> {
        fits(meta, place, shape)?;
        let literal: LitInt = meta.value()?.parse()?;
        let size: u64 = literal.base10_parse()?;
        if name.starts_with("min") {
            self.shortest = Some(size);
        } else if let Some(shortest) = self.shortest.filter(|shortest| size < *shortest) {
            return Err(Error::new(literal.span(), format!("nothing has at least {shortest} and at most {size}")));
        }
        let keyword = match name {
            "min_length" => "minLength",
            "max_length" => "maxLength",
            "min_items" => "minItems",
            "max_items" => "maxItems",
            "min_properties" => "minProperties",
            _ => "maxProperties",
        };
        self.keywords.push((keyword, quote!(#literal)));
        Ok(())
    }

    fn one_of(&mut self, meta: &ParseNestedMeta) -> Result<()> {
        let content;
        parenthesized!(content in meta.input);
        let values = Punctuated::<Lit, Token![,]>::parse_terminated(&content)?;
        if values.is_empty() {
            return Err(meta.error("say the values: one_of(\"a\", \"b\")"));
        }
        self.keywords.push(("enum", quote!([#values])));
        Ok(())
    }

    fn list(&mut self, meta: &ParseNestedMeta, place: Place, name: &str) -> Result<()> {
        fits(meta, place, Shape::List)?;
        if name == "keys" {
            let content;
            parenthesized!(content in meta.input);
            let keys = Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?;
            if keys.is_empty() {
                return Err(meta.error("say what tells items apart: keys(\"name\")"));
            }
            self.keywords.push(("x-kubernetes-list-type", quote!("map")));
            self.keywords.push(("x-kubernetes-list-map-keys", quote!([#keys])));
            return Ok(());
        }
        let type_: LitStr = meta.value()?.parse()?;
        match type_.value().as_str() {
            "set" | "atomic" => self.keywords.push(("x-kubernetes-list-type", quote!(#type_))),
            "map" => return Err(Error::new(type_.span(), "say what tells items apart: keys(\"name\")")),
            _ => return Err(Error::new(type_.span(), "a list is a \"set\" or \"atomic\", or has keys(\"name\")")),
        }
        Ok(())
    }

    fn map(&mut self, meta: &ParseNestedMeta) -> Result<()> {
        let type_: LitStr = meta.value()?.parse()?;
        if !matches!(type_.value().as_str(), "atomic" | "granular") {
            return Err(Error::new(type_.span(), "a map is \"atomic\" or \"granular\""));
        }
        self.keywords.push(("x-kubernetes-map-type", quote!(#type_)));
        Ok(())
    }

    fn items(&mut self, meta: &ParseNestedMeta, place: Place) -> Result<()> {
        let Place::Field(type_) = place else { return Err(meta.error("items(…) stands on fields only")) };
        if matches!(Shape::of(type_), Shape::Number | Shape::Text | Shape::Truth) {
            return Err(meta.error(format!("{} has no items", Shape::of(type_).word())));
        }
        let items = self.items.get_or_insert_default();
        meta.parse_nested_meta(|meta| items.take(&meta, Place::Items(type_)))
    }

    /// The constraints as a value that transforms a schema.
    pub(super) fn tokens(&self) -> TokenStream {
        let keywords = self
            .keywords
            .iter()
            .map(|(keyword, value)| quote!(.set(#keyword, ::windlass::__private::serde_json::json!(#value))));
        let rules = self.rules.iter().map(|rule| {
            let rule = rule.tokens();
            quote!(.rule(#rule))
        });
        let items = self.items.iter().map(|items| {
            let items = items.tokens();
            quote!(.items(#items))
        });
        let not_null = self.is_not_null.then(|| quote!(.not_null()));
        let immutable = self.is_immutable.then(|| quote!(.immutable()));
        quote! {
            ::windlass::__private::Constraints::new() #(#keywords)* #(#rules)* #(#items)* #not_null #immutable
        }
    }
}

/// Whether a constraint for one shape of values may stand at `place`.
fn fits(meta: &ParseNestedMeta, place: Place, wanted: Shape) -> Result<()> {
    let shape = match place {
        Place::Field(type_) => Shape::of(type_),
        Place::Items(type_) => Shape::of_items(type_),
        Place::Container => return Ok(()),
    };
    if shape == wanted || shape == Shape::Unknown {
        return Ok(());
    }
    Err(meta.error(format!("this is for {}, and here is {}", wanted.word(), shape.word())))
}

fn number(value: &Expr) -> Result<f64> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) => literal.base10_parse(),
        Expr::Lit(ExprLit { lit: Lit::Float(literal), .. }) => literal.base10_parse(),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => Ok(-number(&unary.expr)?),
        _ => Err(Error::new(value.span(), "a number is expected")),
    }
}

#[cfg(test)]
mod tests {
    use syn::Field;
    use syn::parse::Parser;

    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let rows = [
            ("#[schema(min = 1, max = 9)] a: u32", ""),
            ("#[schema(min = -1.5, max = 9)] a: Option<f64>", ""),
            ("#[schema(items(pattern = \"^a\"), list = \"set\")] a: Vec<String>", ""),
            ("#[schema(items(max = 9))] a: BTreeMap<String, u32>", ""),
            ("#[schema(keys(\"name\"), max_items = 9)] a: Vec<Port>", ""),
            ("#[schema(min = 9, max = 1)] a: u32", "nothing is at least 9"),
            ("#[schema(min_length = 9, max_length = 1)] a: String", "nothing has at least 9"),
            ("#[schema(min = 1)] a: String", "this is for a number, and here is a text"),
            ("#[schema(max_length = 1)] a: Option<Vec<u8>>", "this is for a text, and here is a list"),
            ("#[schema(items(min = 1))] a: Vec<String>", "this is for a number, and here is a text"),
            ("#[schema(items(min = 1))] a: u32", "a number has no items"),
            ("#[schema(min = one)] a: u32", "a number is expected"),
            ("#[schema(list = \"map\")] a: Vec<Port>", "say what tells items apart"),
            ("#[schema(list = \"bag\")] a: Vec<Port>", "a list is a \"set\""),
            ("#[schema(one_of())] a: String", "say the values"),
            ("#[schema(minimum = 1)] a: u32", "unknown constraint"),
        ];
        for (field, expected) in rows {
            let parsed = Field::parse_named.parse_str(field).unwrap();
            let error = Constraints::parse(&parsed.attrs, Place::Field(&parsed.ty)).err();
            let message = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(expected), "{field}: {message}");
            assert_eq!(message.is_empty(), expected.is_empty(), "{field}: {message}");
        }
    }
}
