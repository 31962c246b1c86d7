//! Where a walk is in an object. It becomes text only where there is something to say.

use std::fmt;

/// A place in an object: where the walk began, and the steps since.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// The path at which the walk began; empty for the object itself.
    Start(&'a str),
    Member(&'a Place<'a>, &'a str),
    /// The value at a key of a map whose keys are not fields.
    Key(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(path) => formatter.write_str(path),
            Self::Member(Self::Start(""), name) => formatter.write_str(name),
            Self::Member(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Key(parent, key) => write!(formatter, "{parent}[{key}]"),
            Self::Item(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}

impl From<Place<'_>> for String {
    fn from(place: Place<'_>) -> Self {
        place.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_as_paths() {
        let root = Place::Start("");
        let spec = Place::Member(&root, "spec");
        let ports = Place::Member(&spec, "ports");
        assert_eq!(Place::Member(&Place::Item(&ports, 1), "name").to_string(), "spec.ports[1].name");
        assert_eq!(Place::Key(&spec, "a.b").to_string(), "spec[a.b]");
        assert_eq!(Place::Item(&root, 0).to_string(), "[0]");
        assert_eq!(Place::Member(&Place::Start("status"), "x").to_string(), "status.x");
    }
}
