//! What a `PostgresCluster` may not ask for, and why.

use windlass::backup::Location;
use windlass::prelude::*;

use crate::kind::PostgresCluster;
use crate::parameters::objection;

/// Judges a new or changed cluster.
pub(crate) fn judge(cluster: &PostgresCluster, request: &Request<PostgresCluster>) -> Verdict {
    let spec = &cluster.spec;
    let any = spec.synchronous.as_ref().map_or(0, |synchronous| synchronous.any);
    let standbys = spec.instances.saturating_sub(1);
    let mut verdict = Verdict::allow().invalid_if(
        any > standbys,
        "spec.synchronous.any",
        format!("{any} standbys cannot have a commit where there are {standbys}: ask for at most {standbys}, or for more instances"),
    );
    for (name, value) in &spec.parameters {
        if let Some(why) = objection(name, value, any > 0) {
            verdict = verdict.invalid_if(true, &format!("spec.parameters[{name}]"), format!("{name} {why}"));
        }
    }
    if let Some(old) = &request.old {
        let is_other = old.spec.storage != spec.storage;
        verdict = verdict.invalid_if(is_other, "spec.storage", "volumes cannot be changed yet: set it to what it was");
        let major = |cluster: &PostgresCluster| major(cluster.spec.image.as_deref().unwrap_or(DEFAULT_IMAGE));
        let (before, after) = (major(old), major(cluster));
        verdict = verdict.invalid_if(
            before.is_some() && after.is_some() && before != after,
            "spec.image",
            "data of one major version cannot be read by another: make a new cluster and copy the data",
        );
    }
    let image = spec.image.as_deref().unwrap_or(DEFAULT_IMAGE);
    verdict
        .warn_if(major(image).is_none(), format!("{image} does not say its version: name one, such as {DEFAULT_IMAGE}"))
        .warn_if(
            is_open(spec.archive.as_ref()),
            "spec.archive.s3.endpoint is http: what is archived can be read on its way",
        )
        .warn_if(any > 0 && any == standbys, "every standby has to be there: writes wait as soon as one is away")
}

/// Whether what goes to a location can be read by whoever is between.
fn is_open(location: Option<&Location>) -> bool {
    location.and_then(|location| location.s3.as_ref()).is_some_and(|s3| s3.endpoint.starts_with("http://"))
}

/// The image of a cluster that names none.
pub(crate) const DEFAULT_IMAGE: &str = "postgres:15";

/// The major version that the tag of an image says.
fn major(image: &str) -> Option<u32> {
    let (_, name) = image.rsplit_once('/').unwrap_or(("", image));
    let (_, tag) = name.split('@').next()?.split_once(':')?;
    let digits: String = tag.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster(spec: Value) -> PostgresCluster {
        let mut whole = json!({"instances": 3, "leaseSeconds": 6});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        PostgresCluster::new("db", serde_json::from_value(whole).unwrap())
    }

    fn verdict(spec: Value, old: Option<Value>) -> Verdict {
        let request = Request {
            operation: Operation::Create,
            old: old.map(cluster),
            user: Default::default(),
            dry_run: false,
            namespace: None,
            name: "db".into(),
        };
        judge(&cluster(spec), &request)
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let rows = [
            (json!({}), None, true),
            (json!({"synchronous": {"any": 2}}), None, true),
            (json!({"synchronous": {"any": 3}}), None, false),
            (json!({"instances": 1, "synchronous": {"any": 1}}), None, false),
            (json!({"parameters": {"work_mem": "8MB"}}), None, true),
            (json!({"parameters": {"fsync": "off"}}), None, false),
            (json!({"storage": {"size": "2Gi"}}), Some(json!({})), false),
            (json!({"image": "postgres:16"}), Some(json!({})), false),
            (json!({"image": "r:5000/postgres:15.18"}), Some(json!({})), true),
        ];
        for (spec, old, is_allowed) in rows {
            assert_eq!(verdict(spec.clone(), old).is_allowed(), is_allowed, "{spec}");
        }
    }

    #[test]
    fn what_is_odd_is_warned_of() {
        for (spec, warnings) in
            [(json!({}), 0), (json!({"image": "postgres"}), 1), (json!({"synchronous": {"any": 2}}), 1)]
        {
            assert_eq!(verdict(spec.clone(), None).warnings().len(), warnings, "{spec}");
        }
    }
}
