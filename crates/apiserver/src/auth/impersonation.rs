//! Acting as someone else, by the `Impersonate-*` headers.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName};

use super::{
    ANONYMOUS, AUTHENTICATED, Attributes, Target, UNAUTHENTICATED, User, service_account_groups, service_account_name,
};
use crate::ApiError;
use crate::query::decode;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Someone to act as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonation {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Impersonation {
    /// What the headers of a request ask for; `None` without such headers.
    ///
    /// # Errors
    /// 400 for headers that cannot be read, or that name groups but no user.
    pub fn of_headers(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let mut wanted = Impersonation {
            user: values(headers, USER)?.into_iter().next().unwrap_or_default(),
            uid: values(headers, UID)?.into_iter().next().unwrap_or_default(),
            groups: values(headers, GROUP)?,
            extra: BTreeMap::new(),
        };
        for name in headers.keys().filter(|name| name.as_str().starts_with(EXTRA_PREFIX)) {
            let key = decode(&name.as_str()[EXTRA_PREFIX.len()..], false);
            wanted.extra.insert(key, values(headers, name)?);
        }
        if wanted == Impersonation::default() {
            return Ok(None);
        }
        if wanted.user.is_empty() {
            return Err(ApiError::bad_request(
                "requested impersonation of groups, uid or extra without impersonating a user",
            ));
        }
        Ok(Some(wanted))
    }

    /// Each right that acting as this one needs.
    pub fn needs(&self) -> Vec<Attributes<'_>> {
        let attribute = |group, resource, subresource, namespace, name| Attributes {
            verb: "impersonate",
            target: Target::Resource { group, resource, subresource, namespace, name },
        };
        let user = match self.service_account() {
            Some((namespace, name)) => attribute("", "serviceaccounts", "", namespace, name),
            None => attribute("", "users", "", "", &self.user),
        };
        let authentication = "authentication.k8s.io";
        let mut needs = vec![user];
        needs.extend(self.groups.iter().map(|group| attribute("", "groups", "", "", group)));
        if !self.uid.is_empty() {
            needs.push(attribute(authentication, "uids", "", "", &self.uid));
        }
        for (key, values) in &self.extra {
            needs.extend(values.iter().map(|value| attribute(authentication, "userextras", key, "", value)));
        }
        needs
    }

    /// The user to act as.
    pub fn into_user(self) -> User {
        let mut groups = self.groups.clone();
        if let Some((namespace, _)) = self.service_account().filter(|_| groups.is_empty()) {
            groups = service_account_groups(namespace);
        }
        let belongs = if self.user == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
        if !groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED) {
            groups.push(belongs.to_owned());
        }
        User { name: self.user, uid: self.uid, groups, extra: self.extra }
    }

    fn service_account(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
        (service_account_name(namespace, name) == self.user && !name.contains(':')).then_some((namespace, name))
    }
}

fn values(headers: &HeaderMap, name: impl AsRef<str>) -> Result<Vec<String>, ApiError> {
    let name = HeaderName::from_bytes(name.as_ref().as_bytes()).expect("names of headers are valid");
    headers
        .get_all(name)
        .iter()
        .map(|value| {
            value.to_str().map(str::to_owned).map_err(|_| ApiError::bad_request("impersonation headers must be ASCII"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn wanted(pairs: &[(&'static str, &str)]) -> Impersonation {
        Impersonation::of_headers(&headers(pairs)).unwrap().unwrap()
    }

    #[test]
    fn users_get_their_groups() {
        let user = wanted(&[(USER, "ann"), (GROUP, "ops"), (GROUP, "dev")]).into_user();
        assert_eq!(user.groups, ["ops", "dev", "system:authenticated"]);
        let user = wanted(&[(USER, "system:serviceaccount:red:robot")]).into_user();
        assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:red", "system:authenticated"]);
        let user = wanted(&[(USER, ANONYMOUS)]).into_user();
        assert_eq!(user.groups, ["system:unauthenticated"]);
    }

    #[test]
    fn every_part_needs_its_own_right() {
        let wanted = wanted(&[
            (USER, "system:serviceaccount:red:robot"),
            (GROUP, "ops"),
            (UID, "u1"),
            ("impersonate-extra-example.org%2fscope", "view"),
        ]);
        let needs: Vec<String> = wanted
            .needs()
            .iter()
            .map(|need| match need.target {
                Target::Resource { group, resource, subresource, namespace, name } => {
                    format!("{group}|{resource}|{subresource}|{namespace}|{name}")
                }
                Target::Path(path) => path.to_owned(),
            })
            .collect();
        assert_eq!(
            needs,
            [
                "|serviceaccounts||red|robot",
                "|groups|||ops",
                "authentication.k8s.io|uids|||u1",
                "authentication.k8s.io|userextras|example.org/scope||view",
            ]
        );
    }

    #[test]
    fn groups_need_a_user() {
        assert_eq!(Impersonation::of_headers(&HeaderMap::new()).unwrap(), None);
        let error = Impersonation::of_headers(&headers(&[(GROUP, "ops")])).unwrap_err();
        assert_eq!(error.code, http::StatusCode::BAD_REQUEST);
    }
}
