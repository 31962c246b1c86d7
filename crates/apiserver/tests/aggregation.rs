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
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use windlass_apiserver::{Config, FrontProxy, server};
use world::World;

const SERVICE: &str = "/api/v1/namespaces/default/services";
const OWN: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";
const NAME: &str = "v1alpha1.wardle.example.com";
/// What does not happen by then will not.
const WAIT_MAX: Duration = Duration::from_secs(90);

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
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(respond));
                let _ = served.with_upgrades().await;
            });
        }
    });
    address
}

/// What the server says of its kinds.
fn described(path: &str) -> Option<Value> {
    const NAME: &str = "apis/wardle.example.com/v1alpha1";
    match path {
        "/openapi/v3" => Some(json!({"paths": {
            NAME: {"serverRelativeURL": format!("/openapi/v3/{NAME}?hash=X")},
            "apis/wardle.example.com/v1beta1": {"serverRelativeURL": "/openapi/v3/apis/wardle.example.com/v1beta1"},
            "version": {"serverRelativeURL": "/openapi/v3/version?hash=X"},
        }})),
        "/openapi/v3/apis/wardle.example.com/v1alpha1" => Some(json!({"openapi": "3.0.0", "paths": {}})),
        "/openapi/v2" => Some(json!({
            "swagger": "2.0",
            "paths": {
                format!("/{NAME}/flunders"): {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Flunder"}}}}},
                "/version/": {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Info"}}}}},
            },
            "definitions": {
                "Flunder": {"properties": {"metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}}},
                "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"description": "metadata", "type": "object"},
                "Info": {"type": "object"},
            },
        })),
        _ => None,
    }
}

/// Goes on in another protocol: everything is said back in capitals.
fn shout(mut request: Request<Incoming>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
    for name in ["connection", "upgrade"] {
        response.headers_mut().insert(name, request.headers()[name].clone());
    }
    response.headers_mut().insert("x-user", request.headers()["x-remote-user"].clone());
    tokio::spawn(async move {
        let mut stream = TokioIo::new(hyper::upgrade::on(&mut request).await.unwrap());
        let mut heard = [0; 64];
        while let Ok(count @ 1..) = stream.read(&mut heard).await {
            heard.make_ascii_uppercase();
            stream.write_all(&heard[..count]).await.unwrap();
        }
        stream.write_all(b"bye").await.unwrap();
        stream.shutdown().await.unwrap();
    });
    response
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.headers().contains_key("upgrade") {
        return Ok(shout(request));
    }
    let header = |name: &str| -> Vec<String> {
        request.headers().get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    };
    let answer = match request.uri().path() {
        path if described(path).is_some() => described(path).unwrap(),
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
    json!({"metadata": {"name": NAME}, "spec": spec})
}

/// Waits until the condition has this reason.
async fn reason(world: &World, wanted: &str) -> Value {
    reason_of(world, NAME, wanted).await
}

async fn reason_of(world: &World, name: &str, wanted: &str) -> Value {
    let mut events = world.watch(&format!("{OWN}?watch=true&fieldSelector=metadata.name%3D{name}")).await;
    let mut last = Value::Null;
    let found = tokio::time::timeout(WAIT_MAX, async {
        while last["reason"] != wanted {
            let event = events.next().await.unwrap();
            last = event["object"]["status"]["conditions"][0].clone();
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
    let path = format!("{OWN}/{NAME}");
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
    let path = format!("{OWN}/{NAME}");
    let anybody = json!({"spec": {"caBundle": null, "insecureSkipTLSVerify": true}});
    world.patch(&path, "merge-patch+json", &anybody).await.expect(200);
    reason(&world, "Passed").await;
    world.get(FLUNDERS).await.expect(200);
}

/// A world in which another server answers for its group.
async fn aggregated() -> World {
    let (proxies, signs) = (authority(), authority());
    let address = extension(&proxies, &signs).await;
    let world = world(address, &proxies).await;
    let bundle = base64::engine::general_purpose::STANDARD.encode(signs.pem());
    world.post(OWN, &api_service(json!({"caBundle": bundle}))).await.expect(201);
    reason(&world, "Passed").await;
    world
}

#[tokio::test]
async fn what_another_server_says_of_its_kinds_is_among_the_rest() {
    const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let world = aggregated().await;
    let index = world.get("/openapi/v3").await.expect(200);
    let document = index["paths"]["apis/wardle.example.com/v1alpha1"]["serverRelativeURL"].as_str().unwrap();
    assert_eq!(world.get(document).await.expect(200), json!({"openapi": "3.0.0", "paths": {}}));
    assert_eq!(index["paths"]["apis/wardle.example.com/v1beta1"], Value::Null);
    let own = index["paths"]["version"]["serverRelativeURL"].as_str().unwrap();
    assert_ne!(own, "/openapi/v3/version?hash=X");

    let whole = world.get("/openapi/v2").await.expect(200);
    let get = &whole["paths"]["/apis/wardle.example.com/v1alpha1/flunders"]["get"];
    assert_eq!(get["responses"]["200"]["schema"]["$ref"], "#/definitions/Flunder");
    let other = format!("{META}_v2");
    let metadata = &whole["definitions"]["Flunder"]["properties"]["metadata"];
    assert_eq!(metadata["$ref"], format!("#/definitions/{other}"));
    assert_eq!(whole["definitions"][&other]["description"], "metadata");
    assert!(whole["definitions"][META]["properties"].is_object());
    assert_eq!(whole["definitions"]["Info"], Value::Null);

    // Another version of the same server is asked for as well, once it has an APIService.
    let bundle = world.get(&format!("{OWN}/{NAME}")).await.expect(200)["spec"]["caBundle"].clone();
    let mut other = api_service(json!({"version": "v1beta1", "caBundle": bundle}));
    other["metadata"]["name"] = "v1beta1.wardle.example.com".into();
    world.post(OWN, &other).await.expect(201);
    reason_of(&world, "v1beta1.wardle.example.com", "Passed").await;
    let index = world.get("/openapi/v3").await.expect(200);
    assert!(index["paths"]["apis/wardle.example.com/v1beta1"].is_object());
}

#[tokio::test]
async fn connections_to_another_server_go_on_in_another_protocol() {
    let world = aggregated().await;
    let everybody = json!({
        "metadata": {"name": "everybody"}, "subjects": [{"kind": "Group", "name": "system:unauthenticated"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    });
    world.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &everybody).await.expect(201);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server::serve(listener, None, world.api.clone(), stop.clone()));
    let wish =
        format!("GET {FLUNDERS}/a/attach HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: shout/1\r\n\r\n");
    stream.write_all(wish.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    for line in ["connection: upgrade\r\n", "upgrade: shout/1\r\n", "x-user: system:anonymous\r\n"] {
        assert!(head.contains(line), "{head}");
    }
    for word in ["hello", "again"] {
        stream.write_all(word.as_bytes()).await.unwrap();
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).await.unwrap();
        assert_eq!(heard, word.to_uppercase().as_bytes());
    }
    // The end of one side is passed on, and the other may still speak.
    stream.shutdown().await.unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "bye");
    stop.cancel();
    serving.await.unwrap();
}
