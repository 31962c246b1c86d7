//! What holds of many resources: a restart is gentle, and what is new is served first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt, TryStreamExt};
use tokio::sync::{Semaphore, mpsc};
use windlass::Program;
use windlass::kube::Api;
use windlass::kube::api::PostParams;
use windlass::prelude::*;
use windlass_runtime::tap::Intercept;
use windlass_runtime::{Controller, Manager, ManagerConfig, Namespaces};
use windlass_testkit::{Profile, TestCluster};

use crate::notes::{Note, Running, app, cluster_with, eventually, manager_of, note, write};

/// How many requests a test itself has in flight.
const AT_ONCE: usize = 32;
/// How many objects a controller works on at once.
const WORKERS: usize = 4;

/// Counts the calls of a manager.
#[derive(Default)]
pub(crate) struct Traffic {
    lists: AtomicUsize,
    writes: AtomicUsize,
    at_once: AtomicUsize,
    pub(crate) most_at_once: AtomicUsize,
}

impl Traffic {
    /// Counts those of `manager` from now on.
    pub(crate) fn of(manager: &Manager) -> Arc<Self> {
        let traffic = Arc::new(Self::default());
        let counting = traffic.clone();
        let intercept: Intercept = Arc::new(move |call, request, next| {
            if call.verb == "watch" {
                return next(request);
            }
            let traffic = counting.clone();
            traffic.lists.fetch_add(usize::from(call.verb == "list"), Ordering::SeqCst);
            traffic.writes.fetch_add(usize::from(call.is_write()), Ordering::SeqCst);
            let at_once = traffic.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            traffic.most_at_once.fetch_max(at_once, Ordering::SeqCst);
            Box::pin(async move {
                let answer = next(request).await;
                traffic.at_once.fetch_sub(1, Ordering::SeqCst);
                answer
            })
        });
        manager.tap().intercept(Some(intercept));
        traffic
    }
}

/// Asks the API about every object, as a reconcile that does not trust its cache.
struct Inquirer;

impl Reconcile for Inquirer {
    type Resource = ConfigMap;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context<ConfigMap>) -> Result<Action, Error> {
        let maps: Api<ConfigMap> = Api::namespaced(cx.client(), &map.namespace().unwrap());
        maps.get(&map.name_any()).await?;
        Ok(Action::Await)
    }
}

/// A cluster with so many ConfigMaps.
pub(crate) async fn cluster_of_maps(count: usize) -> TestCluster {
    let cluster = TestCluster::builder().profile(Profile::Bare).start().await;
    let maps = cluster.api::<ConfigMap>();
    let make = |index| {
        let (maps, map) = (maps.clone(), ConfigMap { metadata: named(format!("m-{index}")), ..ConfigMap::default() });
        async move { maps.create(&PostParams::default(), &map).await }
    };
    let made = futures::stream::iter(0..count).map(make).buffer_unordered(AT_ONCE);
    made.try_for_each(|_| async { Ok(()) }).await.unwrap();
    cluster
}

fn served(running: &Running, controller: &str) -> usize {
    let series = format!(r#"controller_runtime_reconcile_total{{controller="{controller}",result="success"}}"#);
    running.metric(&series).unwrap_or_default() as usize
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_objects_restart_without_a_herd() {
    const OBJECTS: usize = 10_000;
    let cluster = cluster_of_maps(OBJECTS).await;
    let mut manager = Manager::new(cluster.client(), ManagerConfig::new("test"));
    let traffic = Traffic::of(&manager);
    manager.add(Controller::of(&manager, Inquirer).workers(WORKERS));
    let running = Running::start(manager);
    eventually("all were asked about", || served(&running, "configmap") >= OBJECTS).await;
    let lists = traffic.lists.load(Ordering::SeqCst);
    assert!(lists <= OBJECTS / 500 + 2, "{lists} lists: pages of 500, once");
    let most = traffic.most_at_once.load(Ordering::SeqCst);
    assert!(most <= WORKERS + 1, "{most} requests at once");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_restarts_writes_nothing_when_all_is_as_wanted() {
    const NOTES: usize = 200;
    let (cluster, first) = cluster_with(app()).await;
    for index in 0..NOTES {
        write(&cluster.api(), note(&format!("n-{index}"), "hello")).await;
    }
    let is_settled = |note: &Note| note.status.as_ref().is_some_and(|status| !status.conditions.is_empty());
    cluster.until_all(|notes: &[Note]| notes.len() == NOTES && notes.iter().all(is_settled)).await;
    first.end().await;
    let manager = manager_of(&app(), cluster.client(), Namespaces::all());
    let traffic = Traffic::of(&manager);
    let again = Running::start(manager);
    eventually("all were looked at", || served(&again, "note") >= NOTES).await;
    assert_eq!(traffic.writes.load(Ordering::SeqCst), 0);
    assert!(traffic.lists.load(Ordering::SeqCst) <= 6);
    again.end().await;
}

/// Tells of every run, and goes on only when it is let.
struct Gate {
    open: Arc<Semaphore>,
    begun: mpsc::UnboundedSender<String>,
}

impl Reconcile for Gate {
    type Resource = Note;

    async fn reconcile(&self, note: Arc<Note>, _: &Context<Note>) -> Result<Action, Error> {
        self.begun.send(note.name_any()).unwrap();
        self.open.acquire().await.unwrap().forget();
        Ok(Action::Await)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_created_after_a_restart_is_served_before_the_backlog() {
    const BACKLOG: usize = 50;
    let cluster = TestCluster::start().await;
    cluster.define(app().crds()).await;
    for index in 0..BACKLOG {
        write(&cluster.api(), note(&format!("n-{index}"), "old")).await;
    }
    let mut manager = Manager::new(cluster.client(), ManagerConfig::new("test"));
    let (open, (begun, mut order)) = (Arc::new(Semaphore::new(0)), mpsc::unbounded_channel());
    let controller = Controller::of(&manager, Gate { open: open.clone(), begun }).workers(1);
    let known = controller.informer();
    manager.add(controller);
    let running = Running::start(manager);
    let first = order.recv().await.unwrap();
    write(&cluster.api(), note("new", "new")).await;
    eventually("it is known", || known.len() == BACKLOG + 1).await;
    open.add_permits(BACKLOG + 1);
    let mut names = vec![first];
    while names.len() < BACKLOG + 1 {
        names.extend(order.recv().await);
    }
    assert_eq!(names.iter().position(|name| name == "new"), Some(1), "{names:?}");
    running.end().await;
}
