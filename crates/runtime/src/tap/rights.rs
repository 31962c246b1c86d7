//! The rights that calls take: what a role must hold for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::call::Call;

/// How many different rights are remembered.
pub const RIGHTS_MAX: usize = 1024;
/// At how many places each is remembered; after that it is only known that there were more.
pub const PLACES_MAX: usize = 64;

/// A verb on a resource, as RBAC words it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Right {
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural, with `/` and the subresource if there is one.
    pub resource: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
}

/// Where a right was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The namespace; `None` for all of them, and for kinds without namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object, where a role can be narrowed to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// How a right was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uses {
    /// Where.
    pub places: BTreeSet<Place>,
    /// Whether there were more places than are remembered.
    #[serde(default)]
    pub elsewhere: bool,
    /// Whether the API refused it for want of permission.
    #[serde(default)]
    pub refused: bool,
}

/// The rights that calls took, each once: however many calls there were, they stay few.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Line>", into = "Vec<Line>")]
pub struct Rights(BTreeMap<Right, Uses>);

/// A right with its uses, as it is written down.
#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    right: Right,
    #[serde(flatten)]
    uses: Uses,
}

impl Rights {
    /// Remembers what `call` took, given the code of its answer.
    pub fn record(&mut self, call: &Call, code: Option<u16>) {
        if call.resource.is_empty() {
            return;
        }
        let refused = code == Some(403);
        self.add(Right::of(call, call.verb), Place::of(call), refused);
        // An apply that made its object was allowed to create, too.
        if call.verb == "patch" && code == Some(201) {
            let namespace = call.namespace.clone();
            self.add(Right::of(call, "create"), Place { namespace, name: None }, false);
        }
    }

    /// Takes in what others took.
    pub fn merge(&mut self, others: &Self) {
        for (right, uses) in &others.0 {
            for place in &uses.places {
                self.add(right.clone(), place.clone(), uses.refused);
            }
            if let Some(known) = self.0.get_mut(right) {
                known.elsewhere |= uses.elsewhere;
            }
        }
    }

    /// Each right, with how it was used.
    pub fn iter(&self) -> impl Iterator<Item = (&Right, &Uses)> {
        self.0.iter()
    }

    /// Those that the API refused for want of permission.
    pub fn refused(&self) -> Vec<&Right> {
        self.0.iter().filter(|(_, uses)| uses.refused).map(|(right, _)| right).collect()
    }

    /// Whether nothing was called.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, right: Right, place: Place, refused: bool) {
        if self.0.len() >= RIGHTS_MAX && !self.0.contains_key(&right) {
            return;
        }
        let uses = self.0.entry(right).or_default();
        uses.refused |= refused;
        if uses.places.len() < PLACES_MAX {
            uses.places.insert(place);
        } else if !uses.places.contains(&place) {
            uses.elsewhere = true;
        }
    }
}

impl Right {
    /// A right on a resource.
    pub fn new(group: impl Into<String>, resource: impl Into<String>, verb: impl Into<String>) -> Self {
        Self { group: group.into(), resource: resource.into(), verb: verb.into() }
    }

    /// What `verb` on the resource of `call` takes.
    pub fn of(call: &Call, verb: &str) -> Self {
        let resource = match call.subresource.as_str() {
            "" => call.resource.clone(),
            subresource => format!("{}/{subresource}", call.resource),
        };
        Self::new(call.group.clone(), resource, verb)
    }
}

impl Place {
    /// A role cannot be narrowed to the name of what is not there yet, nor to names in a list of all.
    fn of(call: &Call) -> Self {
        let name = call.name.clone().filter(|_| call.verb != "create" && call.verb != "deletecollection");
        Self { namespace: call.namespace.clone(), name }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        write!(f, "{} {resource}", self.verb)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !subresource.is_empty() {
            write!(f, "/{subresource}")?;
        }
        Ok(())
    }
}

