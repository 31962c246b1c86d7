//! Requests that are passed on to Pods, Services and nodes, with a real server behind.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;
use windlass_apiserver::{Body, BoxError, Config, NodeProxy, NodeProxyError, PodPlace, full, server};
use world::World;

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// The node `here`, whose Pods all are one server, and whose agent repeats what it is asked.
struct Here(SocketAddr);

impl NodeProxy for Here {
    fn call<'a>(
        &'a self,
        node: &'a str,
        request: Request<Body>,
    ) -> BoxFuture<'a, Result<Response<Body>, NodeProxyError>> {
        Box::pin(async move {
            if node != "here" {
                return Err(NodeProxyError::UnknownNode(node.to_owned()));
            }
            Ok(Response::new(full(format!("agent: {} {}", request.method(), request.uri()))))
        })
    }

    fn dial<'a>(&'a self, place: PodPlace<'a>, port: u16) -> BoxFuture<'a, Result<TcpStream, NodeProxyError>> {
        Box::pin(async move {
            if place.node != "here" {
                return Err(NodeProxyError::UnknownNode(place.node.to_owned()));
            }
            let address = SocketAddr::new(self.0.ip(), port);
            TcpStream::connect(address)
                .await
                .map_err(|error| NodeProxyError::Refused(format!("dial {address}: {error}")))
        })
    }
}

/// A server that tells what it was asked, and more at paths of its own.
async fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let serve =
                    service_fn(move |request| async move { Ok::<_, Infallible>(respond(request, address).await) });
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), serve).with_upgrades().await;
            });
        }
    });
    address
}

async fn respond(mut request: Request<Incoming>, own: SocketAddr) -> Response<Body> {
    let mut response = Response::new(Body::default());
    let mut header = |name: &'static str, value: String| {
        response.headers_mut().insert(name, HeaderValue::try_from(value).unwrap());
    };
    match request.uri().path() {
        "/moved" => {
            header("location", format!("http://{own}/new?a=b"));
            *response.status_mut() = StatusCode::FOUND;
        }
        "/page" => {
            header("content-type", "text/html; charset=utf-8".to_owned());
            header("access-control-allow-origin", "*".to_owned());
            *response.body_mut() = full(r#"<html><a href="/next">next</a><script>'<a href="/no">'</script>"#);
        }
        "/heads" => header("x-long", "x".repeat(300 << 10)),
        "/echo" => {
            // Piece by piece: what comes first goes back before the rest is there.
            *response.body_mut() = request.into_body().map_err(Into::into).boxed_unsync();
        }
        "/shout" => {
            for name in ["connection", "upgrade"] {
                header(name, request.headers()[name].to_str().unwrap().to_owned());
            }
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            tokio::spawn(async move {
                let mut stream = TokioIo::new(hyper::upgrade::on(&mut request).await.unwrap());
                let mut heard = [0; 5];
                stream.read_exact(&mut heard).await.unwrap();
                stream.write_all(&heard.to_ascii_uppercase()).await.unwrap();
            });
        }
        _ => {
            let headers: Vec<String> =
                request.headers().iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
            let (method, uri) = (request.method().to_string(), request.uri().to_string());
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let told =
                json!({"method": method, "uri": uri, "headers": headers, "body": String::from_utf8_lossy(&body)});
            *response.body_mut() = full(told.to_string());
        }
    }
    response
}

