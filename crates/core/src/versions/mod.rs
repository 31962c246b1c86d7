//! Several versions of one kind, and the ways between them.

mod check;
mod step;

use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::Value;

pub use check::{Loss, Losses, Refused};
pub use step::ConvertError;

use crate::resource::{CustomResource, Facts, definition};
use crate::upgrade;

/// The versions of one kind, from the oldest to `Newest`, with functions between neighbours.
///
/// ```
/// # mod windlass { pub use windlass_core::*; }
/// # fn both_ways<A: windlass::CustomResource, B: windlass::CustomResource>(up: fn(A) -> B, down: fn(B) -> A) {
/// let versions = windlass::Versions::of::<A>().then(up, down);
/// # }
/// ```
///
/// Whatever a conversion has no place for is kept in an annotation of the object and comes back on the way back; a value
/// that was changed meanwhile stays changed. [`Versions::losses`] tells what would be lost without that.
pub struct Versions<Newest> {
    chain: Chain,
    newest: PhantomData<fn() -> Newest>,
}

/// The versions of one kind, of whatever types.
#[derive(Clone)]
pub struct Chain {
    versions: Vec<Version>,
    /// The ways from each version to the next, and back.
    links: Vec<[step::Step; 2]>,
    stored: usize,
    /// Whether the status tells of upgrades.
    upgraded: bool,
}

#[derive(Clone)]
struct Version {
    facts: Facts,
    api_version: String,
    define: fn() -> CustomResourceDefinition,
    /// The object as its type writes it.
    normalize: fn(Value) -> Result<Value, serde_json::Error>,
}

impl Version {
    fn of<K: CustomResource>() -> Self {
        let facts = K::facts();
        let api_version = format!("{}/{}", facts.group, facts.version);
        Self { facts, api_version, define: definition::<K>, normalize: step::normalize::<K> }
    }
}

impl Versions<()> {
    /// The oldest version.
    pub fn of<K: CustomResource>() -> Versions<K> {
        let chain = Chain { versions: vec![Version::of::<K>()], links: Vec::new(), stored: 0, upgraded: false };
        Versions { chain, newest: PhantomData }
    }
}

impl<Newest: CustomResource> Versions<Newest> {
    /// The next version, with the functions to it and back. The metadata of what they return is not looked at: an object
    /// keeps its own.
    ///
    /// # Panics
    /// If `Next` is of another group, kind or plural, or was named before.
    #[must_use]
    pub fn then<Next: CustomResource>(
        mut self,
        up: impl Fn(Newest) -> Next + Send + Sync + 'static,
        down: impl Fn(Next) -> Newest + Send + Sync + 'static,
    ) -> Versions<Next> {
        let (first, next) = (&self.chain.versions[0].facts, Next::facts());
        let names = |facts: &Facts| (facts.group, facts.kind, facts.plural);
        assert_eq!(names(first), names(&next), "versions of one kind have one group, kind and plural");
        let is_known = self.chain.versions.iter().any(|known| known.facts.version == next.version);
        assert!(!is_known, "the version {} is named twice", next.version);
        let (up, down) = (Arc::new(up), Arc::new(down));
        self.chain.links.push([step::new(up.clone(), down.clone()), step::new(down, up)]);
        self.chain.versions.push(Version::of::<Next>());
        self.chain.stored = self.chain.versions.len() - 1;
        Versions { chain: self.chain, newest: PhantomData }
    }

    /// Stores objects as `K`, not as the newest version: while operators that do not know that one yet may come back.
    ///
    /// # Panics
    /// If `K` is none of the versions.
    #[must_use]
    pub fn stored_as<K: CustomResource>(mut self) -> Self {
        let wanted = K::facts().version;
        let found = self.chain.versions.iter().position(|version| version.facts.version == wanted);
        self.chain.stored = found.unwrap_or_else(|| panic!("{wanted} is none of the versions"));
        self
    }

    /// Whatever their types.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// What the functions lose, and what they make that the other version refuses, found by sending objects that are made
    /// after the schemas both ways.
    ///
    /// # Panics
    /// If something is lost even with what is kept, or a function panics.
    pub fn losses(&self) -> Losses {
        check::losses(&self.chain)
    }
}

impl Chain {
    /// One version alone.
    pub fn only<K: CustomResource>() -> Self {
        Versions::of::<K>().chain
    }

    /// The same versions, with what is known of upgrades in their status if `upgraded`.
    #[must_use]
    pub fn upgraded(mut self, upgraded: bool) -> Self {
        self.upgraded = upgraded;
        self
    }

    /// Whether `version` is one of them.
    pub fn has(&self, version: &str) -> bool {
        self.versions.iter().any(|known| known.facts.version == version)
    }

    /// Whether these are versions of `kind`, and `api_version` is one of them.
    pub fn is_of(&self, kind: &str, api_version: &str) -> bool {
        self.versions.iter().any(|version| version.facts.kind == kind && version.api_version == api_version)
    }

    /// Whether objects are ever converted.
    pub fn converts(&self) -> bool {
        !self.links.is_empty()
    }

    /// The version that objects are stored as.
    pub fn stored(&self) -> &'static str {
        self.versions[self.stored].facts.version
    }

    /// The object in the version `to`, such as `cache.example.com/v1`.
    ///
    /// # Errors
    /// When a version is not known, or the object cannot be read as what it says it is.
    pub fn convert(&self, mut object: Value, to: &str) -> Result<Value, ConvertError> {
        let from = object["apiVersion"].as_str().unwrap_or_default();
        let (mut at, to) = (self.index(from)?, self.index(to)?);
        while at < to {
            object = self.links[at][0](object)?;
            at += 1;
        }
        while at > to {
            at -= 1;
            object = self.links[at][1](object)?;
        }
        Ok(object)
    }

    /// The definition of the kind in all versions. How they are converted is for those to say who serve it.
    pub fn definition(&self) -> CustomResourceDefinition {
        let mut all = (self.versions.last().expect("there is at least one").define)();
        all.spec.versions.clear();
        for (index, version) in self.versions.iter().enumerate() {
            let definition = (version.define)();
            all.spec.versions.extend(definition.spec.versions.into_iter().map(|mut version| {
                version.storage = index == self.stored;
                if self.upgraded {
                    tell_of_upgrades(&mut version);
                }
                version
            }));
        }
        all
    }

    fn index(&self, api_version: &str) -> Result<usize, ConvertError> {
        let found = self.versions.iter().position(|version| version.api_version == api_version);
        found.ok_or_else(|| ConvertError::Version {
            asked: api_version.to_owned(),
            known: self.versions.iter().map(|version| version.api_version.as_str()).collect::<Vec<_>>().join(", "),
        })
    }
}

/// Enters what is known of upgrades into the schema of the status.
fn tell_of_upgrades(version: &mut CustomResourceDefinitionVersion) {
    let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
    let properties = schema.and_then(|schema| schema.properties.as_mut());
    if let Some(status) = properties.and_then(|properties| properties.get_mut("status")) {
        status.properties.get_or_insert_default().insert("upgrade".into(), upgrade::schema());
    }
}
