//! Keeps as many members as a widget wants, each with a map and a volume, for which a Secret stands here, and a key for TLS.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::json;
use windlass::kube::api::PostParams;
use windlass::prelude::*;

use super::Bug;
use super::widget::{
    Cx, Widget, all, api, apply, delete, delete_by_name, live, own, owned, report, text_map, text_secret,
};

#[derive(Default)]
pub(crate) struct Members {
    pub bug: Bug,
    pub seen: Mutex<BTreeSet<String>>,
}

impl Reconcile for Members {
    type Resource = Widget;

    async fn reconcile(&self, seen: Arc<Widget>, cx: &Cx) -> Result<Action, Error> {
        let Some(now) = live(cx, &seen).await? else { return Ok(Action::Await) };
        // A view of the past is what a bug takes for the present.
        let widget = if matches!(self.bug, Bug::ScalesByView | Bug::DisablesByView) { (*seen).clone() } else { now };
        if self.bug == Bug::StuckPhase {
            if own(&widget).phase == "Scaling" {
                return Ok(Action::Await);
            }
            if own(&widget).members != widget.spec.size {
                report(cx, &widget, json!({"phase": "Scaling", "ready": false})).await?;
            }
        }
        self.grow(&widget, cx).await?;
        self.shrink(&widget, cx).await?;
        self.secure(&widget, cx).await?;
        let status = json!({"phase": "Ready", "members": widget.spec.size, "ready": true});
        report(cx, &widget, status).await?;
        Ok(Action::Await)
    }
}

fn member(widget: &Widget, number: u32) -> String {
    format!("{}-{number}", widget.name_any())
}

fn volume(widget: &Widget, number: u32) -> String {
    format!("{}-data-{number}", widget.name_any())
}

fn number(name: &str) -> u32 {
    name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

impl Members {
    async fn grow(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        let (size, text) = (widget.spec.size, &widget.spec.text);
        match self.bug {
            Bug::GuardedByFirst => return self.grow_guarded(widget, cx).await,
            Bug::ByCount => return self.grow_by_count(widget, cx).await,
            Bug::EdgeTriggered => return self.grow_by_edges(widget, cx).await,
            _ => {}
        }
        for index in 0..size {
            apply(cx, &text_map(owned(member(widget, index), widget), text)).await?;
            apply(cx, &text_secret(owned(volume(widget, index), widget), text)).await?;
        }
        Ok(())
    }

    /// Writes the second object only if the first is not as wanted.
    async fn grow_guarded(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        for index in 0..widget.spec.size {
            let wanted = text_map(owned(member(widget, index), widget), &widget.spec.text);
            let found = api::<ConfigMap>(cx).get_opt(&member(widget, index)).await?;
            if found.is_none_or(|found| found.data != wanted.data) {
                apply(cx, &wanted).await?;
                apply(cx, &text_secret(owned(volume(widget, index), widget), &widget.spec.text)).await?;
            }
        }
        Ok(())
    }

    /// Makes as many as are missing, whichever are missing.
    async fn grow_by_count(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        let count = u32::try_from(all::<ConfigMap>(cx, widget).await?.len()).unwrap_or(u32::MAX);
        for index in count..widget.spec.size {
            let map = text_map(owned(member(widget, index), widget), "member");
            api::<ConfigMap>(cx).create(&PostParams::default(), &map).await?;
            apply(cx, &text_secret(owned(volume(widget, index), widget), "member")).await?;
        }
        Ok(())
    }

    /// Makes members of which it has seen the end, and those beyond what the status says.
    async fn grow_by_edges(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        for index in 0..widget.spec.size {
            let name = member(widget, index);
            let is_there = api::<ConfigMap>(cx).get_opt(&name).await?.is_some();
            let was_there = self.seen.lock().expect("nothing panics here").contains(&name);
            if !is_there && (was_there || index >= own(widget).members) {
                apply(cx, &text_map(owned(name.clone(), widget), "member")).await?;
            }
            apply(cx, &text_secret(owned(volume(widget, index), widget), "member")).await?;
            if is_there {
                self.seen.lock().expect("nothing panics here").insert(name);
            }
        }
        Ok(())
    }

    async fn shrink(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        let spare = if self.bug == Bug::LeaksLast { 1 } else { 0 };
        let is_extra = |name: &str| number(name) >= widget.spec.size + spare;
        for map in all::<ConfigMap>(cx, widget).await? {
            if is_extra(&map.name_any()) {
                delete(cx, &map).await?;
            }
        }
        for secret in all::<Secret>(cx, widget).await? {
            let name = secret.name_any();
            if !name.contains("-data-") || !is_extra(&name) {
                continue;
            }
            match self.bug {
                Bug::ScalesByView => delete_by_name::<Secret>(cx, &name).await?,
                Bug::VolumesStay => {}
                _ => delete(cx, &secret).await?,
            }
        }
        Ok(())
    }

    async fn secure(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        let name = format!("{}-tls", widget.name_any());
        let found = api::<Secret>(cx).get_opt(&name).await?;
        match (widget.spec.tls, found) {
            (true, _) if self.bug == Bug::OnlyWhenParentIsNew && own(widget).phase == "Ready" => Ok(()),
            (true, _) => apply(cx, &text_secret(owned(name, widget), "key")).await,
            (false, Some(_)) if self.bug == Bug::FeatureStays => Ok(()),
            (false, Some(_)) if self.bug == Bug::DisablesByView => delete_by_name::<Secret>(cx, &name).await,
            (false, Some(found)) => delete(cx, &found).await,
            (false, None) => Ok(()),
        }
    }
}
