//! Who sends a request (authentication) and what they may do (RBAC authorization).

mod attributes;
mod certificate;
mod denial;
mod impersonation;
mod jwt;
pub mod rbac;
mod service_account;
mod static_token;
mod user;

use http::{HeaderMap, header::AUTHORIZATION};
use windlass_clock::Clock;
use windlass_store::Store;

use crate::ApiError;
use rbac::Authorizer;

pub use attributes::{Attributes, Target};
pub use certificate::{CertificateError, user_of_certificate};
pub use denial::{forbidden, unauthorized};
pub use impersonation::Impersonation;
pub use jwt::{JwtError, PublicKey, SigningKey};
pub use service_account::{Bound, ISSUER_DEFAULT, Reference, TokenError, TokenIssuer};
pub use static_token::{StaticTokenError, StaticTokens};
pub use user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, Peer, UNAUTHENTICATED, User, service_account_groups, service_account_name,
};

/// Authentication and authorization of one API server.
#[derive(Debug)]
pub struct Auth {
    store: Store,
    static_tokens: StaticTokens,
    issuer: Option<TokenIssuer>,
    authorizer: Authorizer,
    clock: Clock,
}

impl Auth {
    /// Authentication by certificates alone, and authorization by the roles in `store`.
    pub fn new(store: Store) -> Self {
        let authorizer = Authorizer::new(store.clone());
        Auth { store, static_tokens: StaticTokens::default(), issuer: None, authorizer, clock: Clock::system() }
    }

    /// Accepts fixed bearer tokens, too.
    #[must_use]
    pub fn with_static_tokens(self, static_tokens: StaticTokens) -> Self {
        Auth { static_tokens, ..self }
    }

    /// Issues and accepts tokens of service accounts, too.
    #[must_use]
    pub fn with_issuer(self, issuer: TokenIssuer) -> Self {
        Auth { issuer: Some(issuer), ..self }
    }

    /// Takes the time from `clock`.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Auth { clock, ..self }
    }

    /// Where the time comes from.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Allows everything to everybody, as `--authorization-mode=AlwaysAllow` of Kubernetes does.
    #[must_use]
    pub fn allowing_all(self) -> Self {
        Auth { authorizer: Authorizer::allow_all(self.store.clone()), ..self }
    }

    /// The issuer of service-account tokens, if there is one.
    pub fn issuer(&self) -> Option<&TokenIssuer> {
        self.issuer.as_ref()
    }

    /// The roles and bindings.
    pub fn authorizer(&self) -> &Authorizer {
        &self.authorizer
    }

    /// The user behind a request, after impersonation.
    ///
    /// # Errors
    /// 401 for credentials that are not valid, 403 for an impersonation that is not allowed.
    pub fn authenticate(&self, peer: &Peer, headers: &HeaderMap) -> Result<User, ApiError> {
        let user = match peer {
            Peer::Local(user) | Peer::Remote { certificate: Some(user) } => user.clone(),
            Peer::Remote { certificate: None } => self.user_of_headers(headers)?,
        };
        let Some(wanted) = Impersonation::of_headers(headers)? else { return Ok(user) };
        for need in wanted.needs() {
            self.authorize(&user, &need)?;
        }
        Ok(wanted.into_user())
    }

    /// Refuses what `user` may not do.
    ///
    /// # Errors
    /// 403, with the sentence that names the missing right.
    pub fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if self.authorizer.allows(user, attributes) { Ok(()) } else { Err(forbidden(user, attributes, "")) }
    }

    /// The user of a bearer token and those of `audiences` that it is for; empty means the API server's own.
    ///
    /// # Errors
    /// The sentence that says what is wrong with the token.
    pub fn user_of_token(&self, token: &str, audiences: &[String]) -> Result<(User, Vec<String>), String> {
        let own = self.issuer.as_ref().map(TokenIssuer::audiences).unwrap_or_default();
        let asked = if audiences.is_empty() { &own } else { audiences };
        if let Some(user) = self.static_tokens.find(token) {
            let common: Vec<String> = asked.iter().filter(|audience| own.contains(audience)).cloned().collect();
            return match common.is_empty() && !asked.is_empty() {
                true => Err(format!("the token is not for any of the audiences {asked:?}")),
                false => Ok((user.clone(), common)),
            };
        }
        match self.issuer.as_ref().filter(|issuer| issuer.claims(token)) {
            Some(issuer) => {
                issuer.verify(token, asked, &self.store, self.clock.now()).map_err(|error| error.to_string())
            }
            None => Err("the token is not known".to_owned()),
        }
    }

    fn user_of_headers(&self, headers: &HeaderMap) -> Result<User, ApiError> {
        let Some(value) = headers.get(AUTHORIZATION) else { return Ok(User::anonymous()) };
        let value = value.to_str().map_err(|_| unauthorized())?;
        // Other schemes are not ours to judge; whoever uses them stays anonymous.
        let Some(token) = bearer_token(value) else { return Ok(User::anonymous()) };
        self.user_of_token(token, &[]).map(|(user, _)| user).map_err(|why| {
            tracing::debug!(why, "a bearer token was refused");
            unauthorized()
        })
    }
}

fn bearer_token(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
