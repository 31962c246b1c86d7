//! The one screen of `windlass dev`, as lines: a function of the state and the size of the terminal.

use super::course::{Build, Course, Operator};
use super::entry::shorten;
use super::resources::{Rank, Row};
use crate::view::paint::Colour;
use crate::view::readiness::Readiness;

/// What the screen says that does not change.
pub(crate) struct Title {
    pub(crate) project: String,
    pub(crate) profile: &'static str,
    pub(crate) kubeconfig: String,
}

/// A piece of a line, in one colour.
pub(crate) type Span = (Option<Colour>, String);
/// A line of the screen.
pub(crate) type Line = Vec<Span>;

/// The smallest terminal that is drawn for; a smaller one shows a part.
const WIDTH_MIN: usize = 20;
const HEIGHT_MIN: usize = 10;
/// How much of the screen one cause may take.
const CAUSE_LINES_MAX: usize = 4;
const HINT: &str = "Ctrl-C stops everything. Changes in src/ and samples/ are taken up as you save.";

/// Draws the screen: as many lines as it is high, none longer than it is wide.
pub(crate) fn draw(title: &Title, course: &Course, width: usize, height: usize) -> Vec<Line> {
    let (width, height) = (width.max(WIDTH_MIN), height.max(HEIGHT_MIN));
    let mut lines = vec![
        vec![
            (Some(Colour::Bold), format!(" {}", title.project)),
            (Some(Colour::Dim), format!("  profile {}  KUBECONFIG={}", title.profile, title.kubeconfig)),
        ],
        build_line(course),
        operator_line(course),
    ];
    if let Some(trouble) = &course.trouble {
        let text = format!(" look at   {}", trouble.replace('\n', " "));
        lines.extend(wrap(&text, width).into_iter().take(3).map(|text| vec![(Some(Colour::Red), text)]));
    }
    // Resources get what they need, at most half of what is left.
    let free = height.saturating_sub(lines.len() + 3);
    let rows = resource_lines(&course.rows, width, free.div_ceil(2));
    lines.push(rule("resources", width));
    lines.extend(rows);
    let free = height.saturating_sub(lines.len() + 2);
    let (name, rest) = below(course, width, free);
    lines.push(rule(name, width));
    lines.extend(rest);
    lines.truncate(height - 1);
    lines.resize(height - 1, Line::new());
    lines.push(vec![(Some(Colour::Dim), format!(" {HINT}"))]);
    lines.into_iter().map(|line| cut(line, width)).collect()
}

fn build_line(course: &Course) -> Line {
    let head = (None, " build     ".to_owned());
    match &course.build {
        Build::Running(line) if line.is_empty() => vec![head, (Some(Colour::Yellow), "begins".to_owned())],
        Build::Running(line) => vec![head, (Some(Colour::Yellow), line.clone())],
        Build::Done(took) => {
            let note = if course.compiler.is_empty() { "" } else { ", with warnings" };
            vec![head, (Some(Colour::Green), "ok".to_owned()), (None, format!(" in {:.1} s{note}", took.as_secs_f32()))]
        }
        Build::Failed => {
            let note = match course.operator {
                Operator::Absent => "",
                _ => "; the operator before goes on",
            };
            vec![head, (Some(Colour::Red), "failed".to_owned()), (None, note.to_owned())]
        }
    }
}

fn operator_line(course: &Course) -> Line {
    let head = (None, " operator  ".to_owned());
    match &course.operator {
        Operator::Absent => vec![head, (Some(Colour::Dim), "waits for the build".to_owned())],
        Operator::Starting(pid) => {
            vec![head, (Some(Colour::Yellow), "starting".to_owned()), (None, format!(", process {pid}"))]
        }
        Operator::Ready(pid) => {
            vec![head, (Some(Colour::Green), "ready".to_owned()), (None, format!(", process {pid}"))]
        }
        Operator::Ended(how) => {
            vec![head, (Some(Colour::Red), format!("ended ({how})")), (None, ", is started again".to_owned())]
        }
    }
}

