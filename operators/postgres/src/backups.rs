//! How a cluster is backed up: a Pod copies the data of a standby, or of the primary if there is none, into the cluster's archive.

use serde_json::json;
use windlass::backup::{BackupOrder, BackupStatus, Backups, Obstacle, Progress, RestoreOrder};
use windlass::condition;
use windlass::k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, EnvVar, EnvVarSource, SecretKeySelector, Volume, VolumeMount,
};
use windlass::prelude::*;

use crate::archive::{self, ARCHIVE, Layout, ORIGIN, RECOVERY, STORAGE};
use crate::instance::SOCKETS;
use crate::kind::{MemberStatus, PostgresCluster, PostgresClusterSpec, PostgresClusterStatus, Recovery};
use crate::names;
use crate::operator::PostgresOperator;
use crate::operator::workload::{image, security};
use crate::supervisor::Supervisor;

/// The only way to take one as yet.
const BASE_BACKUP: &str = "basebackup";
/// A Pod that is told to end has nothing to write down.
const TERMINATION_GRACE_SECONDS: i64 = 5;

/// Where a backup is restored that is thrown away afterwards, and made if it cannot be made in its storage.
const SCRATCH: &str = "/scratch";

/// Backs up PostgreSQL clusters.
pub struct PostgresBackups {
    supervisor: Supervisor,
}

impl Default for PostgresBackups {
    fn default() -> Self {
        Self { supervisor: Supervisor::of_this_process() }
    }
}

impl Backups for PostgresBackups {
    type Target = PostgresCluster;

    const METHODS: &'static [&'static str] = &[BASE_BACKUP];

    fn carried_out(&self, cluster: &PostgresCluster) -> PostgresCluster {
        PostgresOperator::default().carried_out(cluster)
    }

    fn take(&self, _: &BackupOrder, cluster: &PostgresCluster) -> Result<PodSpec, Obstacle> {
        let name = cluster.name_any();
        let Some(location) = &cluster.spec.archive else {
            return Err(Obstacle::new("NoArchive", format!("spec.archive of {name} does not say where backups go")));
        };
        let status = cluster.status.as_ref().map(|status| status.own.clone()).unwrap_or_default();
        let (source, layout) =
            source(&status).and_then(|source| Some((source, layout(&status)?))).ok_or_else(|| {
                Obstacle::new("NoSource", format!("no member of {name} serves and archives: its conditions say why"))
            })?;
        let mut pod = self.pod(self.container(cluster, source, &layout));
        pod.volumes.get_or_insert_default().push(scratch("scratch"));
        location.attach(&mut pod, ARCHIVE);
        Ok(pod)
    }

    fn verify(&self, id: &str, backup: &BackupStatus) -> Option<PodSpec> {
        let spec: PostgresClusterSpec = serde_json::from_value(backup.configuration.clone()?).ok()?;
        let (layout, location) = (Layout::around(backup.location.as_ref()?)?, spec.archive.clone()?);
        let words = ["--storage", RECOVERY, "--archive", layout.top(), "verify", id, SCRATCH];
        let container = Container {
            name: "verify".into(),
            image: Some(image(&PostgresCluster::new("", spec.clone()))),
            command: Some(self.supervisor.command(archive::COMMAND)),
            args: Some(words.map(str::to_owned).to_vec()),
            resources: spec.resources,
            volume_mounts: Some(vec![mount("scratch", SCRATCH), mount("sockets", SOCKETS), self.supervisor.mount()]),
            ..Container::default()
        };
        let mut pod = self.pod(container);
        pod.volumes.get_or_insert_default().extend([scratch("scratch"), scratch("sockets")]);
        location.attach(&mut pod, ORIGIN);
        Some(pod)
    }

    fn restored(&self, order: &RestoreOrder) -> Result<PostgresCluster, String> {
        // Of what is long gone only the data is known: one server, and what else people want of it, they say later.
        let given = order.configuration.clone().unwrap_or_else(|| json!({"instances": 1, "leaseSeconds": 6}));
        let spec: PostgresClusterSpec =
            serde_json::from_value(given).map_err(|error| format!("the spec of the backup cannot be read: {error}"))?;
        let Some(location) = order.location.clone().or_else(|| spec.archive.clone()) else {
            return Err("nothing says where the backup is".into());
        };
        // What was restored from a backup is restored from another one now. The archive stays the same: each has its own in it.
        let archive = spec.archive.clone().or_else(|| Some(location.clone()));
        let recovery = Recovery { location, path: order.path.clone(), time: order.time.map(|time| time.to_string()) };
        Ok(PostgresCluster::new(&order.name, PostgresClusterSpec { archive, recovery: Some(recovery), ..spec }))
    }

    fn progress(&self, cluster: &PostgresCluster) -> Progress {
        let Some(status) = &cluster.status else { return Progress::Working("it was made".into()) };
        let is = |type_: &str| condition::find(&status.conditions, type_).filter(|it| it.status == "True");
        if let Some(stalled) = is("Stalled").filter(|it| it.reason == "RestoreFailed") {
            return Progress::Failed(stalled.message.clone());
        }
        // Writes are taken; that all standbys are there is another matter.
        match (is("Available"), &status.own.restored) {
            (Some(_), Some(restored)) => {
                Progress::Done { backup: Some(restored.backup.clone()), recovered_to: restored.recovered_to.clone() }
            }
            _ => {
                let ready = condition::find(&status.conditions, "Ready");
                Progress::Working(ready.map(|it| it.message.clone()).unwrap_or_default())
            }
        }
    }
}

