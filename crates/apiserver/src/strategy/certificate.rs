//! Requests for certificates: the server says who asks.

use serde_json::{Value, json};

use crate::auth::User;

pub(super) fn prepare_create(object: &mut Value, user: &User) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    spec.insert("username".to_owned(), user.name.as_str().into());
    spec.insert("groups".to_owned(), user.groups.clone().into());
    if !user.uid.is_empty() {
        spec.insert("uid".to_owned(), user.uid.as_str().into());
    }
    if !user.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(user.extra));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_asks_in_the_name_of_others() {
        let mut request = json!({"spec": {"request": "x", "username": "root", "uid": "0"}});
        prepare_create(&mut request, &User::new("ann", ["people"]));
        let groups = json!(["people", "system:authenticated"]);
        assert_eq!(request["spec"], json!({"request": "x", "username": "ann", "groups": groups}));
    }
}
