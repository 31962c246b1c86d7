//! What `#[resource(…)]` says.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::{DeriveInput, Error, Expr, Ident, Lit, LitInt, LitStr, Meta, Result, Token, Type, parenthesized};

const KNOWN: &str = "group, version, kind, status, namespaced, cluster, plural, singular, short, category, scale(…), \
                     column(…), cel(…)";

/// All attributes of one derive.
pub(crate) struct Attributes {
    pub(crate) group: LitStr,
    pub(crate) version: LitStr,
    pub(crate) kind: LitStr,
    pub(crate) status: Option<Type>,
    pub(crate) is_cluster_scoped: bool,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<LitStr>,
    pub(crate) categories: Vec<LitStr>,
    pub(crate) scale: Option<Scale>,
    pub(crate) columns: Vec<Column>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) description: String,
}

#[derive(Default)]
struct Partial {
    group: Option<LitStr>,
    version: Option<LitStr>,
    kind: Option<LitStr>,
    status: Option<Type>,
    is_cluster_scoped: bool,
    plural: Option<LitStr>,
    singular: Option<LitStr>,
    short_names: Vec<LitStr>,
    categories: Vec<LitStr>,
    scale: Option<Scale>,
    columns: Vec<Column>,
    rules: Vec<Rule>,
}

/// `scale(spec, status[, selector])`
pub(crate) struct Scale {
    pub(crate) spec: LitStr,
    pub(crate) status: LitStr,
    pub(crate) selector: Option<LitStr>,
}

/// `column(name, path = …, type = …)` or `column(name, condition = …)`
pub(crate) struct Column {
    pub(crate) name: LitStr,
    pub(crate) path: String,
    pub(crate) type_: String,
    pub(crate) priority: i32,
}

/// `cel(rule, message = …)`
pub(crate) struct Rule {
    pub(crate) cel: LitStr,
    pub(crate) message: LitStr,
}

impl Attributes {
    pub(crate) fn parse(input: &DeriveInput) -> Result<Self> {
        let mut partial = Partial::default();
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("resource")) {
            attribute.parse_nested_meta(|meta| partial.take(&meta))?;
        }
        let missing = |name: &str, example: &str| {
            Error::new(input.ident.span(), format!("say the {name}: #[resource({name} = \"{example}\")]"))
        };
        let group = partial.group.ok_or_else(|| missing("group", "cache.example.com"))?;
        let version = partial.version.ok_or_else(|| missing("version", "v1alpha1"))?;
        let kind = partial.kind.ok_or_else(|| missing("kind", "Memcached"))?;
        check_group(&group)?;
        check_version(&version)?;
        check_kind(&kind)?;
        if input.ident == kind.value() {
            return Err(Error::new(kind.span(), "the kind needs another name than the spec: call the spec …Spec"));
        }
        let singular = partial.singular.map_or_else(|| kind.value().to_lowercase(), |singular| singular.value());
        let plural = partial.plural.map_or_else(|| pluralize(&singular), |plural| plural.value());
        Ok(Self {
            group,
            version,
            kind,
            status: partial.status,
            is_cluster_scoped: partial.is_cluster_scoped,
            plural,
            singular,
            short_names: partial.short_names,
            categories: partial.categories,
            scale: partial.scale,
            columns: partial.columns,
            rules: partial.rules,
            description: description(input),
        })
    }
}

impl Partial {
    fn take(&mut self, meta: &ParseNestedMeta) -> Result<()> {
        let text = || meta.value()?.parse::<LitStr>();
        match meta.path.get_ident().map(Ident::to_string).unwrap_or_default().as_str() {
            "group" => self.group = Some(text()?),
            "version" => self.version = Some(text()?),
            "kind" => self.kind = Some(text()?),
            "plural" => self.plural = Some(text()?),
            "singular" => self.singular = Some(text()?),
            "short" => self.short_names.push(text()?),
            "category" => self.categories.push(text()?),
            "status" => self.status = Some(meta.value()?.parse()?),
            "cluster" => self.is_cluster_scoped = true,
            "namespaced" => self.is_cluster_scoped = false,
            "scale" => self.scale = Some(in_parentheses(meta.input)?),
            "column" => self.columns.push(in_parentheses(meta.input)?),
            "cel" => self.rules.push(in_parentheses(meta.input)?),
            _ => return Err(meta.error(format!("unknown attribute; known are {KNOWN}"))),
        }
        Ok(())
    }
}

fn in_parentheses<T: Parse>(input: ParseStream) -> Result<T> {
    let content;
    parenthesized!(content in input);
    let parsed = content.parse()?;
    if content.is_empty() { Ok(parsed) } else { Err(content.error("nothing more is expected here")) }
}

impl Parse for Scale {
    fn parse(input: ParseStream) -> Result<Self> {
        let spec = json_path(input)?;
        input.parse::<Token![,]>()?;
        let status = json_path(input)?;
        let selector = match input.parse::<Option<Token![,]>>()? {
            Some(_) if !input.is_empty() => Some(json_path(input)?),
            _ => None,
        };
        Ok(Self { spec, status, selector })
    }
}

