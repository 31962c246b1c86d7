//! Rules on whole objects, with the texts that clients see.

use serde_json::{Value, json};

use super::{Rules, Violation};

fn spec_schema(spec: Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

fn rules(spec: Value) -> Rules {
    Rules::compile(&spec_schema(spec)).unwrap()
}

fn texts(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(|found| format!("{}: {}", found.path, found.detail)).collect()
}

fn check(spec: Value, new: Value, old: Option<Value>, expected: &[&str]) {
    let old = old.map(|old| json!({"spec": old}));
    let findings = rules(spec).check(&json!({"spec": new}), old.as_ref());
    assert_eq!(texts(&findings.violations), expected);
}

fn integers(rule: Value) -> Value {
    json!({
        "type": "object",
        "properties": {"size": {"type": "integer"}, "min": {"type": "integer"}},
        "x-kubernetes-validations": [rule],
    })
}

#[test]
fn failed_rules_say_their_message() {
    let new = json!({"size": 1, "min": 2});
    let rows = [
        (json!({"rule": "self.size >= self.min", "message": "too small"}), "spec: too small"),
        (json!({"rule": "self.size >= self.min"}), "spec: failed rule: self.size >= self.min"),
        (
            json!({"rule": "self.size >= self.min", "message": "m", "messageExpression": "'size ' + string(self.size) + ' < ' + string(self.min)"}),
            "spec: size 1 < 2",
        ),
        (json!({"rule": "self.size >= self.min", "message": "m", "messageExpression": "['a'][self.size]"}), "spec: m"),
        (json!({"rule": "self.size >= self.min", "message": "m", "fieldPath": ".size"}), "spec.size: m"),
    ];
    for (rule, expected) in rows {
        check(integers(rule), new.clone(), None, &[expected]);
    }
    check(integers(json!({"rule": "self.size >= self.min"})), json!({"size": 2, "min": 2}), None, &[]);
}

#[test]
fn errors_of_evaluation_name_the_rule() {
    check(
        integers(json!({"rule": "self.size >= self.min"})),
        json!({"size": 1}),
        None,
        &["spec: no such key: min evaluating rule: self.size >= self.min"],
    );
}

#[test]
fn what_has_no_members_is_an_error() {
    check(
        integers(json!({"rule": "dyn(self.size).nothing == 1"})),
        json!({"size": 1}),
        None,
        &[
            "spec: 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: \
           dyn(self.size).nothing == 1",
        ],
    );
}

#[test]
fn transition_rules_run_on_updates_only() {
    let spec = || integers(json!({"rule": "self.size >= oldSelf.size", "message": "never shrinks"}));
    check(spec(), json!({"size": 1}), None, &[]);
    check(spec(), json!({"size": 1}), Some(json!({"size": 3})), &["spec: never shrinks"]);
    check(spec(), json!({"size": 4}), Some(json!({"size": 3})), &[]);
}

#[test]
fn optional_old_self_runs_on_creation_too() {
    let rule =
        json!({"rule": "oldSelf.hasValue() || self.size == 1", "message": "starts with one", "optionalOldSelf": true});
    check(integers(rule.clone()), json!({"size": 2}), None, &["spec: starts with one"]);
    check(integers(rule), json!({"size": 2}), Some(json!({"size": 1})), &[]);
}

#[test]
fn list_items_are_correlated_by_their_keys() {
    let spec = || {
        json!({"type": "object", "properties": {"ports": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.port == oldSelf.port", "message": "port is fixed"}],
            },
        }}})
    };
    let old = json!({"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]});
    let moved = json!({"ports": [{"name": "b", "port": 2}, {"name": "a", "port": 1}, {"name": "c", "port": 9}]});
    check(spec(), moved, Some(old.clone()), &[]);
    let changed = json!({"ports": [{"name": "b", "port": 7}]});
    check(spec(), changed, Some(old), &["spec.ports[0]: port is fixed"]);
}

#[test]
fn unchanged_values_are_ratcheted() {
    let spec = json!({"type": "object", "properties": {
        "name": {"type": "string", "x-kubernetes-validations": [{"rule": "self.startsWith('x')", "message": "must start with x"}]},
        "size": {"type": "integer"},
    }});
    let old = json!({"spec": {"name": "old", "size": 1}});
    let rules = rules(spec);
    let other = rules.check(&json!({"spec": {"name": "old", "size": 2}}), Some(&old));
    assert_eq!(texts(&other.violations), Vec::<String>::new());
    assert_eq!(texts(&other.ratcheted), ["spec.name: must start with x"]);
    let touched = rules.check(&json!({"spec": {"name": "new", "size": 1}}), Some(&old));
    assert_eq!(texts(&touched.violations), ["spec.name: must start with x"]);
}

#[test]
fn names_types_and_formats_are_as_upstream() {
    let spec = json!({"type": "object",
    "properties": {
        "when": {"type": "string", "format": "date-time"},
        "ratio": {"type": "number"},
        "a-b": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "port": {"x-kubernetes-int-or-string": true},
    },
    "x-kubernetes-validations": [
        {"rule": "self.when > timestamp('2020-01-01T00:00:00Z')"},
        {"rule": "self.ratio < 2.5"},
        {"rule": "self.a__dash__b == 'v'"},
        {"rule": "self.labels['a-b'] == 'w'"},
        {"rule": "self.labels.all(k, k.size() > 0)"},
        {"rule": "type(self.port) == int ? self.port > 0 : self.port == 'http'"},
        {"rule": "!has(self.absent) || false"},
    ]});
    // The last rule names a field that is not declared.
    assert_eq!(Rules::compile(&spec_schema(spec.clone())).unwrap_err().len(), 1);
    let mut spec = spec;
    spec["x-kubernetes-validations"].as_array_mut().unwrap().pop();
    let new = json!({"when": "2024-05-06T07:08:09Z", "ratio": 2, "a-b": "v", "labels": {"a-b": "w"}, "port": "http"});
    check(spec, new, None, &[]);
}

#[test]
fn rules_see_the_name_of_the_object() {
    let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.name == 'only'", "message": "be only"}]});
    let rules = Rules::compile(&schema).unwrap();
    assert!(rules.check(&json!({"metadata": {"name": "only"}}), None).violations.is_empty());
    assert_eq!(texts(&rules.check(&json!({"metadata": {"name": "x"}}), None).violations), [": be only"]);
}

#[test]
fn broken_rules_are_refused() {
    let rows = [
        (json!({"rule": "self.size >="}), "rule"),
        (json!({"rule": "size > 1"}), "rule"),
        (json!({"rule": "self.sizee > 1"}), "rule"),
        (json!({"rule": ""}), "rule"),
        (json!({"rule": "self.size > 1", "reason": "Because"}), "reason"),
        (json!({"rule": "self.size > 1", "fieldPath": ".absent"}), "fieldPath"),
        (json!({"rule": "self.size > 1", "messageExpression": "'"}), "messageExpression"),
        (json!({"rule": "self.size > 1", "optionalOldSelf": true}), "optionalOldSelf"),
        (json!({"rule": "self.size > 1", "message": "a\nb"}), "message"),
    ];
    for (rule, member) in rows {
        let errors = Rules::compile(&spec_schema(integers(rule.clone()))).unwrap_err();
        assert_eq!(errors[0].path, format!("properties[spec].x-kubernetes-validations[0].{member}"), "{rule}");
    }
}

#[test]
fn old_self_is_refused_where_nothing_can_be_correlated() {
    let spec = json!({"type": "object", "properties": {"names": {
        "type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
    }}});
    let errors = Rules::compile(&spec_schema(spec)).unwrap_err();
    assert!(
        errors[0].detail.contains("uncorrelatable portion of the schema within properties[spec].properties[names]")
    );
}

#[test]
fn expensive_rules_are_cut_off() {
    let spec = json!({"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}},
    "x-kubernetes-validations": [
        {"rule": "self.names.all(a, self.names.all(b, self.names.all(c, self.names.all(d, a + b + c + d != 'x'))))", "message": "deep"},
        {"rule": "false", "message": "not reached"},
    ]});
    let names: Vec<String> = (0..2_000).map(|index| format!("name-{index}")).collect();
    let findings = rules(spec).check(&json!({"spec": {"names": names}}), None);
    let texts = texts(&findings.violations);
    assert_eq!(texts.len(), 1);
    assert!(texts[0].contains("actual cost limit exceeded"), "{texts:?}");
}

#[test]
fn the_functions_that_rules_use_are_there() {
    let spec = |rule: &str| {
        json!({"type": "object",
            "properties": {
                "names": {"type": "array", "items": {"type": "string"}},
                "ports": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}, "name": {"type": "string"}}}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "name": {"type": "string"}, "size": {"type": "integer"}, "memory": {"type": "string"}, "absent": {"type": "string"},
                "time": {"type": "string", "format": "duration"}, "address": {"type": "string"}, "on": {"type": "boolean"},
                "nested": {"type": "object", "properties": {"deep": {"type": "object", "properties": {"a": {"type": "string"}}}}},
            },
            "x-kubernetes-validations": [{"rule": rule}],
        })
    };
    let new = json!({
        "names": ["b", "a"], "ports": [{"port": 80, "name": "http"}, {"port": 443}], "labels": {"app": "x"}, "name": "web-1",
        "size": 3, "memory": "1Gi", "time": "90s", "address": "10.0.0.1", "on": true, "nested": {"deep": {}},
    });
    let expressions = [
        "self.names.all(n, n.size() == 1) && self.names.exists(n, n == 'a') && self.names.exists_one(n, n == 'b')",
        "self.ports.map(p, p.port) == [80, 443] && self.ports.filter(p, has(p.name)).size() == 1",
        "self.ports.all(p, self.ports.exists_one(q, q.port == p.port))",
        "self.labels.all(k, k == 'app') && 'app' in self.labels && self.labels['app'] == 'x' && self.labels.app == 'x'",
        "self.name.matches('^[a-z]+-[0-9]$') && self.name.startsWith('web') && self.name.contains('-') && self.name.endsWith('1')",
        "self.name.split('-')[0] == 'web' && self.name.replace('-', '.') == 'web.1' && self.name.upperAscii() == 'WEB-1'",
        "self.size in [1, 2, 3] && self.size > 2 && self.size % 2 == 1 && self.size * 2 == 6",
        "quantity(self.memory).isGreaterThan(quantity('512Mi')) && isQuantity(self.memory)",
        "self.time > duration('1m') && self.time < duration('2m')",
        "isIP(self.address) && ip(self.address).family() == 4 && cidr('10.0.0.0/8').containsIP(self.address)",
        "!has(self.absent) && has(self.nested.deep) && !has(self.nested.deep.a)",
        "self.?absent.orValue('none') == 'none' && self.?nested.?deep.?a.hasValue() == false",
        "self.?nested.deep.?a.orValue('z') == 'z' && self.names[?5].orValue('q') == 'q' && self.?name.value() == 'web-1'",
        "self.on ? self.size > 0 : self.size == 0",
        "isURL('https://example.com/x') && url('https://example.com/x').getHost() == 'example.com'",
        "sets.contains(['a', 'b', 'c'], self.names) && self.names.isSorted() == false && self.names.indexOf('a') == 1",
        "'%s has %d'.format([self.name, self.size]) == 'web-1 has 3'",
        "string(self.size) == '3' && int('3') == self.size && double(self.size) == 3.0",
        "self.names.join(',') == 'b,a' && self.name.find('[0-9]+') == '1'",
        "size(self.names) == 2 && size(self.name) == 5",
        "self.ports.sortBy(p, -p.port).map(p, p.port) == [443, 80] && self.names.sortBy(n, n) == ['a', 'b']",
        "self.names.all(i, n, n == ['b', 'a'][i]) && self.names.exists(i, n, i == 1 && n == 'a')",
        "self.labels.all(k, v, k == 'app' && v == 'x') && self.labels.existsOne(k, v, v == 'x')",
        "self.names.transformList(i, n, i > 0, n + string(i)) == ['a1'] && self.names.transformList(i, n, i) == [0, 1]",
        "self.labels.transformMap(k, v, k + v) == {'app': 'appx'} && self.names.transformMapEntry(i, n, {n: i}) == {'b': 0, 'a': 1}",
        "self.?name.optMap(n, n.size()).orValue(0) == 5 && !self.?absent.optMap(n, n.size()).hasValue()",
        "semver('1.2.3').isLessThan(semver('1.10.0'))",
        "format.dns1123Label().validate('ok').hasValue() == false",
    ];
    for expression in expressions {
        check(spec(expression), new.clone(), None, &[]);
        check(spec(&format!("!({expression})")), new.clone(), None, &[&format!("spec: failed rule: !({expression})")]);
    }
}

