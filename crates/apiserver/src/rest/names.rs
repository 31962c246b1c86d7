//! Names that the server makes.

use windlass_clock::Clock;

/// Letters and digits that make no words and are not mistaken for one another.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const GENERATED_LENGTH_MAX: usize = 63;

/// A name that begins with `base`; the rest is by the chance of `clock`.
pub(crate) fn generate(base: &str, clock: &Clock) -> String {
    let length = base.len().min(GENERATED_LENGTH_MAX - SUFFIX_LENGTH);
    let mut name = base.get(..length).unwrap_or(base).to_owned();
    name.extend((0..SUFFIX_LENGTH).map(|_| {
        let place = clock.random() % ALPHABET.len() as u64;
        char::from(ALPHABET[usize::try_from(place).expect("it is below the length")])
    }));
    name
}

/// An identity for an object, by the chance of `clock`.
pub(crate) fn uid(clock: &Clock) -> String {
    let number = (u128::from(clock.random()) << 64) | u128::from(clock.random());
    uuid::Builder::from_random_bytes(number.to_be_bytes()).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_begin_with_their_base_and_fit() {
        let name = generate("web-", &Clock::system());
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert_eq!(generate(&"x".repeat(80), &Clock::system()).len(), GENERATED_LENGTH_MAX);
    }
}
