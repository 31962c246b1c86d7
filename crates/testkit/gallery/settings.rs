//! Keeps the settings of a widget in a ConfigMap of its name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use windlass::kube::Error as ApiError;
use windlass::kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use windlass::prelude::*;

use super::Bug;
use super::widget::{Cx, Widget, api, apply, delete, ignore, is_owned, live, map, own, owned, report, text_map};

#[derive(Default)]
pub(crate) struct Settings {
    pub bug: Bug,
    pub done: Mutex<BTreeMap<String, String>>,
}

impl Reconcile for Settings {
    type Resource = Widget;

    async fn reconcile(&self, seen: Arc<Widget>, cx: &Cx) -> Result<Action, Error> {
        let Some(widget) = live(cx, &seen).await? else { return Ok(Action::Await) };
        if self.bug == Bug::PanicOnValue {
            widget.spec.text.split(':').nth(1).expect("an image has a tag");
        }
        if self.is_done(&widget) {
            return Ok(Action::Await);
        }
        if let Some(wait) = self.time_left(&widget, cx) {
            return Ok(Action::Recheck(wait));
        }
        if let Err(error) = self.write(&widget, cx).await {
            return self.judge(error);
        }
        self.remember(&widget);
        self.clean(&widget, cx).await?;
        self.tell(&widget, cx).await?;
        Ok(Action::Await)
    }
}

/// Whether the status speaks of the present wish.
fn is_served(widget: &Widget) -> bool {
    let observed = widget.status.as_ref().and_then(|status| status.observed_generation);
    observed == widget.metadata.generation
}

impl Settings {
    fn is_done(&self, widget: &Widget) -> bool {
        let done = self.done.lock().expect("nothing panics here");
        match self.bug {
            Bug::DoneInMemory | Bug::DoneByName => done.get(&self.key(widget)) == Some(&widget.spec.text),
            _ => false,
        }
    }

    /// How long it is until the time that was written down last: never long, if clocks were right.
    fn time_left(&self, widget: &Widget, cx: &Cx) -> Option<Duration> {
        let last: jiff::Timestamp = own(widget).note.parse().ok()?;
        Duration::try_from(last.duration_since(cx.clock().now())).ok().filter(|left| !left.is_zero())
    }

    fn key(&self, widget: &Widget) -> String {
        let name = if self.bug == Bug::DoneByName { &widget.metadata.name } else { &widget.metadata.uid };
        name.clone().unwrap_or_default()
    }

    fn remember(&self, widget: &Widget) {
        self.done.lock().expect("nothing panics here").insert(self.key(widget), widget.spec.text.clone());
    }

    fn settings(&self, widget: &Widget, cx: &Cx) -> ConfigMap {
        let mut data: Vec<(String, String)> = widget.spec.options.clone().into_iter().collect();
        data.push(("text".to_owned(), widget.spec.text.clone()));
        if self.bug == Bug::RandomOrder {
            let keys: Vec<&str> = data.iter().map(|(key, _)| key.as_str()).collect();
            let from = usize::try_from(cx.clock().random() % 3).unwrap_or_default().min(keys.len());
            data.push((
                "keys".to_owned(),
                keys[from..].iter().chain(&keys[..from]).copied().collect::<Vec<_>>().join(","),
            ));
        }
        let mut metadata = owned(widget.name_any(), widget);
        match (&self.bug, &mut metadata.owner_references) {
            (Bug::NoOwner, owners) => *owners = None,
            (Bug::WrongOwner, Some(owners)) => owners[0].uid = "00000000-0000-4000-8000-000000000000".to_owned(),
            _ => {}
        }
        map(metadata, data)
    }

