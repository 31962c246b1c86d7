//! Follows the `Chaos` resources, does what they ask for to the Pods of this node, and tells of it in their status.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use tokio_util::sync::CancellationToken;

use super::aim::{self, Surroundings};
use super::course::{self, Step};
use super::cuts::Separations;
use super::plan::Plan;
use super::resource::{Chaos, ChaosStatus, Fault, Phase, Victim, VictimState};
use super::round::{Round, Sufferer};
use super::telling::summary;
use crate::context::Context;
use crate::pod::Live;
use crate::pods::Pods;
use crate::sandbox::Cut;

/// How often orders are looked after while a round runs.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How soon a status that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// How often the resources are looked at in any case.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Pods and containers that suffer in one round on one node.
const VICTIMS_MAX: usize = 500;

/// Does what the resources ask for until told to stop; then the containers end, and with them what they suffer.
pub(crate) async fn run(context: &Arc<Context>, pods: &Pods, stop: CancellationToken) {
    let all: Api<Chaos> = Api::all(context.config.client.clone());
    // Where the kind is not installed, or this node may not see it, this waits and asks again.
    let events = watcher(all, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut conductor = Conductor {
        context: Arc::clone(context),
        pods,
        begun: whole_second(Timestamp::now()),
        known: BTreeMap::new(),
        listed: Vec::new(),
        rounds: HashMap::new(),
    };
    loop {
        let wait = conductor.attend_all().await;
        tokio::select! {
            Some(event) = events.next() => conductor.take(event),
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// What this node does of chaos.
pub(super) struct Conductor<'a> {
    pub(super) context: Arc<Context>,
    pods: &'a Pods,
    /// When this life of the node began: what an earlier one did is undone.
    begun: Timestamp,
    /// The resources by uid, as last seen or written.
    pub(super) known: BTreeMap<String, Chaos>,
    listed: Vec<Chaos>,
    /// The rounds that run or were the last, by the uid of the resource.
    pub(super) rounds: HashMap<String, Round>,
}

impl Conductor<'_> {
    fn take(&mut self, event: Result<Event<Chaos>, watcher::Error>) {
        match event {
            Ok(Event::Init) => self.listed.clear(),
            Ok(Event::InitApply(chaos)) => self.listed.push(chaos),
            Ok(Event::InitDone) => {
                let listed = std::mem::take(&mut self.listed);
                self.known.retain(|uid, _| listed.iter().any(|chaos| chaos.uid().as_ref() == Some(uid)));
                listed.into_iter().for_each(|chaos| self.learn(chaos));
            }
            Ok(Event::Apply(chaos)) => self.learn(chaos),
            Ok(Event::Delete(chaos)) => {
                self.known.remove(&chaos.uid().unwrap_or_default());
            }
            Err(error) => tracing::debug!(%error, "the watch of chaos is being renewed"),
        }
    }

    /// What this node wrote itself may be newer than what it is told.
    pub(super) fn learn(&mut self, chaos: Chaos) {
        let version = |chaos: &Chaos| chaos.resource_version().and_then(|version| version.parse::<u64>().ok());
        let uid = chaos.uid().unwrap_or_default();
        let is_older = self.known.get(&uid).is_some_and(|known| version(known) > version(&chaos));
        if !is_older {
            self.known.insert(uid, chaos);
        }
    }

    /// Looks after every resource; how long nothing is to be done.
    async fn attend_all(&mut self) -> Duration {
        let gone: Vec<String> = self.rounds.keys().filter(|uid| !self.known.contains_key(*uid)).cloned().collect();
        for uid in gone {
            let Some(mut round) = self.rounds.remove(&uid) else { continue };
            round.lift(&self.context.board, "the resource was deleted");
        }
        let mut wake = None;
        for chaos in self.known.values().cloned().collect::<Vec<_>>() {
            wake = [wake, self.attend(&chaos).await].into_iter().flatten().min();
        }
        self.separate();
        if self.rounds.values().any(Round::is_open) {
            return LOOK_EVERY;
        }
        let wait = wake.map(|wake: Timestamp| Duration::try_from(wake.duration_since(Timestamp::now())));
        wait.map_or(IDLE_MAX, Result::unwrap_or_default).min(IDLE_MAX)
    }

    /// Looks after one resource; when to look again.
    async fn attend(&mut self, chaos: &Chaos) -> Option<Timestamp> {
        let status = chaos.status.clone().unwrap_or_default();
        let generation = chaos.metadata.generation.unwrap_or_default();
        let plan = match Plan::of(&chaos.spec) {
            Ok(plan) => plan,
            Err(why) => {
                self.fail(chaos, status, &why.to_string()).await;
                return None;
            }
        };
        let (step, wake) = course::step(&plan, &status, generation, Timestamp::now());
        match step {
            Step::Begin(round) => self.begin(chaos, &plan, round).await,
            Step::Hold => self.hold(chaos, &plan, status).await,
            Step::End => self.end(chaos, &plan, status).await,
            Step::Rest => return wake,
        }
        let moved = self.known.get(&chaos.uid().unwrap_or_default()).is_some_and(|now| now.status != chaos.status);
        // What was written leads on at once; what could not be is tried again after a while.
        if moved { Some(Timestamp::now()) } else { wake.or_else(|| Some(Timestamp::now() + RETRY)) }
    }

    /// Says that a round begins; every node that sees it takes part.
    async fn begin(&mut self, chaos: &Chaos, plan: &Plan, round: u32) {
        let now = Timestamp::now();
        let status = ChaosStatus {
            phase: Phase::Active,
            fault: chaos.spec.fault.name().to_owned(),
            round,
            started_at: Some(Time(now)),
            ends_at: Some(Time(now + plan.round)),
            observed_generation: chaos.metadata.generation.unwrap_or_default(),
            ..ChaosStatus::default()
        };
        self.write(chaos, status).await;
    }

    /// Takes part in a round, or looks after what was ordered.
    async fn hold(&mut self, chaos: &Chaos, plan: &Plan, mut status: ChaosStatus) {
        let uid = chaos.uid().unwrap_or_default();
        if self.rounds.get(&uid).is_some_and(|round| round.number == status.round) {
            self.follow_peers(chaos, &uid);
            if self.look(&uid) {
                self.tell(chaos, status).await;
            }
            return;
        }
        let is_earlier = status.started_at.as_ref().is_none_or(|started| started.0 < self.begun);
        if is_earlier || status.victims.iter().any(|victim| victim.node == self.context.config.name) {
            // An earlier life of this node did it; its supervisors have undone it since.
            if self.close_own(&mut status) && !status.victims.iter().any(|victim| victim.state.is_open()) {
                status.ends_at = Some(Time(Timestamp::now()));
            }
            self.write(chaos, status).await;
            return;
        }
        let round = self.strike(chaos, plan, &status);
        self.rounds.insert(uid, round);
        self.separate();
        self.tell(chaos, status).await;
    }

    /// Does it: chooses who suffers and gives the orders.
    fn strike(&self, chaos: &Chaos, plan: &Plan, status: &ChaosStatus) -> Round {
        let left = status.ends_at.as_ref().map(|end| Duration::try_from(end.0.duration_since(Timestamp::now())));
        let cut = self.cut(chaos);
        let mut round = Round {
            number: status.round,
            owner: chaos.uid().unwrap_or_default(),
            until: Instant::now() + left.and_then(Result::ok).unwrap_or_default(),
            sufferers: Vec::new(),
            cut: cut.clone(),
        };
        if let Some(service) = &chaos.spec.target.service {
            let victim = Victim { state: VictimState::Suffering, ..self.victim(service, "", "") };
            round.sufferers.push(Sufferer::new(victim, None));
            return round;
        }
        let taken = status.victims.iter().filter(|victim| victim.state != VictimState::Refused).count();
        let targets = aim::pick(self.targets(chaos), chaos.spec.mode, chaos.spec.percent, taken);
        for (pod, live) in targets.into_iter().flat_map(|(pod, all)| all.into_iter().map(move |one| (pod.clone(), one)))
        {
            let (uid, container) = (pod.uid().unwrap_or_default(), live.inside.container.name.clone());
            let victim = self.victim(&pod.name_any(), &uid, &container);
            let faults = aim::faults(&chaos.spec.fault, plan, &live, cut.as_ref());
            let about = format!("{} of chaos {}", chaos.spec.fault.name(), chaos.name_any());
            match faults {
                Ok(faults) => {
                    let message = format!("Container {container} suffers {about} for {:?}", plan.round);
                    self.context.events.warning(&*pod, None, "Chaos", message);
                    let sufferer = Sufferer::new(victim, Some((uid, container)));
                    match chaos.spec.fault {
                        Fault::Kill {} => round.kill(&self.context.board, sufferer, live.inside.init),
                        _ => round.order(&self.context.board, sufferer, faults),
                    }
                }
                Err(why) => {
                    let message = format!("{about} cannot be done to container {container}: {why}");
                    self.context.events.warning(&*pod, None, "ChaosRefused", message);
                    let ended = Some(Time(Timestamp::now()));
                    let victim = Victim { state: VictimState::Refused, message: why, ended, ..victim };
                    round.sufferers.push(Sufferer::new(victim, None));
                }
            }
        }
        round
    }

    /// The Pods of this node that are meant, with those of their containers that run and are meant.
    fn targets(&self, chaos: &Chaos) -> Vec<(Arc<k8s_openapi::api::core::v1::Pod>, Vec<Arc<Live>>)> {
        let namespace = chaos.namespace().unwrap_or_default();
        let target = &chaos.spec.target;
        let meant = self.pods.all().into_iter().filter(|pod| target.means(&namespace, pod));
        let found = meant.filter_map(|pod| {
            let mut live = self.context.live.of(&pod.uid().unwrap_or_default());
            live.retain(|one| target.container.as_ref().is_none_or(|name| one.inside.container.name == *name));
            (!live.is_empty()).then_some((pod, live))
        });
        found.take(VICTIMS_MAX).collect()
    }

    fn victim(&self, name: &str, uid: &str, container: &str) -> Victim {
        Victim {
            name: name.to_owned(),
            uid: uid.to_owned(),
            container: container.to_owned(),
            node: self.context.config.name.clone(),
            state: VictimState::Ordered,
            since: Time(Timestamp::now()),
            ended: None,
            message: String::new(),
        }
    }

    /// Ends a round: first what is suffered, then, once that is undone, the round itself.
    async fn end(&mut self, chaos: &Chaos, plan: &Plan, mut status: ChaosStatus) {
        let uid = chaos.uid().unwrap_or_default();
        if let Some(round) = self.rounds.get_mut(&uid).filter(|round| round.number == status.round) {
            round.lift(&self.context.board, "its time was over");
            self.separate();
            self.look(&uid);
            if self.rounds.get(&uid).is_some_and(Round::is_open) {
                return self.tell(chaos, status).await;
            }
        }
        self.merge(&uid, &mut status);
        self.close_own(&mut status);
        if status.victims.iter().any(|victim| victim.state.is_open()) {
            // Those are other nodes' to undo.
            return self.write(chaos, status).await;
        }
        status.next_at = course::next_round(plan, &status).map(Time);
        status.phase = if status.next_at.is_some() { Phase::Waiting } else { Phase::Ended };
        status.message = summary(&status);
        if status.victims.is_empty() {
            self.context.events.warning(chaos, None, "NothingMeant", status.message.clone());
        } else {
            self.context.events.normal(chaos, None, "Ended", status.message.clone());
        }
        if let Some(round) = self.rounds.get(&uid) {
            round.sufferers.iter().filter_map(|one| one.key.as_ref()).for_each(|key| {
                if !self.runs(key) {
                    self.context.board.forget(key);
                }
            });
        }
        self.write(chaos, status).await;
    }

    async fn fail(&mut self, chaos: &Chaos, status: ChaosStatus, why: &str) {
        let generation = chaos.metadata.generation.unwrap_or_default();
        if status.phase == Phase::Failed && status.observed_generation == generation {
            return;
        }
        if let Some(mut round) = self.rounds.remove(&chaos.uid().unwrap_or_default()) {
            round.lift(&self.context.board, "the resource was changed");
        }
        self.context.events.warning(chaos, None, "Invalid", why.to_owned());
        let fault = chaos.spec.fault.name().to_owned();
        let failed = ChaosStatus { phase: Phase::Failed, fault, message: why.to_owned(), ..status };
        self.write(chaos, ChaosStatus { observed_generation: generation, ..failed }).await;
    }

    fn look(&mut self, uid: &str) -> bool {
        let live = self.context.live.clone();
        let runs = |(uid, name): &(String, String)| Some(live.find(uid, name)?.inside.init);
        self.rounds.get_mut(uid).is_some_and(|round| round.look(&self.context.board, runs))
    }

    fn runs(&self, (uid, name): &(String, String)) -> bool {
        self.context.live.find(uid, name).is_some()
    }

    /// Peers come and go while a round lasts.
    fn follow_peers(&mut self, chaos: &Chaos, uid: &str) {
        if let (Some(cut), Some(round)) = (self.cut(chaos), self.rounds.get_mut(uid)) {
            round.change_cut(&self.context.board, cut);
        }
    }

    /// What those who suffer are cut off from.
    fn cut(&self, chaos: &Chaos) -> Option<Cut> {
        let Fault::Disconnect(disconnect) = &chaos.spec.fault else { return None };
        let (pods, world) = (self.pods.all(), self.context.directory.world());
        let namespace = chaos.namespace().unwrap_or_default();
        let around = Surroundings { namespace: &namespace, pods: &pods, world: &world, api: self.context.config.api };
        Some(around.cut(disconnect))
    }

    /// Lets the Services of this node know who is cut off from whom.
    fn separate(&self) {
        let mut separations = Separations::default();
        let pods = self.pods.all();
        for (uid, round) in &self.rounds {
            let Some(cut) = &round.cut else { continue };
            let namespace = self.known.get(uid).and_then(ResourceExt::namespace).unwrap_or_default();
            let cut_off = round
                .sufferers
                .iter()
                .filter(|one| matches!(one.victim.state, VictimState::Ordered | VictimState::Suffering));
            for victim in cut_off.map(|one| &one.victim) {
                let pod = pods.iter().find(|pod| pod.uid().as_ref() == Some(&victim.uid));
                match pod.and_then(|pod| aim::address(pod)) {
                    Some(address) => drop(separations.pods.insert(address, cut.clone())),
                    None if victim.uid.is_empty() => {
                        separations.services.insert((namespace.clone(), victim.name.clone()), cut.clone());
                    }
                    None => {}
                }
            }
        }
        self.context.cuts.set(separations);
    }
}

/// Times in objects have no fractions of a second.
fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
