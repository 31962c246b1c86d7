//! Names that the server makes.

use rand::Rng;

/// Letters and digits that make no words and are not mistaken for one another.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const GENERATED_LENGTH_MAX: usize = 63;

/// A name that begins with `base`.
pub(crate) fn generate(base: &str) -> String {
    let length = base.len().min(GENERATED_LENGTH_MAX - SUFFIX_LENGTH);
    let mut name = base.get(..length).unwrap_or(base).to_owned();
    let mut random = rand::rng();
    name.extend((0..SUFFIX_LENGTH).map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())])));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_begin_with_their_base_and_fit() {
        let name = generate("web-");
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert_eq!(generate(&"x".repeat(80)).len(), GENERATED_LENGTH_MAX);
    }
}
