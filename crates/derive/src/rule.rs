//! `cel(…)`: a rule in the Common Expression Language.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, LitStr, Result, Token};

const REASONS: [&str; 4] = ["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"];

/// `cel(rule, message = …)` and what else can be said of a rule.
pub(crate) struct Rule {
    cel: LitStr,
    message: Option<LitStr>,
    message_expression: Option<LitStr>,
    reason: Option<LitStr>,
    field_path: Option<LitStr>,
    optional_old_self: bool,
}

impl Parse for Rule {
    fn parse(input: ParseStream) -> Result<Self> {
        let cel: LitStr = input.parse()?;
        let mut rule = Self {
            cel,
            message: None,
            message_expression: None,
            reason: None,
            field_path: None,
            optional_old_self: false,
        };
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            rule.take(input)?;
        }
        if rule.message.is_none() && rule.message_expression.is_none() {
            return Err(Error::new(
                rule.cel.span(),
                "say what to tell people: cel(\"self.a < self.b\", message = \"…\")",
            ));
        }
        Ok(rule)
    }
}

impl Rule {
    fn take(&mut self, input: ParseStream) -> Result<()> {
        let key: Ident = input.parse()?;
        if key == "optional_old_self" {
            self.optional_old_self = true;
            return Ok(());
        }
        input.parse::<Token![=]>()?;
        let text: LitStr = input.parse()?;
        match key.to_string().as_str() {
            "message" => self.message = Some(text),
            "message_expression" => self.message_expression = Some(text),
            "reason" if REASONS.contains(&text.value().as_str()) => self.reason = Some(text),
            "reason" => {
                return Err(Error::new(text.span(), format!("a reason is one of {}", REASONS.join(", "))));
            }
            "field_path" if text.value().starts_with('.') => self.field_path = Some(text),
            "field_path" => return Err(Error::new(text.span(), "a path begins with a dot: \".size\"")),
            _ => {
                let known = "message, message_expression, reason, field_path and optional_old_self";
                return Err(Error::new(key.span(), format!("a rule has {known}")));
            }
        }
        Ok(())
    }

    /// The rule as a value.
    pub(crate) fn tokens(&self) -> TokenStream {
        let option = |text: &Option<LitStr>| match text {
            Some(text) => quote!(::core::option::Option::Some(#text)),
            None => quote!(::core::option::Option::None),
        };
        let (cel, optional_old_self) = (&self.cel, self.optional_old_self);
        let (message, message_expression) = (option(&self.message), option(&self.message_expression));
        let (reason, field_path) = (option(&self.reason), option(&self.field_path));
        quote! {
            ::windlass::Rule {
                cel: #cel,
                message: #message,
                message_expression: #message_expression,
                reason: #reason,
                field_path: #field_path,
                optional_old_self: #optional_old_self,
            }
        }
    }
}
