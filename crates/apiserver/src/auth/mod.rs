//! Who sends a request (authentication) and what they may do (RBAC authorization).

mod attributes;
mod certificate;
mod denial;
mod user;

use http::HeaderMap;

use crate::ApiError;

pub use attributes::{Attributes, Target};
pub use certificate::{CertificateError, user_of_certificate};
pub use denial::{forbidden, forbidden_object, unauthorized};
pub use user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, Peer, UNAUTHENTICATED, User, service_account_groups, service_account_name,
};

/// Authentication and authorization of one API server.
#[derive(Clone, Debug, Default)]
pub struct Auth {}

impl Auth {
    /// The user behind a request, after impersonation.
    ///
    /// # Errors
    /// 401 for credentials that are not valid, 403 for an impersonation that is not allowed.
    pub fn authenticate(&self, peer: &Peer, headers: &HeaderMap) -> Result<User, ApiError> {
        let _ = headers;
        match peer {
            Peer::Local(user) | Peer::Remote { certificate: Some(user) } => Ok(user.clone()),
            Peer::Remote { certificate: None } => Ok(User::anonymous()),
        }
    }

    /// Refuses what `user` may not do.
    ///
    /// # Errors
    /// 403, with the sentence that names the missing right.
    pub fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if user.is_master() { Ok(()) } else { Err(forbidden(user, attributes, "")) }
    }
}
