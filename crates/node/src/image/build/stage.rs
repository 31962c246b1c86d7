//! One stage of a build: files, configuration and variables, and what instructions make of them.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::context::Copy;
use super::file::{Keyword, Step};
use super::words;
use crate::image::{ImageConfig, find_groups, find_user};
use crate::pod::signal_number;
use crate::sandbox::{Identity, Process, Rights, resolve};

const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// One stage of a build.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) name: Option<String>,
    pub(super) rootfs: PathBuf,
    pub(super) config: ImageConfig,
    /// What the text form of a command is given to.
    shell: Vec<String>,
    /// Variables that last as long as the build.
    arguments: BTreeMap<String, String>,
    /// Whether this stage said what is run; else a new entry point does away with what the image before said.
    has_command: bool,
}

impl Stage {
    pub(super) fn new(name: Option<String>, rootfs: PathBuf, config: ImageConfig) -> Self {
        let shell = vec!["/bin/sh".to_owned(), "-c".to_owned()];
        Self { name, rootfs, config, shell, arguments: BTreeMap::new(), has_command: false }
    }

    /// A variable: of the image, or of the build.
    fn variable(&self, name: &str) -> Option<String> {
        let own = self.config.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        own.or_else(|| self.arguments.get(name).cloned())
    }

    /// Follows an instruction that needs nothing but the stage.
    pub(super) fn apply(&mut self, step: &Step) -> Result<(), String> {
        let text = step.rest.as_str();
        let lookup = |name: &str| self.variable(name);
        match step.keyword {
            Keyword::Env => words::pairs(text, &lookup)?.into_iter().for_each(|(name, value)| self.set(name, value)),
            Keyword::Label => self.config.labels.extend(words::pairs(text, &lookup)?),
            Keyword::Workdir => {
                self.config.workdir = self.absolute(&words::whole(text, &lookup)?);
                make_folder(&self.rootfs, &self.config.workdir)?;
            }
            Keyword::User => self.config.user = words::whole(text, &lookup)?,
            Keyword::Entrypoint => {
                self.config.entrypoint = self.command(text)?;
                if !self.has_command {
                    self.config.cmd.clear();
                }
            }
            Keyword::Cmd => (self.config.cmd, self.has_command) = (self.command(text)?, true),
            Keyword::Shell => {
                self.shell = words::list(text)?.filter(|list| !list.is_empty()).ok_or("SHELL needs a list")?;
            }
            Keyword::Expose => words::split(text, &lookup)?.iter().try_for_each(|port| check_port(port))?,
            Keyword::Volume => {
                let paths = words::list(text)?.map_or_else(|| words::split(text, &lookup), Ok)?;
                paths.iter().try_for_each(|path| make_folder(&self.rootfs, path))?;
            }
            Keyword::StopSignal => {
                let name = words::whole(text, &lookup)?;
                signal_number(&name).ok_or_else(|| format!("{name:?} is no signal"))?;
                self.config.stop_signal = Some(name);
            }
            Keyword::From | Keyword::Arg | Keyword::Copy | Keyword::Run | Keyword::Ignored => {}
        }
        Ok(())
    }

    /// Declares a variable of the build: as given, or as before the first stage, or as the instruction says.
    pub(super) fn argue(
        &mut self,
        step: &Step,
        given: &BTreeMap<String, String>,
        before: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        for (name, default) in arguments(&step.rest, &|name| self.variable(name))? {
            let value = given.get(&name).cloned().or(default).or_else(|| before.get(&name).cloned());
            self.arguments.extend(value.map(|value| (name, value)));
        }
        Ok(())
    }

    /// What a COPY copies, and from which stage or image if not from the context.
    pub(super) fn copy(&self, step: &Step) -> Result<(Copy, Option<String>), String> {
        let lookup = |name: &str| self.variable(name);
        let mut copy = Copy { sources: Vec::new(), destination: String::new(), owner: (0, 0), mode: None };
        let mut from = None;
        for (name, value) in &step.flags {
            let value = words::whole(value, &lookup)?;
            match name.as_str() {
                "from" => from = Some(value),
                "chown" => {
                    let found = find_user(&self.rootfs, &value);
                    let found = found.ok_or_else(|| format!("the image has no user {value:?}"))?;
                    copy.owner = (found.uid, found.gid);
                }
                "chmod" => {
                    let mode = u32::from_str_radix(&value, 8).ok().filter(|mode| *mode <= 0o7777);
                    copy.mode = Some(mode.ok_or_else(|| format!("{value:?} is no mode in octal digits"))?);
                }
                // Of no consequence for what is copied.
                "link" => {}
                other => return Err(format!("COPY --{other} is not supported")),
            }
        }
        let mut paths = words::list(&step.rest)?.map_or_else(|| words::split(&step.rest, &lookup), Ok)?;
        let destination = paths.pop().filter(|_| !paths.is_empty()).ok_or("COPY needs a source and a destination")?;
        copy.sources = paths;
        copy.destination = self.absolute(&destination);
        Ok((copy, from))
    }

