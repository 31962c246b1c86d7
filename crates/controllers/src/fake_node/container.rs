//! One container that seems to run: how its status goes on with time.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::rule::{End, Rule};

/// The wait before the second restart in a row; it doubles from there.
const BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const BACKOFF_MAX: SignedDuration = SignedDuration::from_mins(5);
/// A run of this length makes earlier ends forgotten.
const STEADY: SignedDuration = SignedDuration::from_mins(10);
/// The exit code of a program that was told to stop.
const STOPPED: i32 = 143;

/// What restarts a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    Always,
    OnFailure,
    Never,
}

impl Restart {
    /// The policy of that name.
    pub(super) fn of(policy: Option<&str>) -> Self {
        match policy {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }

    fn applies(self, exit_code: i32) -> bool {
        self == Self::Always || self == Self::OnFailure && exit_code != 0
    }
}

/// A container at a moment: its status, and when it will be another one.
pub(super) struct Moment {
    pub(super) status: ContainerStatus,
    pub(super) next: Option<Timestamp>,
}

/// Follows the container from what is known of it up to `now`. `begin` is when its Pod began.
pub(super) fn follow(
    container: &Container,
    known: Option<&ContainerStatus>,
    (rule, restart): (&Rule, Restart),
    begin: Timestamp,
    now: Timestamp,
) -> Moment {
    let image = container.image.clone().unwrap_or_default();
    let mut status = ContainerStatus {
        name: container.name.clone(),
        image_id: format!("fake://{image}"),
        image,
        ..known.cloned().unwrap_or_default()
    };
    let next = loop {
        match advance(&mut status, rule, restart, begin, now) {
            Step::Again => {}
            Step::Rest(next) => break next,
        }
    };
    let running = status.state.as_ref().and_then(|state| state.running.as_ref());
    let since = running.and_then(|running| running.started_at.as_ref()).map(|time| time.0);
    let ready_at = since.zip(rule.ready).map(|(since, wait)| later(since, wait));
    status.ready = ready_at.is_some_and(|at| at <= now);
    status.started = Some(since.is_some());
    Moment { status, next: [next, ready_at.filter(|at| *at > now)].into_iter().flatten().min() }
}

/// The status of the container after it was told to stop.
pub(super) fn stop(status: &ContainerStatus, now: Timestamp) -> ContainerStatus {
    let state = status.state.as_ref();
    if state.is_some_and(|state| state.terminated.is_some()) {
        return status.clone();
    }
    let since = state.and_then(|state| state.running.as_ref()).and_then(|running| running.started_at.clone());
    let exit = terminated(STOPPED, since.map_or(now, |time| time.0), now);
    ContainerStatus { state: Some(exit), ready: false, started: Some(false), ..status.clone() }
}

/// How the container ended, if it has and stays so.
pub(super) fn exit_code(status: &ContainerStatus) -> Option<i32> {
    status.state.as_ref()?.terminated.as_ref().map(|end| end.exit_code)
}

enum Step {
    /// The state changed; look again.
    Again,
    /// Nothing changes before that moment.
    Rest(Option<Timestamp>),
}

fn advance(status: &mut ContainerStatus, rule: &Rule, restart: Restart, begin: Timestamp, now: Timestamp) -> Step {
    let state = status.state.clone().unwrap_or_default();
    if let Some(running) = state.running {
        let since = running.started_at.map_or(begin, |time| time.0);
        let Some(End { after, exit_code }) = rule.end else { return Step::Rest(None) };
        let end = later(since, after);
        if end > now {
            return Step::Rest(Some(end));
        }
        status.state = Some(terminated(exit_code, since, end));
        return Step::Again;
    }
    let over = state.terminated.or_else(|| status.last_state.as_ref().and_then(|last| last.terminated.clone()));
    let Some(over) = over else { return first_start(status, rule, begin, now) };
    if !restart.applies(over.exit_code) {
        return Step::Rest(None);
    }
    let at = restart_at(&over, status.restart_count, begin);
    status.last_state = Some(ContainerState { terminated: Some(over), ..ContainerState::default() });
    if at > now {
        status.state = Some(waiting("CrashLoopBackOff"));
        return Step::Rest(Some(at));
    }
    status.restart_count += 1;
    status.state = Some(running(at));
    Step::Again
}

fn first_start(status: &mut ContainerStatus, rule: &Rule, begin: Timestamp, now: Timestamp) -> Step {
    if let Some(reason) = &rule.waiting {
        status.state = Some(waiting(reason));
        return Step::Rest(None);
    }
    let at = later(begin, rule.start);
    if at > now {
        status.state = Some(waiting("ContainerCreating"));
        return Step::Rest(Some(at));
    }
    status.state = Some(running(at));
    Step::Again
}

fn restart_at(over: &ContainerStateTerminated, restarts: i32, begin: Timestamp) -> Timestamp {
    let time = |time: &Option<Time>| time.as_ref().map_or(begin, |time| time.0);
    let (started, finished) = (time(&over.started_at), time(&over.finished_at));
    let Ok(doubled @ 1..) = u32::try_from(restarts) else { return finished };
    if finished.duration_since(started) >= STEADY {
        return finished;
    }
    let factor = 1i32.checked_shl((doubled - 1).min(16)).unwrap_or(i32::MAX);
    later(finished, BACKOFF.checked_mul(factor).unwrap_or(BACKOFF_MAX).min(BACKOFF_MAX))
}

fn running(since: Timestamp) -> ContainerState {
    ContainerState {
        running: Some(ContainerStateRunning { started_at: Some(Time(since)) }),
        ..ContainerState::default()
    }
}

fn waiting(reason: &str) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), ..ContainerStateWaiting::default() };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

