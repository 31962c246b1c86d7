//! Everything that bytes from outside reach, as functions of bytes: what the fuzzer runs for minutes and the tests run
//! on the samples in `fuzz/seeds/apiserver`.
//!
//! A function accepts any bytes. It panics if something that must hold does not; what is refused is no failure.

mod definitions;
mod directives;
mod documents;
mod expressions;
mod objects;
mod patches;
mod requests;
mod sample;
mod selectors;
mod server;
mod texts;

/// What is run on bytes.
pub type Target = fn(&[u8]);

/// All targets, by the name of their seeds.
pub const TARGETS: [(&str, Target); 16] = [
    ("accept", requests::accept),
    ("apply", patches::apply),
    ("cel", expressions::cel),
    ("definition", definitions::definition),
    ("fields", patches::fields),
    ("json", documents::json),
    ("json_patch", patches::json_patch),
    ("jsonpath", expressions::jsonpath),
    ("merge_patch", patches::merge_patch),
    ("objects", objects::objects),
    ("protobuf", documents::protobuf),
    ("request", requests::request),
    ("selectors", selectors::selectors),
    ("server", server::server),
    ("texts", texts::texts),
    ("yaml", documents::yaml),
];

/// The first line, and the rest.
fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::PathBuf};

    use super::*;

    fn seeds() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/apiserver")
    }

    /// The seeds of a target: samples of what is accepted, and whatever once was a finding.
    fn check(name: &str) {
        let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).unwrap();
        let mut files = 0;
        for file in fs::read_dir(seeds().join(name)).unwrap() {
            let path = file.unwrap().path();
            println!("{}", path.display());
            target(&fs::read(&path).unwrap());
            files += 1;
        }
        assert!(files > 0, "{name} has no seeds");
    }

    macro_rules! seeds_pass {
        ($($name:ident)*) => {
            $(#[test]
            fn $name() {
                check(stringify!($name));
            })*

            #[test]
            fn every_target_has_seeds_and_a_test() {
                let tested = BTreeSet::from([$(stringify!($name).to_owned()),*]);
                let targets = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>();
                assert_eq!(tested, targets);
                let folders = fs::read_dir(seeds()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
                assert_eq!(folders.collect::<BTreeSet<_>>(), targets);
            }
        };
    }

    seeds_pass! {
        accept apply cel definition fields json json_patch jsonpath merge_patch objects protobuf request selectors server
        texts yaml
    }
}
