//! A look at everything that counts, and what is told of it.

use std::time::Duration;

use windlass::runtime::tenure::Holder;

use super::decide::Action;
use super::member::Member;
use super::observed::{Course, Data, Observed, Phase, Server, Vitals};
use super::sql::{self, Answer};
use super::status::Board;
use crate::wire::{Archiving, Position, Report, Restored, Role};

/// A server that took connections and does not answer for this long is silent.
const SILENT_AFTER: Duration = Duration::from_secs(4);
/// A primary that is not back by then is late.
const LATE_AFTER: Duration = Duration::from_secs(5);
/// A standby that receives nothing for this long, although there is a primary, is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(15);
/// A standby that received within this time is good enough for readers.
const FRESH: Duration = Duration::from_secs(30);

impl Member {
    /// Looks at everything.
    pub(super) async fn observe(&mut self) -> Observed {
        let server = self.observe_server().await;
        let data = self.observe_data(&server).await;
        let view = self.keeper.view();
        let now = self.clock.elapsed();
        let peers = self.peers.answers(view.vacant_since);
        let vacant = view.vacant_since.map(|since| now.saturating_sub(since)).unwrap_or_default();
        let mut seen = Observed {
            me: self.identity.member.clone(),
            plan: self.plan.clone(),
            holder: view.holder,
            memory: view.memory,
            data,
            server,
            peers,
            course: Course {
                failures: self.memo.failures,
                phase: Phase::Steady,
                vacant_ms: u64::try_from(vacant.as_millis()).unwrap_or(u64::MAX),
            },
        };
        seen.course.phase = self.phase(&seen, now);
        seen
    }

    fn phase(&self, seen: &Observed, now: Duration) -> Phase {
        let since = |at: Duration| now.saturating_sub(at);
        let is_primary = |leader: &String| seen.peers.get(leader).is_some_and(|peer| peer.role == Role::Primary);
        let is_member = seen.plan.members.contains(&seen.me);
        let has_primary = matches!(&seen.holder, Holder::Other(leader) if is_member && is_primary(leader));
        match &seen.server {
            _ if self.memo.is_stopping => Phase::Stopping,
            _ if now < self.memo.rest_until => Phase::Resting,
            Server::Starting if since(self.memo.started) > LATE_AFTER => Phase::Late,
            Server::Standby(_) if has_primary && since(self.last_hope()) > STUCK_AFTER => Phase::Stuck,
            _ => Phase::Steady,
        }
    }

    /// When a standby received last, or had a reason to begin.
    fn last_hope(&self) -> Duration {
        self.memo.streamed.max(self.memo.started).max(self.memo.turned)
    }

    async fn observe_data(&mut self, server: &Server) -> Data {
        if !self.postgres.volume.has_data() {
            return Data::Empty;
        }
        if *server == Server::Stopped {
            match self.postgres.control().await {
                Ok(control) => self.memo.control = control,
                Err(error) => tracing::warn!(%error, "The control file cannot be read"),
            }
        }
        self.postgres.volume.judge(&self.memo.control)
    }

    async fn observe_server(&mut self) -> Server {
        if !self.postgres.is_running() {
            if std::mem::take(&mut self.memo.is_running) {
                self.memo.failed_starts = self.memo.failed_starts.saturating_add(1);
                let how = self.postgres.ended.map(|status| format!("the server ended with {status}"));
                self.fail(&how.unwrap_or_else(|| "the server ended".into()));
            }
            self.memo.server = None;
            self.memo.answered = None;
            return Server::Stopped;
        }
        let now = self.clock.elapsed();
        let server = match sql::ask().await {
            Ok(answer) => {
                self.memo.answered = Some(self.clock.elapsed());
                self.answered(answer)
            }
            Err(error) if error.is_not_yet() => Server::Starting,
            Err(error) => match (self.memo.answered, self.memo.server.clone()) {
                (Some(at), Some(last)) if now.saturating_sub(at) < SILENT_AFTER => last,
                (Some(_), _) => {
                    tracing::warn!(%error, "The server is silent");
                    Server::Silent
                }
                (None, _) => Server::Starting,
            },
        };
        self.memo.server = Some(server.clone());
        server
    }

