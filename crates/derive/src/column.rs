//! `column(…)`: what `kubectl get` shows.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, LitInt, LitStr, Result, Token};

use crate::attributes::json_path;

/// `column(name, path = …, type = …)` or `column(name, condition = …)`
pub(crate) struct Column {
    name: LitStr,
    path: String,
    type_: String,
    format: String,
    description: String,
    priority: i32,
}

impl Parse for Column {
    fn parse(input: ParseStream) -> Result<Self> {
        let name: LitStr = input.parse()?;
        let (path, format, description) = (String::new(), String::new(), String::new());
        let mut column = Self { name, path, type_: "string".into(), format, description, priority: 0 };
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            column.take(input)?;
        }
        if column.path.is_empty() {
            return Err(Error::new(column.name.span(), "say where the value is: path = \".spec.size\""));
        }
        Ok(column)
    }
}

impl Column {
    fn take(&mut self, input: ParseStream) -> Result<()> {
        let key = Ident::parse_any(input)?;
        input.parse::<Token![=]>()?;
        match key.to_string().as_str() {
            "path" => self.path = json_path(input)?.value(),
            "type" => self.type_ = column_type(&input.parse()?)?,
            "condition" => {
                let condition: LitStr = input.parse()?;
                self.path = format!(".status.conditions[?(@.type==\"{}\")].status", condition.value());
            }
            "format" => self.format = input.parse::<LitStr>()?.value(),
            "description" => self.description = input.parse::<LitStr>()?.value(),
            "priority" => self.priority = input.parse::<LitInt>()?.base10_parse()?,
            _ => {
                let known = "path, type, condition, format, description and priority";
                return Err(Error::new(key.span(), format!("a column has {known}")));
            }
        }
        Ok(())
    }

    /// The column as a value.
    pub(crate) fn tokens(&self) -> TokenStream {
        let Self { name, path, type_, format, description, priority } = self;
        quote! {
            ::windlass::Column {
                name: #name,
                path: #path,
                type_: #type_,
                format: #format,
                description: #description,
                priority: #priority,
            }
        }
    }
}

fn column_type(type_: &LitStr) -> Result<String> {
    match type_.value().as_str() {
        "string" | "integer" | "number" | "boolean" | "date" => Ok(type_.value()),
        _ => Err(Error::new(type_.span(), "a column is of type string, integer, number, boolean or date")),
    }
}
