//! Has a backup that is there restored into something that is thrown away, and writes down what came of it.

use k8s_openapi::api::batch::v1::Job;
use kube::{Api, ResourceExt};
use windlass_core::{Event, Statement, Status, condition};
use windlass_runtime::{Action, Context, Error};

use super::capability::Backups;
use super::control::{WATCH, make, news, pods_of, subject, tell};
use super::decide::{Check, JobSeen, check};
use super::job;
use super::kind::{Backup, BackupStatus, Phase};
use super::record::VerificationRecord;
use super::report::report;

/// Whether a backup was restored to see that it can be.
const VERIFIED: &str = "Verified";

/// The annotation whose every new value has a backup restored once more, to see that it still can be.
const VERIFY: &str = "windlass.dev/verify";

/// What asks for it: a person, or else the spec.
fn request(backup: &Backup) -> Option<String> {
    backup.annotations().get(VERIFY).cloned().or_else(|| backup.spec.verify.then(String::new))
}

/// Looks, lets `decide` decide, and acts.
pub(super) async fn verify<B: Backups>(knowledge: &B, backup: &Backup, cx: &Context<Backup>) -> Result<Action, Error> {
    let status = backup.status.clone().unwrap_or_default();
    let Some(request) = request(backup) else { return Ok(Action::Await) };
    if status.own.verification.as_ref() == Some(&request) {
        return Ok(Action::Await);
    }
    let (id, name) = (job::id(backup), job::verification_id(backup, &request));
    let jobs: Api<Job> = Api::namespaced(cx.client(), &backup.namespace().unwrap_or_default());
    let seen = match jobs.get_opt(&name).await? {
        Some(job) => {
            let pods = pods_of(&name, backup, cx).await?;
            job::seen(&job, &pods, |words| VerificationRecord::of_pod(words, &id))
        }
        None => JobSeen::None,
    };
    let pod = knowledge.verify(&id, &status.own);
    let mut status = status;
    let answered = status.own.verification.replace(request.clone());
    match check(Some(&request), answered.as_deref(), &seen, pod.is_some()) {
        Check::Rest => return Ok(Action::Await),
        Check::Begin => {
            let Some(pod) = pod else { return Ok(Action::Await) };
            make(&job::verification(backup, &request, pod), cx).await?;
            return Ok(Action::Recheck(WATCH));
        }
        Check::Watch => return Ok(Action::Recheck(WATCH)),
        Check::Confirm(record) => confirm(backup, status, &record, cx).await?,
        Check::Refute(why) => refute(backup, status, why, cx).await?,
    }
    Ok(Action::Await)
}

async fn confirm(
    backup: &Backup,
    mut status: Status<BackupStatus>,
    record: &VerificationRecord,
    cx: &Context<Backup>,
) -> Result<(), Error> {
    status.own.verified_at = Some(record.verified_at.to_string());
    status.own.recovery_seconds = Some(record.recovery_seconds);
    let message = format!("it was restored, and answered after {:.1} s", record.recovery_seconds);
    let statement = Statement::new(VERIFIED, true, "Restored", message.clone());
    condition::set(&mut status.conditions, statement, backup.metadata.generation, cx.clock().now());
    report(backup, status, news(Phase::Succeeded, "Succeeded", message.clone()), cx).await?;
    cx.metrics().backups().verified(&subject(backup), Some(record.verified_at.as_second()));
    tell(backup, Event::normal("BackupVerified", message), cx);
    Ok(())
}

/// It is there, and cannot be restored: somebody has to know.
async fn refute(
    backup: &Backup,
    mut status: Status<BackupStatus>,
    why: String,
    cx: &Context<Backup>,
) -> Result<(), Error> {
    status.own.error = Some(why.clone());
    let statement = Statement::new(VERIFIED, false, "VerificationFailed", why.clone());
    condition::set(&mut status.conditions, statement, backup.metadata.generation, cx.clock().now());
    report(backup, status, news(Phase::Succeeded, "Succeeded", "it was taken".to_owned()), cx).await?;
    cx.metrics().backups().verified(&subject(backup), None);
    tell(
        backup,
        Event::warning("BackupVerificationFailed", format!("{} cannot be restored: {why}", backup.name_any())),
        cx,
    );
    Ok(())
}