    fn answered(&mut self, answer: Answer) -> Server {
        let now = self.clock.elapsed();
        let log = self.postgres.volume.log_timeline();
        let timeline = answer.checkpoint_timeline.max(answer.received_timeline.unwrap_or(0)).max(log);
        self.memo.rewindable = answer.checkpoint_timeline == timeline;
        if answer.streaming {
            self.memo.streamed = now;
        }
        for member in answer.lags.keys() {
            self.memo.standbys.insert(member.clone(), now);
        }
        self.memo.archiver = answer.archiver;
        self.memo.lags = answer.lags;
        self.memo.flushed = answer.flushed;
        let vitals = Vitals {
            position: Position { timeline, lsn: answer.lsn },
            follows: self.memo.follows.clone(),
            receiving: answer.receiving,
            streaming: answer.streaming,
            version: answer.version,
            pending_restart: answer.pending_restart,
            refused: answer.refused,
            settings: answer.settings,
        };
        if answer.in_recovery { Server::Standby(vitals) } else { Server::Primary(vitals) }
    }

    /// The backup that the data was made from. What is here was, if the file is: others are cloned.
    fn restored(&self) -> Option<Restored> {
        serde_json::from_str(&std::fs::read_to_string(self.postgres.volume.restored()).ok()?).ok()
    }

    fn archiving(&self) -> Option<Archiving> {
        let (last, failing) = self.memo.archiver.clone()?;
        Some(Archiving { path: self.archive()?.top().to_owned(), last, failing })
    }

    /// What is told of it.
    pub(super) fn describe(&self, seen: &Observed, action: &Action) -> Board {
        let (role, vitals) = match &seen.server {
            Server::Primary(vitals) => (Role::Primary, Some(vitals)),
            Server::Standby(vitals) => (Role::Replica, Some(vitals)),
            _ => (Role::None, None),
        };
        let is_fresh = self.clock.elapsed().saturating_sub(self.memo.streamed) < FRESH && !self.memo.streamed.is_zero();
        let is_ready = match role {
            Role::Primary => seen.holder == Holder::Me,
            Role::Replica => is_fresh,
            Role::None => false,
        };
        let (state, mut message) = words(action);
        if (seen.course.phase == Phase::Resting || state == "RestoreFailed") && !self.memo.failure.is_empty() {
            message = format!("{message}: {}", self.memo.failure);
        }
        let is_primary = role == Role::Primary;
        let voters = seen.memory.rules.iter().flatten().flat_map(|rule| rule.of.iter().cloned()).collect();
        let system_id = match &seen.data {
            Data::Present(control) => Some(control.system_id.clone()),
            Data::Empty => None,
        };
        let report = Report {
            member: seen.me.clone(),
            system_id,
            role,
            position: vitals.map(|vitals| vitals.position),
            follows: vitals.and_then(|vitals| vitals.follows.clone().or(vitals.receiving.then(|| "?".to_owned()))),
            streaming: vitals.is_some_and(|vitals| vitals.streaming),
            rewindable: is_primary && self.memo.rewindable,
            version: vitals.map(|vitals| vitals.version.clone()),
            pending_restart: vitals.is_some_and(|vitals| vitals.pending_restart),
            has_read: vitals.is_some_and(|vitals| vitals.settings.as_ref() == Some(&self.plan.settings())),
            settings: Some(self.plan.settings()),
            refused: vitals.and_then(|vitals| vitals.refused.clone()),
            failed_starts: self.memo.failed_starts,
            failure: if self.memo.failed_starts > 0 { self.memo.failure.clone() } else { String::new() },
            state: state.to_owned(),
            archive: vitals.and_then(|_| self.archiving()),
            restored: self.postgres.volume.has_data().then(|| self.restored()).flatten(),
            message,
            lags: if is_primary { self.memo.lags.clone() } else { Default::default() },
            voters: if is_primary { voters } else { Default::default() },
        };
        Board { report, is_ready }
    }
}

/// What a member does, for people.
fn words(action: &Action) -> (&'static str, String) {
    let plain = |word| (word, String::new());
    match action {
        Action::Initialize => plain("Initializing"),
        Action::Restore => ("Restoring", "makes the data from a backup".into()),
        Action::Clone { from } => ("Cloning", format!("copies the data of {from}")),
        Action::StartPrimary | Action::StartStandby => plain("Starting"),
        Action::Bid | Action::Promote => plain("Promoting"),
        Action::Lead => plain("Primary"),
        Action::Restart => ("Restarting", "settings need it".into()),
        Action::HandOver { to } => ("HandingOver", format!("{to} is to lead")),
        Action::Follow { leader } => ("Following", format!("turns to {leader}")),
        Action::Detach => ("Electing", "lets go of the last primary".into()),
        Action::Replicate => plain("Streaming"),
        Action::Rewind { from } => ("Rewinding", format!("goes back to where {from} is")),
        Action::Fence | Action::StepBack => plain("Fencing"),
        Action::Stop | Action::Exit => plain("Stopping"),
        Action::Release { why } => ("Releasing", why.clone()),
        Action::Wait(obstacle) => (obstacle.word, obstacle.message.clone()),
    }
}
