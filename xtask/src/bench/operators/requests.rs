//! What a contender asked of the API server, by the server's own log.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who a contender is.
pub(super) const USER: &str = "bench-contender";
/// Nothing was asked for so long: the contender is at rest.
const REST: Duration = Duration::from_secs(3);
const REST_TIME_MAX: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(250);

/// The log of an API server.
pub(super) struct Requests {
    log: PathBuf,
}

/// How many requests there were.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) by_verb: BTreeMap<String, usize>,
    /// Writes that are not events.
    pub(super) writes: usize,
    pub(super) events: usize,
}

impl Requests {
    /// The flags with which the server logs what contenders ask.
    pub(super) fn flags(folder: &Path) -> Result<(Self, Vec<String>)> {
        let (policy, log) = (folder.join("audit-policy.yaml"), folder.join("audit.log"));
        fs::write(
            &policy,
            format!(
                "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n\
                 rules:\n- level: Metadata\n  users: [{USER}]\n- level: None\n"
            ),
        )?;
        let flags =
            vec![format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log.display())];
        Ok((Self { log }, flags))
    }

    /// All requests so far.
    pub(super) fn count(&self) -> Result<Counts> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let (mut counts, mut seen) = (Counts::default(), HashSet::new());
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).context("a line of the log is JSON")?;
            // A watch is logged when it begins and when it ends.
            if seen.insert(event["auditID"].as_str().unwrap_or_default().to_owned()) {
                counts.add(&event);
            }
        }
        Ok(counts)
    }

    /// Waits until nothing more is asked.
    pub(super) fn rest(&self) -> Result<()> {
        let length = || fs::metadata(&self.log).map_or(0, |file| file.len());
        let (begin, mut last) = (Instant::now(), (length(), Instant::now()));
        while last.1.elapsed() < REST {
            if begin.elapsed() > REST_TIME_MAX {
                bail!("the contender does not come to rest");
            }
            std::thread::sleep(POLL);
            if length() != last.0 {
                last = (length(), Instant::now());
            }
        }
        Ok(())
    }
}

impl Counts {
    fn add(&mut self, event: &Value) {
        let verb = event["verb"].as_str().unwrap_or_default();
        *self.by_verb.entry(verb.to_owned()).or_default() += 1;
        let is_write = ["create", "update", "patch", "delete"].contains(&verb);
        let resource = event["objectRef"]["resource"].as_str().unwrap_or_default();
        match (is_write, resource) {
            (true, "events") => self.events += 1,
            // Questions about rights, and who leads.
            (true, "selfsubjectaccessreviews" | "selfsubjectrulesreviews" | "leases") | (false, _) => {}
            (true, _) => self.writes += 1,
        }
    }

    /// What came after `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        let by_verb = self
            .by_verb
            .iter()
            .map(|(verb, count)| (verb.clone(), count - before.by_verb.get(verb).copied().unwrap_or_default()));
        Self {
            by_verb: by_verb.filter(|(_, count)| *count > 0).collect(),
            writes: self.writes - before.writes,
            events: self.events - before.events,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_counted_apart() {
        let mut counts = Counts::default();
        for (verb, resource) in [("create", "events"), ("patch", "configmaps"), ("get", "configmaps"), ("watch", "x")] {
            counts.add(&json!({"verb": verb, "objectRef": {"resource": resource}}));
        }
        assert_eq!((counts.writes, counts.events, counts.by_verb.len()), (1, 1, 4));
    }
}
