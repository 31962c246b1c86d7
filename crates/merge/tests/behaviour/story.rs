//! An object and its writers, told step by step.

use serde_json::{Value, json};
use windlass_merge::managed::{self, ApplyError, Manager, Write};
use windlass_merge::{FieldSet, OpenApiShape, merge_patch};

use crate::thing::thing;

/// One object, written by one after the other, a minute apart.
pub(crate) struct Story {
    pub(crate) live: Option<Value>,
    shape: Option<&'static OpenApiShape>,
    minute: u32,
}

impl Story {
    pub(crate) fn new() -> Self {
        Self { live: None, shape: Some(thing()), minute: 0 }
    }

    pub(crate) fn without_shape() -> Self {
        Self { shape: None, ..Self::new() }
    }

    /// Creates, updates or patches: merges `change` into what is there.
    pub(crate) fn update(&mut self, manager: &str, change: Value) -> &mut Self {
        self.update_at(manager, "", change)
    }

    pub(crate) fn update_at(&mut self, manager: &str, subresource: &str, change: Value) -> &mut Self {
        let mut new = self
            .live
            .clone()
            .unwrap_or_else(|| json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}}));
        merge_patch(&mut new, &change);
        let time = self.tick();
        let write = write(manager, subresource, &time, self.shape);
        managed::update(&write, self.live.as_ref(), &mut new).expect("nothing is converted");
        self.store(new);
        self
    }

    pub(crate) fn apply(&mut self, manager: &str, config: Value) -> &mut Self {
        self.try_apply(manager, "", config, false).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    pub(crate) fn force(&mut self, manager: &str, config: Value) -> &mut Self {
        self.try_apply(manager, "", config, true).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    pub(crate) fn try_apply(
        &mut self,
        manager: &str,
        subresource: &str,
        config: Value,
        force: bool,
    ) -> Result<(), ApplyError> {
        let mut whole = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}});
        merge_patch(&mut whole, &config);
        let time = self.tick();
        let write = write(manager, subresource, &time, self.shape);
        let applied = managed::apply(&write, self.live.as_ref(), &whole, force)?;
        self.store(applied);
        Ok(())
    }

    /// What keeps `config` from being applied, as the answer says it.
    pub(crate) fn refusal(&mut self, manager: &str, config: Value) -> String {
        self.try_apply(manager, "", config, false).expect_err("the configuration is refused").to_string()
    }

    /// Checks a part of the object, by its JSON pointer; null is nothing there.
    pub(crate) fn has(&mut self, pointer: &str, expect: Value) -> &mut Self {
        let found = self.live.as_ref().and_then(|live| live.pointer(pointer)).cloned().unwrap_or_default();
        assert_eq!(found, expect, "{pointer}");
        self
    }

    /// Checks who owns what: `name operation[/subresource] minute: paths`, in the order of the entries.
    pub(crate) fn owned(&mut self, expect: &[&str]) -> &mut Self {
        let entries = self.live.as_ref().and_then(|live| live.pointer("/metadata/managedFields"));
        let found: Vec<_> = entries.and_then(Value::as_array).into_iter().flatten().map(described).collect();
        assert_eq!(found, expect);
        self
    }

    fn tick(&mut self) -> String {
        self.minute += 1;
        format!("2026-01-01T00:{:02}:00Z", self.minute)
    }

    fn store(&mut self, mut object: Value) {
        object["metadata"]["uid"] = json!("u");
        self.live = Some(object);
    }
}

fn write<'a>(
    name: &'a str,
    subresource: &'a str,
    time: &str,
    shape: Option<&'a OpenApiShape>,
) -> Write<'a, OpenApiShape> {
    let time = time.parse().expect("the time can be read");
    let reset = FieldSet::of_names([if subresource == "status" { "spec" } else { "status" }]);
    Write::new(Manager { name, api_version: "v1", subresource, time }, shape).resetting(reset)
}

fn described(entry: &Value) -> String {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    let fields = FieldSet::from_fields_v1(&entry["fieldsV1"]).expect("the fields can be read").to_string();
    let subresource = match text("subresource") {
        "" => String::new(),
        subresource => format!("/{subresource}"),
    };
    let minute = text("time").get(14..16).unwrap_or("--").to_owned();
    format!("{} {}{subresource} {minute}: {}", text("manager"), text("operation"), fields.replace('\n', " "))
}