fn resource_lines(rows: &[Row], width: usize, room: usize) -> Vec<Line> {
    if rows.is_empty() {
        return vec![vec![(Some(Colour::Dim), " none yet".to_owned())]];
    }
    let name = |row: &Row| format!("{}{}", row.rank.indent(), row.label);
    let objects = rows.iter().filter(|row| row.rank != Rank::Cause);
    let column = objects.map(|row| name(row).chars().count()).max().unwrap_or(0);
    let mut lines: Vec<Line> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let (colour, mark, text) = match &row.readiness {
            Readiness::Ready(text) => (Colour::Green, "ready   ", text),
            Readiness::Waiting(text) => (Colour::Yellow, "waiting ", text),
            Readiness::Stalled(text) => (Colour::Red, "stalled ", text),
        };
        let (name, text) = (name(row), text.replace('\n', " "));
        let drawn = if row.rank == Rank::Cause {
            let all = wrap(&format!(" {name}: {text}"), width);
            all.into_iter().take(CAUSE_LINES_MAX).map(|text| vec![(Some(Colour::Yellow), text)]).collect()
        } else {
            vec![vec![(None, format!(" {name:<column$}  ")), (Some(colour), mark.to_owned()), (None, text)]]
        };
        let is_last = index + 1 == rows.len();
        if lines.len() + drawn.len() + usize::from(!is_last) > room {
            lines.push(vec![(Some(Colour::Dim), format!(" and {} more", rows.len() - index))]);
            break;
        }
        lines.extend(drawn);
    }
    lines
}

/// The compiler's words from the first error on, if the build failed; else the end of the operator's log.
fn below(course: &Course, width: usize, room: usize) -> (&'static str, Vec<Line>) {
    if course.build == Build::Failed {
        let first = course.compiler.iter().position(|line| line.starts_with("error")).unwrap_or(0);
        let lines =
            course.compiler.iter().skip(first).take(room).map(|line| vec![(compiler_colour(line), format!(" {line}"))]);
        return ("compiler", lines.collect());
    }
    let mut lines: Vec<Line> = Vec::new();
    for entry in course.log.iter().rev() {
        let (colour, text) = shorten(entry);
        let wrapped = wrap(&format!(" {text}"), width);
        lines.extend(wrapped.into_iter().rev().map(|text| vec![(colour, text)]));
        if lines.len() >= room {
            break;
        }
    }
    lines.truncate(room);
    lines.reverse();
    ("log of the operator", lines)
}

fn compiler_colour(line: &str) -> Option<Colour> {
    match line {
        _ if line.starts_with("error") => Some(Colour::Red),
        _ if line.starts_with("warning") => Some(Colour::Yellow),
        _ => None,
    }
}

fn rule(name: &str, width: usize) -> Line {
    let head = format!("── {name} ");
    let rest = width.saturating_sub(head.chars().count());
    vec![(Some(Colour::Dim), format!("{head}{}", "─".repeat(rest)))]
}

/// Breaks a text into lines, at blanks where there are some; all but the first are set in.
fn wrap(text: &str, width: usize) -> Vec<String> {
    const INDENT: &str = "           ";
    let mut lines = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    while rest.len() > width {
        let blank = rest[..width].iter().rposition(|letter| *letter == ' ').filter(|at| *at > width / 2);
        let at = blank.unwrap_or(width);
        lines.push(rest[..at].iter().collect());
        rest = INDENT.chars().chain(rest[at..].iter().copied().skip_while(|letter| *letter == ' ')).collect();
    }
    lines.push(rest.into_iter().collect());
    lines
}

