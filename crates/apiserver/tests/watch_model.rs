//! Watches with selectors against what a list says: random writes, watches from every revision, a forgotten past.
//!
//! `WINDLASS_SEED=7` does one seed again.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use world::{Events, World};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SELECTED: &str = "labelSelector=app%3Dweb";
const SEEDS: u64 = 12;
const WRITES: usize = 60;
const NAMES: u32 = 5;

/// What a client has of the selected objects, and how far it is.
struct View {
    objects: BTreeMap<String, String>,
    revision: u64,
    events: Events,
}

fn revision(value: &Value) -> u64 {
    value["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn content(object: &Value) -> String {
    format!("{} {}", object["metadata"]["labels"]["app"], object["data"])
}

async fn list(world: &World) -> (u64, BTreeMap<String, String>) {
    let list = world.get(&format!("{CONFIG_MAPS}?{SELECTED}")).await.expect(200);
    let items = list["items"].as_array().unwrap();
    let objects = items.iter().map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), content(item)));
    (revision(&list), objects.collect())
}

async fn watch(world: &World, objects: BTreeMap<String, String>, revision: u64) -> View {
    let query = format!("watch=1&{SELECTED}&allowWatchBookmarks=true&resourceVersion={revision}");
    View { objects, revision, events: world.watch(&format!("{CONFIG_MAPS}?{query}")).await }
}

/// One write of some kind to some object.
async fn write(world: &World, random: &mut StdRng, number: usize) {
    let name = format!("o{}", random.random_range(0..NAMES));
    let path = format!("{CONFIG_MAPS}/{name}");
    let app = ["web", "other"][random.random_range(0..2)];
    match random.random_range(0..10) {
        0..4 => {
            let labels = json!({"metadata": {"labels": {"app": app}}});
            world.patch(&path, "merge-patch+json", &labels).await;
        }
        4..6 => drop(world.patch(&path, "merge-patch+json", &json!({"data": {"n": number.to_string()}})).await),
        6 => drop(world.delete(&path, &Value::Null).await),
        _ => {
            let object = json!({"metadata": {"name": name, "labels": {"app": app}}, "data": {"n": number.to_string()}});
            world.post(CONFIG_MAPS, &object).await;
        }
    }
}

impl View {
    /// Follows the watch up to an object whose name says that it is the last.
    async fn follow(&mut self, seed: u64) {
        while !self.objects.contains_key("end") {
            let event = self.events.next().await.unwrap_or_else(|| panic!("seed {seed}: the watch ended"));
            let (kind, object) = (event["type"].as_str().unwrap(), &event["object"]);
            let now = revision(object);
            if kind == "BOOKMARK" {
                assert!(now >= self.revision, "seed {seed}: a bookmark of {now} after {}", self.revision);
                self.revision = now;
                continue;
            }
            assert!(now > self.revision, "seed {seed}: {now} after {}", self.revision);
            self.revision = now;
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            let known = match kind {
                "DELETED" => self.objects.remove(&name),
                _ => self.objects.insert(name.clone(), content(object)),
            };
            assert_eq!(known.is_none(), kind == "ADDED", "seed {seed}: {kind} of {name}, which was {known:?}");
        }
    }
}

async fn run(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let world = World::new().await;
    let mut views = Vec::new();
    let mut past = Vec::new();
    for number in 0..WRITES {
        write(&world, &mut random, number).await;
        if random.random_bool(0.3) {
            past.push(list(&world).await);
        }
        if random.random_bool(0.2)
            && let Some((revision, objects)) = past.get(random.random_range(0..past.len().max(1))).cloned()
        {
            views.push(watch(&world, objects, revision).await);
        }
    }
    let (forgotten, _) = past.first().cloned().unwrap_or_default();
    world.post(CONFIG_MAPS, &json!({"metadata": {"name": "end", "labels": {"app": "web"}}})).await.expect(201);
    let (_, expected) = list(&world).await;
    assert!(!views.is_empty(), "seed {seed} watches nothing");
    for mut view in views {
        view.follow(seed).await;
        assert_eq!(view.objects, expected, "seed {seed}");
    }
    world.store.compact(world.store.revision());
    let query = format!("watch=1&{SELECTED}&resourceVersion={forgotten}");
    let refused = world.watch(&format!("{CONFIG_MAPS}?{query}")).await.next().await.unwrap();
    assert_eq!((&refused["type"], &refused["object"]["code"]), (&json!("ERROR"), &json!(410)), "seed {seed}");
}

#[tokio::test]
async fn whoever_watches_has_what_a_list_has() {
    let one = std::env::var("WINDLASS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = one.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    for seed in seeds {
        run(seed).await;
    }
}
