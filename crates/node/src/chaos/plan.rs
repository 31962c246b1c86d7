//! What a `Chaos` asks for, understood and within limits.

use std::time::Duration;

use k8s_openapi::jiff::SignedDuration;

use super::resource::{ChaosSpec, Fault, Mode, Repeat};

/// The longest that a fault may last: whoever forgets one finds things in order an hour later.
pub const DURATION_MAX: Duration = Duration::from_secs(3600);
/// The longest that one write is held up.
const DELAY_MAX: Duration = Duration::from_secs(60);
/// Rounds follow one another no closer than this.
const EVERY_MIN: Duration = Duration::from_secs(1);
const EVERY_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
const TIMES_MAX: u32 = 1000;
/// How far a clock may be off.
const SKEW_SECONDS_MAX: i64 = 10 * 365 * 24 * 3600;
/// How long nodes have to take part in a round of kills.
const KILL_ROUND: Duration = Duration::from_secs(3);

/// Why a `Chaos` cannot be done, whatever the cluster is like.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("{what} {text:?} is no time: write one such as 30s, 5m or 1h30m")]
    NoTime { what: &'static str, text: String },
    #[error("{what} is {text}, which is not from {min} to {max}")]
    OutOfBounds { what: &'static str, text: String, min: &'static str, max: &'static str },
    #[error("a {0} lasts: set spec.duration, such as 30s")]
    NoDuration(&'static str),
    #[error("say who suffers: exactly one of target.selector, target.pods and target.service")]
    Target,
    #[error("a Service can be disconnected, nothing else")]
    Service,
    #[error("the mode Percent needs spec.percent, and only that")]
    Percent,
    #[error("rounds that last {duration} cannot begin every {every}")]
    Overlap { duration: String, every: String },
}

/// What a `Chaos` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How long a round lasts.
    pub(crate) round: Duration,
    /// From one round to the next, and how many there are.
    pub(crate) repeat: Option<(Duration, u32)>,
    /// By how many seconds a clock is off, or how much longer a write takes.
    pub(crate) skew: Option<i64>,
    pub(crate) delay: Option<Duration>,
}

impl Fault {
    /// Its name in the resource.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Kill {} => "kill",
            Self::Pause {} => "pause",
            Self::Disconnect(_) => "disconnect",
            Self::Fill(_) => "fill",
            Self::Slow(_) => "slow",
            Self::Skew(_) => "skew",
        }
    }
}

impl Plan {
    /// Understands a specification.
    ///
    /// # Errors
    /// What in it has to be changed.
    pub(crate) fn of(spec: &ChaosSpec) -> Result<Self, PlanError> {
        let target = &spec.target;
        let ways = [target.selector.is_some(), !target.pods.is_empty(), target.service.is_some()];
        if ways.into_iter().filter(|way| *way).count() != 1 {
            return Err(PlanError::Target);
        }
        if target.service.is_some() && !matches!(spec.fault, Fault::Disconnect(_)) {
            return Err(PlanError::Service);
        }
        if (spec.mode == Mode::Percent) != spec.percent.is_some() {
            return Err(PlanError::Percent);
        }
        let round = round(spec)?;
        let repeat = spec.repeat.as_ref().map(|repeat| repetition(repeat, round)).transpose()?;
        let skew = match &spec.fault {
            Fault::Skew(skew) => Some(seconds(&skew.by)?),
            _ => None,
        };
        let delay = match &spec.fault {
            Fault::Slow(slow) => Some(within(time("the delay", &slow.delay)?, "the delay", (1, DELAY_MAX))?),
            _ => None,
        };
        Ok(Self { round, repeat, skew, delay })
    }
}

fn round(spec: &ChaosSpec) -> Result<Duration, PlanError> {
    match (&spec.fault, &spec.duration) {
        (Fault::Kill {}, None) => Ok(KILL_ROUND),
        (Fault::Kill {}, Some(text)) => Ok(time("the duration", text)?.max(KILL_ROUND).min(DURATION_MAX)),
        (fault, None) => Err(PlanError::NoDuration(fault.name())),
        (_, Some(text)) => within(time("the duration", text)?, "the duration", (1000, DURATION_MAX)),
    }
}

