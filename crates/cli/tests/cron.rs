//! A CronJob by the machine's own clock: `cargo xtask soak cron` prints how late its programs start.

mod support;

use serde_json::Value;
use support::{TestCluster, eventually};

/// The latest that a program may start after its minute.
const LATE_MS_MAX: i64 = 10_000;
const MINUTE_MS: i64 = 60_000;

const CRON: &str = "apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: '* * * * *'
  successfulJobsHistoryLimit: 100
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: host, command: [/bin/date, '+%s%3N']}]
";

/// The Job of a round, when it is complete.
fn job(cluster: &TestCluster, round: usize) -> Result<String, String> {
    let jobs = cluster.list(&["jobs"]);
    let name = |job: &Value| job["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut done: Vec<String> = jobs.iter().filter(|job| job["status"]["succeeded"] == 1).map(name).collect();
    done.sort();
    done.get(round).cloned().ok_or_else(|| format!("{} of {} Jobs are done", done.len(), jobs.len()))
}

#[test]
#[ignore = "takes minutes: `cargo xtask soak cron`"]
fn programs_start_on_the_minute() {
    let rounds = std::env::var("WINDLASS_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let cluster = TestCluster::up(&["--no-operators"]);
    let file = cluster.dir.path().join("cron.yaml");
    std::fs::write(&file, CRON).expect("the folder is there");
    cluster.kubectl(&["apply", "-f", file.to_str().expect("a plain path")]);
    let mut worst = 0;
    for round in 0..rounds {
        let name = eventually("the Job of the minute", || job(&cluster, round));
        let minute: i64 =
            name.rsplit('-').next().and_then(|text| text.parse().ok()).expect("its minute is in its name");
        let started: i64 = cluster.kubectl(&["logs", &format!("job/{name}")]).trim().parse().expect("a time");
        let late = started - minute * MINUTE_MS;
        println!("{name}: its program started {late} ms after the minute");
        assert!((0..LATE_MS_MAX).contains(&late), "{late} ms");
        worst = worst.max(late);
    }
    println!("{rounds} minutes, none missed, at most {worst} ms late");
}
