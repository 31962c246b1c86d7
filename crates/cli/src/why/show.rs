//! Facts and findings as people read them, and as programs do.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass::runtime::journal::{Made, Run, Turn};

use super::facts::{Facts, Node, text, title};
use super::finding::{Depth, Finding};
use super::operator::is_custom;
use crate::commands::events::{age, row};
use crate::view::columns::lay_out;
use crate::view::paint::{Colour, paint};
use crate::view::readiness::{Readiness, judge};

/// How many runs of the operator are shown.
const RUNS_SHOWN: usize = 3;
/// How many events are shown.
const EVENTS_SHOWN: usize = 10;
/// How many objects below one are shown.
const CHILDREN_SHOWN: usize = 20;

/// A kind whose phase says more than its conditions.
const CLAIM: &str = "PersistentVolumeClaim";

/// All of it as JSON.
pub(crate) fn as_json(facts: &Facts, findings: &[Finding]) -> Value {
    fn tree(node: &Node) -> Value {
        let (state, message) = state(&node.object);
        let children: Vec<Value> = node.children.iter().map(tree).collect();
        let metadata = &node.object["metadata"];
        json!({"kind": node.object["kind"], "apiVersion": node.object["apiVersion"], "namespace": metadata["namespace"],
            "name": metadata["name"], "state": state, "message": message, "children": children})
    }
    let operators = &facts.operators;
    json!({
        "ready": findings.is_empty() && matches!(judge(facts.object()), Readiness::Ready(_)),
        "object": tree(&facts.tree),
        "owners": facts.owners.iter().map(title).collect::<Vec<_>>(),
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
        "conditions": facts.object()["status"]["conditions"],
        "operator": {
            "replicas": operators.replicas.iter().map(|(pod, replica)| json!({"pod": pod, "replica": replica})).collect::<Vec<_>>(),
            "history": operators.history.as_ref().map(|(pod, history)| json!({"pod": pod, "history": history})),
            "silence": operators.silence,
        },
        "events": facts.events,
        "gaps": facts.gaps,
    })
}

fn finding(finding: &Finding) -> Value {
    json!({"depth": finding.depth.word(), "object": finding.object, "others": finding.others, "says": finding.says,
        "advice": finding.advice})
}

