//! A kind that is to be made: its group, version and name, and the words that follow from them.

use super::name::is_word_of_rust;
use crate::failure::Failure;

/// The longest name of a kind.
const KIND_LENGTH_MAX: usize = 48;
/// Types that the code of a kind uses: a kind of the same name would hide them.
const USED: [&str; 34] = [
    "App",
    "BTreeMap",
    "Container",
    "Default",
    "Deployment",
    "Desired",
    "Err",
    "LabelSelector",
    "None",
    "ObjectMeta",
    "Ok",
    "Operation",
    "Operator",
    "Option",
    "Outcome",
    "OwnerReference",
    "Pod",
    "PodCondition",
    "PodTemplate",
    "Profile",
    "Request",
    "Resource",
    "Result",
    "Schema",
    "Self",
    "Some",
    "Status",
    "String",
    "TestCluster",
    "Vec",
    "Verdict",
    "Versions",
    "World",
    "NoStatus",
];
/// Modules that the code of a project has or uses.
const MODULES: [&str; 12] =
    ["condition", "core", "labels", "lib", "main", "names", "pods", "serde", "std", "tests", "wanted", "windlass"];

/// A kind that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiName {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl ApiName {
    /// Checks version and kind; the group was checked before.
    pub(crate) fn new(group: String, version: &str, kind: &str) -> Result<Self, Failure> {
        if Stage::parse(version).is_none() {
            return Err(Failure::new(format!("{version:?} is not a version"))
                .advice("write v1, or v1alpha1 and v1beta1 for what may still change"));
        }
        let name = Self { group, version: version.to_owned(), kind: kind.to_owned() };
        name.check_kind()?;
        Ok(name)
    }

    fn check_kind(&self) -> Result<(), Failure> {
        let kind = self.kind.as_str();
        let wrong = |why: &str, advice: String| {
            Err(Failure::new(format!("{kind:?} cannot be the name of a kind: {why}")).advice(advice))
        };
        let is_camel = kind.starts_with(|first: char| first.is_ascii_uppercase())
            && kind.chars().all(|it| it.is_ascii_alphanumeric());
        if !is_camel {
            let advice = match camel(kind) {
                Some(better) => format!("write --kind {better}"),
                None => "write one such as --kind Site or --kind WebSite".to_owned(),
            };
            return wrong("it must be words with capitals, without anything between", advice);
        }
        if kind.len() > KIND_LENGTH_MAX {
            return wrong(&format!("it is longer than {KIND_LENGTH_MAX} characters"), "write a shorter one".to_owned());
        }
        let module = self.module();
        let is_used = USED.contains(&kind) || is_word_of_rust(&module) || MODULES.contains(&module.as_str());
        if is_used {
            return wrong("the code of a kind uses this word for something else", format!("write --kind My{kind}"));
        }
        Ok(())
    }

    /// The name of its module, files and variables: `web_site` of `WebSite`.
    pub(crate) fn module(&self) -> String {
        self.words("_")
    }

    /// The same with `-`, for labels and containers.
    pub(crate) fn kebab(&self) -> String {
        self.words("-")
    }

    /// A new word begins at a capital that follows a small letter, or that a small letter follows: `HTTPRoute` has two.
    fn words(&self, between: &str) -> String {
        let letters: Vec<char> = self.kind.chars().collect();
        let mut text = String::new();
        for (index, letter) in letters.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|index| letters.get(index));
            let after = letters.get(index + 1);
            let begins = letter.is_ascii_uppercase()
                && before
                    .is_some_and(|before| !before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase));
            if begins {
                text.push_str(between);
            }
            text.push(letter.to_ascii_lowercase());
        }
        text
    }

    /// The version before this one.
    pub(crate) fn older(&self) -> Result<String, Failure> {
        let older = Stage::parse(&self.version).and_then(Stage::before);
        older.map(|stage| stage.to_string()).ok_or_else(|| {
            Failure::new(format!("there is no version before {}", self.version))
                .advice("--conversion adds an older version: write --version v1 or --version v1beta1")
        })
    }
}

/// `web-site` and `web_site` become `WebSite`.
fn camel(text: &str) -> Option<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let camel: String = words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        })
        .collect();
    camel.starts_with(|first: char| first.is_ascii_uppercase()).then_some(camel)
}

/// A version: its major number, and the step before it is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stage {
    major: u32,
    step: Option<(&'static str, u32)>,
}

impl Stage {
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('v')?;
        let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let (major, rest) = rest.split_at(digits);
        let major = number(major)?;
        if rest.is_empty() {
            return Some(Self { major, step: None });
        }
        let (word, of) = ["alpha", "beta"].into_iter().find_map(|word| Some((word, rest.strip_prefix(word)?)))?;
        Some(Self { major, step: Some((word, number(of)?)) })
    }

    fn before(self) -> Option<Self> {
        let Self { major, step } = self;
        match step {
            None => Some(Self { major, step: Some(("beta", 1)) }),
            Some((word, of)) if of > 1 => Some(Self { major, step: Some((word, of - 1)) }),
            Some(("beta", _)) => Some(Self { major, step: Some(("alpha", 1)) }),
            Some(_) => (major > 1).then_some(Self { major: major - 1, step: None }),
        }
    }
}

/// A number as versions have it: from 1, without zeros before it.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| !text.starts_with(['0', '+']))
}

impl std::fmt::Display for Stage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "v{}", self.major)?;
        self.step.map_or(Ok(()), |(word, of)| write!(formatter, "{word}{of}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(version: &str, kind: &str) -> Result<ApiName, Failure> {
        ApiName::new("web.example.com".to_owned(), version, kind)
    }

    #[test]
    fn modules_are_the_words_of_a_kind() {
        for (kind, module) in
            [("Site", "site"), ("WebSite", "web_site"), ("HTTPRoute", "http_route"), ("S3Bucket", "s3_bucket")]
        {
            assert_eq!(name("v1", kind).unwrap().module(), module);
        }
    }

    #[test]
    fn kinds_that_cannot_be_are_answered_with_what_to_write() {
        let rows = [
            ("web-site", "--kind WebSite"),
            ("site", "--kind Site"),
            ("", "one such as --kind Site"),
            ("Deployment", "--kind MyDeployment"),
            ("Type", "--kind MyType"),
            ("Main", "--kind MyMain"),
            ("사이트", "one such as --kind Site"),
        ];
        for (kind, words) in rows {
            let failure = name("v1", kind).unwrap_err().as_json().to_string();
            assert!(failure.contains(words), "{kind}: {failure}");
        }
    }

    #[test]
    fn versions_have_one_before_them_but_for_the_first() {
        let rows = [
            ("v1", Some("v1beta1")),
            ("v2", Some("v2beta1")),
            ("v1beta2", Some("v1beta1")),
            ("v1beta1", Some("v1alpha1")),
            ("v2alpha1", Some("v1")),
            ("v1alpha1", None),
        ];
        for (version, older) in rows {
            assert_eq!(name(version, "Site").unwrap().older().ok().as_deref(), older, "{version}");
        }
        for version in ["1", "v", "v0", "v01", "v1gamma1", "v1beta", "v1beta0", "V1"] {
            assert!(name(version, "Site").is_err(), "{version}");
        }
    }
}
