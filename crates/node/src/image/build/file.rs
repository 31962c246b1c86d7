//! The instructions of a file, each with the line that it begins on.

/// A file with more is not for people.
const FILE_BYTES_MAX: usize = 1 << 20;
const STEPS_MAX: usize = 1000;

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// Where it begins, from 1.
    pub(super) line: usize,
    /// How the file writes it.
    pub(super) text: String,
    pub(super) keyword: Keyword,
    /// `--name=value` before everything else.
    pub(super) flags: Vec<(String, String)>,
    /// The rest, with continued lines joined.
    pub(super) rest: String,
}

/// What an instruction is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    From,
    Arg,
    Env,
    Copy,
    Run,
    Workdir,
    User,
    Entrypoint,
    Cmd,
    Shell,
    Label,
    Expose,
    Volume,
    StopSignal,
    /// Something that has no meaning for Pods.
    Ignored,
}

/// What is wrong with a line of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub(super) struct FileError {
    /// The line, from 1.
    pub(super) line: usize,
    /// What is wrong with it.
    pub(super) problem: String,
}

/// Reads a file.
pub(super) fn parse(text: &str) -> Result<Vec<Step>, FileError> {
    if text.len() > FILE_BYTES_MAX {
        return Err(FileError { line: 1, problem: format!("the file is larger than {FILE_BYTES_MAX} bytes") });
    }
    let mut steps = Vec::new();
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            check_directive(comment, number, steps.is_empty())?;
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let mut whole = line.to_owned();
        while let Some(kept) = whole.strip_suffix('\\').map(str::to_owned) {
            whole = kept;
            // Comments and empty lines in between are left out, as they are elsewhere.
            let next = lines.by_ref().map(|(_, line)| line).find(|line| {
                let line = line.trim();
                !line.is_empty() && !line.starts_with('#')
            });
            match next {
                Some(next) => whole.push_str(next.trim_end()),
                None => break,
            }
        }
        if steps.len() == STEPS_MAX {
            return Err(FileError { line: number, problem: format!("more than {STEPS_MAX} instructions") });
        }
        steps.push(step(number, &whole)?);
    }
    match steps.iter().find(|step| step.keyword != Keyword::Arg) {
        None => {
            Err(FileError { line: 1, problem: "no FROM: an image begins with `FROM scratch` or another".to_owned() })
        }
        Some(first) if first.keyword != Keyword::From => {
            Err(FileError { line: first.line, problem: "the first instruction must be FROM".to_owned() })
        }
        Some(_) => Ok(steps),
    }
}

/// `# escape=` changes how the file is read; what else a comment says does not.
fn check_directive(comment: &str, line: usize, first: bool) -> Result<(), FileError> {
    let Some((name, value)) = comment.split_once('=').filter(|_| first) else { return Ok(()) };
    if name.trim().eq_ignore_ascii_case("escape") && value.trim() != "\\" {
        return Err(FileError { line, problem: "another escape character than `\\` is not supported".to_owned() });
    }
    Ok(())
}

fn step(line: usize, text: &str) -> Result<Step, FileError> {
    let fail = |problem: String| Err(FileError { line, problem });
    let (word, mut rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let keyword = match word.to_ascii_uppercase().as_str() {
        "FROM" => Keyword::From,
        "ARG" => Keyword::Arg,
        "ENV" => Keyword::Env,
        "COPY" => Keyword::Copy,
        "RUN" => Keyword::Run,
        "WORKDIR" => Keyword::Workdir,
        "USER" => Keyword::User,
        "ENTRYPOINT" => Keyword::Entrypoint,
        "CMD" => Keyword::Cmd,
        "SHELL" => Keyword::Shell,
        "LABEL" => Keyword::Label,
        "EXPOSE" => Keyword::Expose,
        "VOLUME" => Keyword::Volume,
        "STOPSIGNAL" => Keyword::StopSignal,
        "HEALTHCHECK" | "MAINTAINER" => Keyword::Ignored,
        "ADD" => {
            return fail(
                "ADD is not supported: COPY copies files and folders; fetch and unpack others before".to_owned(),
            );
        }
        "ONBUILD" => {
            return fail(
                "ONBUILD is not supported: write the instruction into the files that build on this one".to_owned(),
            );
        }
        other => return fail(format!("unknown instruction {other:?}")),
    };
    let mut flags = Vec::new();
    rest = rest.trim();
    while let Some(flag) = rest.strip_prefix("--").filter(|_| takes_flags(keyword)) {
        let (flag, after) = flag.split_once(char::is_whitespace).unwrap_or((flag, ""));
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        flags.push((name.to_owned(), value.to_owned()));
        rest = after.trim_start();
    }
    if rest.is_empty() && keyword != Keyword::Ignored {
        return fail(format!("{word} needs an argument"));
    }
    if matches!(keyword, Keyword::Run | Keyword::Copy) && rest.contains("<<") {
        return fail("text in the file itself (`<<EOF`) is not supported: put it into a file and COPY it".to_owned());
    }
    Ok(Step { line, text: text.to_owned(), keyword, flags, rest: rest.to_owned() })
}

fn takes_flags(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::From | Keyword::Copy | Keyword::Run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_counted() {
        let text = "# a comment\nARG v=1\nfrom debian:$v AS base\n\nRUN one \\\n  # not this\n\n  && two\nCOPY --chown=1:2 --from=base a b/\n";
        let steps = parse(text).unwrap();
        let shown: Vec<(usize, Keyword, &str)> =
            steps.iter().map(|step| (step.line, step.keyword, step.rest.as_str())).collect();
        let expect = [
            (2, Keyword::Arg, "v=1"),
            (3, Keyword::From, "debian:$v AS base"),
            (5, Keyword::Run, "one   && two"),
            (9, Keyword::Copy, "a b/"),
        ];
        assert_eq!(shown, expect);
        let flags = [("chown".to_owned(), "1:2".to_owned()), ("from".to_owned(), "base".to_owned())];
        assert_eq!(steps[3].flags, flags);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let check = |text: &str, line: usize, problem: &str| {
            let error = parse(text).unwrap_err();
            assert!(error.line == line && error.problem.contains(problem), "{text:?}: {error:?}");
        };
        check("", 1, "no FROM");
        check("# only\nCOPY a b", 2, "first instruction must be FROM");
        check("FROM scratch\n\nADD a b", 3, "COPY");
        check("FROM scratch\nCOPPY a b", 2, "unknown instruction \"COPPY\"");
        check("FROM scratch\nENV", 2, "needs an argument");
        check("FROM scratch\nRUN cat <<EOF", 2, "not supported");
        check("# escape=`\nFROM scratch", 1, "escape");
    }
}
