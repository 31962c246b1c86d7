//! Flags as Go programs take them: `--name=value`, `--name value` or `--name`.

use std::collections::BTreeMap;

use crate::failure::Failure;

/// What was given, by name; a flag may be given several times.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(BTreeMap<String, Vec<String>>);

impl Flags {
    /// Reads the words after the program's name.
    pub(super) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, Failure> {
        let mut flags = Flags::default();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|flag| !flag.is_empty())
            else {
                return Err(Failure::new(format!("{word:?} is not a flag; flags are written --name=value")));
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                // A switch stands alone; what follows any other flag is its value.
                None => (flag, words.next_if(|next| !next.starts_with('-')).unwrap_or_else(|| "true".to_owned())),
            };
            flags.0.entry(name.to_owned()).or_default().push(value);
        }
        Ok(flags)
    }

    /// The value that was given last.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.last().map(String::as_str)
    }

    /// The parts of all values, which are separated by commas.
    pub(super) fn list<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let values = self.0.get(name).map(Vec::as_slice).unwrap_or_default();
        values.iter().flat_map(|value| value.split(',')).map(str::trim).filter(|part| !part.is_empty())
    }

    /// Whether a switch is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.last(name).is_some_and(|value| value != "false")
    }

    /// The names that are not in `known`.
    pub(super) fn other_than<'a>(&'a self, known: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str).filter(|name| !known.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Flags {
        Flags::parse(words.iter().map(|word| (*word).to_owned())).unwrap()
    }

    #[test]
    fn flags_are_read_in_every_form() {
        let flags = parse(&["--a=1", "--b", "2", "--switch", "--a=3,4", "-v=5", "--off=false", "--empty="]);
        assert_eq!(flags.last("a"), Some("3,4"));
        assert_eq!(flags.list("a").collect::<Vec<_>>(), ["1", "3", "4"]);
        assert_eq!((flags.last("b"), flags.last("v"), flags.last("empty")), (Some("2"), Some("5"), Some("")));
        assert!(flags.is_on("switch") && !flags.is_on("off") && !flags.is_on("absent"));
        assert_eq!(flags.other_than(&["a", "b", "switch", "off"]).collect::<Vec<_>>(), ["empty", "v"]);
    }

    #[test]
    fn words_that_are_no_flags_are_named() {
        let failure = Flags::parse(["serve".to_owned()]).unwrap_err();
        assert!(failure.message().contains("\"serve\" is not a flag"), "{}", failure.message());
    }
}