fn repetition(repeat: &Repeat, round: Duration) -> Result<(Duration, u32), PlanError> {
    let every = time("repeat.every", &repeat.every)?;
    if every < EVERY_MIN || every > EVERY_MAX {
        let text = repeat.every.clone();
        return Err(PlanError::OutOfBounds { what: "repeat.every", text, min: "1s", max: "168h" });
    }
    if every <= round {
        let duration = format!("{}s", round.as_secs());
        return Err(PlanError::Overlap { duration, every: repeat.every.clone() });
    }
    Ok((every, repeat.times.clamp(1, TIMES_MAX)))
}

fn within(found: Duration, what: &'static str, (min_ms, max): (u64, Duration)) -> Result<Duration, PlanError> {
    if found >= Duration::from_millis(min_ms) && found <= max {
        return Ok(found);
    }
    let (min, max) = if max == DURATION_MAX { ("1s", "1h") } else { ("1ms", "1m") };
    Err(PlanError::OutOfBounds { what, text: format!("{found:?}"), min, max })
}

fn time(what: &'static str, text: &str) -> Result<Duration, PlanError> {
    let wrong = || PlanError::NoTime { what, text: text.to_owned() };
    let found: SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(found).map_err(|_| wrong())
}

fn seconds(text: &str) -> Result<i64, PlanError> {
    let what = "the skew";
    let found: SignedDuration = text.parse().map_err(|_| PlanError::NoTime { what, text: text.to_owned() })?;
    let seconds = found.as_secs();
    if seconds == 0 || seconds.abs() > SKEW_SECONDS_MAX {
        return Err(PlanError::OutOfBounds { what, text: text.to_owned(), min: "one second", max: "ten years" });
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(spec: Value, expect: Result<Duration, &str>) {
        let parsed: ChaosSpec = serde_json::from_value(spec.clone()).unwrap();
        let found = Plan::of(&parsed).map(|plan| plan.round).map_err(|error| error.to_string());
        assert_eq!(found, expect.map_err(str::to_owned), "{spec}");
    }

    #[test]
    fn a_fault_has_an_end_and_the_rest_makes_sense() {
        let pods = json!({"pods": ["x"]});
        check(json!({"target": pods, "fault": {"kill": {}}}), Ok(KILL_ROUND));
        check(json!({"target": pods, "fault": {"pause": {}}, "duration": "1m30s"}), Ok(Duration::from_secs(90)));
        let wrong = [
            (json!({"target": pods, "fault": {"pause": {}}}), "a pause lasts: set spec.duration, such as 30s"),
            (
                json!({"target": pods, "fault": {"pause": {}}, "duration": "2h"}),
                "the duration is 7200s, which is not from 1s to 1h",
            ),
            (
                json!({"target": pods, "fault": {"pause": {}}, "duration": "soon"}),
                "the duration \"soon\" is no time: write one such as 30s, 5m or 1h30m",
            ),
            (
                json!({"target": {}, "fault": {"kill": {}}}),
                "say who suffers: exactly one of target.selector, target.pods and target.service",
            ),
            (json!({"target": {"service": "x"}, "fault": {"kill": {}}}), "a Service can be disconnected, nothing else"),
            (
                json!({"target": pods, "mode": "Percent", "fault": {"kill": {}}}),
                "the mode Percent needs spec.percent, and only that",
            ),
            (
                json!({"target": pods, "fault": {"pause": {}}, "duration": "30s", "repeat": {"every": "30s", "times": 2}}),
                "rounds that last 30s cannot begin every 30s",
            ),
            (
                json!({"target": pods, "fault": {"slow": {"delay": "2m"}}, "duration": "30s"}),
                "the delay is 120s, which is not from 1ms to 1m",
            ),
        ];
        wrong.into_iter().for_each(|(spec, why)| check(spec, Err(why)));
    }

    #[test]
    fn clocks_go_either_way() {
        let spec = |by: &str| -> ChaosSpec {
            let spec = json!({"target": {"pods": ["x"]}, "fault": {"skew": {"by": by}}, "duration": "1m"});
            serde_json::from_value(spec).unwrap()
        };
        assert_eq!(Plan::of(&spec("-1h")).unwrap().skew, Some(-3600));
        assert_eq!(Plan::of(&spec("5m")).unwrap().skew, Some(300));
        assert!(Plan::of(&spec("0s")).is_err());
    }
}
