//! Whom the words of `windlass chaos` mean.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use windlass_node::chaos::{Fault, Mode, Side, Target};

use crate::commands::chaos::FaultOptions;
use crate::commands::request;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::owned::below;
use crate::resource::Catalog;

/// Who suffers, and how many of them.
pub(crate) struct Aim {
    pub(crate) target: Target,
    pub(crate) mode: Mode,
    pub(crate) percent: Option<u8>,
}

/// Understands the target of a command.
pub(crate) async fn choose(connection: &Connection, options: &FaultOptions, fault: &Fault) -> Result<Aim, Failure> {
    let mut target = match (&options.selector, &options.target) {
        (Some(labels), _) => of_labels(labels)?,
        (None, Some(word)) => named(connection, word, fault).await?,
        (None, None) => return Err(Failure::new("say who suffers: a Pod, deploy/NAME, svc/NAME or -l LABEL=VALUE")),
    };
    target.container.clone_from(&options.container);
    let mode = match (options.one, options.percent) {
        (true, _) => Mode::One,
        (_, Some(_)) => Mode::Percent,
        _ => Mode::All,
    };
    Ok(Aim { target, mode, percent: options.percent })
}

async fn named(connection: &Connection, word: &str, fault: &Fault) -> Result<Target, Failure> {
    let Some((kind, name)) = word.split_once('/') else { return Ok(of_pod(word)) };
    let catalog = Catalog::of(&connection.client).await?;
    let resource = catalog.find(kind)?;
    let is_core = |plural: &str| resource.group.is_empty() && resource.plural == plural;
    if is_core("pods") {
        return Ok(of_pod(name));
    }
    let object = request::get(&connection.client, &resource.path(Some(&connection.namespace), Some(name)), &[]).await?;
    if is_core("services") && matches!(fault, Fault::Disconnect(_)) {
        return Ok(Target { service: Some(name.to_owned()), ..Target::default() });
    }
    if let Some(target) = selected(&object["spec"]["selector"]) {
        return Ok(target);
    }
    let pods = below(&connection.client, &catalog, &object, "Pod").await?;
    let names: Vec<String> =
        pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).map(str::to_owned).collect();
    if names.is_empty() {
        return Err(Failure::new(format!("{word} has no Pod")));
    }
    Ok(Target { pods: names, ..Target::default() })
}

fn of_pod(name: &str) -> Target {
    Target { pods: vec![name.to_owned()], ..Target::default() }
}

/// What a `spec.selector` means: labels as workloads have it, or the plain map of Services.
fn selected(selector: &Value) -> Option<Target> {
    let object = selector.as_object().filter(|object| !object.is_empty())?;
    let is_plain = object.values().all(Value::is_string);
    let selector = if is_plain { json!({"matchLabels": object}) } else { selector.clone() };
    Some(Target { selector: serde_json::from_value(selector).ok()?, ..Target::default() })
}

/// `app=db,tier=back` as kubectl reads it, as far as equality goes.
fn labels(text: &str) -> Option<Value> {
    let pairs = text.split(',').map(|pair| {
        let (key, value) = pair.split_once("==").or_else(|| pair.split_once('='))?;
        (!key.is_empty() && !key.ends_with('!')).then(|| (key.trim().to_owned(), Value::from(value.trim())))
    });
    let all: Option<serde_json::Map<String, Value>> = pairs.collect();
    all.map(|all| json!({"matchLabels": all}))
}

fn of_labels(text: &str) -> Result<Target, Failure> {
    let wrong = || Failure::new(format!("{text:?} are no labels: write app=db or app=db,tier=back"));
    let selector = labels(text).ok_or_else(wrong)?;
    Ok(Target { selector: serde_json::from_value(selector).ok(), ..Target::default() })
}

/// Understands the other side of a cut.
pub(crate) fn side(word: &str) -> Result<Side, Failure> {
    let wrong = || {
        Failure::new(format!("{word:?} is no other side of a cut"))
            .advice("write api, pod/NAME, service/NAME, LABEL=VALUE or an IPv4 address")
    };
    if let Some((kind, name)) = word.split_once('/').filter(|(_, name)| !name.contains('=')) {
        return match kind {
            "pod" | "pods" | "po" => Ok(Side::Pod(name.to_owned())),
            "service" | "services" | "svc" => Ok(Side::Service(name.to_owned())),
            _ => Err(wrong()),
        };
    }
    if matches!(word, "api" | "apiserver" | "api-server") {
        return Ok(Side::ApiServer {});
    }
    if word.parse::<Ipv4Addr>().is_ok() {
        return Ok(Side::Address(word.to_owned()));
    }
    let selector = labels(word).and_then(|selector| serde_json::from_value(selector).ok());
    selector.map(Side::Selector).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expect: Value) {
        let found = side(word).map(|side| serde_json::to_value(side).unwrap());
        assert_eq!(found.unwrap_or_else(|failure| failure.message().into()), expect, "{word}");
    }

    #[test]
    fn sides_are_named_as_people_name_them() {
        check("api", json!({"apiServer": {}}));
        check("pod/x", json!({"pod": "x"}));
        check("svc/db", json!({"service": "db"}));
        check("10.0.0.1", json!({"address": "10.0.0.1"}));
        check("app=db,tier=back", json!({"selector": {"matchLabels": {"app": "db", "tier": "back"}}}));
        check("app.kubernetes.io/name=db", json!({"selector": {"matchLabels": {"app.kubernetes.io/name": "db"}}}));
        check("nobody", json!("\"nobody\" is no other side of a cut"));
    }

    #[test]
    fn selectors_of_workloads_and_of_services_are_read() {
        let labels = json!({"matchLabels": {"app": "x"}});
        let selector = |value: &Value| serde_json::to_value(selected(value).unwrap().selector).unwrap();
        assert_eq!(selector(&labels), labels);
        assert_eq!(selector(&json!({"app": "x"})), labels);
        assert!(selected(&Value::Null).is_none());
    }
}