    async fn write(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        let wanted = self.settings(widget, cx);
        let (maps, name) = (api::<ConfigMap>(cx), widget.name_any());
        let post = PostParams::default();
        match self.bug {
            Bug::LostUpdate => match maps.get_opt(&name).await? {
                Some(found) if found.data == wanted.data => Ok(()),
                Some(_) => Ok(maps.replace(&name, &post, &wanted).await.map(drop)?),
                None => Ok(maps.create(&post, &wanted).await.map(drop)?),
            },
            Bug::KeyNeverRemoved => match maps.get_opt(&name).await? {
                Some(_) => {
                    let patch = Patch::Merge(json!({"data": wanted.data}));
                    Ok(maps.patch(&name, &PatchParams::default(), &patch).await.map(drop)?)
                }
                None => Ok(maps.create(&post, &wanted).await.map(drop)?),
            },
            Bug::NeverUpdated => ignore(409, maps.create(&post, &wanted).await),
            Bug::ExistsIsFatal if own(widget).note.is_empty() => Ok(maps.create(&post, &wanted).await.map(drop)?),
            Bug::ConflictSwallowed => match maps.get_opt(&name).await? {
                Some(mut found) if found.data != wanted.data => {
                    found.data = wanted.data;
                    Ok(maps.replace(&name, &post, &found).await.map(drop)?)
                }
                Some(_) => Ok(()),
                None => Ok(maps.create(&post, &wanted).await.map(drop)?),
            },
            Bug::TakesUsers => apply(cx, &wanted).await,
            _ => match maps.get_opt(&name).await? {
                Some(found) if !self.is_ours(&found, widget) => {
                    Err(Error::Invalid(format!("{name} is somebody else's")))
                }
                _ => apply(cx, &wanted).await,
            },
        }
    }

    fn is_ours(&self, found: &ConfigMap, widget: &Widget) -> bool {
        matches!(self.bug, Bug::NoOwner | Bug::WrongOwner) || is_owned(found, widget)
    }

    /// Removes the settings for TLS of widgets without it.
    async fn clean(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        let name = format!("{}-tls", widget.name_any());
        if self.bug == Bug::IgnoresField {
            return Ok(());
        }
        if widget.spec.tls {
            return apply(cx, &text_map(owned(name, widget), "tls")).await;
        }
        if self.bug == Bug::DeletesByLabel {
            let by_label = ListParams::default().labels("part=tls");
            api::<ConfigMap>(cx).delete_collection(&DeleteParams::background(), &by_label).await?;
            return Ok(());
        }
        match api::<ConfigMap>(cx).get_opt(&name).await? {
            Some(found) if is_owned(&found, widget) => delete(cx, &found).await,
            _ => Ok(()),
        }
    }

    fn judge(&self, error: Error) -> Result<Action, Error> {
        let code = match &error {
            Error::Api(ApiError::Api(status)) => status.code,
            _ => 0,
        };
        match (&self.bug, code) {
            (Bug::ErrorSwallowed, 500) | (Bug::ConflictSwallowed, 409) | (Bug::TooManyIsFinal, 429) => {
                Ok(Action::Await)
            }
            (Bug::TimeoutIsSuccess, 0) if matches!(error, Error::Api(_)) => Ok(Action::Await),
            (Bug::ExistsIsFatal, 409) => Err(Error::Invalid(error.to_string())),
            _ => Err(error),
        }
    }

    /// Counts the generations that were served.
    async fn count(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        if is_served(widget) {
            return Ok(());
        }
        let name = format!("{}-count", widget.name_any());
        let found = api::<ConfigMap>(cx).get_opt(&name).await?.and_then(|found| found.data).unwrap_or_default();
        let count: u32 = found.get("text").and_then(|text| text.parse().ok()).unwrap_or_default();
        apply(cx, &text_map(owned(name, widget), &(count + 1).to_string())).await
    }

    async fn tell(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        if self.bug == Bug::CountsUp {
            self.count(widget, cx).await?;
        }
        let note = match self.bug {
            Bug::TimeInStatus => cx.clock().now().as_nanosecond().to_string() + &cx.clock().random().to_string(),
            Bug::ExistsIsFatal => "made".to_owned(),
            // The time of the first run for each wish.
            Bug::TrustsTheClock if is_served(widget) => own(widget).note,
            Bug::TrustsTheClock => cx.clock().now().to_string(),
            _ => String::new(),
        };
        report(cx, widget, json!({"phase": "Ready", "note": note, "ready": true})).await?;
        if self.bug == Bug::WritesAlways {
            let number = cx.clock().random().to_string();
            let patch = Patch::Merge(json!({"metadata": {"annotations": {"gallery/run": number}}}));
            ignore(404, api::<Widget>(cx).patch(&widget.name_any(), &PatchParams::default(), &patch).await)?;
        }
        if self.bug == Bug::BusyLoop {
            while api::<ConfigMap>(cx).get_opt("will-never-come").await?.is_none() {}
        }
        Ok(())
    }
}
