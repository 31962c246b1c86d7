//! kube-apiserver's name: the API in this process, objects in memory, with the certificates and flags of whoever starts it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_apiserver::audit::{AuditLog, Policy};
use windlass_apiserver::auth::{Auth, ISSUER_DEFAULT, PublicKey, SigningKey, StaticTokens, TokenIssuer, User};
use windlass_apiserver::bootstrap::{Bootstrap, bootstrap};
use windlass_apiserver::server::{self, Tls};
use windlass_apiserver::{Api, Config};
use windlass_cluster::{Identity, Profile};
use windlass_controllers::{Controllers, Set};
use windlass_store::Store;

use super::flags::Flags;
use super::orphan;
use super::settings::{HONOURED, PROFILE_VARIABLE, Settings, read};
use crate::commands::serve::{log_to_stderr, stop_signal};
use crate::failure::Failure;

/// The release of Kubernetes that is served.
const KUBERNETES: &str = windlass_apiserver::system::RELEASE;
/// How long open requests may take after a signal to stop; nothing that is stored outlives the process anyway.
const STOP_TIME_MAX: Duration = Duration::from_millis(500);

/// Serves until the process is told to end.
pub(super) fn run(flags: &Flags) -> Result<(), Failure> {
    if flags.is_on("help") || flags.is_on("h") {
        help();
        return Ok(());
    }
    if flags.is_on("version") {
        println!("Kubernetes {KUBERNETES}");
        return Ok(());
    }
    log_to_stderr();
    let profile = std::env::var(PROFILE_VARIABLE).ok();
    let settings = Settings::new(flags, profile.as_deref())?;
    for warning in &settings.warnings {
        eprintln!("warning: {warning}");
    }
    orphan::end_with_parent();
    let runtime = tokio::runtime::Runtime::new()?;
    let result = runtime.block_on(serve(&settings));
    runtime.shutdown_background();
    result
}

async fn serve(settings: &Settings) -> Result<(), Failure> {
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|error| Failure::new(format!("cannot listen on {}: {error}", settings.listen)))?;
    let address = listener.local_addr()?;
    let authority = settings.client_authority.as_deref().map(read).transpose()?;
    let tls = tls(settings, authority.as_deref())?;
    let store = Store::in_memory();
    let first = Bootstrap {
        endpoint: (settings.advertise, address.port()).into(),
        service_address: IpAddr::V4(settings.services.first()),
        service_range: settings.services,
        client_ca: authority.clone(),
        front_proxy_ca: None,
        serves_metrics: false,
    };
    bootstrap(&store, &first, jiff::Timestamp::now())
        .await
        .map_err(|error| Failure::new(format!("cannot prepare the store: {error}")))?;
    let config = config(settings, first.endpoint.to_string())?;
    let api = Api::new(store.clone(), auth(settings, store)?, config);
    api.system().health.set_bootstrapped();
    let stop = CancellationToken::new();
    start_controllers(settings.profile, &api, authority, &stop);
    let serving = tokio::spawn(server::serve(listener, Some(tls), api, stop.clone()));
    stop_signal().await?;
    stop.cancel();
    tokio::time::timeout(STOP_TIME_MAX, serving).await.ok();
    Ok(())
}

fn config(settings: &Settings, address: String) -> Result<Config, Failure> {
    Ok(Config {
        address,
        service_range: settings.services,
        node_ports: settings.node_ports.clone(),
        plugins: settings.plugins.clone(),
        aggregated_discovery: settings.aggregated_discovery,
        audit: settings.audit.as_ref().map(audit).transpose()?.flatten(),
        ..Config::default()
    })
}

/// A policy that asks for more than we log is passed over: tests seldom look at the log.
fn audit((log, policy): &(PathBuf, PathBuf)) -> Result<Option<Arc<AuditLog>>, Failure> {
    let Some(parsed) = passed_over(policy, Policy::parse(&read(policy)?)) else { return Ok(None) };
    let log = AuditLog::open(log, parsed).map_err(|error| Failure::new(error.to_string()))?;
    Ok(Some(Arc::new(log)))
}

fn auth(settings: &Settings, store: Store) -> Result<Auth, Failure> {
    let auth = Auth::new(store).with_issuer(issuer(settings)?);
    let auth = match &settings.tokens {
        Some(path) => {
            let tokens: StaticTokens = read(path)?.parse().map_err(|error| about(path, error))?;
            auth.with_static_tokens(tokens)
        }
        None => auth,
    };
    Ok(if settings.allow_all { auth.allowing_all() } else { auth })
}

/// Keys of another type than we sign with are passed over: tokens then are good for this server alone.
fn issuer(settings: &Settings) -> Result<TokenIssuer, Failure> {
    let signing = settings.signing_key.as_deref().map(|path| Ok::<_, Failure>((path, read(path)?))).transpose()?;
    let given = signing.and_then(|(path, pem)| passed_over(path, SigningKey::from_pem(&pem)));
    let key = match given {
        Some(key) => key,
        None => SigningKey::generate().map_err(|error| Failure::new(error.to_string()))?,
    };
    let mut older = Vec::new();
    for path in &settings.token_keys {
        older.extend(passed_over(path, PublicKey::all_from_pem(&read(path)?)).unwrap_or_default());
    }
    older.retain(|other| other != key.public());
    Ok(TokenIssuer::new(settings.issuer.as_deref().unwrap_or(ISSUER_DEFAULT), key, older))
}

fn passed_over<T>(path: &Path, read: Result<T, impl std::fmt::Display>) -> Option<T> {
    read.inspect_err(|error| eprintln!("warning: {} is not used: {error}", path.display())).ok()
}

fn tls(settings: &Settings, authority: Option<&str>) -> Result<Tls, Failure> {
    let identity = match (settings.certificate.exists(), settings.key.exists()) {
        (false, false) => Identity::self_signed(&[settings.listen.ip(), settings.advertise])
            .map_err(|error| Failure::new(error.to_string()))?,
        _ => Identity { certificate: read(&settings.certificate)?, key: read(&settings.key)? },
    };
    let tls =
        Tls::new(identity.certificate.as_bytes(), identity.key.as_bytes(), authority.unwrap_or_default().as_bytes());
    tls.map_err(|error| about(&settings.certificate, error))
}

fn start_controllers(profile: Profile, api: &Api, authority: Option<String>, stop: &CancellationToken) {
    let set = match profile {
        Profile::Bare => return,
        Profile::Gc => Set::gc(),
        Profile::Workloads | Profile::Node => Set::workloads(),
    };
    let user = User::master("system:kube-controller-manager");
    let client = kube::Client::new(server::local(api, user), "default");
    let controllers = Controllers::new(client, set).root_ca(authority.unwrap_or_default());
    tokio::spawn(controllers.run(stop.clone()));
}

fn about(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

fn help() {
    println!("kube-apiserver {KUBERNETES} as `windlass envtest` has it: the Kubernetes API, objects in memory.\n");
    for (name, meaning) in HONOURED {
        println!("      --{name:<34} {meaning}");
    }
    println!("\nOther flags of kube-apiserver are accepted with a warning and have no effect.");
    println!("{PROFILE_VARIABLE}=gc or =workloads in the environment runs controllers, too.");
}
