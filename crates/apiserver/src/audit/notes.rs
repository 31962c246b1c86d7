//! What is said about a request on its way, for its line in the audit log.

use std::{cell::RefCell, collections::BTreeMap};

use serde_json::Value;

use crate::object::Object;

tokio::task_local! {
    static NOTES: RefCell<Notes>;
}

/// What was said about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// What admission and authorization have to say.
    pub(super) annotations: BTreeMap<String, String>,
    /// The name of the object in the body.
    pub(super) name: String,
}

/// Does something and gives what was said meanwhile.
pub(crate) async fn noted<T>(work: impl Future<Output = T>) -> (T, Notes) {
    let work = async {
        let done = work.await;
        (done, NOTES.with(RefCell::take))
    };
    NOTES.scope(RefCell::default(), work).await
}

/// Says something about the request that is being answered.
pub(crate) fn annotate(key: &str, value: &str) {
    note(|notes| drop(notes.annotations.insert(key.to_owned(), value.to_owned())));
}

/// Says which object the body of the request has.
pub(crate) fn name(object: &Value) {
    note(|notes| object.name().clone_into(&mut notes.name));
}

/// Nothing is noted where nobody asked.
fn note(write: impl FnOnce(&mut Notes)) {
    let _ = NOTES.try_with(|notes| write(&mut notes.borrow_mut()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_said_is_kept_with_its_request() {
        annotate("nobody", "hears");
        let (done, notes) = noted(async {
            annotate("a", "b");
            tokio::task::yield_now().await;
            name(&serde_json::json!({"metadata": {"name": "x"}}));
            5
        })
        .await;
        assert_eq!(done, 5);
        assert_eq!(notes.annotations, BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        assert_eq!(notes.name, "x");
    }
}
