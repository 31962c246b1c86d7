//! controller-runtime's own envtest suites, unchanged, on Windlass and on the real kube-apiserver with etcd.

mod go_test;
mod leftover;
mod outcome;
mod specs;
mod table;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::subject::Subject;
use crate::tools;
use crate::workspace::{root, run as run_command};
use outcome::{Outcome, Verdict};
use table::Row;

const MODULE: &str = "sigs.k8s.io/controller-runtime";
/// The newest release.
const RELEASE: &str = "v0.25.2";
/// The packages whose suites start an API server.
const PACKAGES: [&str; 17] = [
    "pkg/builder",
    "pkg/cache",
    "pkg/client",
    "pkg/client/apiutil",
    "pkg/cluster",
    "pkg/controller",
    "pkg/controller/controllerutil",
    "pkg/envtest",
    "pkg/handler",
    "pkg/internal/controller",
    "pkg/internal/recorder",
    "pkg/manager",
    "pkg/manager/internal/integration",
    "pkg/metrics/filters",
    "pkg/reconcile",
    "pkg/source",
    "pkg/webhook",
];
/// The release that one suite would download because it can switch aggregated discovery off; found in the data folder
/// it is not downloaded.
const OLD_RELEASE: &str = "kubebuilder-envtest/k8s/1.28.0-linux-amd64";
/// How long the suite of one package may take.
const PACKAGE_TIME_MAX: &str = "15m";
/// How often a spec may try: several of them give the machine milliseconds, which a busy one does not have.
const ATTEMPTS_MAX: u32 = 3;
/// Where the results are written, in the workspace.
const RESULTS: &str = "docs/conformance-controller-runtime.md";

/// Options of `conformance controller-runtime`.
#[derive(Args)]
pub(crate) struct Options {
    /// The packages, such as pkg/client; all if none is named.
    packages: Vec<String>,
    /// Run on one side alone.
    #[arg(long, value_enum)]
    only: Option<Side>,
    #[command(flatten)]
    subject: Subject,
    /// Only specs whose name matches.
    #[arg(long)]
    focus: Option<String>,
}

/// What the suites run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Side {
    Windlass,
    Real,
}

/// Runs the suites, prints the table, and writes it down when it is whole.
pub(crate) fn run(options: &Options) -> Result<()> {
    let place = root().join("target/conformance");
    let source = source(&place)?;
    let windlass = (options.only != Some(Side::Real)).then(|| windlass_assets(&place, options)).transpose()?;
    let real = (options.only != Some(Side::Windlass)).then(|| real_assets(&place)).transpose()?;
    let mut rows = Vec::new();
    for package in packages(options)? {
        let program = build(&place, &source, package)?;
        let suite = Suite { package, program, source: &source, focus: options.focus.as_deref() };
        let row = Row {
            package: package.to_owned(),
            windlass: windlass.as_ref().map(|assets| suite.run(assets)).transpose()?,
            real: real.as_ref().map(|assets| suite.run(assets)).transpose()?,
        };
        report(&row);
        rows.push(row);
    }
    println!("\n{MODULE} {RELEASE}\n\n{}", table::table(&rows));
    if rows.len() == PACKAGES.len() && windlass.is_some() && real.is_some() && options.focus.is_none() {
        fs::write(root().join(RESULTS), document(&rows))?;
    }
    let regressions: usize = rows.iter().map(|row| row.regressions().count()).sum();
    match regressions {
        0 => Ok(()),
        count => bail!("{count} specs fail on Windlass that should pass; the logs are in {}", place.display()),
    }
}

fn packages(options: &Options) -> Result<Vec<&'static str>> {
    if options.packages.is_empty() {
        return Ok(PACKAGES.to_vec());
    }
    let known = |name: &String| {
        let name = name.trim_end_matches('/');
        let found = PACKAGES.into_iter().find(|package| *package == name || package.strip_prefix("pkg/") == Some(name));
        found.with_context(|| format!("{name} has no envtest suite; these have: {}", PACKAGES.join(" ")))
    };
    options.packages.iter().map(known).collect()
}

/// The module's source in a folder of ours: suites write next to their sources, and the module cache is read-only.
fn source(place: &Path) -> Result<PathBuf> {
    let target = place.join(format!("controller-runtime-{RELEASE}"));
    if target.is_dir() {
        return Ok(target);
    }
    fs::create_dir_all(place)?;
    let scratch = place.join("download");
    fs::create_dir_all(&scratch)?;
    fs::write(scratch.join("go.mod"), "module download\n")?;
    let mut download = Command::new(tools::go()?);
    download.current_dir(&scratch).args(["mod", "download", "-json", &format!("{MODULE}@{RELEASE}")]);
    let answer: serde_json::Value = serde_json::from_slice(&download.output()?.stdout)?;
    let Some(dir) = answer["Dir"].as_str() else { bail!("{MODULE} cannot be downloaded: {}", answer["Error"]) };
    let partial = place.join(format!("controller-runtime-{RELEASE}.{}.partial", std::process::id()));
    run_command(Command::new("cp").args(["-r", "--no-preserve=mode", dir]).arg(&partial))?;
    fs::rename(&partial, &target)?;
    Ok(target)
}

/// The test program of a package; Go rebuilds it only when something changed.
fn build(place: &Path, source: &Path, package: &str) -> Result<PathBuf> {
    let program = place.join("bin").join(format!("{}.test", package.replace('/', "-")));
    let mut build = Command::new(tools::go()?);
    build.current_dir(source).args(["test", "-c", "-o"]).arg(&program).arg(format!("./{package}"));
    run_command(&mut build)?;
    Ok(program)
}

