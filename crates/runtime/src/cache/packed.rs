//! Objects at rest: as short texts, from which they are read again when somebody wants them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::kept::{Applied, Open};
use crate::key::ObjectKey;
use crate::object::Object;
use crate::packer::Packer;
use crate::slim::Slim;

/// How many objects are at hand as they are, besides being packed: those that are worked on, and their children.
const AT_HAND_MAX: usize = 16;
/// The bytes that say where the object ends and what was applied to it begins.
const LENGTH: usize = size_of::<u32>();

/// An object as a short text.
pub(super) type Packed = Arc<[u8]>;

/// Packs an object, and what was applied to it.
pub(super) fn pack(packer: &Packer, slim: &Slim) -> Packed {
    let applied = slim.applied.as_deref().unwrap_or_default();
    let mut plain = Vec::with_capacity(LENGTH + slim.text.len() + applied.len());
    // The API takes no object of 4 GiB; one that were so long is found out when it is read.
    plain.extend(u32::try_from(slim.text.len()).unwrap_or(u32::MAX).to_le_bytes());
    plain.extend(slim.text.as_bytes());
    plain.extend(applied.as_bytes());
    packer.pack(&plain).into()
}

/// Reads an object again. It was read before, so that `None` is for types that do not read twice what they read once.
pub(super) fn open<K: Object>(packer: &Packer, packed: &Packed) -> Option<Open<K>> {
    let plain = packer.unpack(packed)?;
    let (length, texts) = plain.split_first_chunk::<LENGTH>()?;
    let (object, applied) = texts.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let applied = (!applied.is_empty()).then(|| std::str::from_utf8(applied)).transpose().ok()?;
    Some(Open { object: Arc::new(serde_json::from_slice(object).ok()?), applied: applied.map(Applied::of) })
}

/// The objects that were read or written last, as they are.
#[derive(Debug)]
pub(super) struct AtHand<K>(VecDeque<(ObjectKey, Open<K>)>);

impl<K> Default for AtHand<K> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K> AtHand<K> {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Open<K>> {
        self.0.iter().find(|(other, _)| other == key).map(|(_, open)| open.clone())
    }

    pub(super) fn put(&mut self, key: &ObjectKey, open: Open<K>) {
        self.take(key);
        if self.0.len() == AT_HAND_MAX {
            self.0.pop_front();
        }
        self.0.push_back((key.clone(), open));
    }

