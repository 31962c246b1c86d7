//! What the flags of kube-apiserver mean here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use windlass_apiserver::AddressRange;
use windlass_apiserver::admission::{Plugin, Plugins};
use windlass_cluster::Profile;

use super::flags::Flags;
use crate::failure::Failure;

/// Flags that are honoured.
pub(super) const HONOURED: [(&str, &str); 22] = [
    ("advertise-address", "the address in the kubernetes Service's endpoints"),
    ("audit-log-path", "the file that requests are logged to, if there is a policy"),
    ("audit-policy-file", "which requests are logged"),
    ("authorization-mode", "RBAC, or AlwaysAllow"),
    ("bind-address", "the address to listen on"),
    ("cert-dir", "where apiserver.crt and apiserver.key are"),
    ("client-ca-file", "the authority of client certificates"),
    ("disable-admission-plugins", "admission plugins to switch off"),
    ("enable-admission-plugins", "admission plugins to switch on"),
    ("feature-gates", "AggregatedDiscoveryEndpoint=false switches aggregated discovery off"),
    ("secure-port", "the port to listen on"),
    ("service-account-issuer", "the issuer of service-account tokens"),
    ("service-account-key-file", "keys whose tokens are accepted"),
    ("service-account-signing-key-file", "the P-256 key that signs tokens, in PKCS #8"),
    ("service-cluster-ip-range", "the addresses of Services"),
    ("service-node-port-range", "the ports of Services of type NodePort"),
    ("tls-cert-file", "the server's certificate, instead of the one in cert-dir"),
    ("tls-private-key-file", "its key"),
    ("token-auth-file", "fixed tokens: token,user,uid,groups"),
    ("v", "accepted and without effect, like other flags of logging"),
    ("help", "show this and end"),
    ("version", "show the version of Kubernetes and end"),
];

/// Flags that need nothing done: what they ask for is so anyway, or has no object here.
const WITHOUT_EFFECT: [&str; 11] = [
    "allow-privileged",
    "api-audiences",
    "enable-aggregator-routing",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-keyfile",
    "etcd-prefix",
    "etcd-servers",
    "insecure-port",
    "storage-backend",
    "vmodule",
];

/// Admission plugins that cannot be switched off.
const ALWAYS_ON: [&str; 4] =
    ["MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook"];

/// Environment variable: how much runs beside the API server.
pub(super) const PROFILE_VARIABLE: &str = "WINDLASS_ENVTEST_PROFILE";

/// What one API server is started with.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) listen: SocketAddr,
    pub(super) advertise: IpAddr,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) client_authority: Option<PathBuf>,
    pub(super) tokens: Option<PathBuf>,
    /// Where requests are logged, and which.
    pub(super) audit: Option<(PathBuf, PathBuf)>,
    pub(super) issuer: Option<String>,
    pub(super) signing_key: Option<PathBuf>,
    pub(super) token_keys: Vec<PathBuf>,
    pub(super) services: AddressRange,
    pub(super) node_ports: std::ops::RangeInclusive<u16>,
    pub(super) plugins: Plugins,
    pub(super) allow_all: bool,
    pub(super) aggregated_discovery: bool,
    pub(super) profile: Profile,
    /// What was asked for and is not done.
    pub(super) warnings: Vec<String>,
}

impl Settings {
    /// Understands flags and the wanted profile.
    pub(super) fn new(flags: &Flags, profile: Option<&str>) -> Result<Self, Failure> {
        let address = |name| flags.last(name).map(|text| parsed::<IpAddr>(name, text)).transpose();
        let bind = address("bind-address")?.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let port = flags.last("secure-port").map_or(Ok(6443), |text| parsed("secure-port", text))?;
        let local = if bind.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { bind };
        let services = flags.list("service-cluster-ip-range").next().unwrap_or("10.0.0.0/24");
        let directory = PathBuf::from(flags.last("cert-dir").unwrap_or("/var/run/kubernetes"));
        let file = |name: &str| flags.last(name).map(PathBuf::from);
        let profile = profile.filter(|word| !word.is_empty()).map_or(Ok(Profile::Bare), str::parse);
        let profile = profile.map_err(|error| Failure::new(format!("{PROFILE_VARIABLE}: {error}")))?;
        let mut warnings = Vec::new();
        warnings.extend(unknown(flags).map(|name| format!("--{name} is not known here and has no effect")));
        Ok(Settings {
            listen: SocketAddr::new(bind, port),
            advertise: address("advertise-address")?.unwrap_or(local),
            certificate: file("tls-cert-file").unwrap_or_else(|| directory.join("apiserver.crt")),
            key: file("tls-private-key-file").unwrap_or_else(|| directory.join("apiserver.key")),
            client_authority: file("client-ca-file"),
            tokens: file("token-auth-file"),
            audit: file("audit-log-path").zip(file("audit-policy-file")),
            issuer: flags.list("service-account-issuer").next().map(str::to_owned),
            signing_key: file("service-account-signing-key-file"),
            token_keys: flags.list("service-account-key-file").map(PathBuf::from).collect(),
            services: parsed("service-cluster-ip-range", services)?,
            node_ports: node_ports(flags)?,
            plugins: plugins(flags, &mut warnings),
            allow_all: allows_all(flags, &mut warnings),
            aggregated_discovery: aggregated_discovery(flags, &mut warnings),
            profile,
            warnings,
        })
    }
}

/// Reads a file that a flag names.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