async fn pod(world: &World, name: &str, node: &str, port: u16) {
    let spec =
        json!({"nodeName": node, "containers": [{"name": "a", "image": "x", "ports": [{"containerPort": port}]}]});
    world.post(PODS, &json!({"metadata": {"name": name}, "spec": spec})).await.expect(201);
    let status = json!({"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}});
    world.patch(&format!("{PODS}/{name}/status"), "merge-patch+json", &status).await.expect(200);
}

/// A Pod, a Service of it, and the node that runs it.
async fn world() -> (World, u16) {
    let address = backend().await;
    let world = World::with(Config { node_proxy: Some(Arc::new(Here(address))), ..Config::default() }).await;
    let account = json!({"metadata": {"name": "default"}});
    world.post("/api/v1/namespaces/default/serviceaccounts", &account).await;
    world.post("/api/v1/nodes", &json!({"metadata": {"name": "here"}})).await.expect(201);
    world.post("/api/v1/nodes", &json!({"metadata": {"name": "elsewhere"}})).await.expect(201);
    pod(&world, "web", "here", address.port()).await;
    pod(&world, "far", "elsewhere", address.port()).await;
    let service = json!({"metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 80}]}});
    world.post(SERVICES, &service).await.expect(201);
    let slice = json!({
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": [{"name": "http", "port": address.port()}],
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": true},
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "web"}}],
    });
    world.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await.expect(201);
    (world, address.port())
}

#[tokio::test]
async fn requests_reach_what_they_name() {
    let (world, port) = world().await;
    for path in [
        format!("{PODS}/web/proxy"),
        format!("{PODS}/web:{port}/proxy"),
        format!("{PODS}/http:web:{port}/proxy"),
        format!("{SERVICES}/web:http/proxy"),
        format!("{SERVICES}/web:80/proxy"),
    ] {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let told = world.send_text(method, &format!("{path}/a%2Fb/?dryRun=x&watch=1"), "body").await.expect(200);
            assert_eq!(told["method"], method);
            assert_eq!(told["uri"], "/a%2Fb/?dryRun=x&watch=1", "{path}");
            assert_eq!(told["body"], "body");
            let uri = format!("x-forwarded-uri: {path}/a%2Fb/");
            assert!(told["headers"].as_array().unwrap().contains(&uri.into()), "{told}");
        }
    }
    let told = world.send_text("POST", &format!("{PODS}/web/proxy"), "body").await.expect(200);
    assert_eq!(told["uri"], "/");
    let head = world.send_text("HEAD", &format!("{PODS}/web/proxy/x"), "").await;
    assert_eq!((head.status, head.value), (200, json!("")));
    let moved = world.get(&format!("{PODS}/web/proxy?a=b")).await;
    assert_eq!((moved.status, moved.header("location")), (301, Some(&*format!("{PODS}/web/proxy/?a=b"))));
}

#[tokio::test]
async fn what_cannot_be_reached_is_said() {
    let (world, _) = world().await;
    let check = async |path: &str, status: u16, message: &str| {
        let answer = world.get(path).await.expect(status);
        assert!(answer["message"].as_str().unwrap().contains(message), "{path}: {answer}");
    };
    check(&format!("{SERVICES}/web/proxy/"), 503, "no endpoints available for service \"web\"").await;
    check(&format!("{SERVICES}/web:81/proxy/"), 503, "no service port 81 found for service \"web\"").await;
    check(&format!("{PODS}/web:1/proxy/"), 503, "error trying to reach service: dial 127.0.0.1:1: ").await;
    check(&format!("{PODS}/far/proxy/"), 503, "node \"elsewhere\" is not reachable from this API server").await;
    check(&format!("{PODS}/web/proxy/heads"), 503, "error trying to reach service: ").await;
    check("/api/v1/nodes/elsewhere/proxy/pods", 503, "node \"elsewhere\" is not reachable").await;
    check("/api/v1/nodes/none/proxy/pods", 404, "nodes \"none\" not found").await;
    check(&format!("{PODS}/ftp:web:1/proxy/"), 400, "invalid pod request \"ftp:web:1\"").await;
    world.send_text("TRACE", &format!("{PODS}/web/proxy/"), "").await.expect(405);
    assert_eq!(world.get("/api/v1/nodes/here/proxy/pods?a=b").await.expect(200), "agent: GET /pods?a=b");
}

