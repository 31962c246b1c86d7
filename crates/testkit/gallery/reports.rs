//! Keeps one map for a widget with a licence, and says in the status how that went.

use std::sync::Arc;

use serde_json::json;
use windlass::kube::api::PostParams;
use windlass::prelude::*;

use super::Bug;
use super::widget::{Cx, Widget, api, apply, delete, is_owned, live, own, owned, report, text_map};

/// The most members that a widget can have.
const SIZE_MAX: u32 = 5;

#[derive(Default)]
pub(crate) struct Reports {
    pub bug: Bug,
}

impl Reconcile for Reports {
    type Resource = Widget;

    async fn reconcile(&self, seen: Arc<Widget>, cx: &Cx) -> Result<Action, Error> {
        let Some(widget) = live(cx, &seen).await? else { return Ok(Action::Await) };
        let phase = own(&widget).phase;
        let is_stuck = match self.bug {
            Bug::GivesUp => phase == "Failed",
            Bug::BlockedForEver => phase == "Blocked",
            _ => false,
        };
        if is_stuck {
            return Ok(Action::Await);
        }
        if self.bug == Bug::ReadyFirst {
            report(cx, &widget, json!({"phase": "Ready", "ready": true})).await?;
        }
        if let Err(error) = self.work(&widget, cx).await {
            let phase = if self.bug == Bug::GivesUp { "Failed" } else { "Retrying" };
            report(cx, &widget, json!({"phase": phase, "note": "something failed", "ready": false})).await?;
            return Err(error);
        }
        self.tell(&widget, cx).await?;
        Ok(Action::Await)
    }
}

impl Reports {
    async fn work(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        apply(cx, &text_map(owned(widget.name_any(), widget), &widget.spec.text)).await?;
        let licence = match (self.bug, api::<Secret>(cx).get_opt("licence").await) {
            (Bug::ErrorIsAbsence, Err(_)) => None,
            (_, found) => found?,
        };
        let name = format!("{}-extra", widget.name_any());
        match licence {
            Some(_) => apply(cx, &text_map(owned(name, widget), "extra")).await,
            None => match api::<ConfigMap>(cx).get_opt(&name).await? {
                Some(found) if is_owned(&found, widget) => delete(cx, &found).await,
                _ => Ok(()),
            },
        }
    }

    async fn tell(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        if widget.spec.size > SIZE_MAX && self.bug == Bug::SilentFailure {
            return Ok(());
        }
        if widget.spec.size > SIZE_MAX {
            let status = json!({"phase": "Blocked", "note": "", "members": widget.spec.size, "ready": false});
            return report(cx, widget, status).await;
        }
        match self.bug {
            Bug::NoteStays => report(cx, widget, json!({"phase": "Ready", "ready": true})).await,
            Bug::WholeObjectPut if !own(widget).ready || own(widget).members != widget.spec.size => {
                let mut whole: Widget = widget.clone();
                // The newest version, with the contents of an older one.
                let newest: Widget = api(cx).get(&widget.name_any()).await?;
                whole.metadata.resource_version = newest.metadata.resource_version;
                whole.metadata.managed_fields = None;
                whole.metadata.annotations.get_or_insert_default().insert("gallery/served".into(), "yes".into());
                api::<Widget>(cx).replace(&widget.name_any(), &PostParams::default(), &whole).await?;
                report(cx, widget, json!({"phase": "Ready", "note": "", "members": widget.spec.size, "ready": true}))
                    .await
            }
            _ => {
                report(cx, widget, json!({"phase": "Ready", "note": "", "members": widget.spec.size, "ready": true}))
                    .await
            }
        }
    }
}
