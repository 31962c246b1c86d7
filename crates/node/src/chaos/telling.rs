//! What the status of a `Chaos` says of this node's part in it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Resource, ResourceExt};

use super::resource::{Chaos, ChaosStatus, VictimState};
use super::run::Conductor;

impl Conductor<'_> {
    /// Marks what an earlier life of this node did as undone; true if there was something.
    pub(super) fn close_own(&self, status: &mut ChaosStatus) -> bool {
        let own = status.victims.iter_mut().filter(|victim| victim.node == self.context.config.name);
        let mut any = false;
        for victim in own.filter(|victim| victim.state.is_open()) {
            victim.state = VictimState::Done;
            victim.ended = Some(Time(Timestamp::now()));
            "undone when the node was started anew".clone_into(&mut victim.message);
            any = true;
        }
        any
    }

    /// Puts what this node knows of a round into a status; the rest of it is other nodes'.
    pub(super) fn merge(&self, uid: &str, status: &mut ChaosStatus) {
        let Some(round) = self.rounds.get(uid).filter(|round| round.number == status.round) else { return };
        status.victims.retain(|victim| victim.node != self.context.config.name);
        status.victims.extend(round.sufferers.iter().map(|sufferer| sufferer.victim.clone()));
    }

    pub(super) async fn tell(&mut self, chaos: &Chaos, mut status: ChaosStatus) {
        self.merge(&chaos.uid().unwrap_or_default(), &mut status);
        status.message = summary(&status);
        self.write(chaos, status).await;
    }

    /// Writes a status, unless it is there already. If somebody else wrote meanwhile, the next look finds that.
    pub(super) async fn write(&mut self, chaos: &Chaos, status: ChaosStatus) {
        if chaos.status.as_ref() == Some(&status) {
            return;
        }
        let api: Api<Chaos> =
            Api::namespaced(self.context.config.client.clone(), &chaos.namespace().unwrap_or_default());
        let mut wanted = chaos.clone();
        wanted.status = Some(status);
        wanted.meta_mut().managed_fields = None;
        match api.replace_status(&chaos.name_any(), &PostParams::default(), &wanted).await {
            Ok(written) => self.learn(written),
            Err(error) => {
                tracing::debug!(%error, "the status of a chaos was not written");
                self.refresh(&api, chaos).await;
            }
        }
    }

    async fn refresh(&mut self, api: &Api<Chaos>, chaos: &Chaos) {
        match api.get_opt(&chaos.name_any()).await {
            Ok(Some(found)) => self.learn(found),
            Ok(None) => drop(self.known.remove(&chaos.uid().unwrap_or_default())),
            Err(error) => tracing::debug!(%error, "a chaos could not be read again"),
        }
    }
}

/// What there is to say about a round.
pub(super) fn summary(status: &ChaosStatus) -> String {
    if status.victims.is_empty() {
        return "no running Pod is meant".to_owned();
    }
    let count = |state| status.victims.iter().filter(|victim| victim.state == state).count();
    let words = [
        (count(VictimState::Ordered), "ordered"),
        (count(VictimState::Suffering), "suffering"),
        (count(VictimState::Mending), "being undone"),
        (count(VictimState::Done), "done and undone"),
        (count(VictimState::Refused), "refused"),
    ];
    let said: Vec<String> = words.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let refused = status.victims.iter().find(|victim| victim.state == VictimState::Refused);
    let why = refused.map(|victim| format!(" ({}: {})", victim.name, victim.message)).unwrap_or_default();
    format!("{}{why}", said.join(", "))
}