#[tokio::test]
async fn only_those_are_passed_on_who_may() {
    let (world, _) = world().await;
    let rule =
        json!({"apiGroups": [""], "resources": ["services/proxy"], "resourceNames": ["web:http"], "verbs": ["get"]});
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    world.post(&format!("{roles}/roles"), &json!({"metadata": {"name": "ann"}, "rules": [rule]})).await.expect(201);
    let binding = json!({
        "metadata": {"name": "ann"}, "subjects": [{"kind": "User", "name": "ann"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "ann"},
    });
    world.post(&format!("{roles}/rolebindings"), &binding).await.expect(201);
    let ann = world.user("ann");
    ann.get(&format!("{SERVICES}/web:http/proxy/")).await.expect(200);
    ann.get(&format!("{SERVICES}/web:80/proxy/")).await.expect(403);
    ann.get(&format!("{PODS}/web/proxy/")).await.expect(403);
    ann.send_text("POST", &format!("{SERVICES}/web:http/proxy/"), "").await.expect(403);
}

#[tokio::test]
async fn links_lead_back_through_the_proxy() {
    let (world, _) = world().await;
    let path = format!("{SERVICES}/web:http/proxy");
    let moved = world.get(&format!("{path}/moved")).await;
    assert_eq!((moved.status, moved.header("location")), (302, Some(&*format!("{path}/new?a=b"))));
    let page = world.get(&format!("{path}/page")).await;
    assert_eq!(page.header("access-control-allow-origin"), None);
    let expect = format!(r#"<html><a href="{path}/next">next</a><script>'<a href="/no">'</script>"#);
    assert_eq!(page.expect(200), expect);
}

/// The server on a port, for a client that everybody takes for somebody who may do everything.
async fn serve(world: &World) -> (TcpStream, CancellationToken) {
    let everybody = json!({
        "metadata": {"name": "everybody"}, "subjects": [{"kind": "Group", "name": "system:unauthenticated"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    });
    world.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &everybody).await.expect(201);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(server::serve(listener, None, world.api.clone(), stop.clone()));
    (stream, stop)
}

#[tokio::test]
async fn bodies_are_passed_on_as_they_come() {
    let (world, _) = world().await;
    let (stream, stop) = serve(&world).await;
    let (mut client, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (mut sender, pieces) = futures::channel::mpsc::channel::<Result<Frame<Bytes>, BoxError>>(1);
    let request = Request::post(format!("{PODS}/web/proxy/echo")).header("host", "here");
    let answer = client.send_request(request.body(StreamBody::new(pieces)).unwrap());
    // More than any buffer on the way, and the rest is sent only after the first part came back.
    let part = Bytes::from(vec![b'x'; 8 << 20]);
    sender.try_send(Ok(Frame::data(part.clone()))).unwrap();
    let mut body = answer.await.unwrap().into_body();
    let mut heard = 0;
    while heard < part.len() {
        heard += body.frame().await.unwrap().unwrap().into_data().unwrap().len();
    }
    sender.try_send(Ok(Frame::data(Bytes::from_static(b"end")))).unwrap();
    drop(sender);
    assert_eq!(&body.collect().await.unwrap().to_bytes()[..], b"end");
    stop.cancel();
}

#[tokio::test]
async fn connections_go_on_in_another_protocol() {
    let (world, _) = world().await;
    let (mut stream, stop) = serve(&world).await;
    let wish = format!(
        "GET {SERVICES}/web:http/proxy/shout HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: shout/1\r\n\r\nhello"
    );
    stream.write_all(wish.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 101 ") && head.contains("upgrade: shout/1\r\n"), "{head}");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "HELLO");

    stop.cancel();
}

#[tokio::test]
async fn a_server_that_does_not_switch_is_a_failure() {
    let (world, _) = world().await;
    let (mut stream, stop) = serve(&world).await;
    let wish = format!(
        "GET {SERVICES}/web:http/proxy/page HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: shout/1\r\n\r\n"
    );
    stream.write_all(wish.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 500");
    stop.cancel();
}
