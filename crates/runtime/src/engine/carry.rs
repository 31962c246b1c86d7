//! Carrying out an intent: look, decide, act, until there is nothing to do.

use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::ApiResource;
use windlass_core::{Child, CustomResource, Desired, Event, Operator, Piece, Readiness};

use super::act::{Before, Trouble, act};
use super::kinds::Live;
use super::memory::{Left, Wish};
use super::note::{glimpsed, seen};
use super::parts::{Standing, State, Wanted, decide};
use super::step::{Mark, Owner, Refusal, Step, Unwanted};
use super::switch::Switches;
use super::{Engine, dynamic_api, owner_of};
use crate::cache::StateId;
use crate::journal;
use crate::key::ObjectKey;
use crate::reconcile::Context;

/// How many objects of one resource are applied at the same time.
const APPLIES_AT_ONCE: usize = 4;

/// A wanted object during a pass.
struct Item<'a> {
    child: Child,
    wish: Wish,
    piece: Option<&'a Piece>,
    /// Whether it was applied in this pass: once is enough.
    applied: bool,
    /// The state that this left it in, if that is as wished.
    left_in: Option<StateId>,
    trouble: Option<Trouble>,
}

/// A wanted object as it is found, and what makes it as wanted.
struct Found {
    wanted: Wanted,
    step: Option<Step>,
    /// A state that is as wanted: the one that it was found in, or that it was left in.
    state: Option<StateId>,
}

