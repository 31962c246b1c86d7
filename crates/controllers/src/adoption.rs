//! Claims of a controller, carried out: objects adopted and released in the API.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use windlass_runtime::{Change, Error, Informer, Object, ObjectKey};

use crate::actor::{Actor, Namespaced, is_conflict, is_gone};
use crate::claim::{Claim, claim};
use crate::owners;

/// Adopts and releases among `objects`, and returns those that `owner` has now.
pub(crate) async fn settle<O: Namespaced, K: Namespaced>(
    actor: &Actor,
    owner: &O,
    selector: &Selector,
    objects: Vec<Arc<K>>,
) -> Result<Vec<Arc<K>>, Error> {
    let mut owned = vec![];
    let mut may_adopt = None;
    for object in objects {
        match claim(owner.meta(), selector, object.meta()) {
            Claim::Ignore => {}
            Claim::Keep => owned.push(object),
            Claim::Release => release(actor, owner, &*object).await?,
            Claim::Adopt => {
                if may_adopt.is_none() {
                    may_adopt = Some(is_still_there(actor, owner).await?);
                }
                if may_adopt == Some(true) {
                    owned.extend(adopt(actor, owner, &*object).await?.map(Arc::new));
                }
            }
        }
    }
    Ok(owned)
}

/// A cache can be behind: before something is taken, the owner itself is asked for.
async fn is_still_there<O: Namespaced>(actor: &Actor, owner: &O) -> Result<bool, Error> {
    let live = actor.api::<O>(owner.meta().namespace.as_deref()).get_opt(&owner.name_any()).await?;
    Ok(live.is_some_and(|live| live.meta().uid == owner.meta().uid && live.meta().deletion_timestamp.is_none()))
}

async fn adopt<O: Namespaced, K: Namespaced>(actor: &Actor, owner: &O, object: &K) -> Result<Option<K>, Error> {
    let mut references = object.owner_references().to_vec();
    references.push(owners::controller_reference(owner));
    match actor.set_owners(object, &references).await {
        Ok(adopted) => Ok(Some(adopted)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn release<O: Namespaced, K: Namespaced>(actor: &Actor, owner: &O, object: &K) -> Result<(), Error> {
    let is_other = |uid: &String| Some(uid) != owner.meta().uid.as_ref();
    let references: Vec<_> =
        object.owner_references().iter().filter(|reference| is_other(&reference.uid)).cloned().collect();
    match actor.set_owners(object, &references).await {
        Ok(_) => Ok(()),
        // Gone, or another object by now: the next look will tell.
        Err(error) if is_gone(&error) || is_conflict(&error) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The owners that would adopt an object that has no controller.
pub(crate) fn wooers<O, K>(
    change: &Change<K>,
    owners: &Informer<O>,
    selector: fn(&O) -> LabelSelector,
) -> Vec<ObjectKey>
where
    O: Object + Namespaced,
    K: Object,
{
    let Some(object) = change.new.as_ref().filter(|object| owners::controller(object.meta()).is_none()) else {
        return vec![];
    };
    let matches = |owner: &O| {
        owner.meta().namespace == object.meta().namespace
            && Selector::try_from(selector(owner)).is_ok_and(|selector| selector.matches(object.labels()))
    };
    owners.filter(matches).iter().map(|owner| ObjectKey::of(&**owner)).collect()
}
