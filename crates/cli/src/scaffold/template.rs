//! The files of a project and of a kind, made of the templates beside this crate.

use super::api::ApiName;
use super::name::ProjectName;
use super::source::{REPOSITORY, Source};
use crate::failure::Failure;

/// The oldest compiler that Windlass is built with.
const RUST_VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../templates/", $path))
    };
}

/// A file that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Its path below the project.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// What the words between braces mean: `{{name}}` is replaced, and the lines from `{{#name}}` to `{{/name}}` stay only if
/// the name means something.
#[derive(Default)]
struct Words(Vec<(&'static str, String)>);

impl Words {
    fn say(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.0.push((name, text.into()));
        self
    }

    fn say_if(self, name: &'static str, is_so: bool) -> Self {
        if is_so { self.say(name, "") } else { self }
    }

    fn means(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == name)
    }

    fn fill(&self, template: &str) -> String {
        let (mut text, mut left_out) = (String::new(), None);
        for line in template.lines() {
            let mark = |sign: &str| line.strip_prefix(sign).and_then(|rest| rest.strip_suffix("}}"));
            match (mark("{{#"), mark("{{/")) {
                (Some(name), _) if left_out.is_none() && !self.means(name) => left_out = Some(name.to_owned()),
                (_, Some(name)) if left_out.as_deref() == Some(name) => left_out = None,
                (Some(_), _) | (_, Some(_)) => {}
                _ if left_out.is_some() => {}
                _ => {
                    text.push_str(&self.replace(line));
                    text.push('\n');
                }
            }
        }
        text
    }

    fn replace(&self, line: &str) -> String {
        self.0.iter().fold(line.to_owned(), |line, (name, text)| line.replace(&format!("{{{{{name}}}}}"), text))
    }
}

/// The files of a new project.
pub(crate) fn project_files(name: &ProjectName, domain: &str, source: &Source) -> Vec<File> {
    let words = Words::default()
        .say("name", name.as_str())
        .say("crate", name.as_str().replace('-', "_"))
        .say("domain", domain)
        .say("rust", RUST_VERSION)
        .say("repository", REPOSITORY)
        .say("windlass", source.dependency("windlass"))
        .say("testkit", source.dependency("testkit"));
    let words = match source {
        Source::Folder(path) => words.say("path", path.display().to_string()),
        Source::Git(_) => words.say_if("git", true),
    };
    let file = |path: &str, template: &str| File { path: path.to_owned(), text: words.fill(template) };
    let mut files = vec![
        file("Cargo.toml", template!("project/Cargo.toml")),
        file("src/lib.rs", template!("project/lib.rs")),
        file("src/main.rs", template!("project/main.rs")),
        file("Dockerfile", template!("project/Dockerfile")),
        file(".github/workflows/ci.yml", template!("project/ci.yml")),
        file(".gitignore", template!("project/gitignore")),
        file("README.md", template!("project/README.md")),
    ];
    files.extend(source.lock().map(|text| File { path: "Cargo.lock".to_owned(), text }));
    files
}

/// What a kind has beside what every kind has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    /// A function that refuses.
    pub(crate) webhook: bool,
    /// An older version.
    pub(crate) conversion: bool,
}

/// The files of a new kind, in the project `crate_name`.
pub(crate) fn api_files(name: &ApiName, crate_name: &str, extras: Extras) -> Result<Vec<File>, Failure> {
    let module = name.module();
    let mut words = Words::default()
        .say("Kind", &name.kind)
        .say("kind", &module)
        .say("kebab", name.kebab())
        .say("group", &name.group)
        .say("version", &name.version)
        .say("crate", crate_name)
        .say_if("webhook", extras.webhook)
        .say_if("conversion", extras.conversion);
    let older = if extras.conversion { Some(name.older()?) } else { None };
    if let Some(older) = &older {
        words = words.say("older", older);
    }
    let file = |path: String, template: &str| File { path, text: words.fill(template) };
    let mut files = vec![
        file(format!("src/{module}.rs"), template!("api/kind.rs")),
        file(format!("tests/{module}.rs"), template!("api/test.rs")),
        file(format!("samples/{module}.yaml"), template!("api/sample.yaml")),
    ];
    files.extend(older.map(|older| file(format!("src/{module}/{older}.rs"), template!("api/older.rs"))));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_only_if_their_name_means_something() {
        let words = Words::default().say("name", "x").say_if("yes", true).say_if("no", false);
        let template = "a {{name}} {\n{{#yes}}\nb\n{{/yes}}\n{{#no}}\nc\n{{#yes}}\nd\n{{/yes}}\n{{/no}}\n}\n";
        assert_eq!(words.fill(template), "a x {\nb\n}\n");
    }

    #[test]
    fn no_word_between_braces_is_left() {
        let name = ProjectName::parse("web-shop").unwrap();
        let mut all = Vec::new();
        for source in [Source::Git("https://example.com/it".into()), Source::Folder("/source".into())] {
            all.extend(project_files(&name, "example.com", &source));
        }
        let api = ApiName::new("web.example.com".into(), "v1", "Site").unwrap();
        for (webhook, conversion) in [(false, false), (true, false), (false, true), (true, true)] {
            all.extend(api_files(&api, "web_shop", Extras { webhook, conversion }).unwrap());
        }
        for file in all {
            let left = file.text.lines().find(|line| line.contains("{{") && !line.contains("::{{"));
            assert_eq!(left, None, "{}", file.path);
        }
    }
}
