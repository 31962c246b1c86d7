//! Carrying out an intent: look, decide, act, until there is nothing to do.

use kube::Resource;
use kube::core::ApiResource;
use windlass_core::{Child, CustomResource, Desired, Event, Operator, Piece, Readiness};

use super::act::{Before, Trouble, act};
use super::note::seen;
use super::parts::{Standing, State, Wanted, decide};
use super::step::{Mark, Owner, Refusal, Step, Unwanted};
use super::switch::Switches;
use super::{Engine, dynamic_api, owner_of};
use crate::journal;
use crate::key::ObjectKey;
use crate::reconcile::Context;

/// A wanted object during a pass.
struct Item<'a> {
    child: Child,
    piece: Option<&'a Piece>,
    /// Whether it was applied in this pass: once is enough.
    applied: bool,
    trouble: Option<Trouble>,
}

/// A wanted object as it is found, and what makes it as wanted.
struct Found {
    wanted: Wanted,
    step: Option<Step>,
}

/// The end of a pass, when all is applied whose turn it is.
struct Ending {
    /// What is there as it is wanted.
    known: Vec<Child>,
    remove: Vec<Unwanted>,
    standing: Standing,
}

impl<'a> Item<'a> {
    fn all<S>(desired: &'a Desired<S>, owner: &Owner) -> Vec<Self> {
        let item = |child: &Child, piece: Option<&'a Piece>| {
            let mark = piece.map(Mark::of);
            let (child, trouble) = match owner.claim(child.clone(), mark.as_ref()) {
                Ok(child) => (child, None),
                Err(refusal) => (child.clone(), Some(refusal.into())),
            };
            Item { child, piece, applied: false, trouble }
        };
        let children = desired.children.iter().map(|child| item(child, None));
        children.chain(desired.parts.iter().map(|piece| item(&piece.child, Some(piece)))).collect()
    }

    /// The object as a step of the decision.
    fn wanted(&self, leans_on: Vec<String>, state: State) -> Wanted {
        Wanted {
            part: self.piece.map(|piece| piece.name.clone()),
            after: self.piece.map(|piece| piece.after.clone()).unwrap_or_default(),
            missing: self.piece.and_then(|piece| piece.missing.clone()),
            leans_on,
            state,
        }
    }
}

/// Whether the resource is there and wanted, by the API itself.
async fn is_current<R: CustomResource>(resource: &R, cx: &Context<R>) -> Result<bool, Trouble> {
    let meta = resource.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    let live = dynamic_api(resource, cx).get_metadata_opt(name).await;
    let live = live.map_err(|source| Trouble::Api { verb: "get", what: format!("{} {name}", R::kind(&())), source })?;
    Ok(live.is_some_and(|live| live.metadata.uid == meta.uid && live.metadata.deletion_timestamp.is_none()))
}

impl<O: Operator> Engine<O> {
    /// Applies what is wanted and whose turn it is, then removes what is no longer wanted. After any trouble nothing is
    /// removed: "not wanted" and "not reached" look the same from here.
    pub(super) async fn carry_out(
        &self,
        resource: &O::Resource,
        desired: &Desired<<O::Resource as CustomResource>::Status>,
        switches: &Switches,
        cx: &Context<O::Resource>,
    ) -> Result<Standing, Trouble> {
        if !self.ordered && desired.parts.iter().any(|part| !part.after.is_empty()) {
            return Err(Refusal::Unordered.into());
        }
        let owner = owner_of(resource, cx.name(), switches);
        let mut items = Item::all(desired, &owner);
        // Each round but the last applies something, and nothing is applied twice.
        for _ in 0..=items.len() {
            let found = self.look(&owner, &mut items);
            let wanted: Vec<Wanted> = found.iter().map(|found| found.wanted.clone()).collect();
            let leftovers = self.leftovers(&owner, &items);
            let decision = decide(&wanted, &leftovers.iter().map(Unwanted::leftover).collect::<Vec<_>>(), owner.force);
            if decision.apply.is_empty() {
                let is_known = |found: &&Found| matches!(found.wanted.state, State::Current(_) | State::Going);
                let known = items.iter().zip(&found).filter(|(_, found)| is_known(found)).map(|(item, _)| &item.child);
                let ending = Ending {
                    known: known.cloned().collect(),
                    remove: decision.remove.iter().map(|index| leftovers[*index].clone()).collect(),
                    standing: decision.standing,
                };
                return match items.into_iter().find_map(|item| item.trouble) {
                    Some(trouble) => Err(trouble),
                    None => self.end(resource, ending, &desired.events, cx).await,
                };
            }
            for index in decision.apply {
                let Some(step) = &found[index].step else { continue };
                let before = self.memory.before(&ObjectKey::of(resource), &owner.reference.uid, &items[index].child);
                // What was made and is gone may have been collected, because the resource is gone: then it would be made
                // and collected for as long as the watch of the resource is behind.
                let is_again = matches!(step, Step::Create(_)) && before != Before::New;
                if is_again && !is_current(resource, cx).await? {
                    return Err(Trouble::Outdated);
                }
                match act(&cx.client(), cx.name(), step, before).await {
                    Ok(event) => self.record(resource, event, cx),
                    Err(trouble) => items[index].trouble = Some(trouble),
                }
                items[index].applied = true;
            }
        }
        unreachable!("a round that applies nothing is the last one")
    }