/// A folder with the three programs, and a data folder that has them under another name.
struct Assets {
    side: Side,
    programs: PathBuf,
    data: PathBuf,
}

fn windlass_assets(place: &Path, options: &Options) -> Result<Assets> {
    let windlass = options.subject.program()?;
    let assets = Assets::at(place, Side::Windlass);
    for folder in [&assets.programs, &assets.data.join(OLD_RELEASE)] {
        let mut envtest = Command::new(&windlass);
        run_command(
            envtest
                .arg("envtest")
                .arg(folder)
                .arg("--kubectl")
                .arg(tools::kubectl()?)
                .stdout(File::create("/dev/null")?),
        )?;
    }
    Ok(assets)
}

fn real_assets(place: &Path) -> Result<Assets> {
    let programs =
        [("kube-apiserver", tools::kube_apiserver()?), ("etcd", tools::etcd()?), ("kubectl", tools::kubectl()?)];
    let assets = Assets::at(place, Side::Real);
    for folder in [&assets.programs, &assets.data.join(OLD_RELEASE)] {
        fs::create_dir_all(folder)?;
        for (name, program) in &programs {
            let link = folder.join(name);
            fs::remove_file(&link).ok();
            std::os::unix::fs::symlink(program, &link)?;
        }
    }
    Ok(assets)
}

impl Assets {
    fn at(place: &Path, side: Side) -> Self {
        let name = side.name();
        Assets { side, programs: place.join(format!("assets {name}")), data: place.join(format!("data {name}")) }
    }
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Windlass => "windlass",
            Side::Real => "real",
        }
    }
}

/// The suite of one package.
struct Suite<'a> {
    package: &'a str,
    program: PathBuf,
    source: &'a Path,
    focus: Option<&'a str>,
}

impl Suite<'_> {
    fn run(&self, assets: &Assets) -> Result<Outcome> {
        let stem = self.program.with_extension(assets.side.name());
        let (report, log) = (stem.with_added_extension("json"), stem.with_added_extension("log"));
        fs::remove_file(&report).ok();
        let output = File::create(&log)?;
        let mut command = Command::new(&self.program);
        command
            .current_dir(self.source.join(self.package))
            .env("KUBEBUILDER_ASSETS", &assets.programs)
            .env("XDG_DATA_HOME", &assets.data)
            .args(["-test.v", "-test.timeout", PACKAGE_TIME_MAX, "-ginkgo.no-color"])
            .arg(format!("-ginkgo.flake-attempts={ATTEMPTS_MAX}"))
            .arg(format!("-ginkgo.json-report={}", report.display()))
            .stdout(output.try_clone()?)
            .stderr(output);
        if let Some(focus) = self.focus {
            command.arg(format!("-ginkgo.focus={focus}"));
        }
        let started = Instant::now();
        let status = command.status().with_context(|| format!("cannot start {}", self.program.display()))?;
        let ended = leftover::end(&assets.programs)?;
        if ended > 0 {
            println!("{:<9} {:<34} ended {ended} servers that the suite left", assets.side.name(), self.package);
        }
        let mut outcome = Outcome::lasting(started.elapsed());
        go_test::read(&String::from_utf8_lossy(&fs::read(&log)?), &mut outcome);
        if let Ok(report) = fs::read_to_string(&report) {
            specs::add(&report, &mut outcome)?;
        }
        if !status.success() && outcome.failed() == 0 {
            let why = format!("the test program ended with {status}; its output is in {}", log.display());
            outcome.add("[the program itself]", Verdict::Failed(why));
        }
        Ok(outcome)
    }
}

fn report(row: &Row) {
    for (side, outcome) in [("windlass", &row.windlass), ("real", &row.real)] {
        let Some(outcome) = outcome else { continue };
        let (passed, failed, skipped) = (outcome.passed(), outcome.failed(), outcome.skipped());
        let seconds = outcome.duration.as_secs_f64();
        println!("{side:<9} {:<34} {passed} passed, {failed} failed, {skipped} skipped ({seconds:.1} s)", row.package);
        for (name, message) in outcome.failures() {
            println!("            {name}: {}", message.lines().next().unwrap_or_default());
        }
    }
}

fn document(rows: &[Row]) -> String {
    let failures = table::failures(rows);
    let failures = if failures.is_empty() { "Nothing failed.\n".to_owned() } else { failures };
    let unsteady = table::unsteady(rows);
    let unsteady = if unsteady.is_empty() { "Everything passed at its first try.\n".to_owned() } else { unsteady };
    format!(
        "# controller-runtime's suites\n\n<!-- Written by `cargo xtask conformance controller-runtime`. -->\n\n\
         The envtest suites of `{MODULE}` {RELEASE}, unchanged, run through `windlass envtest`, next to the same run on\n\
         the real kube-apiserver {} with etcd on the same machine. One suite of pkg/client/apiutil switches aggregated\n\
         discovery off; upstream downloads Kubernetes 1.28 for it, because later releases of kube-apiserver cannot.\n\n\
         {}\n## Failures\n\n{failures}\n## Not at the first try\n\nSpecs have {ATTEMPTS_MAX} tries on both sides.\n\n\
         {unsteady}",
        tools::KUBERNETES,
        table::table(rows),
    )
}
