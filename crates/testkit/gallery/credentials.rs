//! Makes one credential for each text of a widget, and runs one task.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::json;
use windlass::kube::api::PostParams;
use windlass::prelude::*;
use windlass::runtime::Watch;

use super::Bug;
use super::widget::{Cx, Widget, all, api, apply, delete, live, own, owned, report, text_map, text_secret};

#[derive(Default)]
pub(crate) struct Credentials {
    pub bug: Bug,
    pub ran: Mutex<BTreeSet<String>>,
}

impl Reconcile for Credentials {
    type Resource = Widget;

    async fn reconcile(&self, seen: Arc<Widget>, cx: &Cx) -> Result<Action, Error> {
        let Some(widget) = live(cx, &seen).await? else { return Ok(Action::Await) };
        let note = self.credential(&widget, cx).await?;
        self.task(&widget, cx).await?;
        report(cx, &widget, json!({"phase": "Ready", "note": note, "ready": true})).await?;
        Ok(Action::Await)
    }
}

fn random_name(name: String, widget: &Widget) -> ObjectMeta {
    ObjectMeta { name: None, generate_name: Some(name), ..owned("", widget) }
}

impl Credentials {
    /// Makes the credential, and says what it was made for.
    async fn credential(&self, widget: &Widget, cx: &Cx) -> Result<String, Error> {
        let (name, text) = (widget.name_any(), widget.spec.text.clone());
        let post = PostParams::default();
        match self.bug {
            Bug::DoubleCreate if own(widget).note.is_empty() => {
                let secret = text_secret(random_name(format!("{name}-key-"), widget), "key");
                api::<Secret>(cx).create(&post, &secret).await?;
                Ok("made".to_owned())
            }
            Bug::DoubleCreate => Ok(own(widget).note),
            Bug::RotatedTwice if own(widget).note != text => {
                let secret = text_secret(random_name(format!("{name}-{text}-"), widget), &text);
                api::<Secret>(cx).create(&post, &secret).await?;
                Ok(text)
            }
            Bug::RotatedTwice => Ok(text),
            Bug::CountsItsCache => {
                let cached =
                    cx.follow(Watch::<Secret>::all()).owned_by(&widget.metadata.uid.clone().unwrap_or_default());
                if cached.is_empty() {
                    let secret = text_secret(random_name(format!("{name}-key-"), widget), "key");
                    api::<Secret>(cx).create(&post, &secret).await?;
                }
                Ok("made".to_owned())
            }
            _ => {
                let wanted = format!("{name}-{text}");
                apply(cx, &text_secret(owned(wanted.clone(), widget), &text)).await?;
                for old in all::<Secret>(cx, widget).await?.iter().filter(|old| old.name_any() != wanted) {
                    delete(cx, old).await?;
                }
                Ok(text)
            }
        }
    }

    /// Runs a task once.
    async fn task(&self, widget: &Widget, cx: &Cx) -> Result<(), Error> {
        let uid = widget.metadata.uid.clone().unwrap_or_default();
        match self.bug {
            Bug::TaskRunsAgain => {
                if self.ran.lock().expect("nothing panics here").contains(&uid) {
                    return Ok(());
                }
                let task = text_map(random_name(format!("{}-task-", widget.name_any()), widget), "run");
                api::<ConfigMap>(cx).create(&PostParams::default(), &task).await?;
                self.ran.lock().expect("nothing panics here").insert(uid);
                Ok(())
            }
            _ => apply(cx, &text_map(owned(format!("{}-task", widget.name_any()), widget), "run")).await,
        }
    }
}