/// The end of a pass, when all is applied whose turn it is.
struct Ending {
    /// What is there as it is wanted.
    known: Box<[Left]>,
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
            Item { wish: Wish::of(&child), child, piece, applied: false, left_in: None, trouble }
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
pub(super) async fn is_current<R: CustomResource>(resource: &R, cx: &Context<R>) -> Result<bool, Trouble> {
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
            let unclaimed = found.iter().filter_map(|found| match &found.step {
                Some(Step::Adopt(child, _)) => Some(child),
                _ => None,
            });
            let unclaimed: Vec<&Child> = unclaimed.collect();
            if !unclaimed.is_empty() {
                return Err(self.take_over(resource, &owner, &unclaimed, cx).await);
            }
            let wanted: Vec<Wanted> = found.iter().map(|found| found.wanted.clone()).collect();
            let leftovers = self.leftovers(&owner, &items, &desired.kept);
            let decision = decide(&wanted, &leftovers.iter().map(Unwanted::leftover).collect::<Vec<_>>(), owner.force);
            if decision.apply.is_empty() {
                let is_known = |found: &&Found| matches!(found.wanted.state, State::Current(_) | State::Going);
                let known = items.iter().zip(&found).filter(|(_, found)| is_known(found));
                let standing = Standing { has_applied: items.iter().any(|item| item.applied), ..decision.standing };
                let ending = Ending {
                    known: known.map(|(item, found)| Left { wish: item.wish, found: found.state }).collect(),
                    remove: decision.remove.iter().map(|index| leftovers[*index].clone()).collect(),
                    standing,
                };
                return match items.into_iter().find_map(|item| item.trouble) {
                    Some(trouble) => Err(trouble),
                    None => self.end(resource, ending, &desired.events, cx).await,
                };
            }
            self.apply(resource, (&found, &mut items, decision.apply), &owner, cx).await?;
        }
        unreachable!("a round that applies nothing is the last one")
    }

    /// Applies the objects whose turn it is, some at the same time: none of them waits for another.
    async fn apply(
        &self,
        resource: &O::Resource,
        (found, items, due): (&[Found], &mut [Item<'_>], Vec<usize>),
        owner: &Owner,
        cx: &Context<O::Resource>,
    ) -> Result<(), Trouble> {
        let before = |index: usize| self.memory.before(&owner.key(), &owner.reference.uid, items[index].wish);
        let steps = due.into_iter().filter_map(|index| Some((index, found[index].step.as_ref()?, before(index))));
        let steps: Vec<(usize, &Step, Before)> = steps.collect();
        // What was made and is gone may have been collected, because the resource is gone: then it would be made and
        // collected for as long as the watch of the resource is behind.
        let is_again =
            |(_, step, before): &(usize, &Step, Before)| matches!(step, Step::Create(_)) && *before != Before::New;
        // And what was let go would be collected with a resource that is gone.
        let is_fatal = self.releases.is_some() && !steps.is_empty();
        if (is_fatal || steps.iter().any(is_again)) && !is_current(resource, cx).await? {
            return Err(Trouble::Outdated);
        }
        let client = cx.client();
        for some in steps.chunks(APPLIES_AT_ONCE) {
            let acts = some.iter().map(|(_, step, before)| act(&client, cx.name(), step, *before));
            for ((index, ..), done) in some.iter().zip(join_all(acts).await) {
                let item = &mut items[*index];
                item.applied = true;
                match done {
                    Ok(done) => {
                        item.left_in = done.left_in;
                        self.tell_of(resource, done.deed, cx);
                    }
                    Err(trouble) => item.trouble = Some(trouble),
                }
            }
        }
        Ok(())
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
            let done = act(&cx.client(), cx.name(), &Step::Delete(unwanted), Before::Other).await?;
            self.tell_of(resource, done.deed, cx);
        }
        let failures = ending.standing.failed.iter().map(|what| Event::warning("PartFailed", what.clone()));
        let events: Vec<Event> = events.iter().cloned().chain(failures).collect();
        let uid = resource.meta().uid.clone().unwrap_or_default();
        for event in self.memory.passed(&ObjectKey::of(resource), &uid, ending.known, &events) {
            self.record(resource, event, cx);
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
                    found.push(Found { wanted: item.wanted(Vec::new(), state), step: None, state: None });
                    item.trouble.get_or_insert(trouble);
                }
            }
        }
        found
    }

    fn find(&self, owner: &Owner, item: &Item<'_>) -> Result<Found, Trouble> {
        if let Some(trouble) = &item.trouble {
            let state = State::Troubled(trouble.to_string());
            return Ok(Found { wanted: item.wanted(Vec::new(), state), step: None, state: None });
        }
        let child = &item.child;
        let undeclared = || Refusal::Undeclared { kind: child.resource.kind.clone() };
        let cache = self.nursery.of(&child.resource).ok_or_else(undeclared)?;
        if let Some(why) = cache.unseen(child.namespace.as_deref()) {
            return Err(Trouble::Unseen(why));
        }
        let key = ObjectKey { namespace: child.namespace.clone(), name: child.name.clone() };
        // What is known to be as wanted and has not changed is neither compared nor read, unless somebody asks for its readiness.
        let known = cache.glance(&key).filter(|it| !owner.force && self.is_as_wished(owner, item, it.state));
        if let Some(glance) = known.as_ref().filter(|_| item.piece.is_none()) {
            journal::saw(|| glimpsed(child, glance));
            let wanted = item.wanted(Vec::new(), State::Current(Readiness::Ready));
            return Ok(Found { wanted, step: None, state: Some(glance.state) });
        }
        let live = cache.live(&key);
        let meta = live.as_ref().map(Live::meta);
        journal::saw(|| seen(child, meta));
        // Once is enough, so what was applied is not compared again.
        let is_settled = item.applied || known.is_some();
        let is_read = !is_settled || item.piece.is_some();
        let value = live.as_ref().filter(|_| is_read).map(|live| live.value(&owner.manager));
        let step = if is_settled { None } else { owner.step(child.clone(), value.as_ref())? };
        let is_going = meta.is_some_and(|meta| meta.deletion_timestamp.is_some());
        let state = match (&meta, &step) {
            (None, None) => State::Current(Readiness::NotYet("it was made and is gone again".into())),
            (None, Some(_)) => State::Missing,
            (Some(_), Some(_)) => State::Differs,
            (Some(_), None) if is_going => State::Going,
            (Some(_), None) => {
                let judged = item.piece.zip(value.as_ref()).map(|(piece, live)| piece.readiness(live));
                State::Current(judged.unwrap_or(Readiness::Ready))
            }
        };
        let leans_on = meta.map(|meta| Mark::read(meta.annotations.as_ref()).after).unwrap_or_default();
        let is_as_wished = step.is_none() && !item.applied && !is_going;
        let found = meta.filter(|_| is_as_wished).map(state_of).or(item.left_in);
        Ok(Found { wanted: item.wanted(leans_on, state), step, state: found })
    }

    fn is_as_wished(&self, owner: &Owner, item: &Item<'_>, state: StateId) -> bool {
        self.memory.is_as_wished(&owner.key(), &owner.reference.uid, item.wish, state)
    }

    /// What this owner has of the declared kinds, but does not want: parts also while they are on their way out.
    fn leftovers(&self, owner: &Owner, wanted: &[Item<'_>], kept: &[(ApiResource, String)]) -> Vec<Unwanted> {
        let same_kind = |one: &ApiResource, other: &ApiResource| one.group == other.group && one.kind == other.kind;
        self.belongings(owner, |resource, key| {
            let is_wanted = |Item { child, .. }: &Item<'_>| {
                let same_place = child.name == key.name && child.namespace == key.namespace;
                same_place && same_kind(&child.resource, resource)
            };
            let is_kept = |(kind, name): &(ApiResource, String)| *name == key.name && same_kind(kind, resource);
            wanted.iter().any(is_wanted) || kept.iter().any(is_kept)
        })
    }

    /// What this owner has of the declared kinds, but for what `is_kept`: of what is on its way out, only parts.
    pub(super) fn belongings(
        &self,
        owner: &Owner,
        is_kept: impl Fn(&ApiResource, &ObjectKey) -> bool,
    ) -> Vec<Unwanted> {
        let mut all = Vec::new();
        for children in self.nursery.iter() {
            let resource = children.resource();
            let keys = children.keys_owned_by(&owner.reference.uid);
            // Only what may have to go is read.
            for live in keys.iter().filter(|key| !is_kept(resource, key)).filter_map(|key| children.live(key)) {
                if owner.made(live.meta()) {
                    all.extend(Unwanted::of(resource, live.meta().clone()));
                }
            }
        }
        all.retain(|it| it.going_since.is_none() || it.mark.part.is_some());
        all
    }
}

fn state_of(meta: &ObjectMeta) -> StateId {
    StateId::of(meta.uid.as_deref(), meta.resource_version.as_deref())
}
