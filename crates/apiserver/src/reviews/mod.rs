//! Questions about identities and rights, asked by creating objects that are answered and never stored.

mod access;
mod identity;
mod token_request;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ApiError;
use crate::auth::{Auth, User};

pub(crate) use token_request::request_token;

/// Whether a resource is a question instead of something stored.
pub(crate) fn is_review(group: &str, resource: &str) -> bool {
    match group {
        "authorization.k8s.io" => matches!(
            resource,
            "selfsubjectaccessreviews"
                | "selfsubjectrulesreviews"
                | "subjectaccessreviews"
                | "localsubjectaccessreviews"
        ),
        "authentication.k8s.io" => matches!(resource, "selfsubjectreviews" | "tokenreviews"),
        _ => false,
    }
}

/// Answers the question that `user` asks with `object`: the object again, with its status.
///
/// # Errors
/// 400 or 422 for a question that cannot be answered, 404 for a resource that is none.
pub(crate) fn answer(
    auth: &Auth,
    user: &User,
    resource: &str,
    namespace: &str,
    mut object: Value,
) -> Result<Value, ApiError> {
    let status = match resource {
        "selfsubjectaccessreviews" => access::own(auth, user, &spec(&object)?),
        "subjectaccessreviews" => access::of_subject(auth, &spec(&object)?, "SubjectAccessReview"),
        "localsubjectaccessreviews" => access::in_namespace(auth, &spec(&object)?, namespace),
        "selfsubjectrulesreviews" => access::rules(auth, user, &spec(&object)?),
        "selfsubjectreviews" => Ok(identity::own(user)),
        "tokenreviews" => identity::of_token(auth, &spec(&object)?),
        _ => Err(ApiError::no_such_path()),
    }?;
    if let Some(members) = object.as_object_mut() {
        members.insert("status".to_owned(), status);
    }
    Ok(object)
}

