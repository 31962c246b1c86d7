//! Follows the instructions of a file, one after the other, and puts the result into the store.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::context::Context;
use super::file::{self, Keyword, Step};
use super::packages;
use super::stage::{Stage, arguments};
use super::{Build, BuildError, changes, digest, run, words};
use crate::image::layer::Budget;
use crate::image::store::{ImageError, Record, doing};
use crate::image::{Image, ImageConfig, ImageStore, Progress, PullPolicy, Reference};
use crate::{tree, volume};

const FILES: [&str; 2] = ["Dockerfile", "Containerfile"];
/// The most that is read of a file with instructions, one byte more than is accepted.
const FILE_BYTES_MAX: u64 = (1 << 20) + 1;

impl ImageStore {
    /// Builds an image and puts it into the store under a name; `progress` hears of every step and of what programs say.
    ///
    /// # Errors
    /// Each names the line of the file that could not be followed.
    pub async fn build(&self, build: &Build, progress: Progress<'_>) -> Result<Image, BuildError> {
        let reference: Reference = build.name.parse().map_err(ImageError::from)?;
        let (file, text) = instructions(build)?;
        let line = |line: usize, problem: String| BuildError::Line { file: file.display().to_string(), line, problem };
        let steps = file::parse(&text).map_err(|error| line(error.line, error.problem))?;
        let context = Context::open(&build.context).map_err(BuildError::NoFile)?;
        let _lock = self.lock(&reference).await?;
        let mut assembly = Assembly {
            store: self,
            given: &build.arguments,
            globals: BTreeMap::new(),
            context: Arc::new(context),
            work: Work::new(self)?,
            stages: Vec::new(),
            budget: Budget::default(),
            progress,
        };
        for (index, step) in steps.iter().enumerate() {
            progress(format!("step {}/{}: {}", index + 1, steps.len(), step.text));
            assembly.follow(step).await.map_err(|problem| line(step.line, problem))?;
        }
        let record = assembly.finish(&file).await?;
        self.remember(&reference, &record)?;
        Ok(self.image(record))
    }
}

/// The file with the instructions and its text.
fn instructions(build: &Build) -> Result<(PathBuf, String), BuildError> {
    if !build.context.is_dir() {
        return Err(BuildError::NoFile(format!("{} is no folder", build.context.display())));
    }
    let found = FILES.iter().map(|name| build.context.join(name)).find(|path| path.is_file());
    let path = build.file.clone().or(found).ok_or_else(|| {
        BuildError::NoFile(format!(
            "{} has no {}: name the file with the instructions with --file",
            build.context.display(),
            FILES.join(" or ")
        ))
    })?;
    let mut text = String::new();
    let read = File::open(&path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| BuildError::NoFile(format!("{}: {error}", path.display())))?;
    Ok((path, text))
}

/// A folder for everything that a build makes; gone with it.
struct Work(PathBuf);

impl Work {
    fn new(store: &ImageStore) -> Result<Self, ImageError> {
        let building = store.directory().join("building");
        fs::create_dir_all(&building).map_err(doing(format!("create {}", building.display())))?;
        let folder = tempfile::Builder::new().prefix("build").tempdir_in(&building);
        Ok(Self(folder.map_err(doing("create a folder for the image"))?.keep()))
    }

    fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.0.join(name);
        fs::create_dir_all(&folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
        Ok(folder)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Err(error) = tree::remove(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "what a build left was not removed");
        }
    }
}

/// A build under way.
struct Assembly<'a> {
    store: &'a ImageStore,
    given: &'a BTreeMap<String, String>,
    /// Variables from before the first stage.
    globals: BTreeMap<String, String>,
    context: Arc<Context>,
    work: Work,
    stages: Vec<Stage>,
    budget: Budget,
    progress: Progress<'a>,
}

