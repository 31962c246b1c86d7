//! Answers kubelet's HTTP paths, which the API server passes on: logs of containers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode, Uri};

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use crate::log::{LogOptions, Logs, files, read};

/// The body of an answer; it may go on as long as a log is followed.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Finds the log directory of a Pod by namespace and name, and the Pod.
pub(crate) type FindPod<'a> = &'a dyn Fn(&str, &str) -> Option<(PathBuf, Arc<Pod>)>;

/// Answers a request for a path.
pub(crate) fn serve(uri: &Uri, logs: &Logs, find: FindPod<'_>) -> Response<Body> {
    let parts: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
    let ["containerLogs", namespace, pod, container] = parts.as_slice() else {
        return failure(StatusCode::NOT_FOUND, format!("no such path: {}", uri.path()));
    };
    let options = match log_options(uri.query().unwrap_or_default(), Timestamp::now()) {
        Ok(options) => options,
        Err(problem) => return failure(StatusCode::BAD_REQUEST, problem),
    };
    let Some((directory, object)) = find(namespace, pod) else {
        return failure(StatusCode::NOT_FOUND, format!("pod {pod:?} in namespace {namespace:?} is not on this node"));
    };
    match container_log(&directory.join(container), options.previous) {
        Some(files) => {
            let growth = files.last().and_then(|current| logs.follow(current));
            answer(read(files, options, growth))
        }
        None if options.previous => failure(
            StatusCode::BAD_REQUEST,
            format!("previous terminated container {container:?} in pod {pod:?} not found"),
        ),
        None => failure(
            StatusCode::BAD_REQUEST,
            format!("container {container:?} in pod {pod:?} is waiting to start: {}", obstacle(&object, container)),
        ),
    }
}

/// What keeps a container from starting.
fn obstacle(pod: &Pod, container: &str) -> String {
    let status = pod.status.as_ref();
    let lists = status.map(|status| {
        [&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses]
    });
    let mut all = lists.into_iter().flatten().flat_map(|list| list.iter().flatten());
    let known = all.find(|status| status.name == container).and_then(|status| status.state.as_ref());
    match known.and_then(|state| state.waiting.as_ref()?.reason.as_deref()) {
        Some("ErrImagePull") => "image can't be pulled".to_owned(),
        Some("ImagePullBackOff") => "trying and failing to pull image".to_owned(),
        Some(reason) => reason.to_owned(),
        None => "no logs yet".to_owned(),
    }
}

/// The files of the newest run, or of the one before it, oldest first.
fn container_log(container: &Path, previous: bool) -> Option<Vec<PathBuf>> {
    let mut files = files(container);
    let newest = files.iter().map(|(number, _)| *number).max()?;
    let wanted = if previous { newest - 1 } else { newest };
    files.retain(|(number, _)| *number == wanted);
    // `0.log` is the current one; `0.log.000001` and so on are older.
    let mut paths: Vec<PathBuf> = files.into_iter().map(|(_, path)| path).collect();
    paths.sort();
    (!paths.is_empty()).then(|| {
        paths.rotate_left(1);
        paths
    })
}

/// What of a log a query asks for.
pub(crate) fn log_options(query: &str, now: Timestamp) -> Result<LogOptions, String> {
    let mut options = LogOptions::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let bad = || format!("{name}={value} is not valid");
        let flag = || matches!(value, "true" | "1");
        match name {
            "follow" => options.follow = flag(),
            "previous" => options.previous = flag(),
            "timestamps" => options.timestamps = flag(),
            "tailLines" => options.tail_lines = Some(value.parse().map_err(|_| bad())?),
            "limitBytes" => options.limit_bytes = Some(value.parse().map_err(|_| bad())?),
            "sinceSeconds" => {
                let seconds: i64 = value.parse().map_err(|_| bad())?;
                let since = now.checked_sub(SignedDuration::from_secs(seconds));
                // What is longer ago than there are dates leaves nothing out.
                options.since = Some(since.unwrap_or(if seconds < 0 { Timestamp::MAX } else { Timestamp::MIN }));
            }
            "sinceTime" => {
                let time = value.replace("%3A", ":").replace("%3a", ":").replace("%2B", "+").replace("%2b", "+");
                options.since = Some(time.parse().map_err(|_| bad())?);
            }
            _ => {}
        }
    }
    Ok(options)
}

