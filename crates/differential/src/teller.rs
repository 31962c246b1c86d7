//! Tells stories to both servers and compares what they say.

use std::time::{Duration, Instant};

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use super::call::{Answer, Call};
use super::control_plane::ControlPlane;
use super::live::{self, Live};
use super::normal::{compare, is_blank_delete, without_repeats};
use super::report::Report;
use super::story::{self, Kind, Theme};
use super::{collection, past, watch};

/// Requests in one story, at most.
const STEPS_MAX: usize = 12;
/// One in so many stories is about several objects, and one in so many is watched.
const COLLECTION_EVERY: u64 = 10;
const WATCHED_EVERY: u64 = 4;
/// One in so many stories is watched while it is told.
const LIVE_EVERY: u64 = 6;
/// How long a server may take to set the condition of an object.
const SETTLED_MAX: Duration = Duration::from_secs(15);
/// What the server itself takes from an object that goes.
const CLEANUP: &str = "customresourcecleanup.";

/// The two servers.
pub(super) struct Pair {
    pub(super) kubernetes: ControlPlane,
    pub(super) windlass: ControlPlane,
}

/// One story, being told.
struct Teller<'a> {
    pair: &'a Pair,
    kind: &'a Kind,
    seed: u64,
    name: String,
    report: &'a mut Report,
}

/// Tells one story to both servers, up to the first difference.
pub(super) async fn tell(pair: &Pair, kind: &Kind, seed: u64, report: &mut Report) {
    let mut teller = Teller { pair, kind, seed, name: format!("story-{seed}"), report };
    let several = seed.is_multiple_of(COLLECTION_EVERY);
    let since = teller.versions().await;
    // What a server writes by itself it writes when it likes, in as many steps as it likes.
    let compares_watches = kind.awaits.is_none();
    let watches = match seed % LIVE_EVERY {
        0 if compares_watches => teller.open(&since).await,
        _ => Vec::new(),
    };
    let equal = if several { teller.collection().await } else { teller.object().await };
    if equal && !watches.is_empty() {
        teller.close(watches).await;
    }
    if equal && compares_watches && (several || (seed / 7).is_multiple_of(WATCHED_EVERY)) {
        teller.watches(&since).await;
    }
    let names = (0..collection::OBJECTS).map(|number| format!("{}-{number}", teller.name));
    for name in std::iter::once(teller.name.clone()).chain(names.filter(|_| several)) {
        for call in story::last(kind, &name) {
            call.send(&pair.kubernetes.client).await;
            call.send(&pair.windlass.client).await;
        }
        teller.settle(&format!("{}/{}", kind.path, kind.name(&name))).await;
    }
}

/// Asks for what both servers have forgotten, at the end of all stories.
pub(super) async fn remember(pair: &Pair, kind: &Kind, report: &mut Report) {
    let mut teller = Teller { pair, kind, seed: 0, name: String::new(), report };
    for call in past::calls(kind) {
        teller.ask(&call, &call).await;
    }
}

/// The watches of a story, each on both servers, with its request.
type Watches = Vec<(Call, [Live; 2])>;