pub(super) fn terminated(exit_code: i32, started: Timestamp, finished: Timestamp) -> ContainerState {
    let over = ContainerStateTerminated {
        exit_code,
        reason: Some(if exit_code == 0 { "Completed" } else { "Error" }.to_owned()),
        started_at: Some(Time(started)),
        finished_at: Some(Time(finished)),
        ..ContainerStateTerminated::default()
    };
    ContainerState { terminated: Some(over), ..ContainerState::default() }
}

fn later(moment: Timestamp, wait: SignedDuration) -> Timestamp {
    moment.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The states of a container at those seconds, with its restarts.
    fn course(rule: &Rule, restart: Restart, seconds: &[i64]) -> Vec<String> {
        let begin = Timestamp::UNIX_EPOCH;
        let mut known: Option<ContainerStatus> = None;
        let tell = |second: &i64| {
            let now = begin + SignedDuration::from_secs(*second);
            let moment = follow(&Container::default(), known.as_ref(), (rule, restart), begin, now);
            let state = moment.status.state.clone().unwrap_or_default();
            let word = match (&state.waiting, &state.running, &state.terminated) {
                (Some(waiting), _, _) => waiting.reason.clone().unwrap_or_default(),
                (_, Some(_), _) if moment.status.ready => "ready".to_owned(),
                (_, Some(_), _) => "running".to_owned(),
                (_, _, Some(over)) => format!("exit {}", over.exit_code),
                _ => "nothing".to_owned(),
            };
            let next = moment.next.map_or("-".to_owned(), |next| next.duration_since(begin).as_secs().to_string());
            let told = format!("{word}/{}/{next}", moment.status.restart_count);
            known = Some(moment.status);
            told
        };
        seconds.iter().map(tell).collect()
    }

    fn ends(after: i64, exit_code: i32) -> Rule {
        let end = End { after: SignedDuration::from_secs(after), exit_code };
        Rule { end: Some(end), ready: Some(SignedDuration::ZERO), ..Rule::default() }
    }

    #[test]
    fn a_container_starts_gets_ready_and_ends() {
        let slow =
            Rule { start: SignedDuration::from_secs(2), ready: Some(SignedDuration::from_secs(3)), ..ends(9, 4) };
        let course = course(&slow, Restart::Never, &[0, 2, 5, 11, 50]);
        assert_eq!(course, ["ContainerCreating/0/2", "running/0/5", "ready/0/11", "exit 4/0/-", "exit 4/0/-"]);
    }

    #[test]
    fn a_container_that_fails_comes_back_more_and_more_slowly() {
        let always = course(&ends(0, 1), Restart::Always, &[0, 9, 10, 30, 70]);
        let expect = ["CrashLoopBackOff/1/10", "CrashLoopBackOff/1/10", "CrashLoopBackOff/2/30"];
        assert_eq!(always[..3], expect);
        assert_eq!(always[3..], ["CrashLoopBackOff/3/70", "CrashLoopBackOff/4/150"]);
        assert_eq!(course(&ends(3, 0), Restart::OnFailure, &[0, 3]), ["ready/0/3", "exit 0/0/-"]);
        assert_eq!(course(&ends(3, 1), Restart::OnFailure, &[0, 3]), ["ready/0/3", "ready/1/6"]);
    }

    #[test]
    fn a_container_can_be_kept_from_starting() {
        let stuck = Rule { waiting: Some("ImagePullBackOff".to_owned()), ..ends(0, 0) };
        assert_eq!(course(&stuck, Restart::Always, &[0, 100]), ["ImagePullBackOff/0/-", "ImagePullBackOff/0/-"]);
    }
}
