//! What the port for machines answers to a question about histories.

use serde::{Deserialize, Serialize};

use super::record::{Run, Subject};
use crate::percent;

/// How many histories are in one answer.
pub(crate) const HISTORIES_MAX: usize = 20;

/// Which histories are meant; what is not said is any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The API group.
    pub group: Option<String>,
    /// The kind, in any case.
    pub kind: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The name.
    pub name: Option<String>,
}

/// The answer of one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Page {
    /// Who answers.
    pub replica: Replica,
    /// The histories, those looked at last first.
    pub objects: Vec<History>,
    /// How many more there are.
    pub more: usize,
}

/// Who answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Replica {
    /// The operator.
    pub operator: String,
    /// Whether this replica works, now: it leads, or there is no need to, or it has shards.
    pub works: bool,
    /// What it serves.
    pub serves: Vec<Served>,
    /// What is wrong with it, as readiness says.
    pub trouble: Vec<String>,
}

/// A controller of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Served {
    /// Its name.
    pub controller: String,
    /// The API group of its objects.
    pub group: String,
    /// The kind of its objects.
    pub kind: String,
}

/// The last runs of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// The object.
    pub object: Subject,
    /// The run that is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<Run>,
    /// The runs that have ended, newest first.
    pub runs: Vec<Run>,
}

impl Question {
    /// Reads `kind=…&namespace=…&name=…&group=…`.
    ///
    /// # Errors
    /// Names the word that is not understood: an answer to another question would mislead.
    pub fn parse(query: &str) -> Result<Self, String> {
        let mut question = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = Some(percent::decode(value));
            match key {
                "group" => question.group = value,
                "kind" => question.kind = value,
                "namespace" => question.namespace = value,
                "name" => question.name = value,
                other => return Err(format!("{other:?} is none of group, kind, namespace and name")),
            }
        }
        Ok(question)
    }

    /// Whether an object is meant.
    pub fn fits(&self, subject: &Subject) -> bool {
        let is = |asked: &Option<String>, has: &str| asked.as_deref().is_none_or(|asked| asked == has);
        is(&self.group, &subject.group)
            && self.kind.as_deref().is_none_or(|kind| kind.eq_ignore_ascii_case(&subject.kind))
            && is(&self.namespace, subject.namespace.as_deref().unwrap_or_default())
            && is(&self.name, &subject.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: bool) {
        let subject = Subject {
            group: "g.io".into(),
            kind: "Cache".into(),
            namespace: Some("a".into()),
            name: "c".into(),
            cluster: None,
        };
        let question = Question::parse(query).unwrap();
        assert_eq!(question.fits(&subject), expected, "{query}");
    }

    #[test]
    fn questions_narrow_what_is_told() {
        check("", true);
        check("kind=cache&name=c", true);
        check("kind=Cache&namespace=a&name=c&group=g.io", true);
        check("namespace=b", false);
        check("name=%63", true);
        check("name=", false);
        assert!(Question::parse("nam=c").unwrap_err().contains("\"nam\""));
    }
}