impl Teller<'_> {
    /// Opens the watches of a story that is about to be told.
    async fn open(&self, since: &[String; 2]) -> Watches {
        let [there, here] = since.each_ref().map(|version| live::calls(self.kind, version));
        let mut watches = Vec::new();
        for (left, right) in there.into_iter().zip(here) {
            let clients = (&self.pair.kubernetes.client, &self.pair.windlass.client);
            let opened = tokio::join!(Live::open(&left, clients.0), Live::open(&right, clients.1));
            if let (Ok(there), Ok(here)) = opened {
                watches.push((left, [there, here]));
            }
        }
        watches
    }

    /// Makes one last object, and compares what the watches told until then.
    async fn close(&mut self, watches: Watches) {
        let (name, last) = live::last(self.kind, &self.name);
        tokio::join!(last.send(&self.pair.kubernetes.client), last.send(&self.pair.windlass.client));
        for (call, [there, here]) in watches {
            let (there, here) = tokio::join!(there.until(&name), here.until(&name));
            self.compare_events(&call, there, here);
        }
        for call in story::last(self.kind, &format!("{}-last", self.name)) {
            tokio::join!(call.send(&self.pair.kubernetes.client), call.send(&self.pair.windlass.client));
        }
    }

    fn compare_events(&mut self, call: &Call, there: Answer, here: Answer) {
        let settle = |answer: Answer| match self.kind.repeats {
            true => without_repeats(watch::settled(answer)),
            false => watch::settled(answer),
        };
        let difference = compare(&settle(there), &settle(here), &self.kind.ignores);
        self.report.add(self.kind.resource(), call, self.seed, difference);
    }

    /// Random requests about one object, each followed by a look at it.
    async fn object(&mut self) -> bool {
        let steps = StdRng::seed_from_u64(self.seed).random_range(3..=STEPS_MAX);
        let path = format!("{}/{}", self.kind.path, self.kind.name(&self.name));
        let (mut there, mut here) = (None, None);
        for step in 0..steps {
            let choices = StdRng::seed_from_u64(self.seed.wrapping_mul(1_000) + step as u64);
            let place = (self.name.as_str(), Theme::of(self.seed), step);
            let left = story::next(self.kind, place, there.as_ref(), &mut choices.clone());
            let right = story::next(self.kind, place, here.as_ref(), &mut choices.clone());
            if self.ask(&left, &right).await.is_none() {
                return false;
            }
            self.settle(&path).await;
            let read = Call::new("get", "GET", path.clone(), None);
            let Some((left, right)) = self.ask(&read, &read).await else { return false };
            there = (left.code == 200).then_some(left.body);
            here = (right.code == 200).then_some(right.body);
        }
        true
    }

    /// Several objects: pages, lists and the end of some of them.
    async fn collection(&mut self) -> bool {
        let mut random = StdRng::seed_from_u64(self.seed);
        for (number, call) in collection::objects(self.kind, &self.name).into_iter().enumerate() {
            if self.ask(&call, &call).await.is_none() {
                return false;
            }
            let name = self.kind.name(&format!("{}-{number}", self.name));
            self.settle(&format!("{}/{name}", self.kind.path)).await;
        }
        let versions = self.versions().await;
        for _ in 0..random.random_range(2..5) {
            let choices: u64 = random.random();
            let same = || StdRng::seed_from_u64(choices);
            let equal = match choices % 3 {
                0 => self.pages(&collection::first_page(self.kind, &self.name, &mut same())).await,
                1 => {
                    let [left, right] =
                        versions.each_ref().map(|version| collection::list(self.kind, version, &mut same()));
                    self.ask(&left, &right).await.is_some()
                }
                _ => {
                    let call = collection::delete(self.kind, &mut same());
                    self.ask(&call, &call).await.is_some()
                }
            };
            if !equal {
                return false;
            }
        }
        true
    }

    async fn pages(&mut self, first: &Call) -> bool {
        let (mut left, mut right) = (first.clone(), first.clone());
        for _ in 0..collection::PAGES_MAX {
            let Some((there, here)) = self.ask(&left, &right).await else { return false };
            let next = (collection::next_page(first, &there.body), collection::next_page(first, &here.body));
            match next {
                (Some(there), Some(here)) => (left, right) = (there, here),
                _ => return true,
            }
        }
        true
    }

    /// Watches from the versions of before the story, all at once: a server ends each only after a second.
    async fn watches(&mut self, since: &[String; 2]) {
        let name = self.kind.name(&self.name);
        let calls = since.each_ref().map(|version| watch::calls(&self.kind.path, &name, version));
        let planes = [&self.pair.kubernetes, &self.pair.windlass];
        let all = |index: usize| join_all(calls[index].iter().map(move |call| call.send(&planes[index].client)));
        let (there, here) = tokio::join!(all(0), all(1));
        for (call, (left, right)) in calls[0].iter().zip(there.into_iter().zip(here)) {
            self.compare_events(call, left, right);
        }
    }

    /// The version of now, of each server.
    async fn versions(&self) -> [String; 2] {
        let none = Call::new("list", "GET", format!("{}?labelSelector=none", self.kind.path), None);
        let version = |answer: Answer| answer.body["metadata"]["resourceVersion"].as_str().unwrap_or("0").to_owned();
        let (left, right) =
            tokio::join!(none.send(&self.pair.kubernetes.client), none.send(&self.pair.windlass.client));
        [version(left), version(right)]
    }

    /// Waits until both servers have set the condition that they set by themselves.
    async fn settle(&self, path: &str) {
        let Some(condition) = &self.kind.awaits else { return };
        let read = Call::new("get", "GET", path.to_owned(), None);
        let deadline = Instant::now() + SETTLED_MAX;
        for plane in [&self.pair.kubernetes, &self.pair.windlass] {
            while !settled(&read.send(&plane.client).await, condition) && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Asks both; nothing if they say different things, or if what Kubernetes says is allowed to end the story.
    async fn ask(&mut self, left: &Call, right: &Call) -> Option<(Answer, Answer)> {
        let (there, here) =
            tokio::join!(left.send(&self.pair.kubernetes.client), right.send(&self.pair.windlass.client));
        let blank = left.verb == "delete" && is_blank_delete(&there);
        let difference = if blank { None } else { compare(&there, &here, &self.kind.ignores) };
        let equal = difference.is_none() && !blank;
        self.report.add(self.kind.resource(), left, self.seed, difference);
        equal.then_some((there, here))
    }
}

fn settled(answer: &Answer, condition: &str) -> bool {
    let conditions = answer.body["status"]["conditions"].as_array();
    let is_set = |value: &Value| value["type"] == condition && value["status"] == "True";
    let metadata = &answer.body["metadata"];
    let holds = |name: &Value| name.as_str().is_some_and(|name| name.starts_with(CLEANUP));
    let finalizers = metadata["finalizers"].as_array();
    let goes = !metadata["deletionTimestamp"].is_null() && finalizers.is_some_and(|list| list.iter().any(holds));
    answer.code != 200 || (!goes && conditions.is_some_and(|conditions| conditions.iter().any(is_set)))
}
