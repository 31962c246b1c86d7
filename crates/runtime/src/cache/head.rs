//! What a cache must know of an object at any time, as small as it goes: there may be many.

use std::hash::{DefaultHasher, Hash, Hasher};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::owners::controller_of;

/// Which life of a name it is, in which state, and whose.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) uid: Option<Uid>,
    pub(super) version: Version,
    pub(super) generation: Option<i64>,
    pub(super) owners: Box<[Uid]>,
    pub(super) is_controlled: bool,
}

/// What is known of an object without reading it.
#[derive(Clone, Debug)]
pub(crate) struct Glance {
    pub(crate) state: StateId,
    pub(crate) version: String,
    pub(crate) generation: Option<i64>,
}

/// A hash of the life and the state that an object is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateId(u64);

impl StateId {
    pub(crate) fn of(uid: Option<&str>, version: Option<&str>) -> Self {
        Self::new(uid.map(Uid::of).as_ref(), &Version::read(version))
    }

    fn new(uid: Option<&Uid>, version: &Version) -> Self {
        let mut hasher = DefaultHasher::new();
        (uid, version).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl Head {
    pub(super) fn of(meta: &ObjectMeta) -> Self {
        Self {
            uid: meta.uid.as_deref().map(Uid::of),
            version: Version::of(meta),
            generation: meta.generation,
            owners: meta.owner_references.iter().flatten().map(|owner| Uid::of(&owner.uid)).collect(),
            is_controlled: controller_of(meta).is_some(),
        }
    }

    pub(super) fn state(&self) -> StateId {
        StateId::new(self.uid.as_ref(), &self.version)
    }

    pub(super) fn glance(&self) -> Glance {
        Glance { state: self.state(), version: self.version.text(), generation: self.generation }
    }
}

/// The uid of an object. Those that are UUIDs, as all of Kubernetes are, need no memory of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Uid {
    Uuid([u8; 16]),
    Other(Box<str>),
}

/// Where the dashes of a UUID are.
const DASHES: [usize; 4] = [8, 13, 18, 23];
const UUID_LENGTH: usize = 36;

impl Uid {
    pub(super) fn of(text: &str) -> Self {
        parse_uuid(text.as_bytes()).map_or_else(|| Self::Other(text.into()), Self::Uuid)
    }
}

/// Reads a UUID as the API writes it; any other spelling is another text, and so another uid.
fn parse_uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != UUID_LENGTH || DASHES.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut uuid = [0; 16];
    let mut digits = text.iter().enumerate().filter(|(at, _)| !DASHES.contains(at)).map(|(_, byte)| digit(*byte));
    for byte in &mut uuid {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    Some(uuid)
}

/// A resource version. Kubernetes promises that those of one kind are numbers that can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Version {
    Number(u64),
    Other(Option<Box<str>>),
}

impl Version {
    pub(super) fn of(meta: &ObjectMeta) -> Self {
        Self::read(meta.resource_version.as_deref())
    }

    fn read(text: Option<&str>) -> Self {
        // A spelling that the number would not be written in is another version.
        let number = text.and_then(|text| text.parse().ok().filter(|_| text == "0" || !text.starts_with(['0', '+'])));
        number.map_or_else(|| Self::Other(text.map(Into::into)), Self::Number)
    }

    /// As the API writes it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Other(text) => text.as_deref().unwrap_or_default().to_owned(),
        }
    }

    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Other(_) => None,
        }
    }

    /// Whether it is newer than `other`; one that is not a number is taken for new.
    pub(super) fn is_newer_than(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => one > other,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_the_same_if_their_texts_are() {
        let uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let texts =
            [uuid, "0F8FAD5B-D9CB-469F-A165-70867728950E", "0f8fad5bd9cb469fa16570867728950e", "1", "", &uuid[1..]];
        for (one, first) in texts.iter().enumerate() {
            for (other, second) in texts.iter().enumerate() {
                assert_eq!(Uid::of(first) == Uid::of(second), one == other, "{first} {second}");
            }
        }
        assert!(matches!(Uid::of(uuid), Uid::Uuid([0x0f, 0x8f, .., 0x0e])));
    }

    #[test]
    fn versions_are_the_same_if_their_texts_are() {
        let version =
            |text: &str| Version::of(&ObjectMeta { resource_version: Some(text.into()), ..ObjectMeta::default() });
        let texts = ["7", "07", "+7", "70", "0", "00", "", "x"];
        for (one, first) in texts.iter().enumerate() {
            for (other, second) in texts.iter().enumerate() {
                assert_eq!(version(first) == version(second), one == other, "{first} {second}");
            }
        }
        assert!(version("10").is_newer_than(&version("9")) && !version("9").is_newer_than(&version("9")));
    }
}