#[test]
fn texts_cannot_grow_without_bound() {
    let schema = |rule: &str| {
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}},
            "x-kubernetes-validations": [{"rule": rule}]})
    };
    let long = "a".repeat(100_000);
    let new = json!({"a": long, "b": long, "l": vec!["x"; 50_000]});
    for rule in
        ["self.a.replace('a', self.b) == ''", "self.l.join(self.a) == ''", "self.l.map(x, x + self.a).size() == 0"]
    {
        let findings = rules(schema(rule)).check(&json!({"spec": new}), None);
        assert!(texts(&findings.violations)[0].contains("actual cost limit exceeded"), "{rule}");
    }
    let usual = "self.a.replace('.', '-').replace('_', '-').replace('aa', 'b') != '' && self.l.all(x, x == 'x')";
    check(schema(usual), new, None, &[]);
    let many = json!({"l": vec!["some-item"; 2_000]});
    check(schema("self.l.map(x, x.size()).size() == 2000 && self.l.filter(x, x == '').size() == 0"), many, None, &[]);
}

#[test]
fn what_the_interpreter_cannot_do_is_refused() {
    let errors = Rules::compile(&spec_schema(integers(json!({"rule": "Type{a: 1} == self"})))).unwrap_err();
    assert_eq!(errors.len(), 1);
}
