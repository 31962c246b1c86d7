//! Asking operators: each of their replicas, through the API server, or one directly.

use std::time::Duration;

use futures::StreamExt;
use kube::{Client, Config};
use serde_json::Value;
use windlass::names;
use windlass::runtime::journal::{Page, Replica};

use super::facts::{Operators, group, text};
use crate::commands::request;
use crate::failure::Failure;

/// How many replicas are asked.
const REPLICAS_MAX: usize = 16;
/// How many are asked at once.
const REQUESTS_MAX: usize = 8;
/// How long a replica may take.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Where operators answer, unless their Pods say otherwise.
const PORT_DEFAULT: i64 = 8081;

/// Where an operator answers.
struct Door {
    name: String,
    client: Client,
    path: String,
}

/// What operators say of `object`, or of the nearest of its `owners` that one serves.
pub(super) async fn ask(client: &Client, object: &Value, owners: &[Value], direct: Option<&str>) -> Operators {
    let mut operators = Operators::default();
    let doors = match direct {
        Some(address) => directly(address),
        None => through(client, object, owners, &mut operators).await,
    };
    let doors = match doors {
        Ok(doors) => doors,
        Err(why) => return Operators { silence: Some(why.to_string()), ..operators },
    };
    let (mut answers, mut silence) = answers(&doors, object).await;
    operators.replicas = answers.iter().map(|(name, page)| (name.clone(), page.replica.clone())).collect();
    let is_served = |object: &Value, replica: &Replica| {
        replica.serves.iter().any(|it| it.group == group(object) && it.kind == text(&object["kind"]))
    };
    // If nobody serves the object itself, the nearest that is served says more.
    let subject = std::iter::once(object).chain(owners);
    let subject = subject.into_iter().find(|object| answers.iter().any(|(_, page)| is_served(object, &page.replica)));
    if let Some(subject) = subject.filter(|subject| *subject != object) {
        let (more, again) = self::answers(&doors, subject).await;
        (answers, silence) = (more, again);
    }
    let newest = |page: &Page| page.objects.first().and_then(|history| Some(history.runs.first()?.started));
    answers.retain(|(_, page)| !page.objects.is_empty());
    answers.sort_by_key(|(_, page)| (page.replica.works, newest(page)));
    operators.history = answers.pop().and_then(|(name, page)| Some((name, page.objects.into_iter().next()?)));
    operators.silence = silence.filter(|_| operators.replicas.is_empty());
    operators
}

fn directly(address: &str) -> Result<Vec<Door>, Failure> {
    let wrong = || Failure::new(format!("\"{address}\" is not an address such as http://127.0.0.1:8081"));
    let address = address.parse::<http::Uri>().map_err(|_| wrong())?;
    if address.scheme().is_none() {
        return Err(wrong());
    }
    let client = Client::try_from(Config::new(address.clone()))?;
    Ok(vec![Door { name: address.to_string(), client, path: "/journal".to_owned() }])
}

/// The Pods of operators that may know the object.
async fn through(
    client: &Client,
    object: &Value,
    owners: &[Value],
    operators: &mut Operators,
) -> Result<Vec<Door>, Failure> {
    let query = [("labelSelector", names::OPERATOR.to_owned()), ("limit", "500".to_owned())];
    let list = request::get(client, "/api/v1/pods", &query).await.map_err(Failure::from);
    let list = list.map_err(|failure| failure.context("the Pods of operators cannot be listed"))?;
    let pods = list["items"].as_array().cloned().unwrap_or_default();
    if pods.is_empty() {
        return Err(Failure::new(format!("no Pod of an operator is there (none has the label {})", names::OPERATOR)));
    }
    let concerned: Vec<&Value> = std::iter::once(object).chain(owners).collect();
    operators.pods = pods.iter().filter(|pod| may_serve(pod, &concerned)).cloned().collect();
    let is_running = |pod: &&Value| text(&pod["status"]["phase"]) == "Running";
    let door = |pod: &Value| {
        let (namespace, name) = (text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}:{}/proxy/journal", port(pod));
        Door { name: name.to_owned(), client: client.clone(), path }
    };
    let doors: Vec<Door> = pods.iter().filter(is_running).take(REPLICAS_MAX).map(door).collect();
    if doors.is_empty() {
        return Err(Failure::new("no Pod of an operator runs"));
    }
    Ok(doors)
}

/// Whether a Pod is of an operator that has to do with these objects: it wrote to one, or is called after one.
fn may_serve(pod: &Value, objects: &[&Value]) -> bool {
    let operator = text(&pod["metadata"]["labels"][names::OPERATOR]);
    objects.iter().any(|object| {
        let mut writers = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        let kind = text(&object["kind"]).to_lowercase();
        writers.any(|entry| entry["manager"] == operator) || operator == format!("{kind}-operator")
    })
}

fn port(pod: &Value) -> i64 {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut ports = containers.flat_map(|container| container["ports"].as_array().into_iter().flatten());
    let probes = ports.find(|port| port["name"] == "probes");
    probes.and_then(|port| port["containerPort"].as_i64()).unwrap_or(PORT_DEFAULT)
}

/// What each replica says of `object`, and why those that do not answer do not.
async fn answers(doors: &[Door], object: &Value) -> (Vec<(String, Page)>, Option<String>) {
    let metadata = &object["metadata"];
    let query = [
        ("group", group(object).to_owned()),
        ("kind", text(&object["kind"]).to_owned()),
        ("namespace", text(&metadata["namespace"]).to_owned()),
        ("name", text(&metadata["name"]).to_owned()),
    ];
    let query = &query;
    let asked = futures::stream::iter(doors).map(|door| async move {
        let answer = tokio::time::timeout(ANSWER_TIME_MAX, request::get(&door.client, &door.path, query)).await;
        let page = match answer {
            Ok(Ok(page)) => serde_json::from_value::<Page>(page).map_err(|error| error.to_string()),
            Ok(Err(error)) => Err(Failure::from(error).to_string()),
            Err(_) => Err(format!("no answer within {}s", ANSWER_TIME_MAX.as_secs())),
        };
        (door.name.clone(), page)
    });
    let (mut pages, mut silence) = (Vec::new(), None);
    let mut asked = std::pin::pin!(asked.buffer_unordered(REQUESTS_MAX));
    while let Some((name, page)) = asked.next().await {
        match page {
            Ok(page) => pages.push((name, page)),
            Err(why) => silence = Some(format!("{name} does not tell: {why}")),
        }
    }
    (pages, silence)
}