fn spec<T: DeserializeOwned + Default>(object: &Value) -> Result<T, ApiError> {
    match object.get("spec") {
        None | Some(Value::Null) => Ok(T::default()),
        Some(spec) => T::deserialize(spec).map_err(|error| ApiError::bad_request(format!("spec: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{ISSUER_DEFAULT, MASTERS, SigningKey, StaticTokens, TokenIssuer};
    use crate::bootstrap::{Bootstrap, bootstrap};
    use ring::{rand::SystemRandom, signature};
    use serde_json::json;
    use windlass_store::{Store, Write};

    async fn world() -> (Auth, Store) {
        let store = Store::in_memory();
        let settings = Bootstrap {
            endpoint: "127.64.0.1:6443".parse().unwrap(),
            service_address: "127.64.0.1".parse().unwrap(),
            service_range: "127.64.64.0/18".parse().unwrap(),
            client_ca: None,
            front_proxy_ca: None,
            serves_metrics: false,
        };
        bootstrap(&store, &settings, jiff::Timestamp::now()).await.unwrap();
        let pod = json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "u2"},
            "spec": {"serviceAccountName": "robot", "nodeName": "n1"},
        });
        let account = json!({"metadata": {"name": "robot", "namespace": "default", "uid": "u1"}});
        let writes = vec![
            Write::create("/core/serviceaccounts/default/robot", account.to_string()),
            Write::create("/core/pods/default/web", pod.to_string()),
        ];
        store.commit(writes).await.unwrap();
        let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = signature::EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).unwrap();
        let issuer = TokenIssuer::new(ISSUER_DEFAULT, SigningKey::from_pkcs8(key.as_ref()).unwrap(), []);
        let mut tokens = StaticTokens::default();
        tokens.insert("fixed", User::new("ann", ["people"]));
        (Auth::new(store.clone()).with_issuer(issuer).with_static_tokens(tokens), store)
    }

    fn ask(auth: &Auth, user: &User, resource: &str, spec: Value) -> Value {
        let object = json!({"kind": "Question", "spec": spec});
        answer(auth, user, resource, "default", object).unwrap()["status"].clone()
    }

    #[tokio::test]
    async fn rights_are_answered() {
        let (auth, _) = world().await;
        let (ann, root) = (User::new("ann", ["people"]), User::master("root"));
        let get_pods = json!({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}});
        let healthz = json!({"nonResourceAttributes": {"verb": "get", "path": "/healthz"}});
        let ssar = "selfsubjectaccessreviews";
        assert_eq!(ask(&auth, &ann, ssar, get_pods.clone()), json!({"allowed": false}));
        assert_eq!(ask(&auth, &root, ssar, get_pods.clone()), json!({"allowed": true}));
        assert_eq!(ask(&auth, &ann, ssar, healthz), json!({"allowed": true}));
        let mut of_root = get_pods;
        of_root["groups"] = json!([MASTERS]);
        assert_eq!(ask(&auth, &ann, "subjectaccessreviews", of_root.clone()), json!({"allowed": true}));
        assert_eq!(ask(&auth, &ann, "localsubjectaccessreviews", of_root.clone()), json!({"allowed": true}));
        of_root["resourceAttributes"]["namespace"] = json!("other");
        let elsewhere = json!({"spec": of_root});
        assert!(answer(&auth, &ann, "localsubjectaccessreviews", "default", elsewhere).is_err());
        assert!(answer(&auth, &ann, ssar, "", json!({"spec": {}})).is_err());
    }

    #[tokio::test]
    async fn all_rights_are_listed() {
        let (auth, _) = world().await;
        let namespace = json!({"namespace": "default"});
        let rules = ask(&auth, &User::master("root"), "selfsubjectrulesreviews", namespace.clone());
        assert!(rules["resourceRules"].as_array().unwrap().contains(&json!({
            "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
        })));
        let rules = ask(&auth, &User::new("ann", ["people"]), "selfsubjectrulesreviews", namespace);
        assert!(!rules["resourceRules"].to_string().contains("pods"));
        assert!(rules["nonResourceRules"].to_string().contains("/healthz"));
    }

    #[tokio::test]
    async fn tokens_are_issued_and_reviewed() {
        let (auth, store) = world().await;
        let request = json!({"spec": {"expirationSeconds": 3607, "boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u2",
        }}});
        let issued = request_token(&auth, &store, "default", "robot", request).unwrap();
        let status = ask(&auth, &User::anonymous(), "tokenreviews", json!({"token": issued["status"]["token"]}));
        assert_eq!(status["authenticated"], true);
        assert_eq!(status["user"]["username"], "system:serviceaccount:default:robot");
        assert_eq!(status["user"]["extra"]["authentication.kubernetes.io/node-name"], json!(["n1"]));
        let fixed = ask(&auth, &User::anonymous(), "tokenreviews", json!({"token": "fixed"}));
        assert_eq!(fixed["user"]["groups"], json!(["people", "system:authenticated"]));
        let unknown = ask(&auth, &User::anonymous(), "tokenreviews", json!({"token": "x"}));
        assert_eq!(unknown["authenticated"], false);
    }

    #[tokio::test]
    async fn bad_wishes_for_tokens_are_refused() {
        let (auth, store) = world().await;
        let bound = |kind: &str, name: &str, uid: &str| json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}}});
        for (account, request, reason) in [
            ("ghost", json!({}), "NotFound"),
            ("robot", json!({"spec": {"expirationSeconds": 599}}), "Invalid"),
            ("ghost", json!({"spec": {"expirationSeconds": 599}}), "NotFound"),
            ("robot", json!({"metadata": {"name": "other"}}), "Invalid"),
            ("robot", json!({"metadata": {"uid": "u9"}}), "Conflict"),
            ("robot", bound("Pod", "none", ""), "NotFound"),
            ("robot", bound("Pod", "web", "u9"), "Conflict"),
            ("robot", bound("ConfigMap", "web", ""), "BadRequest"),
        ] {
            let error = request_token(&auth, &store, "default", account, request.clone()).unwrap_err();
            assert_eq!(error.reason, reason, "{account} {request}");
        }
    }

    #[tokio::test]
    async fn everyone_learns_who_they_are() {
        let (auth, _) = world().await;
        let status = ask(&auth, &User::new("ann", ["people"]), "selfsubjectreviews", json!(null));
        assert_eq!(status, json!({"userInfo": {"username": "ann", "groups": ["people", "system:authenticated"]}}));
    }
}
