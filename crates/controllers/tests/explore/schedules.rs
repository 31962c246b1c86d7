//! CronJobs.

use std::time::Duration;

use k8s_openapi::api::batch::v1::CronJob;
use serde_json::json;
use windlass_testkit::Controller;
use windlass_testkit::explore::{Exploration, User};

use super::{of, survives};

/// Every minute; after two of them it is suspended. Of the Jobs that are done, so many are kept.
async fn ticks(user: User, kept: u32) {
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "one"}]}});
    user.create::<CronJob>(json!({"metadata": {"name": "tick"}, "spec": {"schedule": "* * * * *",
        "successfulJobsHistoryLimit": kept, "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": {"template": pod}}}}))
        .await;
    // Long enough for two minutes to begin, whenever it was made.
    tokio::time::sleep(Duration::from_secs(150)).await;
    user.patch::<CronJob>("tick", json!({"spec": {"suspend": true}})).await;
    user.settle().await;
    user.delete::<CronJob>("tick").await;
}

/// What was done is history; with another clock, and with a user who does not wait, other minutes come.
fn schedules() -> Exploration {
    of([Controller::CronJob]).without(["fresh", "delete", "delete-while-down", "jump", "back", "user"])
}

#[test]
fn a_cron_job_makes_its_jobs_whatever_happens() {
    survives(&schedules(), |user| ticks(user, 1));
}

#[test]
fn a_minute_that_left_nothing_is_not_served_again() {
    survives(&schedules(), |user| ticks(user, 0));
}
