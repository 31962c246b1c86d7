//! Upgrades that are taken back by themselves: what an author knows of them, and how they are decided.

mod course;
mod health;
mod record;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use course::{ATTEMPTS_MAX, News, Situation, Terms};
pub use health::Health;
pub use record::{FailedRevision, KnownGood, Trial, UpgradeStatus};

pub(crate) use record::schema;

use crate::operator::Operator;
use crate::resource::CustomResource;
use crate::world::World;

/// An operator whose resources can be upgraded, and go back by themselves to what was last known to be good.
///
/// The *revision* of a resource is what is tried as a whole and taken back as a whole: its image and its settings, not its
/// size. While a revision is tried, [`Operator::desired`] is asked for the resource as it is. After a failure it is asked for the
/// resource with the last revision that was good, and all else as the user wants it. It need not know which of the two it is.
///
/// ```
/// # use windlass_core::{Operator, Upgrades};
/// # fn of<Shops>(_: Shops) where Shops: Upgrades<Revision = String> {}
/// # macro_rules! example { () => {
/// impl Upgrades for Shops {
///     type Revision = String;
///
///     fn revision(&self, shop: &Shop) -> String {
///         shop.spec.image.clone()
///     }
///
///     fn pin(&self, shop: &mut Shop, image: String) {
///         shop.spec.image = image;
///     }
///
///     fn version(&self, image: &String) -> String {
///         image.clone()
///     }
/// }
/// # } }
/// ```
pub trait Upgrades: Operator {
    /// What is tried, kept and gone back to. Everybody who may read ControllerRevisions sees it: it holds no secrets.
    type Revision: Serialize + DeserializeOwned + PartialEq;

    /// The revision that `resource` asks for, with all defaults filled in: a new default is an upgrade, too.
    fn revision(&self, resource: &Self::Resource) -> Self::Revision;

    /// Makes `resource` ask for `revision`.
    fn pin(&self, resource: &mut Self::Resource, revision: Self::Revision);

    /// What people call a revision.
    fn version(&self, revision: &Self::Revision) -> String;

    /// How the revision does that `resource` asks for and that is being tried. A resource that is not ready is not healthy,
    /// whatever is said here. Unless said otherwise, what speaks against a revision is a Pod of it that does not start: declare
    /// `.pods()` for that.
    fn judge(&self, resource: &Self::Resource, world: &World) -> Health {
        Health::of_pods(&world.newest_pods_of(resource))
    }

    /// `resource` as it is carried out: as it is, or with what was last known to be good if what it asks for failed. For what
    /// works on the application besides [`Operator::desired`], such as a backup.
    fn carried_out(&self, resource: &Self::Resource) -> Self::Resource {
        let mut carried_out = resource.clone();
        let upgrade = resource.status().and_then(|status| status.upgrade.as_ref()).filter(|it| it.is_rolled_back());
        let good = upgrade.and_then(|upgrade| upgrade.last_known_good.as_ref());
        if let Some(revision) = good.and_then(|good| Self::Revision::deserialize(&good.revision).ok()) {
            self.pin(&mut carried_out, revision);
        }
        carried_out
    }

    /// How long a revision has to be healthy before it is known to be good: a minute.
    fn window(&self, _: &Self::Resource) -> Duration {
        Duration::from_secs(60)
    }

    /// How long a revision may take to become healthy before it has failed: ten minutes.
    fn deadline(&self, _: &Self::Resource) -> Duration {
        Duration::from_secs(600)
    }
}
