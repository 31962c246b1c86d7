//! What the API server makes of the constraints of a derived schema: good objects pass, bad ones are refused by name.

#![expect(missing_docs, reason = "the kinds are those of a test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use windlass::kube::Api;
use windlass::kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use windlass::prelude::*;
use windlass::serde_json::{Value, json};
use windlass_testkit::TestCluster;

/// A shelf with all that can be asked of one.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "shop.example.com", version = "v1", kind = "Shelf", plural = "shelves", status = ShelfStatus)]
#[resource(short = "sf", category = "shop", scale(".spec.boards", ".status.boards"))]
#[resource(column("Boards", path = ".spec.boards", type = "integer", format = "int32", description = "How many."))]
#[resource(selectable = ".spec.wood", deprecated = "shop.example.com/v1 Shelf is deprecated: build your own")]
#[resource(cel("self.metadata.name.startsWith(self.spec.prefix)", message = "the name must begin with spec.prefix"))]
#[schema(cel(
    "self.boards * 10 <= self.height",
    message = "boards need 10 each",
    reason = "FieldValueForbidden",
    field_path = ".boards"
))]
#[serde(rename_all = "camelCase")]
pub struct ShelfSpec {
    #[schema(min = 1, max = 9, multiple_of = 2)]
    pub boards: u32,
    #[schema(exclusive_min = 0, default = 100)]
    pub height: f64,
    #[schema(min_length = 1, max_length = 4, pattern = "^[a-z]+$", default = "s")]
    pub prefix: String,
    #[schema(one_of("oak", "ash"), default = "oak")]
    pub wood: String,
    /// Once chosen it stays.
    #[schema(immutable)]
    pub color: Option<Color>,
    #[schema(nullable = false)]
    pub note: Option<String>,
    #[schema(nullable)]
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(with = "String")]
    pub remark: Value,
    #[schema(format = "date-time")]
    pub built: Option<String>,
    #[serde(default)]
    #[schema(list = "set", max_items = 3, items(max_length = 5))]
    pub tags: Vec<String>,
    #[serde(default)]
    #[schema(keys("name"), min_items = 0, max_items = 4)]
    pub drawers: Vec<Drawer>,
    #[serde(default)]
    #[schema(max_properties = 2, items(min = 1))]
    pub stock: BTreeMap<String, i32>,
    #[schema(cel(
        "self.depth < 50",
        message_expression = "(self.thick ? 'a thick' : 'a thin') + ' back is too deep'"
    ))]
    pub back: Option<Back>,
    #[serde(default)]
    #[schema(preserve_unknown)]
    pub extra: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub enum Color {
    /// As the sea.
    Blue,
    /// As grass.
    Green,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(cel("self.name != 'lost'", message = "a drawer is not lost"))]
pub struct Drawer {
    #[schema(max_length = 8)]
    pub name: String,
    #[serde(default = "Drawer::depth")]
    #[schema(max = 60)]
    pub depth: u8,
}