/// The line, as wide as the screen at most; control characters would move the cursor.
fn cut(line: Line, width: usize) -> Line {
    let mut left = width;
    let mut kept = Line::new();
    for (colour, text) in line {
        let text = text.replace('\t', "    ");
        let text: String = text.chars().filter(|letter| !letter.is_control()).take(left).collect();
        left -= text.chars().count();
        kept.push((colour, text));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::course::Event;
    use super::*;
    use std::time::Duration;

    fn screen(course: &Course, width: usize, height: usize) -> Vec<String> {
        let title = Title { project: "shop".into(), profile: "workloads", kubeconfig: ".windlass/kubeconfig".into() };
        let lines = draw(&title, course, width, height);
        lines.into_iter().map(|line| line.into_iter().map(|(_, text)| text).collect()).collect()
    }

    fn row(label: &str, rank: Rank) -> Row {
        Row { label: label.into(), rank, readiness: Readiness::Ready("2 of 2".into()) }
    }

    #[test]
    fn the_screen_has_its_size_whatever_there_is_to_show() {
        let (mut course, _) = Course::begin();
        for size in [(80, 24), (120, 40), (20, 10), (3, 2)] {
            for rows in [0, 1, 50] {
                course.rows = (0..rows).map(|number| row(&format!("site/{number}"), Rank::Resource)).collect();
                course.log = (0..rows).map(|number| format!("{number} {}", "word ".repeat(60))).collect();
                let lines = screen(&course, size.0, size.1);
                assert_eq!(lines.len(), size.1.max(HEIGHT_MIN));
                assert!(lines.iter().all(|line| line.chars().count() <= size.0.max(WIDTH_MIN)), "{lines:#?}");
            }
        }
    }

    #[test]
    fn an_operator_at_work_shows_its_resources_and_its_log() {
        let (mut course, _) = Course::begin();
        course.take(Event::Built(Ok(Duration::from_millis(2100))));
        course.take(Event::Installed(Ok(Default::default())));
        course.take(Event::Started(1, 77));
        course.take(Event::Ready(1));
        course.take(Event::Said(
            1,
            "2026-01-01T10:20:30.123456Z  INFO windlass::command: Starting operator=\"shop\"".into(),
        ));
        course.take(Event::Said(1, "2026-01-01T10:20:31.1Z  WARN x::y: careful".into()));
        course.rows = vec![row("site/sample", Rank::Resource), row("deployment/sample", Rank::Child)];
        course.trouble = None;
        let lines = screen(&course, 60, 12);
        let expect = [
            " shop  profile workloads  KUBECONFIG=.windlass/kubeconfig",
            " build     ok in 2.1 s",
            " operator  ready, process 77",
            "── resources ───────────────────────────────────────────────",
            " site/sample          ready   2 of 2",
            "   deployment/sample  ready   2 of 2",
            "── log of the operator ─────────────────────────────────────",
            " 10:20:30 Starting operator=\"shop\"",
            " 10:20:31 warning: careful",
        ];
        assert_eq!(lines[..9], expect);
    }

    #[test]
    fn a_cause_is_shown_in_full_below_what_it_keeps_from_being_ready() {
        let (mut course, _) = Course::begin();
        let cause = "the image nginx:1.28 of container site cannot be had (ImagePullBackOff)";
        course.rows = vec![row("site/sample", Rank::Resource)];
        course.rows.push(Row { readiness: Readiness::Waiting(cause.into()), ..row("pod/sample-1", Rank::Cause) });
        let lines = screen(&course, 60, 24);
        let expect = [
            " site/sample  ready   2 of 2",
            "   pod/sample-1: the image nginx:1.28 of container site",
            "           cannot be had (ImagePullBackOff)",
        ];
        assert_eq!(lines[4..7], expect);
    }

    #[test]
    fn a_failed_build_shows_the_first_error() {
        let (mut course, _) = Course::begin();
        for line in ["warning: unused", "  --> src/x.rs", "error[E0425]: cannot find value", "  --> src/lib.rs:3:5"] {
            course.take(Event::BuildSaid(line.into()));
        }
        course.take(Event::Built(Err(None)));
        let lines = screen(&course, 80, 24);
        assert_eq!(lines[1], " build     failed");
        let at = lines.iter().position(|line| line.starts_with("── compiler")).unwrap();
        assert_eq!(lines[at + 1..at + 3], [" error[E0425]: cannot find value", "   --> src/lib.rs:3:5"]);
    }

    #[test]
    fn long_lines_are_broken_at_blanks() {
        assert_eq!(
            wrap("a line of several words that is long", 24),
            ["a line of several words", "           that is long"]
        );
        assert_eq!(wrap("aaaaaaaaaaaaaaaaaaaaaaaaa", 24)[0].len(), 24);
    }
}