impl PostgresBackups {
    /// A Pod that works on a backup.
    fn pod(&self, container: Container) -> PodSpec {
        PodSpec {
            containers: vec![container],
            volumes: Some(vec![self.supervisor.volume()]),
            security_context: Some(security()),
            automount_service_account_token: Some(false),
            termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
            ..PodSpec::default()
        }
    }

    fn container(&self, cluster: &PostgresCluster, source: &MemberStatus, layout: &Layout) -> Container {
        let (name, namespace) = (cluster.name_any(), cluster.namespace().unwrap_or_default());
        let status = cluster.status.as_ref().map(|status| status.own.clone()).unwrap_or_default();
        let host = names::host(&name, &source.name, &namespace);
        let words = [
            ("--storage", STORAGE.to_owned()),
            ("--archive", layout.top().to_owned()),
            ("backup", String::new()),
            ("--host", host),
            ("--member", source.name.clone()),
            ("--system-id", status.system_id.unwrap_or_default()),
            ("--server-version", source.version.clone().unwrap_or_default()),
            ("--scratch", SCRATCH.to_owned()),
        ];
        let words = words.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
        let password =
            SecretKeySelector { name: names::secret(&name, "replication"), key: "password".into(), optional: None };
        Container {
            name: "backup".into(),
            image: Some(image(cluster)),
            command: Some(self.supervisor.command(archive::COMMAND)),
            args: Some(words.filter(|word| !word.is_empty()).collect()),
            env: Some(vec![EnvVar {
                name: "PGPASSWORD".into(),
                value: None,
                value_from: Some(EnvVarSource { secret_key_ref: Some(password), ..EnvVarSource::default() }),
            }]),
            volume_mounts: Some(vec![mount("scratch", SCRATCH), self.supervisor.mount()]),
            ..Container::default()
        }
    }
}

/// The member to copy: the standby that is closest to the primary, so that the primary has nothing to do for it.
fn source(status: &PostgresClusterStatus) -> Option<&MemberStatus> {
    let is = |member: &&MemberStatus, role: &str| member.ready && member.role.as_deref() == Some(role);
    let standbys = status.members.iter().filter(|it| is(it, names::REPLICA) && it.state == "Streaming");
    let closest = standbys.min_by_key(|it| (it.lag_bytes.unwrap_or(u64::MAX), it.name.clone()));
    closest.or_else(|| status.members.iter().find(|it| is(it, names::PRIMARY)))
}

/// A folder of a Pod's own, which goes with it.
fn scratch(name: &str) -> Volume {
    Volume { name: name.into(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() }
}

fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount { name: name.into(), mount_path: path.into(), ..VolumeMount::default() }
}

/// The archive that the primary writes its log into.
fn layout(status: &PostgresClusterStatus) -> Option<Layout> {
    let path = &status.archive.as_ref()?.path;
    // What follows of the log has to be beside it, and of the same data.
    path.ends_with(&format!("/{}", status.system_id.as_ref()?)).then(|| Layout::at(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::ArchiveStatus;

    fn member(name: &str, role: &str, lag: Option<u64>, is_ready: bool) -> MemberStatus {
        MemberStatus {
            name: name.into(),
            role: Some(role.into()),
            ready: is_ready,
            state: if role == "replica" { "Streaming" } else { "Primary" }.into(),
            lag_bytes: lag,
            ..MemberStatus::default()
        }
    }

    #[test]
    fn the_closest_standby_is_copied_or_else_the_primary() {
        let check = |members: &[MemberStatus], expected: Option<&str>| {
            let status = PostgresClusterStatus { members: members.to_vec(), ..PostgresClusterStatus::default() };
            assert_eq!(source(&status).map(|it| it.name.as_str()), expected);
        };
        let primary = || member("a", "primary", None, true);
        check(&[], None);
        check(&[primary()], Some("a"));
        check(&[primary(), member("b", "replica", Some(9), true), member("c", "replica", Some(2), true)], Some("c"));
        check(&[primary(), member("b", "replica", None, true), member("c", "replica", Some(2), true)], Some("c"));
        check(&[primary(), member("b", "replica", Some(0), false)], Some("a"));
        let copying = MemberStatus { state: "Cloning".into(), ..member("b", "replica", Some(0), true) };
        check(&[primary(), copying], Some("a"));
        check(&[member("a", "primary", None, false)], None);
    }

    #[test]
    fn the_archive_has_to_be_that_of_the_data() {
        let check = |path: Option<&str>, is_found: bool| {
            let archive = path.map(|path| ArchiveStatus { path: path.into(), ..ArchiveStatus::default() });
            let status = PostgresClusterStatus { archive, system_id: Some("7".into()), ..Default::default() };
            assert_eq!(layout(&status).is_some(), is_found, "{path:?}");
        };
        check(None, false);
        check(Some("shop/db/u/7"), true);
        check(Some("shop/db/u/77"), false);
    }
}