    /// The program of a RUN.
    pub(super) fn process(&self, step: &Step) -> Result<Process, String> {
        if let Some((name, _)) = step.flags.first() {
            return Err(format!("RUN --{name} is not supported"));
        }
        let arguments = self.arguments.iter().filter(|(name, _)| !self.config.env.iter().any(|(own, _)| own == *name));
        let mut env: Vec<(String, String)> = self.config.env.clone();
        env.extend(arguments.map(|(name, value)| (name.clone(), value.clone())));
        for (name, value) in [("PATH", PATH_DEFAULT), ("HOME", "/")] {
            if !env.iter().any(|(known, _)| known == name) {
                env.push((name.to_owned(), value.to_owned()));
            }
        }
        let user = match self.config.user.as_str() {
            "" => Identity::default(),
            name => find_user(&self.rootfs, name).ok_or_else(|| format!("the image has no user {name:?}"))?,
        };
        let user = Identity { groups: find_groups(&self.rootfs, user.uid), ..user };
        let workdir = if self.config.workdir.is_empty() { "/" } else { &self.config.workdir };
        Ok(Process { argv: self.command(&step.rest)?, env, workdir: workdir.into(), user, rights: Rights::default() })
    }

    fn set(&mut self, name: String, value: String) {
        match self.config.env.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.config.env.push((name, value)),
        }
    }

    fn command(&self, text: &str) -> Result<Vec<String>, String> {
        let list = words::list(text)?;
        Ok(list.unwrap_or_else(|| self.shell.iter().cloned().chain([text.to_owned()]).collect()))
    }

    /// A path from the working directory; a slash at its end stays.
    fn absolute(&self, path: &str) -> String {
        let whole = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.config.workdir) };
        let mut parts: Vec<&str> = Vec::new();
        for part in whole.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let end = if path.ends_with('/') || path == "." || path.ends_with("/.") { "/" } else { "" };
        if parts.is_empty() { "/".to_owned() } else { format!("/{}{end}", parts.join("/")) }
    }
}

/// Names and defaults of an ARG.
pub(super) fn arguments(text: &str, lookup: words::Lookup<'_>) -> Result<Vec<(String, Option<String>)>, String> {
    let split = |word: String| match word.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (word, None),
    };
    Ok(words::split(text, lookup)?.into_iter().map(split).collect())
}

/// `80`, `80/tcp`, `8000-8010/udp`.
fn check_port(text: &str) -> Result<(), String> {
    let (ports, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let good = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    match good(first) && good(last) && ["tcp", "udp", "sctp"].contains(&protocol) {
        true => Ok(()),
        false => Err(format!("{text:?} is no port: write 80, 80/tcp or 8000-8010/udp")),
    }
}

/// Makes a folder of an image, if it is not there.
fn make_folder(rootfs: &Path, path: &str) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("make the folder {path}: {error}");
    let resolved = resolve(rootfs, Path::new(path)).map_err(fail)?;
    let mut place = rootfs.to_owned();
    for part in resolved.components().filter(|part| matches!(part, Component::Normal(_))) {
        place.push(part);
        if !place.is_dir() {
            fs::create_dir(&place)
                .and_then(|()| fs::set_permissions(&place, Permissions::from_mode(0o755)))
                .map_err(fail)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::*;

    fn built(text: &str) -> Result<ImageConfig, String> {
        let dir = tempfile::tempdir().unwrap();
        let mut stage = Stage::new(None, dir.path().to_owned(), ImageConfig::default());
        for step in parse(&format!("FROM scratch\n{text}")).unwrap() {
            match step.keyword {
                Keyword::Arg => {
                    stage.argue(&step, &BTreeMap::from([("given".to_owned(), "g".to_owned())]), &BTreeMap::new())?
                }
                _ => stage.apply(&step)?,
            }
        }
        Ok(stage.config)
    }

    #[test]
    fn instructions_make_a_configuration() {
        let config = built("ARG given=d\nARG other=o\nENV A=$given-$other B=\"$A\"\nENV A 2\nWORKDIR /srv\nWORKDIR app\nCMD run \"$A\"\nENTRYPOINT [\"/bin/x\"]\nSTOPSIGNAL SIGINT\nLABEL a.b=c\nEXPOSE 80 90/udp\nUSER 1000").unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(config.env, [pair("A", "2"), pair("B", "")], "an instruction sees what was before it");
        assert_eq!((config.workdir.as_str(), config.user.as_str()), ("/srv/app", "1000"));
        assert_eq!(config.entrypoint, ["/bin/x"]);
        assert_eq!(config.cmd, ["/bin/sh", "-c", "run \"$A\""]);
        assert_eq!(config.stop_signal.as_deref(), Some("SIGINT"));
        assert_eq!(config.labels.get("a.b").map(String::as_str), Some("c"));
    }

    #[test]
    fn mistakes_are_told() {
        let check = |text: &str, problem: &str| {
            let error = built(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        };
        check("EXPOSE http", "is no port");
        check("STOPSIGNAL SIGNONE", "is no signal");
        check("CMD ['x']", "double quotes");
        check("ENV A=1 B", "is not NAME=VALUE");
        check("SHELL sh", "needs a list");
    }

    #[test]
    fn destinations_begin_at_the_working_directory() {
        let mut stage = Stage::new(None, PathBuf::from("/nowhere"), ImageConfig::default());
        stage.config.workdir = "/app".to_owned();
        let check = |path: &str, expect: &str| assert_eq!(stage.absolute(path), expect, "{path}");
        check("x", "/app/x");
        check(".", "/app/");
        check("./", "/app/");
        check("../y/", "/y/");
        check("/a//b", "/a/b");
        check("/../..", "/");
    }
}