impl Parse for Column {
    fn parse(input: ParseStream) -> Result<Self> {
        let name: LitStr = input.parse()?;
        let mut column = Self { name, path: String::new(), type_: "string".into(), priority: 0 };
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            if input.parse::<Option<Token![type]>>()?.is_some() {
                input.parse::<Token![=]>()?;
                column.type_ = column_type(&input.parse()?)?;
                continue;
            }
            let key: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            match key.to_string().as_str() {
                "path" => column.path = json_path(input)?.value(),
                "condition" => {
                    let condition: LitStr = input.parse()?;
                    column.path = format!(".status.conditions[?(@.type==\"{}\")].status", condition.value());
                }
                "priority" => column.priority = input.parse::<LitInt>()?.base10_parse()?,
                _ => return Err(Error::new(key.span(), "a column has path, type, condition and priority")),
            }
        }
        if column.path.is_empty() {
            return Err(Error::new(column.name.span(), "say where the value is: path = \".spec.size\""));
        }
        Ok(column)
    }
}

impl Parse for Rule {
    fn parse(input: ParseStream) -> Result<Self> {
        let cel: LitStr = input.parse()?;
        input.parse::<Token![,]>()?;
        let key: Ident = input.parse()?;
        if key != "message" {
            return Err(Error::new(key.span(), "say what to tell people: cel(\"self.a < self.b\", message = \"…\")"));
        }
        input.parse::<Token![=]>()?;
        Ok(Self { cel, message: input.parse()? })
    }
}

fn json_path(input: ParseStream) -> Result<LitStr> {
    let path: LitStr = input.parse()?;
    if path.value().starts_with('.') {
        Ok(path)
    } else {
        Err(Error::new(path.span(), "a path begins with a dot: \".spec.size\""))
    }
}

fn column_type(type_: &LitStr) -> Result<String> {
    match type_.value().as_str() {
        "string" | "integer" | "number" | "boolean" | "date" => Ok(type_.value()),
        _ => Err(Error::new(type_.span(), "a column is of type string, integer, number, boolean or date")),
    }
}

fn check_group(group: &LitStr) -> Result<()> {
    let is_label = |label: &str| {
        let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty() && label.chars().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    if group.value().contains('.') && group.value().split('.').all(is_label) {
        return Ok(());
    }
    Err(Error::new(group.span(), "a group is a domain name in lowercase: \"cache.example.com\""))
}

fn check_version(version: &LitStr) -> Result<()> {
    let text = version.value();
    let rest = text.strip_prefix('v').unwrap_or_default().trim_start_matches(|c: char| c.is_ascii_digit());
    let starts_well = text.len() > 1 && text[1..].starts_with(|c: char| c.is_ascii_digit());
    let stage = rest.strip_prefix("alpha").or_else(|| rest.strip_prefix("beta"));
    let ends_well =
        rest.is_empty() || stage.is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()));
    if starts_well && ends_well {
        return Ok(());
    }
    Err(Error::new(version.span(), "a version is like \"v1\", \"v1alpha1\" or \"v2beta3\""))
}

fn check_kind(kind: &LitStr) -> Result<()> {
    let text = kind.value();
    if text.starts_with(|c: char| c.is_ascii_uppercase()) && text.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(Error::new(kind.span(), "a kind is in CamelCase: \"Memcached\""))
}

fn pluralize(singular: &str) -> String {
    let ends = |endings: &[&str]| endings.iter().any(|ending| singular.ends_with(ending));
    let before_y = singular.strip_suffix('y');
    match before_y {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if ends(&["s", "x", "z", "ch", "sh"]) => format!("{singular}es"),
        _ => format!("{singular}s"),
    }
}

/// The first paragraph of the doc comment.
fn description(input: &DeriveInput) -> String {
    let lines = input.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).filter_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else { return None };
        let Expr::Lit(literal) = &pair.value else { return None };
        let Lit::Str(text) = &literal.lit else { return None };
        Some(text.value().trim().to_owned())
    });
    let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// A literal of `text`, for names that were derived.
pub(crate) fn literal(text: &str) -> LitStr {
    LitStr::new(text, Span::call_site())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(attributes: &str) -> String {
        let source = format!("#[resource({attributes})] struct CacheSpec;");
        let input: DeriveInput = syn::parse_str(&source).unwrap();
        Attributes::parse(&input).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn mistakes_are_named_with_what_to_do() {
        let base = r#"group = "g.example", version = "v1", kind = "Cache""#;
        let rows = [
            (base.to_owned(), ""),
            (r#"version = "v1", kind = "Cache""#.into(), "say the group"),
            (r#"group = "example", version = "v1", kind = "Cache""#.into(), "domain name"),
            (r#"group = "g.example", version = "1", kind = "Cache""#.into(), "a version is like"),
            (r#"group = "g.example", version = "v1gamma", kind = "Cache""#.into(), "a version is like"),
            (r#"group = "g.example", version = "v1", kind = "cache""#.into(), "CamelCase"),
            (r#"group = "g.example", version = "v1", kind = "CacheSpec""#.into(), "another name"),
            (format!("{base}, sort"), "unknown attribute"),
            (format!(r#"{base}, scale("spec.size", ".status.n")"#), "begins with a dot"),
            (format!(r#"{base}, column("Size")"#), "say where the value is"),
            (format!(r#"{base}, column("Size", path = ".spec.size", type = "int")"#), "of type string"),
            (format!(r#"{base}, cel("self.a")"#), "expected `,`"),
        ];
        for (attributes, expected) in rows {
            let complaint = complaint(&attributes);
            assert!(complaint.contains(expected), "{attributes}: {complaint}");
            assert_eq!(complaint.is_empty(), expected.is_empty(), "{attributes}: {complaint}");
        }
    }

    #[test]
    fn plurals_follow_english() {
        let rows = [("memcached", "memcacheds"), ("proxy", "proxies"), ("gateway", "gateways"), ("switch", "switches")];
        for (singular, plural) in rows {
            assert_eq!(pluralize(singular), plural);
        }
    }
}
