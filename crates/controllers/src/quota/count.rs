//! Counting what a quota limits, from what the API server has now.

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::ResourceExt;
use kube::api::ListParams;
use windlass_schema::quantity::Quantity;
use windlass_schema::quota::{Amounts, Counting, Quota, sum};

use crate::actor::{Actor, is_gone};
use crate::kinds::Kind;

/// How many objects are read at once.
const PAGE: u32 = 500;

/// What is used of everything that the quota limits; what no kind counts under is left out.
pub(super) async fn count(
    actor: &Actor,
    kinds: &[Kind],
    object: &ResourceQuota,
    quota: &Quota,
) -> Result<Amounts, kube::Error> {
    let namespace = object.namespace().unwrap_or_default();
    let mut used = Amounts::new();
    for kind in kinds.iter().filter(|kind| kind.namespaced && kind.is_collectable()) {
        let counting = Counting::of(&kind.resource.group, &kind.resource.plural);
        let limited: Amounts = quota
            .spec_hard
            .keys()
            .filter(|name| counting.has(name))
            .map(|name| (name.clone(), Quantity::default()))
            .collect();
        if limited.is_empty() {
            continue;
        }
        let found = match count_kind(actor, kind, &namespace, quota).await {
            // The kind is gone, and its objects with it.
            Err(error) if is_gone(&error) => Amounts::new(),
            found => found?,
        };
        let found = found.into_iter().filter(|(name, _)| limited.contains_key(name)).collect();
        used = sum(used, &sum(limited, &found));
    }
    Ok(used)
}

async fn count_kind(actor: &Actor, kind: &Kind, namespace: &str, quota: &Quota) -> Result<Amounts, kube::Error> {
    let counting = Counting::of(&kind.resource.group, &kind.resource.plural);
    if matches!(counting, Counting::Objects { .. }) {
        if !quota.scopes.is_empty() {
            return Ok(Amounts::new());
        }
        let number = number(actor, kind, namespace).await?;
        let one = counting.usage(&serde_json::Value::Null, actor.clock.now());
        return Ok(one.into_keys().map(|name| (name, Quantity::units(number))).collect());
    }
    let api = kind.api(&actor.client, Some(namespace));
    let mut used = Amounts::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&params).await?;
        for object in page.items {
            let Ok(object) = serde_json::to_value(object) else { continue };
            if quota.has_in_scope(counting, &object) {
                used = sum(used, &counting.usage(&object, actor.clock.now()));
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(used),
        }
    }
}

/// How many objects there are, without reading more than one of them.
async fn number(actor: &Actor, kind: &Kind, namespace: &str) -> Result<usize, kube::Error> {
    let api = kind.api(&actor.client, Some(namespace));
    let page = api.list_metadata(&ListParams::default().limit(1)).await?;
    let rest = page.metadata.remaining_item_count.unwrap_or_default();
    Ok(page.items.len() + usize::try_from(rest).unwrap_or_default())
}
