//! Groups that another server answers for, with a real one over TLS that asks for the certificate of the front proxy.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use base64::Engine as _;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use windlass_apiserver::{Config, FrontProxy};
use world::World;

const SERVICE: &str = "/api/v1/namespaces/default/services";
const OWN: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";
/// What does not happen by then will not.
const WAIT_MAX: Duration = Duration::from_secs(30);

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn front_proxy(authority: &Issuer) -> FrontProxy {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "front-proxy-client");
    let certificate = params.signed_by(&key, authority).unwrap();
    FrontProxy { certificate: certificate.pem(), key: key.serialize_pem() }
}

/// A server that believes what those say whom `proxies` signed, and tells what it was told.
async fn extension(proxies: &Issuer, signs: &Issuer) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(proxies.der().clone()).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let key = KeyPair::generate().unwrap();
    let names = vec!["api.default.svc".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, signs).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(respond)).await;
            });
        }
    });
    address
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let header = |name: &str| -> Vec<String> {
        request.headers().get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    };
    let answer = match request.uri().path() {
        "/apis/wardle.example.com/v1alpha1" => json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "wardle.example.com/v1alpha1",
            "resources": [
                {"name": "flunders", "singularName": "flunder", "namespaced": true, "kind": "Flunder", "verbs": ["get"]},
                {"name": "flunders/status", "singularName": "", "namespaced": true, "kind": "Flunder", "verbs": ["get"]},
            ],
        }),
        path => json!({
            "kind": "FlunderList", "path": path, "query": request.uri().query(),
            "user": header("x-remote-user"), "groups": header("x-remote-group"), "authorization": header("authorization"),
        }),
    };
    let mut response = Response::new(Full::from(answer.to_string()));
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    Ok(response)
}

async fn world(address: SocketAddr, proxies: &Issuer) -> World {
    let world = World::with(Config { front_proxy: Some(front_proxy(proxies)), ..Config::default() }).await;
    let service = json!({"metadata": {"name": "api"}, "spec": {"ports": [{"name": "https", "port": 443}]}});
    world.post(SERVICE, &service).await.expect(201);
    let slice = json!({
        "metadata": {"name": "api-1", "labels": {"kubernetes.io/service-name": "api"}},
        "addressType": "IPv4", "ports": [{"name": "https", "port": address.port()}],
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": true}}],
    });
    world.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await.expect(201);
    world
}

fn api_service(members: Value) -> Value {
    let mut spec = json!({
        "group": "wardle.example.com", "version": "v1alpha1", "groupPriorityMinimum": 2000, "versionPriority": 200,
        "service": {"namespace": "default", "name": "api"},
    });
    spec.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    json!({"metadata": {"name": "v1alpha1.wardle.example.com"}, "spec": spec})
}

/// Waits until the condition has this reason.
async fn reason(world: &World, wanted: &str) -> Value {
    let mut last = Value::Null;
    let found = tokio::time::timeout(WAIT_MAX, async {
        loop {
            let object = world.get(&format!("{OWN}/v1alpha1.wardle.example.com")).await.expect(200);
            last = object["status"]["conditions"][0].clone();
            if last["reason"] == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(found.await.is_ok(), "{wanted} was awaited, {last} is there");
    last
}

#[tokio::test]
async fn another_server_answers_for_its_group() {
    let (proxies, signs) = (authority(), authority());
    let address = extension(&proxies, &signs).await;
    let world = world(address, &proxies).await;
    world.get(FLUNDERS).await.expect(404);
    let bundle = base64::engine::general_purpose::STANDARD.encode(signs.pem());
    world.post(OWN, &api_service(json!({"caBundle": bundle}))).await.expect(201);
    assert_eq!(reason(&world, "Passed").await["status"], "True");

    let told = world.get(&format!("{FLUNDERS}?limit=5")).await.expect(200);
    assert_eq!(told["path"], FLUNDERS);
    assert_eq!(told["query"], "limit=5");
    assert_eq!(told["user"], json!(["admin"]));
    assert!(told["groups"].as_array().unwrap().contains(&json!("system:masters")));
    assert_eq!(told["authorization"], json!([]));
    world.user("nobody").get(FLUNDERS).await.expect(403);

    let groups = world.get("/apis").await.expect(200);
    let found = groups["groups"].as_array().unwrap().iter().find(|group| group["name"] == "wardle.example.com");
    assert_eq!(found.unwrap()["preferredVersion"]["version"], "v1alpha1");
    world.get("/apis/wardle.example.com").await.expect(200);
    let whole = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let whole = world.get_as("/apis", whole).await.expect(200);
    let item = whole["items"].as_array().unwrap().iter().find(|item| item["metadata"]["name"] == "wardle.example.com");
    let version = &item.unwrap()["versions"][0];
    assert_eq!(version["freshness"], "Current");
    assert_eq!(version["resources"][0]["resource"], "flunders");
    assert_eq!(version["resources"][0]["subresources"][0]["subresource"], "status");

    world.delete(&format!("{SERVICE}/api"), &Value::Null).await.expect(200);
    let touch = json!({"metadata": {"annotations": {"look": "again"}}});
    let path = format!("{OWN}/v1alpha1.wardle.example.com");
    world.patch(&path, "merge-patch+json", &touch).await.expect(200);
    let condition = reason(&world, "ServiceNotFound").await;
    assert_eq!(condition["message"], "service/api in \"default\" is not present");
    world.get(FLUNDERS).await.expect(503);
    world.delete(&path, &Value::Null).await.expect(200);
}

#[tokio::test]
async fn a_server_that_shows_a_strange_certificate_is_not_asked() {
    let (proxies, signs) = (authority(), authority());
    let address = extension(&proxies, &signs).await;
    let world = world(address, &proxies).await;
    let bundle = base64::engine::general_purpose::STANDARD.encode(authority().pem());
    world.post(OWN, &api_service(json!({"caBundle": bundle}))).await.expect(201);
    let condition = reason(&world, "FailedDiscoveryCheck").await;
    assert!(condition["message"].as_str().unwrap().contains("signed by unknown authority"), "{condition}");
    let path = format!("{OWN}/v1alpha1.wardle.example.com");
    let anybody = json!({"spec": {"caBundle": null, "insecureSkipTLSVerify": true}});
    world.patch(&path, "merge-patch+json", &anybody).await.expect(200);
    reason(&world, "Passed").await;
    world.get(FLUNDERS).await.expect(200);
}
