//! Certificates that are renewed while the cluster runs.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_apiserver::server::Tls;
use windlass_apiserver::{Api, FrontProxy};
use windlass_clock::Clock;

use crate::directory::write_private;
use crate::pki::Pki;
use crate::{Directory, Kubeconfig, StartError};

/// How often certificates are looked at; they are renewed long before their end.
const INTERVAL: Duration = Duration::from_secs(12 * 3600);

/// What shows certificates, and where they are kept.
pub(crate) struct Renewal {
    pub(crate) directory: Directory,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) api: Api,
    pub(crate) tls: Tls,
    pub(crate) kubeconfig: Kubeconfig,
    pub(crate) clock: Clock,
}

impl Renewal {
    /// Renews what ends soon, until `stop`.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), Infallible> {
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = self.clock.sleep(INTERVAL) => {}
            }
            if let Err(error) = self.renew() {
                tracing::warn!(%error, "certificates could not be renewed; trying again later");
            }
        }
    }

    /// Shows what the directory has, after what ends soon was made anew.
    fn renew(&mut self) -> Result<(), StartError> {
        let pki = Pki::in_directory(&self.directory.pki(), &self.addresses)?;
        self.tls.show(pki.server.certificate.as_bytes(), pki.server.key.as_bytes())?;
        self.api.show_to_extensions(FrontProxy { certificate: pki.front_proxy.certificate, key: pki.front_proxy.key });
        let known = (&self.kubeconfig.identity.certificate, &self.kubeconfig.authority);
        if known != (&pki.admin.certificate, &pki.authority) {
            self.kubeconfig.identity = pki.admin;
            self.kubeconfig.authority = pki.authority;
            let path = self.directory.kubeconfig();
            let text = self.kubeconfig.to_string();
            write_private(&path, text.as_bytes()).map_err(|source| StartError::file(&path, source))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use windlass_apiserver::Config;
    use windlass_apiserver::auth::Auth;
    use windlass_store::Store;

    use super::*;

    #[tokio::test]
    async fn what_is_renewed_is_shown_and_written() {
        let outer = tempfile::tempdir().unwrap();
        let directory = Directory::create(&outer.path().join("cluster")).unwrap();
        let addresses: Vec<IpAddr> = vec!["127.64.0.1".parse().unwrap()];
        let pki = Pki::in_directory(&directory.pki(), &addresses).unwrap();
        let server = &pki.server;
        let tls = Tls::new(server.certificate.as_bytes(), server.key.as_bytes(), pki.authority.as_bytes()).unwrap();
        let store = Store::in_memory();
        let kubeconfig = Kubeconfig {
            server: "https://127.64.0.1:6443".to_owned(),
            authority: pki.authority.clone(),
            identity: pki.admin.clone(),
        };
        let api = Api::new(store.clone(), Auth::new(store), Config::default());
        let (clock, kept) = (Clock::system(), directory.clone());
        let mut renewal = Renewal { directory, addresses, api, tls: tls.clone(), kubeconfig, clock };
        renewal.renew().unwrap();
        assert!(!kept.kubeconfig().exists());
        let before = tls.shown();

        // As if they had ended.
        for name in ["ca.crt", "server.crt", "admin.crt"] {
            std::fs::remove_file(kept.pki().join(name)).unwrap();
        }
        renewal.renew().unwrap();
        assert_ne!(tls.shown(), before);
        assert_ne!(renewal.kubeconfig.identity.certificate, pki.admin.certificate);
        assert_ne!(renewal.kubeconfig.authority, pki.authority);
        assert!(std::fs::read_to_string(kept.kubeconfig()).unwrap().contains("127.64.0.1"));
    }
}
