//! An API server in memory and a client of it.

#![allow(dead_code, reason = "every test file uses its own part of the client")]

use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::Service;
use windlass_apiserver::{
    Api, Body, Config,
    auth::{Auth, User},
    bootstrap::{Bootstrap, bootstrap},
    server::{Local, local},
};
use windlass_store::Store;

/// An API server, and a client with every right.
pub(crate) struct World {
    pub(crate) api: Api,
    pub(crate) store: Store,
    client: Local,
}

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) value: Value,
}

impl Answer {
    /// The body, if the answer has this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.value);
        self.value
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let store = Store::in_memory();
        let settings = Bootstrap {
            endpoint: "127.0.0.1:6443".parse().unwrap(),
            service_address: [10, 96, 0, 1].into(),
            service_range: Config::default().service_range,
            client_ca: None,
            front_proxy_ca: None,
            serves_metrics: false,
        };
        bootstrap(&store, &settings, jiff::Timestamp::now()).await.unwrap();
        let api = Api::new(store.clone(), Auth::new(store.clone()), config);
        api.system().health.set_bootstrapped();
        let client = local(&api, User::master("admin"));
        Self { api, store, client }
    }

    /// The same server, as somebody else has it.
    pub(crate) fn user(&self, name: &str) -> World {
        let client = local(&self.api, User::new(name, [] as [&str; 0]));
        World { api: self.api.clone(), store: self.store.clone(), client }
    }

    /// The answer to a POST with an `Accept` header.
    pub(crate) async fn post_as(&self, path: &str, accept: &str, body: &Value) -> Answer {
        let request =
            Request::post(path).header("accept", accept).body(Full::<bytes::Bytes>::from(body.to_string())).unwrap();
        read(self.client.clone().call(request).await.unwrap()).await
    }

    /// The answer to a request, before its body is read.
    pub(crate) async fn open(&self, method: &str, path: &str, content_type: &str, body: &str) -> http::Response<Body> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("user-agent", "test/1")
            .body(Full::new(body.to_owned().into()))
            .unwrap();
        self.client.clone().call(request).await.unwrap()
    }

    /// The answer to a request with an `Accept` header, before its body is read.
    pub(crate) async fn open_as(&self, method: &str, path: &str, accept: &str) -> http::Response<Body> {
        let request = Request::builder().method(method).uri(path).header("accept", accept);
        self.client.clone().call(request.body(Full::<bytes::Bytes>::default()).unwrap()).await.unwrap()
    }

    /// The answer to a request with an `Accept` header.
    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let request =
            Request::builder().uri(path).header("accept", accept).body(Full::<bytes::Bytes>::default()).unwrap();
        read(self.client.clone().call(request).await.unwrap()).await
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        read(self.open(method, path, content_type, &body).await).await
    }

    pub(crate) async fn send_text(&self, method: &str, path: &str, body: &str) -> Answer {
        read(self.open(method, path, "application/json", body).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "application/json", &Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "application/json", body).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, "application/json", body).await
    }

    pub(crate) async fn patch(&self, path: &str, kind: &str, body: &Value) -> Answer {
        self.send("PATCH", path, &format!("application/{kind}"), body).await
    }

    pub(crate) async fn delete(&self, path: &str, options: &Value) -> Answer {
        self.send("DELETE", path, "application/json", options).await
    }

    /// The events of a watch in another form.
    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Events {
        let request =
            Request::builder().uri(path).header("accept", accept).body(Full::<bytes::Bytes>::default()).unwrap();
        let response = self.client.clone().call(request).await.unwrap();
        assert_eq!(response.status(), 200);
        Events { body: response.into_body(), rest: Vec::new() }
    }

    /// The events of a watch, as they come.
    pub(crate) async fn watch(&self, path: &str) -> Events {
        let response = self.open("GET", path, "application/json", "").await;
        assert_eq!(response.status(), 200);
        Events { body: response.into_body(), rest: Vec::new() }
    }
}

/// The events of a watch.
pub(crate) struct Events {
    body: Body,
    rest: Vec<u8>,
}

impl Events {
    /// The next event; `None` when the watch is over.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            self.rest.extend_from_slice(&self.body.frame().await?.unwrap().into_data().unwrap());
        }
    }

    /// The next event, as its type and the name of its object.
    pub(crate) async fn next_name(&mut self) -> (String, String) {
        let event = self.next().await.unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }
}

async fn read(response: http::Response<Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let value = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into());
    Answer { status: parts.status.as_u16(), headers: parts.headers, value }
}