    /// Removes what nothing needs any more, once all is applied whose turn it is.
    async fn end(
        &self,
        resource: &O::Resource,
        ending: Ending,
        events: &[Event],
        cx: &Context<O::Resource>,
    ) -> Result<Standing, Trouble> {
        for unwanted in ending.remove {
            let event = act(&cx.client(), cx.name(), &Step::Delete(unwanted), Before::Other).await?;
            self.record(resource, event, cx);
        }
        let failures = ending.standing.failed.iter().map(|what| Event::warning("PartFailed", what.clone()));
        let events: Vec<Event> = events.iter().cloned().chain(failures).collect();
        let uid = resource.meta().uid.clone().unwrap_or_default();
        for event in self.memory.passed(&ObjectKey::of(resource), &uid, &ending.known, &events) {
            self.record(resource, Some(event), cx);
        }
        Ok(ending.standing)
    }

    /// Finds out what there is of the wanted objects.
    fn look(&self, owner: &Owner, items: &mut [Item<'_>]) -> Vec<Found> {
        let mut found = Vec::new();
        for item in items {
            match self.find(owner, item) {
                Ok(it) => found.push(it),
                Err(trouble) => {
                    let state = State::Troubled(trouble.to_string());
                    found.push(Found { wanted: item.wanted(Vec::new(), state), step: None });
                    item.trouble.get_or_insert(trouble);
                }
            }
        }
        found
    }

    fn find(&self, owner: &Owner, item: &Item<'_>) -> Result<Found, Trouble> {
        if let Some(trouble) = &item.trouble {
            let state = State::Troubled(trouble.to_string());
            return Ok(Found { wanted: item.wanted(Vec::new(), state), step: None });
        }
        let child = &item.child;
        let undeclared = || Refusal::Undeclared { kind: child.resource.kind.clone() };
        let cache = self.nursery.of(&child.resource).ok_or_else(undeclared)?;
        if let Some(why) = cache.unseen(child.namespace.as_deref()) {
            return Err(Trouble::Unseen(why));
        }
        let live = cache.live(&ObjectKey { namespace: child.namespace.clone(), name: child.name.clone() });
        journal::saw(|| seen(child, live.as_ref()));
        let step = owner.step(child.clone(), live.as_ref())?.filter(|_| !item.applied);
        let state = match (&live, &step) {
            (None, None) => State::Current(Readiness::NotYet("it was made and is gone again".into())),
            (None, Some(_)) => State::Missing,
            (Some(_), Some(_)) => State::Differs,
            (Some(live), None) if !live["metadata"]["deletionTimestamp"].is_null() => State::Going,
            (Some(live), None) => State::Current(item.piece.map_or(Readiness::Ready, |piece| piece.readiness(live))),
        };
        let leans_on = live.as_ref().map(|live| Mark::read(&live["metadata"]["annotations"]).after).unwrap_or_default();
        Ok(Found { wanted: item.wanted(leans_on, state), step })
    }

    /// What this owner has of the declared kinds, but does not want: parts also while they are on their way out.
    fn leftovers(&self, owner: &Owner, wanted: &[Item<'_>]) -> Vec<Unwanted> {
        let is_wanted = |resource: &ApiResource, name: &str, namespace: Option<&str>| {
            wanted.iter().any(|Item { child, .. }| {
                let same_kind = child.resource.group == resource.group && child.resource.kind == resource.kind;
                same_kind && child.name == name && child.namespace.as_deref() == namespace
            })
        };
        let mut all = self.belongings(owner);
        all.retain(|it| !is_wanted(&it.resource, &it.name, it.namespace.as_deref()));
        all
    }

    /// What this owner has of the declared kinds: of what is on its way out, only parts.
    pub(super) fn belongings(&self, owner: &Owner) -> Vec<Unwanted> {
        let mut all = Vec::new();
        for children in self.nursery.iter() {
            let resource = children.resource();
            let owned = children.owned_by(&owner.reference.uid).into_iter().filter(|meta| owner.made(meta));
            all.extend(owned.filter_map(|meta| Unwanted::of(&resource, meta)));
        }
        all.retain(|it| it.going_since.is_none() || it.mark.part.is_some());
        all
    }
}
