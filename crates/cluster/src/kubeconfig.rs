//! The file by which clients find a cluster.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD as BASE64};

use crate::pki::Identity;

/// A cluster and an identity to use it with.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    /// The URL of the API server.
    pub server: String,
    /// The certificate of the cluster's authority, in PEM.
    pub authority: String,
    /// Who the client is.
    pub identity: Identity,
}

impl fmt::Display for Kubeconfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kubeconfig { server, authority, identity } = self;
        write!(
            formatter,
            "apiVersion: v1
kind: Config
current-context: windlass
clusters:
- name: windlass
  cluster:
    server: {server}
    certificate-authority-data: {}
contexts:
- name: windlass
  context:
    cluster: windlass
    user: windlass-admin
users:
- name: windlass-admin
  user:
    client-certificate-data: {}
    client-key-data: {}
",
            BASE64.encode(authority),
            BASE64.encode(&identity.certificate),
            BASE64.encode(&identity.key),
        )
    }
}
