//! The rounds: each measures everything on one side, then on the other.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Size;
use super::disk;
use super::goals::{IN_FLIGHT, VERBS};
use super::programs::Programs;
use super::server::{Server, Side};

/// How many objects updates, applies and gets go round.
const RATE_OBJECTS: usize = 1_000;
/// How many watch, and the writes that they see: so many that a single slow sync does not decide the 99th percentile.
const WATCHES: [(usize, usize); 2] = [(1, 1_000), (100, 1_000)];

/// Values by name, one per round.
pub(super) type Values = BTreeMap<String, Vec<f64>>;

/// What was measured.
#[derive(Default)]
pub(super) struct Results {
    pub(super) windlass: Values,
    pub(super) real: Values,
    /// What a sync of the disk took, before each round: no durable write is quicker, on either side.
    pub(super) syncs: Vec<disk::Sync>,
}

/// Measures what is wanted.
pub(super) fn measure(programs: &Programs, size: Size, wanted: &dyn Fn(&str) -> bool) -> Result<Results> {
    let mut results = Results::default();
    for round in 1..=size.rounds {
        results.syncs.push(disk::measure(&programs.work)?);
        for side in [Side::Windlass, Side::Real] {
            eprintln!("round {round} of {}: {side:?}", size.rounds);
            let values = match side {
                Side::Windlass => &mut results.windlass,
                Side::Real => &mut results.real,
            };
            Round { programs, size, side, values }.run(wanted)?;
        }
        if wanted("start") {
            let values = in_process(programs)?;
            results.windlass.entry("start_in_process_ms".to_owned()).or_default().push(values);
        }
    }
    Ok(results)
}

/// The median of some starts in one process, the first included.
fn in_process(programs: &Programs) -> Result<f64> {
    let output = Command::new(&programs.in_process).output().context("cannot start clusters in a process")?;
    let text = String::from_utf8(output.stdout)?;
    let mut times = text.lines().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().context("no cluster started")
}

/// One side in one round.
struct Round<'a> {
    programs: &'a Programs,
    size: Size,
    side: Side,
    values: &'a mut Values,
}

impl Round<'_> {
    fn run(&mut self, wanted: &dyn Fn(&str) -> bool) -> Result<()> {
        if ["start", "idle", "object", "list", "watch"].iter().any(|name| wanted(name)) {
            self.objects(wanted)?;
        }
        for (mode, durable) in [("durable", true), ("relaxed", false)] {
            if wanted(mode) || VERBS.iter().any(|verb| wanted(verb)) {
                self.rates(mode, durable, wanted)?;
            }
        }
        if wanted("definitions") {
            self.definitions()?;
        }
        Ok(())
    }

    fn push(&mut self, name: &str, value: f64) {
        self.values.entry(name.to_owned()).or_default().push(value);
    }

    /// Start, idle memory, memory per object, lists, watches: on one server that fills up.
    fn objects(&mut self, wanted: &dyn Fn(&str) -> bool) -> Result<()> {
        let server = Server::start(self.programs, self.side, true)?;
        self.push("start_s", server.start_s);
        self.push("start_cpu_s", server.start_cpu_s);
        let idle = server.memory()?;
        self.push("idle_mb", idle / 1e6);
        if !["object", "list", "watch"].iter().any(|name| wanted(name)) {
            return Ok(());
        }
        server.load.run(&["define"])?;
        let (before, count) = (server.memory()?, self.size.objects.to_string());
        server.load.run(&["rate", "--verb", "create", "--in-flight", "64", "--count", &count])?;
        self.push("object_kb", (server.memory()? - before) / 1e3 / self.size.objects as f64);
        if wanted("list") {
            let cpu = server.cpu()?;
            let lists = server.load.run(&["list", "--objects", &count, "--times", "3"])?;
            self.push("list_cpu_s", (server.cpu()? - cpu) / 3.0);
            self.push("list_whole_s", number(&lists, "whole_s")?);
            self.push("list_paged_s", number(&lists, "paged_s")?);
        }
        if wanted("watch") {
            self.watches(&server, "")?;
            drop(server);
            // As warm and as full as the one before.
            let server = Server::start(self.programs, self.side, false)?;
            server.load.run(&["define"])?;
            server.load.run(&["rate", "--verb", "create", "--in-flight", "64", "--count", &count])?;
            self.watches(&server, "relaxed_")?;
        }
        Ok(())
    }

    /// The time from a write to its event; without a disk it is all the server's own.
    fn watches(&mut self, server: &Server, mode: &str) -> Result<()> {
        for (watchers, writes) in WATCHES {
            let (cpu, prefix) = (server.cpu()?, format!("watched{watchers}"));
            let arguments = ["--count", &writes.to_string(), "--prefix", &prefix].map(str::to_owned);
            let watchers_text = watchers.to_string();
            let mut all = vec!["watch", "--watchers", &watchers_text];
            all.extend(arguments.iter().map(String::as_str));
            let times = server.load.run(&all)?;
            let name = format!("watch_{watchers}_{mode}");
            self.push(&format!("{name}p50_ms"), number(&times, "p50_ms")?);
            self.push(&format!("{name}p99_ms"), number(&times, "p99_ms")?);
            let per_event = (server.cpu()? - cpu) * 1e6 / (watchers * writes) as f64;
            self.push(&format!("{name}cpu_us"), per_event);
        }
        Ok(())
    }

    /// Requests per second, and the processor time of the server for each.
    fn rates(&mut self, mode: &str, durable: bool, wanted: &dyn Fn(&str) -> bool) -> Result<()> {
        let server = Server::start(self.programs, self.side, durable)?;
        server.load.run(&["define"])?;
        let objects = RATE_OBJECTS.to_string();
        server.load.run(&["rate", "--verb", "create", "--in-flight", "16", "--count", &objects])?;
        for (index, in_flight) in IN_FLIGHT.into_iter().enumerate() {
            let count = self.size.requests * if in_flight == 1 { 1 } else { 6 };
            for verb in VERBS.iter().filter(|verb| wanted(mode) || wanted(verb)) {
                let (count_text, in_flight_text) = (count.to_string(), in_flight.to_string());
                let (prefix, round) = (format!("made{in_flight}"), (1000 * (index + 1)).to_string());
                let mut all = vec!["rate", "--verb", verb, "--count", &count_text, "--in-flight", &in_flight_text];
                match *verb {
                    "create" => all.extend(["--prefix", &prefix]),
                    _ => all.extend(["--objects", &objects, "--round", &round]),
                }
                let cpu = server.cpu()?;
                let rate = server.load.run(&all)?;
                self.push(&format!("{verb}_{in_flight}_{mode}_per_s"), number(&rate, "per_s")?);
                let each = (server.cpu()? - cpu) * 1e3 / count as f64;
                self.push(&format!("{verb}_{in_flight}_{mode}_cpu_ms"), each);
            }
        }
        Ok(())
    }

    fn definitions(&mut self) -> Result<()> {
        let server = Server::start(self.programs, self.side, false)?;
        let before = server.memory()?;
        let result = server.load.run(&["definitions", "--count", &self.size.definitions.to_string()])?;
        self.push("definitions_mb", (server.memory()? - before) / 1e6);
        self.push("definitions_served_s", number(&result, "served_s")?);
        self.push("definitions_discovery_ms", number(&result, "discovery_ms")?);
        Ok(())
    }
}

/// A number of a result of the load generator.
pub(super) fn number(result: &Value, name: &str) -> Result<f64> {
    result[name].as_f64().with_context(|| format!("the load generator gave no {name}"))
}