fn unknown(flags: &Flags) -> impl Iterator<Item = &str> {
    flags.other_than(&WITHOUT_EFFECT).filter(|name| HONOURED.iter().all(|(known, _)| known != name))
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(name: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error| Failure::new(format!("--{name}={text}: {error}")))
}

fn node_ports(flags: &Flags) -> Result<std::ops::RangeInclusive<u16>, Failure> {
    const NAME: &str = "service-node-port-range";
    let Some(text) = flags.last(NAME) else { return Ok(30_000..=32_767) };
    let ends = text.split_once('-').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    let (low, high) = ends
        .filter(|(low, high)| low <= high)
        .ok_or_else(|| Failure::new(format!("--{NAME}={text}: write a range such as 30000-32767")))?;
    Ok(low..=high)
}

/// The plugins that kube-apiserver has on by itself, and the changes that were asked for.
fn plugins(flags: &Flags, warnings: &mut Vec<String>) -> Plugins {
    let mut plugins = Plugins::default()
        .with(Plugin::ServiceAccount)
        .with(Plugin::StorageObjectInUseProtection)
        .with(Plugin::TaintNodesByCondition);
    for name in flags.list("enable-admission-plugins") {
        match name.parse() {
            Ok(plugin) => plugins = plugins.with(plugin),
            Err(_) if ALWAYS_ON.contains(&name) => {}
            Err(_) => warnings.push(format!("--enable-admission-plugins: there is no {name} here")),
        }
    }
    for name in flags.list("disable-admission-plugins") {
        match name.parse() {
            Ok(plugin) => plugins = plugins.without(plugin),
            Err(_) if ALWAYS_ON.contains(&name) => {
                warnings.push(format!("--disable-admission-plugins: {name} is always on here"));
            }
            // What is not there is off.
            Err(_) => {}
        }
    }
    plugins
}

fn allows_all(flags: &Flags, warnings: &mut Vec<String>) -> bool {
    let modes: Vec<&str> = flags.list("authorization-mode").collect();
    for mode in modes.iter().filter(|mode| !["RBAC", "AlwaysAllow", "Node"].contains(mode)) {
        warnings.push(format!("--authorization-mode: {mode} has no effect here; RBAC and AlwaysAllow have"));
    }
    modes.contains(&"AlwaysAllow") || modes.is_empty()
}

fn aggregated_discovery(flags: &Flags, warnings: &mut Vec<String>) -> bool {
    let mut aggregated = true;
    for gate in flags.list("feature-gates") {
        match gate.split_once('=') {
            Some(("AggregatedDiscoveryEndpoint", value)) => aggregated = value != "false",
            _ => warnings.push(format!("--feature-gates: {gate} has no effect here")),
        }
    }
    aggregated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(words: &[&str]) -> Settings {
        let flags = Flags::parse(words.iter().map(|word| (*word).to_owned())).unwrap();
        Settings::new(&flags, None).unwrap_or_else(|failure| panic!("{}", failure.message()))
    }

    #[test]
    fn what_envtest_passes_is_understood() {
        let settings = settings(&[
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            "--cert-dir=/tmp/a b",
            "--client-ca-file=/tmp/a b/client-cert-auth-ca.crt",
            "--disable-admission-plugins=ServiceAccount",
            "--etcd-servers=http://127.0.0.1:1",
            "--secure-port=4321",
            "--service-account-issuer=https://127.0.0.1:4321/",
            "--service-account-key-file=/tmp/a b/sa-signer.crt",
            "--service-account-signing-key-file=/tmp/a b/sa-signer.key",
            "--service-cluster-ip-range=10.0.0.0/24",
        ]);
        assert_eq!(settings.listen, "127.0.0.1:4321".parse().unwrap());
        assert_eq!(settings.certificate, Path::new("/tmp/a b/apiserver.crt"));
        assert_eq!(settings.services.first(), Ipv4Addr::new(10, 0, 0, 1));
        assert!(!settings.plugins.has(Plugin::ServiceAccount) && settings.plugins.has(Plugin::LimitRanger));
        assert!(!settings.allow_all && settings.aggregated_discovery);
        assert_eq!(settings.profile, Profile::Bare);
        assert_eq!(settings.warnings, Vec::<String>::new());
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let settings = settings(&[
            "--feature-gates=AggregatedDiscoveryEndpoint=false,Other=true",
            "--made-up=1",
            "--enable-admission-plugins=PodNodeSelector,ValidatingAdmissionWebhook",
            "--disable-admission-plugins=PodSecurity,ValidatingAdmissionWebhook",
            "--authorization-mode=Webhook",
        ]);
        assert!(!settings.aggregated_discovery && !settings.allow_all);
        assert_eq!(settings.warnings.len(), 5, "{:?}", settings.warnings);
        assert!(settings.warnings[0].contains("--made-up"), "{:?}", settings.warnings);
    }

    #[test]
    fn bad_values_name_their_flag() {
        for words in [["--secure-port=x"], ["--bind-address=here"], ["--service-node-port-range=9-1"]] {
            let flags = Flags::parse(words.map(str::to_owned)).unwrap();
            let failure = Settings::new(&flags, None).unwrap_err();
            assert!(failure.message().starts_with(words[0]), "{}", failure.message());
        }
        let failure = Settings::new(&Flags::default(), Some("everything")).unwrap_err();
        assert!(failure.message().contains(PROFILE_VARIABLE), "{}", failure.message());
    }
}
