//! The API over network connections.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use std::{net::SocketAddr, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{PrivateKeyDer, ServerName},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use windlass_apiserver::server::{self, Tls};
use world::World;

struct Server {
    address: SocketAddr,
    authority: CertifiedIssuer<'static, KeyPair>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Server {
    async fn start() -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        let tls = Tls::new(certificate.pem().as_bytes(), key.serialize_pem().as_bytes(), authority.pem().as_bytes());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let world = World::new().await;
        let task = tokio::spawn(server::serve(listener, Some(tls.unwrap()), world.api.clone(), shutdown.clone()));
        Self { address, authority, shutdown, task }
    }

    /// A client with a certificate of `user` in `group`, or without one.
    fn client(&self, user: Option<(&str, &str)>, protocol: &[u8]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let mut config = match user {
            None => builder.with_no_client_auth(),
            Some((name, group)) => {
                let key = KeyPair::generate().unwrap();
                let mut parameters = CertificateParams::default();
                parameters.distinguished_name.push(DnType::CommonName, name);
                parameters.distinguished_name.push(DnType::OrganizationName, group);
                parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
                let certificate = parameters.signed_by(&key, &self.authority).unwrap();
                let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
                builder.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        TlsConnector::from(Arc::new(config))
    }

    /// The answer to a GET over HTTP/1.1, as text.
    async fn get(&self, user: Option<(&str, &str)>, path: &str) -> String {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut stream = self.client(user, b"http/1.1").connect(name, stream).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A peer that closes without a farewell has still said everything.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }
}

#[tokio::test]
async fn a_certificate_says_who_asks() {
    let server = Server::start().await;
    let admin = server.get(Some(("ann", "system:masters")), "/api/v1/namespaces/default").await;
    assert!(admin.starts_with("HTTP/1.1 200"), "{admin}");
    let user = server.get(Some(("bob", "people")), "/api/v1/namespaces/default").await;
    assert!(user.starts_with("HTTP/1.1 403"), "{user}");
    assert!(user.contains(r#"User \"bob\" cannot get resource \"namespaces\""#), "{user}");
    let nobody = server.get(None, "/api/v1/namespaces/default").await;
    assert!(nobody.contains("system:anonymous"), "{nobody}");
    assert!(server.get(None, "/healthz").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn clients_choose_the_protocol() {
    let server = Server::start().await;
    for protocol in [&b"h2"[..], b"http/1.1"] {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = server.client(None, protocol).connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
    }
}

#[tokio::test]
async fn a_shutdown_ends_open_watches_and_then_the_server() {
    let server = Server::start().await;
    let admin = Some(("ann", "system:masters"));
    let watching = server.get(admin, "/api/v1/namespaces?watch=1");
    let stopping = async {
        // The watch is open once the server has answered another request that was sent after it.
        assert!(server.get(admin, "/version").await.starts_with("HTTP/1.1 200"));
        server.shutdown.cancel();
    };
    let (watched, ()) = tokio::join!(watching, stopping);
    assert!(watched.contains("ADDED") || watched.is_empty(), "{watched}");
    server.task.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_client_without_tls_is_sent_away_and_others_go_on() {
    let server = Server::start().await;
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"));
    assert!(server.get(None, "/livez").await.starts_with("HTTP/1.1 200"));
}