    pub(super) fn take(&mut self, key: &ObjectKey) -> Option<Open<K>> {
        let at = self.0.iter().position(|(other, _)| other == key)?;
        self.0.remove(at).map(|(_, open)| open)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::watcher::Event;
    use serde_json::{Value, json};

    use super::super::Cache;
    use super::*;

    fn text(number: u64, revision: u64) -> String {
        let fields =
            json!({"f:data": {"f:text": {}}, "f:metadata": {"f:ownerReferences": {(format!("k:{number}")): {}}}});
        let managed = json!([{"manager": "me", "operation": "Apply", "fieldsV1": fields}]);
        let owners = json!([{"apiVersion": "g/v1", "kind": "Owner", "name": "o", "uid": format!("owner-{number}")}]);
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"text": format!("{number} {}", "of a long text ".repeat(40))},
            "metadata": {
                "name": format!("map-{number}"), "namespace": "a", "uid": format!("uid-{number}"),
                "resourceVersion": revision.to_string(), "ownerReferences": owners, "managedFields": managed,
            },
        })
        .to_string()
    }

    fn listed(count: u64) -> Cache<ConfigMap> {
        let cache = Cache::of("me".into(), true);
        cache.observe_in(None, Event::Init);
        for number in 0..count {
            let kept = cache.keep_text(&text(number, number + 1)).unwrap();
            cache.observe_in(None, Event::InitApply(kept));
        }
        assert_eq!(cache.observe_in(None, Event::InitDone).count() as u64, count);
        cache
    }

    /// How many objects rest as texts alone.
    fn packed(cache: &Cache<ConfigMap>) -> usize {
        cache.read().objects.values().filter(|kept| kept.open.is_none() && kept.packed.is_some()).count()
    }

    #[test]
    fn what_was_packed_comes_back_as_it_was() {
        let cache = listed(100);
        assert_eq!(packed(&cache), 100);
        for number in [0, 7, 99, 7] {
            let key = ObjectKey::namespaced("a", format!("map-{number}"));
            let (object, applied) = cache.get_applied(&key).unwrap();
            let mut live = serde_json::to_value(&*object).unwrap();
            applied.unwrap().put(&mut live, "me");
            assert_eq!(live, serde_json::from_str::<Value>(&text(number, number + 1)).unwrap());
            let owned = cache.owned_by(&format!("owner-{number}"));
            assert!(Arc::ptr_eq(&owned[0], &object), "what was just read is at hand");
            assert!(Arc::ptr_eq(&cache.by_uid(&format!("uid-{number}")).unwrap(), &object));
        }
        assert_eq!(packed(&cache), 100);
    }

    #[test]
    fn objects_that_are_alike_take_little_room() {
        let (cache, plain) = (listed(10), Slim::of(&text(5, 6), "me").unwrap());
        let state = cache.read();
        let packed = state.objects[&ObjectKey::namespaced("a", "map-5")].packed.as_ref().unwrap();
        assert!(packed.len() * 5 < plain.text.len(), "{} of {}", packed.len(), plain.text.len());
    }

    #[test]
    fn news_of_a_packed_object_tell_both_states_and_what_is_at_hand_is_the_newest() {
        let cache = listed(50);
        let key = ObjectKey::namespaced("a", "map-3");
        assert_eq!(cache.get(&key).unwrap().metadata.resource_version.as_deref(), Some("4"));
        let wrote = |revision: u64| cache.wrote(cache.keep_text(&text(3, revision)).unwrap(), false).next();
        let change = wrote(60).unwrap();
        let versions =
            [change.old, change.new].map(|object| object.unwrap().metadata.resource_version.clone().unwrap());
        assert_eq!(versions, ["4", "60"]);
        assert_eq!(cache.get(&key).unwrap().metadata.resource_version.as_deref(), Some("60"));
        assert!(wrote(59).is_none(), "older than what is known");
        let gone = cache.vanished(&cache.get(&key).unwrap().metadata).next().unwrap();
        assert_eq!(gone.old.unwrap().metadata.resource_version.as_deref(), Some("60"));
        assert!(cache.get(&key).is_none() && cache.owned_by("owner-3").is_empty());
    }

    #[test]
    fn who_reads_all_has_all_at_hand_from_then_on() {
        let cache = listed(40);
        assert_eq!(cache.keys().len(), 40);
        assert_eq!(cache.tell_all().count(), 40);
        assert_eq!(packed(&cache), 40, "neither names nor news need that");
        let all = cache.all();
        assert_eq!((all.len(), packed(&cache)), (40, 0));
        cache.observe_in(None, Event::Apply(cache.keep_text(&text(41, 90)).unwrap()));
        assert_eq!(packed(&cache), 0);
        assert!(Arc::ptr_eq(&cache.all()[0], &all[0]));
    }

    #[test]
    fn an_index_finds_packed_objects() {
        let cache = listed(30);
        let first = |map: &ConfigMap| vec![map.data.as_ref().unwrap()["text"].split(' ').next().unwrap().to_owned()];
        let index = cache.add_index(Arc::new(first));
        let found = |value: &str| cache.indexed(index, value).len();
        assert_eq!((found("12"), found("31")), (1, 0));
        cache.observe_in(None, Event::Apply(cache.keep_text(&text(31, 90)).unwrap()));
        cache.deleted("uid-12", Some("a"));
        assert_eq!((found("12"), found("31")), (0, 1));
    }
}
