//! Upstream's own samples of every stable kind must be read and written as upstream does.
#![expect(clippy::unwrap_used, reason = "the functions beside the tests are test code, too")]

use serde_json::Value;
use windlass_schema::protobuf;

static GOLDENS: &[u8] = include_bytes!("data/goldens.zst");

struct Golden {
    name: String,
    json: Value,
    protobuf: Vec<u8>,
}

fn goldens() -> Vec<Golden> {
    let bytes = zstd::stream::decode_all(GOLDENS).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let goldens = text.lines().map(|line| {
        let mut parts = line.split('\t');
        let name = parts.next().unwrap().to_owned();
        let json = serde_json::from_str(parts.next().unwrap()).unwrap();
        let digits = parts.next().unwrap().as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        Golden { name, json, protobuf: digits.chunks(2).map(byte).collect() }
    });
    goldens.collect()
}

fn first_difference(path: &str, left: &Value, right: &Value) -> Option<String> {
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<_> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            let null = Value::String("<absent>".into());
            keys.into_iter().find_map(|key| {
                let (a, b) = (a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null));
                first_difference(&format!("{path}.{key}"), a, b)
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(index, (a, b))| first_difference(&format!("{path}[{index}]"), a, b))
        }
        _ => (left != right).then(|| format!("{path}: {left} against {right}")),
    }
}

#[test]
fn protobuf_is_read_as_the_same_json() {
    let mut failures = Vec::new();
    for golden in goldens() {
        match protobuf::decode(&golden.protobuf, None) {
            Ok(value) => failures.extend(first_difference(&golden.name, &value, &golden.json)),
            Err(error) => failures.push(format!("{}: {error}", golden.name)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn json_is_written_as_the_same_protobuf() {
    let mut failures = Vec::new();
    for golden in goldens() {
        match protobuf::encode(&golden.json) {
            Ok(bytes) if bytes == golden.protobuf => {}
            Ok(bytes) => {
                failures.push(format!("{}: {} against {} bytes", golden.name, bytes.len(), golden.protobuf.len()))
            }
            Err(error) => failures.push(format!("{}: {error}", golden.name)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn json_keeps_its_form() {
    let mut failures = Vec::new();
    for golden in goldens() {
        let (group, version) = match golden.json["apiVersion"].as_str().unwrap().split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", golden.json["apiVersion"].as_str().unwrap()),
        };
        let kind = golden.json["kind"].as_str().unwrap();
        let definition = windlass_schema::builtin().definition_name(group, version, kind).unwrap();
        match windlass_schema::conform(&definition, golden.json.clone()) {
            Ok(conformed) => {
                failures.extend(first_difference(&golden.name, &conformed.object, &golden.json));
                failures.extend(conformed.unknown.first().map(|path| format!("{}: unknown {path}", golden.name)));
            }
            Err(error) => failures.push(format!("{}: {error}", golden.name)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn damaged_protobuf_never_panics() {
    for golden in goldens() {
        let length = golden.protobuf.len();
        for position in (0..length).step_by(length / 50 + 1) {
            let _ = protobuf::decode(&golden.protobuf[..position], None);
            let mut damaged = golden.protobuf.clone();
            damaged[position] ^= 0x55;
            let _ = protobuf::decode(&damaged, None);
        }
    }
}
