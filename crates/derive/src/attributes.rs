//! What `#[resource(…)]` says.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::{DeriveInput, Error, Expr, Ident, Lit, LitStr, Meta, Result, Token, Type, parenthesized};

use crate::column::Column;
use crate::rule::Rule;

const KNOWN: &str = "group, version, kind, status, namespaced, cluster, plural, singular, short, category, scale(…), \
                     column(…), selectable, deprecated, unserved, cel(…)";

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
    pub(crate) selectable: Vec<LitStr>,
    pub(crate) deprecated: Option<String>,
    pub(crate) is_unserved: bool,
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
    selectable: Vec<LitStr>,
    deprecated: Option<String>,
    is_unserved: bool,
}

/// `scale(spec, status[, selector])`
pub(crate) struct Scale {
    pub(crate) spec: LitStr,
    pub(crate) status: LitStr,
    pub(crate) selector: Option<LitStr>,
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
            selectable: partial.selectable,
            deprecated: partial.deprecated,
            is_unserved: partial.is_unserved,
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
            "selectable" => self.selectable.push(json_path(meta.value()?)?),
            "deprecated" if meta.input.peek(Token![=]) => self.deprecated = Some(text()?.value()),
            "deprecated" => self.deprecated = Some(String::new()),
            "unserved" => self.is_unserved = true,
            "cel" => self.rules.push(in_parentheses(meta.input)?),
            _ => return Err(meta.error(format!("unknown attribute; known are {KNOWN}"))),
        }
        Ok(())
    }
}

/// What stands in parentheses, and nothing more.
pub(crate) fn in_parentheses<T: Parse>(input: ParseStream) -> Result<T> {
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

/// A path to a field, in the manner of `kubectl get -o jsonpath`.
pub(crate) fn json_path(input: ParseStream) -> Result<LitStr> {
    let path: LitStr = input.parse()?;
    if path.value().starts_with('.') {
        Ok(path)
    } else {
        Err(Error::new(path.span(), "a path begins with a dot: \".spec.size\""))
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
            (format!(r#"{base}, column("Size", path = ".spec.size", width = "9")"#), "a column has"),
            (format!(r#"{base}, cel("self.a")"#), "say what to tell people"),
            (format!(r#"{base}, cel("self.a", message = "m", reason = "Bad")"#), "a reason is one of"),
            (format!(r#"{base}, cel("self.a", message = "m", field_path = "a")"#), "begins with a dot"),
            (format!(r#"{base}, cel("self.a", massage = "m")"#), "a rule has"),
            (format!(r#"{base}, selectable = "spec.mode""#), "begins with a dot"),
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
