//! The identity behind a request, and the connection it came over.

use std::collections::BTreeMap;

/// The group that may do everything.
pub const MASTERS: &str = "system:masters";
/// The group of everyone who proved an identity.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of everyone who did not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of someone who did not prove an identity.
pub const ANONYMOUS: &str = "system:anonymous";

/// An identity: a name, the groups it belongs to, and what its credential adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name, such as `system:serviceaccount:default:builder`.
    pub name: String,
    /// The unique id, empty when the credential has none.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// More facts about the credential, such as the Pod that a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The connection that a request came over.
#[derive(Clone, Debug)]
pub enum Peer {
    /// A caller in this process, whose identity is given and not to be proven.
    Local(User),
    /// A network connection, with the identity of its verified client certificate.
    Remote {
        /// The certificate's user, if one was presented.
        certificate: Option<User>,
    },
}

impl User {
    /// A user with a name and groups, plus [`AUTHENTICATED`].
    pub fn new(name: impl Into<String>, groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().map(Into::into).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        User { name: name.into(), groups, ..User::default() }
    }

    /// A part of the control plane, with every right.
    pub fn master(name: impl Into<String>) -> Self {
        User::new(name, [MASTERS])
    }

    /// Someone without credentials.
    pub fn anonymous() -> Self {
        User { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..User::default() }
    }

    /// Whether the user belongs to `group`.
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Whether the user may do everything.
    pub fn is_master(&self) -> bool {
        self.in_group(MASTERS)
    }
}

/// The user name of a service account.
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// The groups of every service account of a namespace.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}"), AUTHENTICATED.to_owned()]
}
