//! Upgrades of memcached: what is tried as a whole, and taken back as a whole.

use windlass::prelude::*;

use crate::{Memcached, MemcachedOperator, image};

/// What a memcached is run from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Release {
    image: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<String>,
}

impl Upgrades for MemcachedOperator {
    type Revision = Release;

    fn revision(&self, memcached: &Memcached) -> Release {
        Release { image: image(memcached), arguments: memcached.spec.arguments.clone() }
    }

    fn pin(&self, memcached: &mut Memcached, release: Release) {
        memcached.spec.image = Some(release.image);
        memcached.spec.arguments = release.arguments;
    }

    fn version(&self, release: &Release) -> String {
        let words = std::iter::once(&release.image).chain(&release.arguments);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}