impl Drawer {
    fn depth() -> u8 {
        30
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(default)]
#[schema(cel("self.depth > 0", message = "there is no back without depth"))]
pub struct Back {
    pub depth: u8,
    pub thick: bool,
}

impl Default for Back {
    fn default() -> Self {
        Self { depth: 1, thick: true }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ShelfStatus {
    #[serde(default)]
    #[schema(max = 9)]
    pub boards: u32,
}

async fn serving() -> (TestCluster, Api<DynamicObject>) {
    let cluster = TestCluster::start().await;
    cluster.define([windlass::definition::<Shelf>()]).await;
    let api = Api::namespaced_with(cluster.client(), "default", &resource());
    (cluster, api)
}

fn resource() -> windlass::kube::core::ApiResource {
    windlass::kube::core::ApiResource::erase::<Shelf>(&())
}

fn shelf(name: &str, spec: Value) -> DynamicObject {
    let mut base = json!({"boards": 2});
    for (key, value) in spec.as_object().unwrap() {
        base[key] = value.clone();
    }
    windlass::serde_json::from_value(json!({
        "apiVersion": "shop.example.com/v1", "kind": "Shelf", "metadata": {"name": name}, "spec": base,
    }))
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_constraint_is_enforced() {
    let (cluster, shelves) = serving().await;
    let rows = [
        (json!({}), ""),
        (
            json!({"boards": 0}),
            "spec.boards: Invalid value: 0: spec.boards in body should be greater than or equal to 1",
        ),
        (json!({"boards": 10, "height": 200}), "spec.boards in body should be less than or equal to 9"),
        (json!({"boards": 3}), "spec.boards in body should be a multiple of 2"),
        (json!({"height": 0}), "spec.height in body should be greater than 0"),
        (json!({"boards": 8, "height": 50}), "spec.boards: Forbidden: boards need 10 each"),
        (json!({"prefix": ""}), "spec.prefix in body should be at least 1 chars long"),
        (json!({"prefix": "sheet"}), "spec.prefix: Too long: may not be more than 4 bytes"),
        (json!({"prefix": "S1"}), "spec.prefix in body should match '^[a-z]+$'"),
        (json!({"prefix": "t"}), "the name must begin with spec.prefix"),
        (json!({"wood": "fir"}), "spec.wood: Unsupported value: \"fir\": supported values: \"oak\", \"ash\""),
        (json!({"color": "Red"}), "spec.color: Unsupported value: \"Red\""),
        (json!({"color": null}), "spec.color: Unsupported value: null"),
        (json!({"remark": null}), ""),
        (json!({"note": 5}), "spec.note in body must be of type string"),
        (json!({"built": "yesterday"}), "spec.built in body must be of type date-time"),
        (json!({"built": "2026-01-01T00:00:00Z"}), ""),
        (json!({"tags": ["a", "b", "a"]}), "spec.tags[2]: Duplicate value: \"a\""),
        (json!({"tags": ["a", "b", "c", "d"]}), "spec.tags: Too many: 4: must have at most 3 items"),
        (json!({"tags": ["toolong"]}), "spec.tags[0]: Too long: may not be more than 5 bytes"),
        (json!({"drawers": [{"name": "a"}, {"name": "a"}]}), "spec.drawers[1]: Duplicate value"),
        (json!({"drawers": [{"name": "a", "depth": 61}]}), "should be less than or equal to 60"),
        (json!({"drawers": [{"name": "lost"}]}), "a drawer is not lost"),
        (json!({"stock": {"a": 0}}), "spec.stock.a in body should be greater than or equal to 1"),
        (json!({"stock": {"a": 1, "b": 1, "c": 1}}), "spec.stock: Too many: 3: must have at most 2 items"),
        (json!({"back": {"depth": 60}}), "a thick back is too deep"),
        (json!({"back": {"depth": 0}}), "there is no back without depth"),
        (json!({"back": null}), ""),
        (json!({"extra": {"any": {"thing": [1]}}}), ""),
    ];
    let dry_run = PostParams { dry_run: true, field_manager: None };
    for (spec, complaint) in rows {
        let answer = shelves.create(&dry_run, &shelf("shelf", spec.clone())).await;
        match (answer, complaint) {
            (Ok(_), "") => {}
            (Err(error), complaint) if !complaint.is_empty() => {
                assert!(error.to_string().contains(complaint), "{spec}: {error}");
            }
            (answer, complaint) => panic!("{spec}: {answer:?} instead of {complaint:?}"),
        }
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_are_filled_in_and_unknown_fields_kept_where_they_may_be() {
    let (cluster, shelves) = serving().await;
    let given = json!({
        "drawers": [{"name": "a"}], "back": {}, "extra": {"any": {"thing": [1]}}, "unknown": 1, "note": null,
    });
    let made = shelves.create(&PostParams::default(), &shelf("shelf", given)).await.unwrap();
    assert_eq!(
        made.data["spec"],
        json!({
            "boards": 2, "height": 100, "prefix": "s", "wood": "oak", "tags": [], "stock": {},
            "drawers": [{"name": "a", "depth": 30}], "back": {"depth": 1, "thick": true},
            "extra": {"any": {"thing": [1]}},
        })
    );
    let typed: Shelf = windlass::serde_json::from_value(windlass::serde_json::to_value(&made).unwrap()).unwrap();
    assert_eq!((typed.spec.height, typed.spec.wood.as_str()), (100.0, "oak"));
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_immutable_field_can_be_set_once() {
    let (cluster, shelves) = serving().await;
    shelves.create(&PostParams::default(), &shelf("shelf", json!({}))).await.unwrap();
    let set = async |color: Value| {
        let patch = json!({"spec": {"color": color}});
        shelves.patch("shelf", &PatchParams::default(), &Patch::Merge(&patch)).await.map_err(|error| error.to_string())
    };
    set(json!("Blue")).await.unwrap();
    set(json!("Blue")).await.unwrap();
    let refusal = set(json!("Green")).await.unwrap_err();
    assert!(refusal.contains("spec.color: Invalid value: \"Green\": color is immutable"), "{refusal}");
    let refusal = set(Value::Null).await.unwrap_err();
    assert!(refusal.contains("color is immutable: it cannot be removed"), "{refusal}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_select_scale_works_and_clients_are_warned() {
    let (cluster, shelves) = serving().await;
    for (name, wood) in [("shelf", "oak"), ("sill", "ash")] {
        shelves.create(&PostParams::default(), &shelf(name, json!({"wood": wood}))).await.unwrap();
    }
    let ash = shelves.list(&ListParams::default().fields("spec.wood=ash")).await.unwrap();
    assert_eq!(ash.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["sill"]);

    let patch = Patch::Merge(json!({"spec": {"replicas": 4}}));
    shelves.patch_scale("shelf", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(shelves.get("shelf").await.unwrap().data["spec"]["boards"], 4);

    let request = windlass::kube::core::Request::new("/apis/shop.example.com/v1/namespaces/default/shelves");
    let answer = cluster.client().send(request.list(&ListParams::default()).unwrap().map(Into::into)).await.unwrap();
    let warning = answer.headers()["warning"].to_str().unwrap();
    assert!(warning.contains("build your own"), "{warning}");
    cluster.stop().await;
}
