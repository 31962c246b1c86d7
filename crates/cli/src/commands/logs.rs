//! `windlass logs`: what a Pod's programs print.

use futures::AsyncReadExt;
use http::Request;
use std::io::Write;

use super::request;
use crate::arguments::{LogsOptions, Target};
use crate::connection::{Connection, connect};
use crate::failure::Failure;
use crate::owned::below;
use crate::resource::Catalog;

/// Runs the command.
pub(crate) async fn run(options: &LogsOptions, target: &Target) -> Result<(), Failure> {
    let connection = connect(target).await?;
    let pod = pod_name(&connection, &options.pod).await?;
    let mut query = vec![format!("follow={}", options.follow), format!("previous={}", options.previous)];
    query.push(format!("timestamps={}", options.timestamps));
    query.extend(options.container.as_ref().map(|container| format!("container={container}")));
    query.extend(options.tail.map(|lines| format!("tailLines={lines}")));
    query.extend(options.since.map(|since| format!("sinceSeconds={}", since.as_secs().max(1))));
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/log?{}", connection.namespace, query.join("&"));
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    let mut stream = connection.client.request_stream(request).await?;
    let mut chunk = vec![0; 16 << 10];
    loop {
        let length = stream.read(&mut chunk).await?;
        if length == 0 {
            return Ok(());
        }
        let mut output = std::io::stdout().lock();
        output.write_all(&chunk[..length])?;
        output.flush()?;
    }
}

/// A Pod's name as it is, or the first Pod of what is named.
async fn pod_name(connection: &Connection, word: &str) -> Result<String, Failure> {
    let Some((resource, name)) = word.split_once('/') else { return Ok(word.to_owned()) };
    let catalog = Catalog::of(&connection.client).await?;
    let resource = catalog.find(resource)?;
    if resource.group.is_empty() && resource.plural == "pods" {
        return Ok(name.to_owned());
    }
    let owner = request::get(&connection.client, &resource.path(Some(&connection.namespace), Some(name)), &[]).await?;
    let pods = below(&connection.client, &catalog, &owner, "Pod").await?;
    let running = pods.iter().find(|pod| pod["status"]["phase"] == "Running").or(pods.first());
    let found = running.and_then(|pod| pod["metadata"]["name"].as_str());
    found.map(str::to_owned).ok_or_else(|| Failure::new(format!("{word} has no Pod")))
}
