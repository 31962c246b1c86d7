//! Short stable hashes for names and labels.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// No vowels, and nothing that looks like another letter: a hash never spells a word.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The length of a hash.
pub(crate) const LENGTH: usize = 10;

/// A stable hash of `value`; `collisions` makes another one when a name is taken.
pub(crate) fn of<T: Serialize>(value: &T, collisions: i32) -> String {
    let json = serde_json::to_vec(value).expect("API objects are plain data");
    let mut digest = Sha256::new();
    digest.update(&json);
    if collisions > 0 {
        digest.update(collisions.to_be_bytes());
    }
    let letter = |byte: u8| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]);
    digest.finalize().iter().take(LENGTH).map(|byte| letter(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_part_of_the_contract() {
        // Another value after an upgrade of Windlass would rename every ReplicaSet and so restart every Pod.
        assert_eq!(of(&"template", 0), "dmclhqkk7h");
        assert_ne!(of(&"template", 0), of(&"template", 1));
    }
}
