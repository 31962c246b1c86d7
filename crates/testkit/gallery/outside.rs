//! Keeps something outside of the cluster for each widget, for which a ConfigMap without an owner stands here.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::json;
use windlass::kube::api::{DeleteParams, Patch, PatchParams};
use windlass::prelude::*;

use super::Bug;
use super::widget::{Cx, FINALIZER, Widget, api, apply, delete_by_name, ignore, live, report, text_map};

#[derive(Default)]
pub(crate) struct Outside {
    pub bug: Bug,
    pub handles: Mutex<BTreeSet<String>>,
}

impl Reconcile for Outside {
    type Resource = Widget;

    async fn reconcile(&self, seen: Arc<Widget>, cx: &Cx) -> Result<Action, Error> {
        if seen.metadata.deletion_timestamp.is_some() {
            return self.dismiss(&seen, cx).await;
        }
        let Some(widget) = live(cx, &seen).await? else { return Ok(Action::Await) };
        match self.bug {
            Bug::NoFinalizer => self.make(&widget, cx).await?,
            Bug::FinalizerAfter => {
                self.make(&widget, cx).await?;
                hold(&widget, cx).await?;
            }
            _ => {
                hold(&widget, cx).await?;
                self.make(&widget, cx).await?;
            }
        }
        report(cx, &widget, json!({"phase": "Ready", "ready": true})).await?;
        Ok(Action::Await)
    }
}

fn thing(widget: &Widget) -> String {
    format!("outside-{}", widget.name_any())
}

impl Outside {
    async fn make(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        apply(cx, &text_map(named(thing(widget)), &widget.spec.text)).await?;
        self.handles.lock().expect("nothing panics here").insert(thing(widget));
        Ok(())
    }

    async fn dismiss(&self, seen: &Widget, cx: &Cx) -> Result<Action, Error> {
        let current: Option<Widget> = api(cx).get_opt(&seen.name_any()).await?;
        let is_current = current.as_ref().is_some_and(|current| current.metadata.uid == seen.metadata.uid);
        if !is_current && self.bug != Bug::DismissesByName {
            return Ok(Action::Await);
        }
        let is_held = seen.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER);
        if !is_held && self.bug != Bug::NoFinalizer {
            return Ok(Action::Await);
        }
        if self.bug == Bug::FinalizerBefore {
            release(seen, cx).await?;
        }
        match self.bug {
            Bug::HandleInMemory if !self.handles.lock().expect("nothing panics here").contains(&thing(seen)) => {}
            Bug::GoneIsFatal => {
                api::<ConfigMap>(cx).delete(&thing(seen), &DeleteParams::background()).await?;
            }
            _ => delete_by_name::<ConfigMap>(cx, &thing(seen)).await?,
        }
        if self.bug == Bug::DeletionFallsThrough {
            self.make(seen, cx).await?;
        }
        release(seen, cx).await?;
        Ok(Action::Await)
    }
}

async fn hold(widget: &Widget, cx: &Cx) -> Result<(), Error> {
    set(widget, &[FINALIZER], cx).await
}

async fn release(widget: &Widget, cx: &Cx) -> Result<(), Error> {
    set(widget, &[], cx).await
}

async fn set(widget: &Widget, finalizers: &[&str], cx: &Cx) -> Result<(), Error> {
    let patch = Patch::Merge(json!({"metadata": {"uid": widget.metadata.uid, "finalizers": finalizers}}));
    let patched = api::<Widget>(cx).patch(&widget.name_any(), &PatchParams::default(), &patch).await;
    match patched {
        // Another one of the same name: nothing to hold or let go of.
        Err(windlass::kube::Error::Api(status)) if status.code == 409 && finalizers.is_empty() => Ok(()),
        patched => ignore(404, patched),
    }
}
