//! Everything of the node that bytes from outside reach, as functions of bytes: what the fuzzer runs for minutes and the
//! tests run on the samples in `fuzz/seeds/node`.
//!
//! A function accepts any bytes. It panics if something that must hold does not; what is refused is no failure.

mod archives;
mod ground;
mod images;
mod logs;

/// What is run on bytes.
pub type Target = fn(&[u8]);

/// All targets, by the name of their seeds.
pub const TARGETS: [(&str, Target); 4] = [
    ("archive", archives::archive),
    ("frames", crate::stream::fuzz::frames),
    ("image", images::image),
    ("log", logs::log),
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

    #[test]
    fn every_target_has_seeds_and_passes_on_them() {
        let seeds = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/node");
        let folders = fs::read_dir(&seeds).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names = TARGETS.iter().map(|(name, _)| (*name).to_owned());
        assert_eq!(folders.collect::<BTreeSet<_>>(), names.collect::<BTreeSet<_>>());
        for (name, target) in TARGETS {
            let mut files = 0;
            for file in fs::read_dir(seeds.join(name)).unwrap() {
                let path = file.unwrap().path();
                println!("{}", path.display());
                target(&fs::read(&path).unwrap());
                files += 1;
            }
            assert!(files > 0, "{name} has no seeds");
        }
    }
}
