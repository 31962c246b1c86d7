//! What a member does while all is well: slots, roles and the rule of a primary, and changed settings.

use std::collections::BTreeSet;
use std::time::Duration;

use super::act::{ActError, Outcome};
use super::member::Member;
use super::observed::{Data, Observed, Server};
use super::quorum::{self, Step, Told};
use super::sql;
use crate::wire::{Memory, Quorum};

/// A standby that was away for longer is not asked for acknowledgements any more, if there are enough others.
const AWAY_MAX: Duration = Duration::from_secs(20);
/// How many steps the rule of acknowledgement is taken at once.
const STEPS_MAX: usize = 4;

impl Member {
    /// Keeps a primary as it should be.
    pub(super) async fn maintain_primary(&mut self, seen: &Observed) -> Result<(), ActError> {
        self.remember_identity(seen).await?;
        if self.write_settings()? {
            self.postgres.reload();
        }
        self.maintain_rule(seen).await?;
        let members: BTreeSet<String> = seen.others().cloned().collect();
        if self.memo.slots.as_ref() != Some(&members) {
            let is_done = sql::keep_slots(&members).await?;
            self.memo.slots = is_done.then_some(members);
        }
        let passwords = self.passwords();
        if self.memo.provisioned.as_ref() != Some(&passwords) {
            sql::provision(&passwords).await?;
            self.memo.provisioned = Some(passwords);
        }
        Ok(())
    }

    /// From the first data on, no other is ever made.
    async fn remember_identity(&mut self, seen: &Observed) -> Result<(), ActError> {
        let Data::Present(control) = &seen.data else { return Ok(()) };
        if seen.memory.system_id.is_none() {
            let memory = Memory { system_id: Some(control.system_id.clone()), ..seen.memory.clone() };
            self.keeper.hold(memory).await?;
        }
        Ok(())
    }

    async fn maintain_rule(&mut self, seen: &Observed) -> Result<(), ActError> {
        let is_confirmed = self.is_confirmed().await?;
        let now = self.clock.elapsed();
        let following = (self.memo.standbys.iter()).filter(|(_, at)| now.saturating_sub(**at) < AWAY_MAX);
        let following: BTreeSet<String> = following.map(|(member, _)| member.clone()).collect();
        let wanted = quorum::wanted(&self.plan, &self.identity.member, &following);
        for _ in 0..STEPS_MAX {
            let memory = self.keeper.view().memory;
            let told = Told { rule: self.memo.rule.as_ref(), is_confirmed };
            match quorum::step(wanted.as_ref(), &told, memory.rules.as_deref()) {
                Step::Nothing => return Ok(()),
                Step::Remember(rules) => self.keeper.hold(Memory { rules: Some(rules), ..memory }).await?,
                Step::Enforce(rule) => {
                    let Server::Primary(vitals) = &seen.server else { return Ok(()) };
                    self.memo.rule = rule;
                    self.memo.unconfirmed = Some(vitals.position.lsn);
                    self.write_settings()?;
                    self.postgres.reload();
                    return Ok(()); // The processes that acknowledge read it when they come to it.
                }
            }
        }
        Ok(())
    }

    /// Whether the rule that was told last is in force, and those that it asks have what was acknowledged before it was.
    async fn is_confirmed(&mut self) -> Result<bool, ActError> {
        let Some(lsn) = self.memo.unconfirmed else { return Ok(true) };
        let has_all = |name: &&String| self.memo.flushed.get(*name).is_some_and(|flushed| *flushed >= lsn);
        let is_behind = |rule: &Quorum| rule.of.iter().filter(has_all).count() < rule.need as usize;
        if self.memo.rule.as_ref().is_some_and(is_behind)
            || !sql::enforced(&quorum::setting(self.memo.rule.as_ref())).await?
        {
            return Ok(false);
        }
        self.memo.unconfirmed = None;
        Ok(true)
    }

    /// Keeps a standby as it should be.
    pub(super) async fn maintain_standby(&mut self) -> Result<Outcome, ActError> {
        if self.write_settings()? {
            self.postgres.reload();
        }
        // Slots of a time as primary would hold back the log for ever.
        if self.memo.slots.is_none() {
            let is_done = sql::keep_slots(&BTreeSet::new()).await?;
            self.memo.slots = is_done.then(BTreeSet::new);
        }
        let is_streaming = self.memo.streamed > self.memo.started;
        Ok(if is_streaming { Outcome::Settled } else { Outcome::Done })
    }
}
