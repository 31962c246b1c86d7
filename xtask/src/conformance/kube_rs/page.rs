//! The results as a page of the book.

use std::fmt::Write;

use super::test::{Test, Verdict};

/// The page in Markdown.
pub(super) fn page(release: &str, rows: &[(Test, Verdict)]) -> String {
    let mut text = format!(
        "# kube-rs's tests\n\n<!-- Written by `cargo xtask conformance kube-rs`. -->\n\n\
         The tests of `kube`, `kube-client` and `kube-runtime` {release} that need a cluster, unchanged from crates.io, on a\n\
         cluster with every controller and a node that pretends to run Pods.\n\n\
         | crate | passed | failed | left out |\n|---|--:|--:|--:|\n"
    );
    let mut packages: Vec<&str> = rows.iter().map(|(test, _)| test.package.as_str()).collect();
    packages.dedup();
    for package in packages {
        let count = |like: fn(&Verdict) -> bool| {
            rows.iter().filter(|(test, verdict)| test.package == package && like(verdict)).count()
        };
        let (passed, failed) = (count(|verdict| *verdict == Verdict::Passed), count(is_failed));
        line(&mut text, &format!("| {package} | {passed} | {failed} | {} |", count(is_left_out)));
    }
    text.push_str("\n| test | |\n|---|---|\n");
    for (Test { package, name, .. }, verdict) in rows {
        let result = match verdict {
            Verdict::Passed => "passed".to_owned(),
            Verdict::Failed(reason) => format!("**failed**: {}", reason.replace('|', "\\|")),
            Verdict::LeftOut(reason) => format!("left out: {reason}"),
        };
        line(&mut text, &format!("| {package} {} | {result} |", name.replace("::test::", "::")));
    }
    text
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String takes everything");
}

fn is_failed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Failed(_))
}

fn is_left_out(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::LeftOut(_))
}
