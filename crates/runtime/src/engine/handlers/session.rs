//! What this process remembers of the resources that it serves. Losing it costs nothing that matters.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use super::context::Desk;
use super::decide::Memo;
use super::progress::Progress;
use crate::key::ObjectKey;

/// The sessions of all resources of an operator.
#[derive(Debug)]
pub(super) struct Sessions<S>(Mutex<HashMap<ObjectKey, Session<S>>>);

impl<S> Default for Sessions<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// From when this process first saw a resource to its end.
#[derive(Debug)]
pub(super) struct Session<S> {
    uid: String,
    pub(super) memo: Memo,
    /// Why handlers failed last, by id.
    pub(super) words: BTreeMap<String, String>,
    /// Progress that could not be written, and the annotation that it follows.
    pub(super) unwritten: Option<(String, Progress)>,
    pub(super) desk: Arc<Desk<S>>,
}

impl<S: Clone> Clone for Session<S> {
    fn clone(&self) -> Self {
        Self {
            uid: self.uid.clone(),
            memo: self.memo.clone(),
            words: self.words.clone(),
            unwritten: self.unwritten.clone(),
            desk: self.desk.clone(),
        }
    }
}

impl<S: Clone> Sessions<S> {
    /// The session of a resource; it begins with the first look, and `existed` says whether the resource was known before.
    pub(super) fn open(&self, key: &ObjectKey, uid: &str, existed: bool) -> Session<S> {
        let mut all = self.lock();
        if let Some(session) = all.get(key).filter(|session| session.uid == uid) {
            return session.clone();
        }
        let session = Session {
            uid: uid.to_owned(),
            memo: Memo { existed, ..Memo::default() },
            words: BTreeMap::new(),
            unwritten: None,
            desk: Arc::default(),
        };
        all.insert(key.clone(), session.clone());
        session
    }

    /// Keeps what a run learned. Only one run at a time is made for a resource.
    pub(super) fn keep(&self, key: &ObjectKey, session: &Session<S>) {
        self.lock().insert(key.clone(), session.clone());
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Session<S>>> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }
}
