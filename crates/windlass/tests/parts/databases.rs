//! A database as three parts: a Secret, then servers, then a migration.

use windlass::App;
use windlass::prelude::*;
use windlass::serde_json::{Value, json};

/// A database with a schema.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[resource(group = "data.example.com", version = "v1", kind = "Database")]
pub(crate) struct DatabaseSpec {
    /// How many servers.
    pub size: i32,
    /// The image of the servers; those of `broken` never become ready.
    pub image: String,
    /// The version of the schema; none is no migration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The password.
    pub password: String,
}

pub(crate) struct Databases;

impl Operator for Databases {
    type Resource = Database;

    fn desired(&self, database: &Database, _: &World) -> Outcome<NoStatus> {
        let schema = database.spec.schema.clone();
        Desired::new()
            .child(ConfigMap { metadata: named(database.name_any()), ..ConfigMap::default() })
            .part(Part::new("secret", secret(database)))
            .part(Part::new("database", servers(database)).after("secret"))
            .part_if(schema.is_some(), || Part::new("migration", migration(database)).after("database"))
            .settled()
    }
}

fn object<K: windlass::serde::de::DeserializeOwned>(object: Value) -> K {
    windlass::serde_json::from_value(object).unwrap()
}

fn secret(database: &Database) -> Secret {
    let data = [("password".to_owned(), database.spec.password.clone())].into();
    Secret { metadata: named(database.name_any()), string_data: Some(data), ..Secret::default() }
}

fn servers(database: &Database) -> StatefulSet {
    let labels = json!({"database": database.name_any()});
    let container = json!({"name": "server", "image": database.spec.image});
    let ready = if database.spec.image == "broken" { "never" } else { "0" };
    let annotations = json!({"windlass.dev/fake-ready-seconds": ready});
    object(json!({
        "metadata": {"name": database.name_any()},
        "spec": {
            "replicas": database.spec.size, "serviceName": "", "selector": {"matchLabels": labels},
            "podManagementPolicy": "Parallel",
            "template": {
                "metadata": {"labels": labels, "annotations": annotations}, "spec": {"containers": [container]},
            },
        },
    }))
}

/// Of a schema called `bad` it fails.
fn migration(database: &Database) -> Job {
    let schema = database.spec.schema.clone().unwrap_or_default();
    let annotations = json!({"windlass.dev/fake-exit-code": if schema == "bad" { "1" } else { "0" }});
    let container = json!({"name": "migration", "image": "migration"});
    object(json!({
        "metadata": {"name": format!("{}-{schema}", database.name_any())},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }))
}

pub(crate) fn app() -> App<Databases> {
    windlass::operator(Databases).owns::<ConfigMap>().owns::<Secret>().owns::<StatefulSet>().owns::<Job>().ordered()
}