impl Assembly<'_> {
    async fn follow(&mut self, step: &Step) -> Result<(), String> {
        match (step.keyword, self.stages.last_mut()) {
            (Keyword::From, _) => self.begin(step).await,
            (Keyword::Arg, None) => {
                for (name, default) in arguments(&step.rest, &|name| self.globals.get(name).cloned())? {
                    let value = self.given.get(&name).cloned().or(default);
                    self.globals.extend(value.map(|value| (name, value)));
                }
                Ok(())
            }
            (Keyword::Arg, Some(stage)) => stage.argue(step, self.given, &self.globals),
            (Keyword::Copy, Some(_)) => self.copy(step).await,
            (Keyword::Run, Some(_)) => self.run(step).await,
            (Keyword::Ignored, _) => {
                (self.progress)("this instruction means nothing to Pods: their probes do its work".to_owned());
                Ok(())
            }
            (_, Some(stage)) => stage.apply(step),
            (_, None) => Err("the first instruction must be FROM".to_owned()),
        }
    }

    fn stage(&mut self) -> Result<&mut Stage, String> {
        self.stages.last_mut().ok_or_else(|| "the first instruction must be FROM".to_owned())
    }

    async fn begin(&mut self, step: &Step) -> Result<(), String> {
        if let Some((name, _)) = step.flags.first() {
            return Err(format!("FROM --{name} is not supported"));
        }
        let words = words::split(&step.rest, &|name| self.globals.get(name).cloned())?;
        let (image, name) = match words.as_slice() {
            [image] => (image, None),
            [image, word, name] if word.eq_ignore_ascii_case("as") => (image, Some(name.to_lowercase())),
            _ => return Err("write FROM IMAGE, or FROM IMAGE AS NAME".to_owned()),
        };
        let rootfs = self.work.folder(&format!("stage-{}", self.stages.len()))?;
        let (from, config) = match image.as_str() {
            "scratch" => (None, ImageConfig { workdir: "/".to_owned(), ..ImageConfig::default() }),
            image => self.files_of(image).await.map(|(files, config)| (Some(files), config))?,
        };
        if let Some(from) = from {
            let to = rootfs.clone();
            let begun = tokio::task::spawn_blocking(move || changes::begin(&from, &to)).await;
            begun.expect("linking does not panic").map_err(|error| format!("take the files of {image}: {error}"))?;
        }
        self.stages.push(Stage::new(name, rootfs, config));
        Ok(())
    }

    /// The files of a stage, by name or number, or of an image.
    async fn files_of(&self, name: &str) -> Result<(PathBuf, ImageConfig), String> {
        let named = self.stages.iter().position(|stage| stage.name.as_deref() == Some(&name.to_lowercase()));
        let numbered = name.parse::<usize>().ok().filter(|number| *number < self.stages.len());
        if let Some(index) = named.or(numbered) {
            return Ok((self.stages[index].rootfs.clone(), self.stages[index].config.clone()));
        }
        let found = self.store.ensure(name, PullPolicy::IfNotPresent, self.progress).await;
        let image = found.map_err(|error| error.to_string())?;
        let files = image.rootfs.ok_or("the machine's own files are no beginning of an image: use FROM scratch")?;
        Ok((files, image.config))
    }

    async fn copy(&mut self, step: &Step) -> Result<(), String> {
        let (copy, from) = self.stage()?.copy(step)?;
        let context = match from {
            Some(name) => Arc::new(Context::of_image(&self.files_of(&name).await?.0)),
            None => Arc::clone(&self.context),
        };
        let (rootfs, scratch, mut budget) = (self.stage()?.rootfs.clone(), self.work.0.clone(), self.budget);
        let copied =
            tokio::task::spawn_blocking(move || context.copy(&copy, &rootfs, &mut budget, &scratch).map(|()| budget));
        self.budget = copied.await.expect("copying does not panic")?;
        Ok(())
    }

    async fn run(&mut self, step: &Step) -> Result<(), String> {
        let process = self.stage()?.process(step)?;
        let rootfs = self.stage()?.rootfs.clone();
        if let Some(wanted) = packages::wanted(&step.rest) {
            return packages::install(self.store, &wanted, &rootfs, self.progress).await;
        }
        let scratch = self.work.folder("run")?;
        let upper = run::run(&rootfs, &scratch, process, self.progress).await?;
        let taken = tokio::task::spawn_blocking(move || {
            changes::take(&upper, &rootfs).and_then(|()| tree::remove(&scratch)).map(|()| volume::size(&rootfs))
        });
        let size = taken.await.expect("moving does not panic").map_err(|error| format!("keep the changes: {error}"))?;
        if size > Budget::default().bytes { Err("the image is too large".to_owned()) } else { Ok(()) }
    }

    /// Puts the last stage into the store.
    async fn finish(mut self, file: &Path) -> Result<Record, BuildError> {
        let Some(stage) = self.stages.pop() else { return Err(BuildError::NoFile("nothing was built".to_owned())) };
        let (store, config, rootfs) = (self.store.clone(), stage.config.clone(), stage.rootfs);
        let published = tokio::task::spawn_blocking(move || {
            let sum = digest::digest(&rootfs, &config).map_err(doing("read the image"))?;
            let id = format!("build-{sum}");
            store.publish(&id, |place| {
                let moved = fs::remove_dir(place).and_then(|()| fs::rename(&rootfs, place));
                moved.map_err(doing("move the image"))
            })?;
            Ok::<String, ImageError>(id)
        });
        let id = published.await.expect("publishing does not panic")?;
        Ok(Record { id, config: stage.config, source: format!("built from {}", file.display()) })
    }
}
