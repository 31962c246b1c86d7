//! An API server in memory, to try clients on: `cargo run -p windlass-apiserver --example serve -- KUBECONFIG`.

use std::{error::Error, net::SocketAddr, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_apiserver::{
    Api, Config,
    auth::{Auth, MASTERS},
    bootstrap::{Bootstrap, bootstrap},
    server::{self, Tls},
};
use windlass_store::Store;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let kubeconfig = std::env::args().nth(1).ok_or("the path of the kubeconfig to write is missing")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let tls = certificates(Path::new(&kubeconfig), address)?;
    let store = Store::in_memory();
    let config = Config { address: address.to_string(), ..Config::default() };
    let settings = Bootstrap {
        endpoint: address,
        service_address: [10, 96, 0, 1].into(),
        service_range: config.service_range,
        client_ca: None,
        front_proxy_ca: None,
        serves_metrics: false,
    };
    bootstrap(&store, &settings, jiff::Timestamp::now()).await?;
    let api = Api::new(store.clone(), Auth::new(store), config);
    api.system().health.set_bootstrapped();
    println!("serving on https://{address}");
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        stop.cancel();
    });
    server::serve(listener, Some(tls), api, shutdown).await;
    Ok(())
}

/// Makes an authority, a server and an administrator, and writes the kubeconfig of the latter.
fn certificates(kubeconfig: &Path, address: SocketAddr) -> Result<Tls, Box<dyn Error>> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "example");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let server_key = KeyPair::generate()?;
    let server = CertificateParams::new(vec![address.ip().to_string()])?.signed_by(&server_key, &authority)?;

    let admin_key = KeyPair::generate()?;
    let mut admin = CertificateParams::default();
    admin.distinguished_name.push(DnType::CommonName, "admin");
    admin.distinguished_name.push(DnType::OrganizationName, MASTERS);
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let admin = admin.signed_by(&admin_key, &authority)?;

    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"https://{address}\", certificate-authority-data: {}}}}}]\n\
         users: [{{name: c, user: {{client-certificate-data: {}, client-key-data: {}}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: c}}}}]\n",
        STANDARD.encode(authority.pem()),
        STANDARD.encode(admin.pem()),
        STANDARD.encode(admin_key.serialize_pem()),
    );
    std::fs::write(kubeconfig, text)?;
    Ok(Tls::new(server.pem().as_bytes(), server_key.serialize_pem().as_bytes(), authority.pem().as_bytes())?)
}
