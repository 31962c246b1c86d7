//! `windlass status`: the embedded cluster at a glance.

use std::path::Path;

use kube::Client;
use serde_json::Value;

use super::request;
use crate::arguments::Target;
use crate::connection::{connect, dir};
use crate::failure::Failure;
use crate::resource::{Catalog, Resource};
use crate::view::columns::lay_out;
use crate::view::output::show;
use crate::view::paint::{Colour, paint};
use crate::view::readiness::{Readiness, judge};

/// Runs the command.
pub(crate) async fn run(target: &Target) -> Result<(), Failure> {
    let dir = dir(target);
    let Some(pid) = windlass_cluster::holder(&dir) else {
        return Err(Failure::no_cluster(format!("no cluster runs in {}", dir.display()))
            .advice(format!("start one with `windlass up --dir {}`", dir.display())));
    };
    let target = Target { dir: Some(dir.clone()), kubeconfig: None, context: None, ..target.clone() };
    let connection = connect(&target).await?;
    let version = connection.client.apiserver_version().await?;
    let mut rows = vec![
        vec!["cluster".to_owned(), format!("process {pid}, Kubernetes API {}", version.git_version)],
        vec!["kubeconfig".to_owned(), std::path::absolute(dir.join("kubeconfig"))?.display().to_string()],
    ];
    if let Some(memory) = resident_mib(pid) {
        rows.push(vec![
            "memory".to_owned(),
            format!("{memory:.0} MiB resident, {:.1} s of CPU so far", cpu_seconds(pid)),
        ]);
    }
    rows.extend(limits(&connection.client).await?.map(|limits| vec!["limits".to_owned(), limits]));
    show!("{}", lay_out(&rows));
    let catalog = Catalog::of(&connection.client).await?;
    show!("\n{}", lay_out(&objects(&connection.client, &catalog).await?));
    Ok(())
}

/// How the node holds Pods to their limits, if there is one that runs any.
async fn limits(client: &Client) -> Result<Option<String>, Failure> {
    let nodes = request::get(client, "/api/v1/nodes", &[]).await?;
    let mut said = nodes["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|node| node["metadata"]["annotations"]["windlass.dev/limits"].as_str());
    Ok(said.next().map(str::to_owned))
}

/// Deployments and everything of operators' kinds, with what they say of themselves.
async fn objects(client: &Client, catalog: &Catalog) -> Result<Vec<Vec<String>>, Failure> {
    let mut rows = vec![vec!["NAMESPACE".to_owned(), "OBJECT".to_owned(), "STATE".to_owned(), String::new()]];
    for resource in shown(client, catalog).await? {
        let list = request::get(client, &resource.path(None, None), &[]).await?;
        for item in list["items"].as_array().into_iter().flatten() {
            let mut item = item.clone();
            item["kind"] = Value::String(resource.kind.clone());
            item["apiVersion"] = list["apiVersion"].clone();
            rows.push(row(&resource, &item));
        }
    }
    Ok(rows)
}

async fn shown(client: &Client, catalog: &Catalog) -> Result<Vec<Resource>, Failure> {
    let mut resources = vec![catalog.find("deployments.apps")?.clone()];
    let definitions = request::get(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &[]).await?;
    for definition in definitions["items"].as_array().into_iter().flatten() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        resources.extend(catalog.find(name).ok().cloned());
    }
    Ok(resources)
}

fn row(resource: &Resource, object: &Value) -> Vec<String> {
    let metadata = &object["metadata"];
    let (state, text) = match judge(object) {
        Readiness::Ready(text) => (paint(Colour::Green, "ready"), text),
        Readiness::Waiting(text) => (paint(Colour::Yellow, "waiting"), text),
        Readiness::Stalled(text) => (paint(Colour::Red, "stalled"), text),
    };
    let name = resource.label(metadata["name"].as_str().unwrap_or_default());
    vec![metadata["namespace"].as_str().unwrap_or("-").to_owned(), name, state, text]
}

fn resident_mib(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    // The name in brackets may hold blanks, so fields are counted after it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / rustix::param::clock_ticks_per_second() as f64
}