/// All of it as text, from above.
pub(crate) fn as_text(facts: &Facts, findings: &[Finding]) -> String {
    let mut parts = vec![head(facts, findings)];
    if !findings.is_empty() {
        parts.push(section("Why", &reasons(findings)));
    }
    if !facts.tree.children.is_empty() || !facts.owners.is_empty() {
        parts.push(section("Parts", &tree(facts)));
    }
    parts.push(section("Conditions", &conditions(facts)));
    parts.push(section("Operator", &operator(facts)));
    parts.push(section("Events", &events(facts)));
    if !facts.gaps.is_empty() {
        parts.push(section("Not looked at", &facts.gaps.iter().map(|gap| format!("  {gap}\n")).collect::<String>()));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn section(title: &str, body: &str) -> String {
    if body.is_empty() { String::new() } else { format!("{}\n{body}", paint(Colour::Bold, title)) }
}

fn head(facts: &Facts, findings: &[Finding]) -> String {
    let object = facts.object();
    let metadata = &object["metadata"];
    let place = metadata["namespace"].as_str().map_or_else(String::new, |namespace| format!(" in {namespace}"));
    let is_ending = !metadata["deletionTimestamp"].is_null();
    let is_held = findings.iter().any(|finding| finding.depth == Depth::Choice && finding.object == title(object));
    let is_pending = text(&object["kind"]) == CLAIM && state(object).0 != "ready";
    let (word, colour, message) = match judge(object) {
        _ if is_pending && !is_ending => ("is not ready", Colour::Yellow, state(object).1),
        _ if is_ending => ("is being deleted", Colour::Yellow, String::new()),
        Readiness::Ready(_) if is_held => ("is held back", Colour::Yellow, String::new()),
        Readiness::Ready(message) if !findings.is_empty() => ("is ready, but not all is well", Colour::Yellow, message),
        Readiness::Ready(message) => ("is ready", Colour::Green, message),
        Readiness::Waiting(message) => ("is not ready", Colour::Yellow, message),
        Readiness::Stalled(message) => ("cannot become ready", Colour::Red, message),
    };
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    format!("{} {}{place} {}{message}\n", text(&object["kind"]), text(&metadata["name"]), paint(colour, word))
}

fn reasons(findings: &[Finding]) -> String {
    let mut lines = String::new();
    for finding in findings {
        let others = match finding.others {
            0 => String::new(),
            1 => " (and 1 other)".to_owned(),
            more => format!(" (and {more} others)"),
        };
        // What is no predicate of the object stands by itself.
        let is_predicate =
            ["is ", "was ", "has ", "does ", "cannot "].iter().any(|word| finding.says.starts_with(word));
        let mark = if is_predicate { "" } else { ":" };
        let colour = if finding.depth == Depth::Effect { Colour::Yellow } else { Colour::Red };
        lines += &format!(
            "  {} {}{others}{mark} {}\n",
            paint(colour, "-"),
            paint(Colour::Bold, &finding.object),
            finding.says
        );
        if let Some(advice) = &finding.advice {
            lines += &format!("    {} {advice}\n", paint(Colour::Green, "what to do:"));
        }
    }
    lines
}

fn tree(facts: &Facts) -> String {
    let mut rows = Vec::new();
    for owner in facts.owners.iter().rev() {
        rows.push(line("", owner));
    }
    let indent = "  ".repeat(facts.owners.len());
    grow(&facts.tree, &indent, &mut rows);
    lay_out(&rows)
}

fn grow(node: &Node, indent: &str, rows: &mut Vec<Vec<String>>) {
    rows.push(line(indent, &node.object));
    let below = format!("{indent}  ");
    for child in node.children.iter().take(CHILDREN_SHOWN) {
        grow(child, &below, rows);
    }
    if let Some(more) = node.children.len().checked_sub(CHILDREN_SHOWN).filter(|more| *more > 0) {
        rows.push(vec![format!("  {below}and {more} more")]);
    }
}

fn line(indent: &str, object: &Value) -> Vec<String> {
    let (state, message) = state(object);
    vec![format!("  {indent}{}", title(object)), state.to_owned(), message]
}

/// The state of a part in a word, and what it says.
fn state(object: &Value) -> (&'static str, String) {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return ("ending", String::new());
    }
    if text(&object["kind"]) == CLAIM {
        let phase = text(&object["status"]["phase"]).to_owned();
        return if phase == "Bound" { ("ready", phase) } else { ("waiting", phase) };
    }
    match judge(object) {
        Readiness::Ready(message) => ("ready", message),
        Readiness::Waiting(message) => ("waiting", message),
        Readiness::Stalled(message) => ("stalled", message),
    }
}

fn conditions(facts: &Facts) -> String {
    let all = facts.object()["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let row = |one: &Value| {
        let since = text(&one["lastTransitionTime"]).parse::<Timestamp>().ok();
        vec![
            format!("  {}={}", text(&one["type"]), text(&one["status"])),
            text(&one["reason"]).to_owned(),
            since.map_or_else(String::new, |since| age(facts.now, since)),
            text(&one["message"]).to_owned(),
        ]
    };
    lay_out(&all.iter().map(row).collect::<Vec<_>>())
}

fn operator(facts: &Facts) -> String {
    let operators = &facts.operators;
    let mut lines = String::new();
    let is_an_operators = std::iter::once(facts.object()).chain(&facts.owners).any(is_custom);
    if let Some(silence) = operators.silence.as_ref().filter(|_| is_an_operators) {
        lines += &format!("  {}\n", paint(Colour::Dim, silence));
    }
    let Some((pod, history)) = &operators.history else {
        let is_served =
            std::iter::once(facts.object()).chain(&facts.owners).any(|object| facts.serving(object).next().is_some());
        if is_served {
            lines += "  it is served, but its operator has not looked at it since it started\n";
        }
        return lines;
    };
    let name =
        operators.replicas.iter().find(|(name, _)| name == pod).map_or("", |(_, replica)| replica.operator.as_str());
    lines += &format!("  {name} ({pod}) of {} {}\n", history.object.kind, history.object.name);
    if let Some(run) = &history.running {
        lines += &format!("  at work since {}\n", age(facts.now, run.started));
    }
    for run in history.runs.iter().take(RUNS_SHOWN) {
        lines += &one_run(run, facts.now);
    }
    lines += &next(history.runs.first(), facts.now);
    lines
}

fn one_run(run: &Run, now: Timestamp) -> String {
    let mut lines = format!("  {} ago, {} ms", age(now, run.started), run.took_ms);
    if run.repeated > 0 {
        lines += &format!(" (and {} times before with the same end)", run.repeated);
    }
    lines.push('\n');
    let mut triggers: Vec<String> = run.triggers.iter().map(ToString::to_string).collect();
    if run.more_triggers > 0 {
        triggers.push(format!("{} more", run.more_triggers));
    }
    if !triggers.is_empty() {
        lines += &format!("    because  {}\n", triggers.join("; "));
    }
    let saw: Vec<String> = run
        .saw
        .iter()
        .map(|seen| match (seen.version.as_str(), seen.generation) {
            ("", _) => format!("no {} {}", seen.kind, seen.name),
            (version, Some(generation)) => {
                format!("{} {} generation {generation}, version {version}", seen.kind, seen.name)
            }
            (version, None) => format!("{} {} version {version}", seen.kind, seen.name),
        })
        .collect();
    if !saw.is_empty() {
        lines += &format!("    saw      {}\n", saw.join("; "));
    }
    lines += &format!("    decided  {}\n", decided(run));
    for made in &run.calls {
        lines += &format!("    did      {}\n", call(made));
    }
    if run.more_calls > 0 {
        lines += &format!("    did      {} more calls\n", run.more_calls);
    }
    lines
}

fn decided(run: &Run) -> String {
    let word = match run.turn {
        Turn::Running => "not yet",
        Turn::Settled => "all is as declared",
        Turn::Waiting => "to wait",
        Turn::Invalid => "it is invalid",
        Turn::Refused => "a person has to decide",
        Turn::Failed => "to try again",
        Turn::Conflict => "to try again: somebody else was faster",
        Turn::Crashed => "nothing: the run crashed",
        Turn::Paused => "nothing: it is paused",
        Turn::HotLoop => "to let a loop cool down",
        Turn::Deleting => "to let it go",
        Turn::Gone => "nothing: it was gone",
        Turn::Done => "that it is done",
        Turn::Unknown => "something that a newer operator knows",
    };
    if run.turn == Turn::Settled || run.message.is_empty() {
        return word.to_owned();
    }
    format!("{word} ({}): {}", run.reason, run.message)
}

fn call(made: &Made) -> String {
    let resource = if made.subresource.is_empty() {
        made.resource.clone()
    } else {
        format!("{}/{}", made.resource, made.subresource)
    };
    let code = made.code.map_or_else(|| "no answer".to_owned(), |code| code.to_string());
    let fields = if made.fields.is_empty() { String::new() } else { format!(": {}", made.fields.join(", ")) };
    format!("{} {resource} {} -> {code}{fields}", made.verb, made.name.as_deref().unwrap_or_default())
}

fn next(run: Option<&Run>, now: Timestamp) -> String {
    let Some(run) = run else { return String::new() };
    let Some(next) = &run.next else {
        return "  it looks again when something changes\n".to_owned();
    };
    let why = if next.retry {
        format!("it tries again after {} failures", run.failures)
    } else {
        "it looks again".to_owned()
    };
    if next.at <= now {
        return format!("  {why} now, or when something changes\n");
    }
    format!("  {why} in {}, or when something changes\n", age(next.at, now))
}

/// The newest of each reason of each object: what repeats says nothing new.
fn events(facts: &Facts) -> String {
    let mut told = HashSet::new();
    let mut shown: Vec<&Value> = facts.events.iter().rev().collect();
    shown.retain(|event| told.insert((text(&event["involvedObject"]["uid"]), text(&event["reason"]))));
    shown.truncate(EVENTS_SHOWN);
    let rows = shown.into_iter().rev().map(|event| {
        let mut cells = row(event, facts.now);
        cells[0] = format!("  {}", cells[0]);
        cells
    });
    lay_out(&rows.collect::<Vec<_>>())
}
