//! What a member does about a decision.

use std::collections::BTreeSet;
use std::path::Path;

use windlass::runtime::tenure::{Holder, TenureError};

use super::config::{self, Settings};
use super::decide::Action;
use super::member::Member;
use super::observed::{Data, Observed};
use super::postgres::{Source, ToolError};
use super::recover::{RecoverError, recover};
use super::sql::{self, Passwords, SqlError};
use super::{publish, quorum};
use crate::archive::{self, Layout, RECOVERY, STORAGE};
use crate::names;
use crate::supervisor::{Supervisor, quoted};
use crate::wire::Memory;

/// How an action ended that did not fail.
pub(super) enum Outcome {
    /// A step was made.
    Done,
    /// The member is where it should be.
    Settled,
}

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ActError {
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error(transparent)]
    Sql(#[from] SqlError),
    #[error(transparent)]
    Lease(#[from] TenureError),
    #[error("the settings cannot be written: {0}")]
    Settings(#[from] std::io::Error),
    #[error(transparent)]
    Recover(#[from] RecoverError),
    #[error("the primary changed meanwhile")]
    Overtaken,
}

impl Member {
    /// Does it.
    pub(super) async fn act(&mut self, action: Action, seen: &Observed) -> Result<Outcome, ActError> {
        match action {
            Action::Initialize => self.postgres.initialize().await?,
            Action::Restore => self.restore().await?,
            Action::Clone { from } => self.copy(&from).await?,
            Action::Rewind { from } => self.lead_back(&from).await?,
            Action::StartPrimary => self.start_primary(seen).await?,
            Action::StartStandby => self.start_standby(seen)?,
            Action::Bid => self.bid(seen).await?,
            Action::Promote => self.promote(seen).await?,
            Action::Lead => return self.maintain_primary(seen).await.map(|()| Outcome::Settled),
            Action::Replicate => return self.maintain_standby().await,
            Action::Follow { leader } => self.follow(Some(leader))?,
            Action::Detach => self.follow(None)?,
            Action::HandOver { to } => self.hand_over(seen, to).await?,
            Action::Restart | Action::Stop => self.stop().await,
            Action::Fence => self.end().await,
            Action::StepBack => {
                self.end().await;
                self.release(seen).await?;
            }
            Action::Release { why } => {
                tracing::warn!(why, "Lets somebody else lead");
                self.release(seen).await?;
            }
            Action::Exit | Action::Wait(_) => {}
        }
        Ok(Outcome::Done)
    }

    async fn restore(&mut self) -> Result<(), ActError> {
        let Some(origin) = self.plan.origin.clone() else { return Err(ActError::Overtaken) };
        let mut keeper = self.keeper.clone();
        let overtaken = async {
            while keeper.view().holder == Holder::Me {
                keeper.changed().await;
            }
        };
        tokio::select! {
            done = recover(&self.postgres, Path::new(RECOVERY), &origin) => Ok(done?),
            () = overtaken => Err(ActError::Overtaken),
        }
    }

    async fn start_primary(&mut self, seen: &Observed) -> Result<(), ActError> {
        self.memo.follows = None;
        self.prepare_to_lead(seen).await?;
        self.postgres.volume.mark_standby(false)?;
        self.start()
    }

    fn start_standby(&mut self, seen: &Observed) -> Result<(), ActError> {
        self.memo.follows = match &seen.holder {
            Holder::Other(leader) => Some(leader.clone()),
            _ => None,
        };
        self.memo.rule = None;
        self.memo.is_standby = true;
        self.guard.rest();
        self.write_settings()?;
        self.postgres.volume.mark_standby(true)?;
        self.start()
    }

    fn start(&mut self) -> Result<(), ActError> {
        self.memo.started = self.clock.elapsed();
        self.memo.answered = None;
        self.memo.provisioned = None;
        self.memo.slots = None;
        self.memo.standbys.clear();
        let started = self.postgres.start();
        self.memo.is_running = started.is_ok();
        if started.is_err() {
            self.memo.failed_starts = self.memo.failed_starts.saturating_add(1);
        }
        Ok(started?)
    }

    /// Takes the lease; from then on this member is the one that has every commit.
    async fn bid(&mut self, seen: &Observed) -> Result<(), ActError> {
        Ok(self.keeper.hold(Memory { successor: None, handed: None, ..seen.memory.clone() }).await?)
    }

    async fn promote(&mut self, seen: &Observed) -> Result<(), ActError> {
        self.memo.follows = None;
        self.prepare_to_lead(seen).await?;
        self.postgres.reload();
        let (identity, client, members) = (self.identity.clone(), self.client.clone(), self.plan.members.clone());
        let unnamed = tokio::spawn(async move { publish::unname_others(&identity, &client, &members).await });
        self.memo.standbys.clear();
        self.memo.provisioned = None;
        sql::promote().await?;
        let members: BTreeSet<String> = seen.others().cloned().collect();
        let is_done = sql::keep_slots(&members).await?; // The others are about to ask for them.
        self.memo.slots = is_done.then_some(members);
        let _ = unnamed.await;
        // Until then a former primary would not see that the timeline is another.
        tokio::spawn(sql::checkpoint());
        Ok(())
    }

    /// Before a write can be taken: who leads and which rule holds is remembered, and the rule is in the settings.
    async fn prepare_to_lead(&mut self, seen: &Observed) -> Result<(), ActError> {
        let rule = quorum::first(&self.plan, &self.identity.member);
        let leader = Some(self.identity.member.clone());
        let mut memory = Memory { leader, successor: None, handed: None, ..seen.memory.clone() };
        if let Data::Present(control) = &seen.data {
            memory.system_id = Some(control.system_id.clone());
        }
        let mut rules = memory.rules.take().unwrap_or_default();
        rules.extend(rule.clone().filter(|rule| !rules.contains(rule)));
        memory.rules = Some(if rule.is_some() { rules } else { Vec::new() });
        self.keeper.hold(memory).await?;
        self.memo.rule = rule;
        self.memo.unconfirmed = None;
        self.memo.is_standby = false;
        self.write_settings()?;
        self.guard.arm(self.keeper.view().held_until);
        Ok(())
    }

    fn follow(&mut self, leader: Option<String>) -> Result<(), ActError> {
        self.memo.follows = leader;
        self.memo.turned = self.clock.elapsed();
        self.write_settings()?;
        self.postgres.reload();
        Ok(())
    }

    async fn copy(&mut self, from: &str) -> Result<(), ActError> {
        self.stop().await;
        let (host, passwords) = (self.host(from), self.passwords());
        let source = Source { host: &host, password: &passwords.replication };
        unless_overtaken(&mut self.keeper.clone(), from, self.postgres.clone_from(&source)).await
    }

    async fn lead_back(&mut self, from: &str) -> Result<(), ActError> {
        self.stop().await;
        let (host, passwords) = (self.host(from), self.passwords());
        let source = Source { host: &host, password: &passwords.replication };
        unless_overtaken(&mut self.keeper.clone(), from, self.postgres.rewind(&source)).await?;
        Ok(self.postgres.volume.mark_standby(true)?)
    }

    async fn hand_over(&mut self, seen: &Observed, to: String) -> Result<(), ActError> {
        if let Err(error) = sql::checkpoint().await {
            tracing::warn!(%error, "No checkpoint before the end"); // It takes longer then.
        }
        self.stop().await;
        // Where its log ends: who has all of that has every commit.
        let handed = self.postgres.control().await.ok().and_then(|control| control.clean_end());
        self.memo.failures = 0;
        Ok(self.keeper.release(Memory { successor: Some(to), handed, ..seen.memory.clone() }).await?)
    }

    async fn stop(&mut self) {
        self.postgres.stop().await;
        self.ended();
    }

    async fn end(&mut self) {
        self.postgres.fence().await;
        self.ended();
    }

    fn ended(&mut self) {
        self.guard.rest();
        self.memo.is_running = false;
        self.memo.server = None;
    }

    async fn release(&mut self, seen: &Observed) -> Result<(), ActError> {
        self.memo.failures = 0;
        Ok(self.keeper.release(Memory { successor: None, handed: None, ..seen.memory.clone() }).await?)
    }

    /// Writes the settings as they should be now; `true` if something is different.
    pub(super) fn write_settings(&self) -> Result<bool, ActError> {
        config::write_password(&self.passwords().replication)?;
        let upstream = self.memo.follows.as_ref().map(|leader| self.host(leader));
        // A primary has what is asked for; a standby at least what its primary had.
        let floor = if self.memo.is_standby { self.memo.control.floor() } else { Default::default() };
        let me = &self.identity.member;
        let archive = self.archive().map(|layout| archive_command(&layout));
        let settings = Settings {
            me,
            plan: &self.plan,
            rule: self.memo.rule.as_ref(),
            archive: archive.as_deref(),
            upstream: upstream.as_deref(),
            floor: &floor,
        };
        Ok(config::write(&self.postgres.data(), &settings)?)
    }

    /// The archive of this member's data, where its storage is mounted: a Pod from before it was asked for has none.
    pub(super) fn archive(&self) -> Option<Layout> {
        let prefix = self.plan.archive.as_ref().filter(|_| Path::new(STORAGE).is_dir())?;
        Some(Layout::of(prefix, self.memo.control.system_id()?))
    }

    /// The passwords as they are on the volumes of Secrets now.
    pub(super) fn passwords(&self) -> Passwords {
        let read = |role: &str| {
            let path = self.identity.credentials.join(role).join("password");
            std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
        };
        Passwords { superuser: read("superuser"), replication: read("replication"), application: read("app") }
    }

    fn host(&self, member: &str) -> String {
        names::host(&self.identity.cluster, member, &self.identity.namespace)
    }
}

/// What brings a file of the log into the archive.
fn archive_command(layout: &Layout) -> String {
    let program = Supervisor::of_this_process().shell_command(archive::COMMAND);
    format!("{program} --storage {STORAGE} --archive {} push \"%p\"", quoted(layout.top()))
}

/// Work that ends early when `leader` does not lead any more.
async fn unless_overtaken(
    keeper: &mut super::keeper::Keeper,
    leader: &str,
    work: impl Future<Output = Result<(), ToolError>>,
) -> Result<(), ActError> {
    let overtaken = async {
        while keeper.view().holder == Holder::Other(leader.to_owned()) {
            keeper.changed().await;
        }
    };
    tokio::select! {
        done = work => Ok(done?),
        () = overtaken => Err(ActError::Overtaken),
    }
}
