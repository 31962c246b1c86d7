//! The results as tables, and as a page of the book.

use std::fmt::Write;

use super::Row;
use super::project::Project;
use super::script::{BEHAVIOURS, Verdict};

/// What the page says before the tables.
const HEAD: &str = "# The memcached operator next to its peers\n\n\
<!-- Written by `cargo xtask compare operators`. -->\n\n\
The same operator, written four times: with Windlass ([source](../operators/memcached/src/lib.rs)), with controller-runtime in\n\
the layout of kubebuilder ([source](../examples/peers/kubebuilder)), with Kopf ([source](../examples/peers/kopf)) and with\n\
`kube::runtime::Controller` ([source](../examples/peers/kube)). All have the same fields, the same checks, a Deployment and a\n\
headless Service, the same status, a condition `Ready`, and events. Each is written as its project's documentation advises. The\n\
command builds all four, starts a cluster for each, runs the operator there with the rights of its own account and no more,\n\
plays the same script with kubectl, and writes this page. `cargo xtask compare controllers` shows what\n\
`kube::runtime::Controller` does where ours behaves as the [catalogue](../crates/runtime/tests/behaviours/contrast.rs) says.\n";

/// How the first table was counted.
const COUNTING: &str = "\n\
Lines are those that are neither blank nor a comment; kubebuilder's markers count, tests and lock files do not. *Written* is\n\
what a person types. *Scaffolded* is what a tool writes once and a person keeps: `kubebuilder init` and `create api` write more\n\
(kustomize layers, a Makefile, a Dockerfile, tests, workflows, a longer `main.go`), of which only what this operator needs to run\n\
is here and counted; the tool itself is not run, its layout is followed by hand. *Generated* is written anew by a tool and kept in the project. What a program prints when it is asked, as\n\
ours prints its definition, permissions and manifests, is kept by nobody and counted nowhere. *Names* are the distinct names of\n\
the toolkit, of Kubernetes' types, and of markers or attributes that the written code mentions; in Python objects are\n\
dictionaries, whose keys are not counted. Ours has a webhook, and takes back upgrades\n\
that fail, which the others do not; both are counted.\n";

/// A line of the first table: what it is about, and its value of an implementation.
type Figure = (&'static str, fn(&Project) -> String);

/// Both tables.
pub(super) fn tables(rows: &[Row]) -> String {
    format!("{}\n{}", sizes(rows), behaviours(rows))
}

/// The page in Markdown.
pub(super) fn page(rows: &[Row]) -> String {
    let mut text = String::from(HEAD);
    line(&mut text, "\n## What a person writes\n");
    text.push_str(&sizes(rows));
    text.push_str(COUNTING);
    line(&mut text, "\n## What held\n");
    text.push_str(&behaviours(rows));
    remarks(&mut text, rows);
    line(&mut text, "\n## What an author has to know");
    for Row { project, .. } in rows {
        line(&mut text, &format!("\n**{}** ({}):", project.title, project.concepts.len()));
        for concept in &project.concepts {
            line(&mut text, &format!("- {concept}"));
        }
    }
    text
}

fn sizes(rows: &[Row]) -> String {
    let table: [Figure; 11] = [
        ("release", |project| project.release.clone()),
        ("lines written", |project| project.written.lines.to_string()),
        ("files written", |project| project.written.files.to_string()),
        ("lines scaffolded", |project| project.scaffolded.lines.to_string()),
        ("files scaffolded", |project| project.scaffolded.files.to_string()),
        ("lines generated", |project| project.generated.lines.to_string()),
        ("files generated", |project| project.generated.files.to_string()),
        ("lines of manifests by hand", |project| project.manifests.to_string()),
        ("lines about permissions by hand", |project| project.rbac.to_string()),
        ("names", |project| project.symbols.to_string()),
        ("concepts (listed below)", |project| project.concepts.len().to_string()),
    ];
    let mut text = heading(rows, "--:");
    for (title, value) in table {
        let cells: Vec<String> = rows.iter().map(|row| value(&row.project)).collect();
        line(&mut text, &format!("| {title} | {} |", cells.join(" | ")));
    }
    text
}

fn behaviours(rows: &[Row]) -> String {
    let mut text = heading(rows, "---");
    for (index, behaviour) in BEHAVIOURS.iter().enumerate() {
        let cells: Vec<&str> = rows.iter().map(|row| cell(&row.verdicts[index])).collect();
        line(&mut text, &format!("| {} | {} |", behaviour.title, cells.join(" | ")));
    }
    text
}

fn cell(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Held => "yes",
        Verdict::Failed(_) => "**no**",
        Verdict::Absent(_) => "with more code",
        Verdict::Skipped => "",
    }
}

/// What is behind every cell that is not "yes", and what else is to be said.
fn remarks(text: &mut String, rows: &[Row]) {
    for Row { project, verdicts } in rows {
        for (behaviour, verdict) in BEHAVIOURS.iter().zip(verdicts) {
            let words = project.words(behaviour.name);
            let remark = match verdict {
                Verdict::Failed(seen) => {
                    format!("seen: {seen}.{}", words.map(|words| format!(" {words}")).unwrap_or_default())
                }
                Verdict::Absent(words) => words.clone(),
                Verdict::Held | Verdict::Skipped => match words {
                    Some(words) => words.to_owned(),
                    None => continue,
                },
            };
            line(text, &format!("\n**{}**, {}: {}", project.title, behaviour.title, remark.replace('|', "\\|")));
        }
    }
}

fn heading(rows: &[Row], align: &str) -> String {
    let titles: Vec<&str> = rows.iter().map(|row| row.project.title.as_str()).collect();
    let rules = vec![align; rows.len()];
    format!("| | {} |\n|---|{}|\n", titles.join(" | "), rules.join("|"))
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String takes everything");
}
