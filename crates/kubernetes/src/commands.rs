//! With which flags the programs run.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::PlaneError;

/// Which requests are admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// As on a cluster: service accounts are needed, and nodes may change only what is theirs.
    #[default]
    Full,
    /// As envtest has it: nobody makes service accounts, so that Pods need none.
    WithoutAccounts,
}

/// Which controllers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controllers {
    /// None, and no scheduler.
    None,
    /// Garbage collection, namespaces and service accounts; no scheduler.
    Garbage,
    /// All, and the scheduler.
    #[default]
    All,
}

/// Where a control plane is: its folder, addresses and ports.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where everything is kept.
    pub folder: PathBuf,
    /// Where its keys are, as [`crate::Keys`] makes them.
    pub keys: PathBuf,
    /// The address of the API server. Only one that is not of the loopback range is announced in the Service `kubernetes`.
    pub address: Ipv4Addr,
    /// The port of the API server.
    pub port: u16,
    /// The ports of etcd, for clients and for peers.
    pub etcd: [u16; 2],
    /// The addresses of Services.
    pub services: String,
}

impl Place {
    /// The URL of the API server.
    pub fn server(&self) -> String {
        format!("https://{}:{}", self.address, self.port)
    }

    /// etcd.
    pub fn etcd_command(&self, program: &Path) -> Command {
        let [client, peer] = self.etcd.map(|port| format!("http://127.0.0.1:{port}"));
        let mut command = Command::new(program);
        command
            .args(["--name=kubernetes", "--log-level=error"])
            .arg(format!("--data-dir={}", self.folder.join("etcd").display()))
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster=kubernetes={peer}"));
        command
    }

    /// kube-apiserver, with RBAC.
    pub fn api_server_command(&self, program: &Path, admission: Admission) -> Command {
        let mut command = Command::new(program);
        command
            .arg(format!("--etcd-servers=http://127.0.0.1:{}", self.etcd[0]))
            .arg(format!("--bind-address={}", self.address))
            .arg(format!("--advertise-address={}", self.address))
            .arg(format!("--secure-port={}", self.port))
            .arg(format!("--service-cluster-ip-range={}", self.services))
            .arg(format!("--cert-dir={}", self.folder.join("certificates").display()))
            .arg(format!("--tls-cert-file={}", self.key("server.crt")))
            .arg(format!("--tls-private-key-file={}", self.key("server.key")))
            .arg(format!("--client-ca-file={}", self.key("ca.crt")))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(format!("--service-account-key-file={}", self.key("accounts.crt")))
            .arg(format!("--service-account-signing-key-file={}", self.key("accounts.key")))
            .args(["--allow-privileged=true", "--profiling=false"]);
        if self.address.is_loopback() {
            // No endpoint may have such an address.
            command.arg("--endpoint-reconciler-type=none");
        }
        match admission {
            Admission::WithoutAccounts => {
                command.args(["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"])
            }
            Admission::Full => command
                .args(["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"])
                // Webhooks are asked at the addresses of their Pods: the API server's machine need not know those of Services.
                .arg("--enable-aggregator-routing=true")
                .arg(format!("--kubelet-client-certificate={}", self.key("kubelet-client.crt")))
                .arg(format!("--kubelet-client-key={}", self.key("kubelet-client.key")))
                .args(["--kubelet-preferred-address-types=InternalIP"]),
        };
        command
    }

    /// kube-controller-manager with the controllers that are wanted.
    pub fn controller_manager_command(&self, program: &Path, kubeconfig: &Path, controllers: Controllers) -> Command {
        let mut command = Command::new(program);
        command
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=true"])
            .arg(format!("--service-account-private-key-file={}", self.key("accounts.key")))
            .arg(format!("--root-ca-file={}", self.key("ca.crt")));
        if controllers == Controllers::Garbage {
            command.arg(
                "--controllers=garbage-collector-controller,namespace-controller,serviceaccount-controller,\
                 serviceaccount-token-controller,root-ca-certificate-publisher-controller,clusterrole-aggregation-controller",
            );
        }
        command
    }

    /// kube-scheduler.
    pub fn scheduler_command(&self, program: &Path, kubeconfig: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg(format!("--kubeconfig={}", kubeconfig.display()));
        command.args(["--leader-elect=false", "--secure-port=0"]);
        command
    }

    fn key(&self, name: &str) -> String {
        self.keys.join(name).display().to_string()
    }
}

/// A port of the loopback address that was free a moment ago.
///
/// # Errors
/// If there is none.
pub fn free_port() -> Result<u16, PlaneError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(PlaneError::Port)?;
    Ok(listener.local_addr().map_err(PlaneError::Port)?.port())
}
