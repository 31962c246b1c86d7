//! Waiting for what should become true.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

/// How long waits last, in the machine's time. Long enough for a busy machine: a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until there is no object called `name` in `api`.
///
/// # Panics
/// If that takes longer than [`PATIENCE`].
pub async fn until_gone<K>(api: Api<K>, name: &str)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    until(api, |objects: &[K]| objects.iter().all(|object| object.name_any() != name)).await;
}

/// Waits until the objects of `api` are as wanted, and returns them in order of their namespaces and names.
///
/// # Panics
/// If that takes longer than [`PATIENCE`]; the message shows the objects.
pub async fn until<K>(api: Api<K>, wanted: impl Fn(&[K]) -> bool) -> Vec<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut seen = Seen { objects: BTreeMap::new(), listing: true };
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
    let wait = async {
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => seen.take(event),
                Err(error) => panic!("the objects cannot be watched: {error}"),
            }
            if !seen.listing {
                let objects: Vec<K> = seen.objects.values().cloned().collect();
                if wanted(&objects) {
                    return objects;
                }
            }
        }
        unreachable!("a watch does not end")
    };
    match tokio::time::timeout(PATIENCE, wait).await {
        Ok(objects) => objects,
        Err(_) => panic!("did not become true within {PATIENCE:?}; the objects are {:#?}", seen.objects.values()),
    }
}

/// The objects that a watch told of.
struct Seen<K> {
    objects: BTreeMap<(Option<String>, String), K>,
    listing: bool,
}

impl<K: Resource> Seen<K> {
    fn take(&mut self, event: watcher::Event<K>) {
        match event {
            watcher::Event::Init => {
                self.objects.clear();
                self.listing = true;
            }
            watcher::Event::InitDone => self.listing = false,
            watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
                self.objects.insert((object.namespace(), object.name_any()), object);
            }
            watcher::Event::Delete(object) => {
                self.objects.remove(&(object.namespace(), object.name_any()));
            }
        }
    }
}