fn answer(pieces: mpsc::Receiver<io::Result<Bytes>>) -> Response<Body> {
    let frames = stream::unfold(pieces, |mut pieces| async move {
        let piece = pieces.recv().await?;
        Some((piece.map(Frame::data), pieces))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/plain"));
    response
}

/// A body without content.
pub(crate) fn empty() -> Body {
    Full::new(Bytes::new()).map_err(|never| match never {}).boxed_unsync()
}

/// A document.
pub(crate) fn json(document: &impl serde::Serialize) -> Response<Body> {
    let body = serde_json::to_vec(document).expect("a document is plain data");
    let mut response = Response::new(Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync());
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}

/// A failure as clients of the API read it.
pub(crate) fn failure(status: StatusCode, message: String) -> Response<Body> {
    let reason = match status {
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        _ => "BadRequest",
    };
    let body = Status {
        status: Some("Failure".to_owned()),
        message: Some(message),
        reason: Some(reason.to_owned()),
        code: Some(i32::from(status.as_u16())),
        ..Status::default()
    };
    let mut response = json(&body);
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::collect;

    async fn ask(logs: &Logs, directory: &Path, path: &str) -> (u16, String) {
        let find = |namespace: &str, pod: &str| {
            (namespace == "n" && pod == "p").then(|| (directory.to_owned(), Arc::default()))
        };
        let response = serve(&path.parse().unwrap(), logs, &find);
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn logs_are_read_as_asked() {
        let dir = tempfile::tempdir().unwrap();
        let logs = Logs::new(dir.path().to_owned());
        let pod = logs.pod("n", "p", "u");
        for (number, text) in [(0, &b"old\n"[..]), (1, b"one\ntwo\nthree\n")] {
            let log = logs.begin(pod.join("c"), number).unwrap();
            collect(text, &b""[..], log, Arc::default()).await;
        }
        let check = async |query: &str, status: u16, expect: &str| {
            let (got, text) = ask(&logs, &pod, &format!("/containerLogs/n/p/{query}")).await;
            let message = serde_json::from_str::<Status>(&text).ok().and_then(|failure| failure.message);
            assert_eq!((got, message.unwrap_or(text)), (status, expect.to_owned()), "{query}");
        };
        check("c", 200, "one\ntwo\nthree\n").await;
        check("c?tailLines=2", 200, "two\nthree\n").await;
        check("c?previous=true", 200, "old\n").await;
        check("c?limitBytes=5", 200, "one\nt").await;
        check("c?sinceTime=2999-01-01T00%3A00%3A00Z", 200, "").await;
        check("c?follow=true", 200, "one\ntwo\nthree\n").await;
        check("c?sinceSeconds=9223372036854775807", 200, "one\ntwo\nthree\n").await;
        check("c?tailLines=x", 400, "tailLines=x is not valid").await;
        check("d", 400, "container \"d\" in pod \"p\" is waiting to start: no logs yet").await;
        let stamped = ask(&logs, &pod, "/containerLogs/n/p/c?timestamps=true&tailLines=1").await.1;
        assert!(stamped.split(' ').next().unwrap().parse::<Timestamp>().is_ok(), "{stamped}");
    }

    #[tokio::test]
    async fn a_followed_log_goes_on_until_the_container_ends() {
        let dir = tempfile::tempdir().unwrap();
        let logs = Logs::new(dir.path().to_owned());
        let pod = logs.pod("n", "p", "u");
        let log = logs.begin(pod.join("c"), 0).unwrap();
        let (mut output, input) = tokio::io::duplex(64);
        let collector = tokio::spawn(collect(input, tokio::io::empty(), log, Arc::default()));
        let find = |_: &str, _: &str| Some((pod.clone(), Arc::default()));
        let mut body = serve(&"/containerLogs/n/p/c?follow=true".parse().unwrap(), &logs, &find).into_body();
        tokio::io::AsyncWriteExt::write_all(&mut output, b"first\n").await.unwrap();
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(&frame[..], b"first\n");
        tokio::io::AsyncWriteExt::write_all(&mut output, b"last\n").await.unwrap();
        drop(output);
        collector.await.unwrap();
        let rest = body.collect().await.unwrap().to_bytes();
        assert_eq!(&rest[..], b"last\n");
    }
}