impl From<Vec<Line>> for Rights {
    fn from(lines: Vec<Line>) -> Self {
        Self(lines.into_iter().map(|line| (line.right, line.uses)).collect())
    }
}

impl From<Rights> for Vec<Line> {
    fn from(rights: Rights) -> Self {
        rights.0.into_iter().map(|(right, uses)| Line { right, uses }).collect()
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn of(calls: &[(Method, &str, u16)]) -> Rights {
        let mut rights = Rights::default();
        for (method, target, code) in calls {
            let (path, query) = target.split_once('?').map_or((*target, None), |(path, query)| (path, Some(query)));
            rights.record(&Call::parse(method, path, query), Some(*code));
        }
        rights
    }

    fn text(rights: &Rights) -> Vec<String> {
        let place = |place: &Place| {
            let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "*".into());
            format!("{}/{}", word(&place.namespace), word(&place.name))
        };
        let line = |(right, uses): (&Right, &Uses)| {
            let places: Vec<String> = uses.places.iter().map(place).collect();
            format!("{right}: {}", places.join(" "))
        };
        rights.iter().map(line).collect()
    }

    #[test]
    fn calls_become_rights_each_once() {
        let rights = of(&[
            (Method::GET, "/api/v1/pods", 200),
            (Method::GET, "/api/v1/pods?watch=true", 200),
            (Method::GET, "/api/v1/namespaces/a/pods/p", 200),
            (Method::GET, "/api/v1/namespaces/a/pods/p", 404),
            (Method::GET, "/api/v1/namespaces/b/pods/q", 200),
            (Method::PATCH, "/apis/apps/v1/namespaces/a/deployments/d/status", 200),
            (Method::GET, "/version", 200),
        ]);
        let expected = ["get pods: a/p b/q", "list pods: */*", "watch pods: */*", "patch deployments.apps/status: a/d"];
        assert_eq!(text(&rights), expected);
    }

    #[test]
    fn an_apply_that_made_its_object_took_two_rights() {
        let path = "/apis/apps/v1/namespaces/a/deployments/d";
        assert_eq!(text(&of(&[(Method::PATCH, path, 200)])), ["patch deployments.apps: a/d"]);
        let made = of(&[(Method::PATCH, path, 201)]);
        assert_eq!(text(&made), ["create deployments.apps: a/*", "patch deployments.apps: a/d"]);
    }

    #[test]
    fn a_list_of_one_object_by_its_name_can_be_narrowed_to_it() {
        let one = "/api/v1/namespaces/a/secrets?watch=true&fieldSelector=metadata.name%3Dkeys";
        assert_eq!(text(&of(&[(Method::GET, one, 200)])), ["watch secrets: a/keys"]);
        let other = "/api/v1/namespaces/a/secrets?fieldSelector=type%3DOpaque";
        assert_eq!(text(&of(&[(Method::GET, other, 200)])), ["list secrets: a/*"]);
    }

    #[test]
    fn many_calls_stay_few_rights() {
        let mut rights = Rights::default();
        for number in 0..10_000 {
            let path = format!("/api/v1/namespaces/a/pods/p{number}");
            rights.record(&Call::parse(&Method::DELETE, &path, None), Some(200));
        }
        let (_, uses) = rights.iter().next().unwrap();
        assert_eq!((rights.iter().count(), uses.places.len(), uses.elsewhere), (1, PLACES_MAX, true));
    }

    #[test]
    fn what_was_refused_is_known_and_survives_writing_and_merging() {
        let refused = of(&[(Method::POST, "/api/v1/namespaces/a/events", 403)]);
        let read: Rights = serde_json::from_str(&serde_json::to_string(&refused).unwrap()).unwrap();
        assert_eq!(read, refused);
        let mut all = of(&[(Method::POST, "/api/v1/namespaces/b/events", 201)]);
        all.merge(&read);
        assert_eq!(all.refused().iter().map(ToString::to_string).collect::<Vec<_>>(), ["create events"]);
        assert_eq!(text(&all), ["create events: a/* b/*"]);
    }
}
