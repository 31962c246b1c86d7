//! Where the compiler marks mistakes in attributes: at what is wrong, not at the derive.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Each line has one mistake; then comes what is marked, and what is said.
const MISTAKES: [(&str, &str, &str); 9] = [
    (r#"#[derive(Schema)] struct A { #[schema(min = 9, max = 1)] a: u32 }"#, "1", "at least 9 and at most 1"),
    (r#"#[derive(Schema)] struct B { #[schema(min = 1)] a: String }"#, "min", "for a number, and here is a text"),
    (r#"#[derive(Schema)] struct C { #[schema(items(max = 1))] a: Vec<bool> }"#, "max", "here is a truth value"),
    (r#"#[derive(Schema)] struct D { #[schema(list = "bag")] a: Vec<u8> }"#, r#""bag""#, "a list is a"),
    (r#"#[derive(Schema)] #[schema(min = 1)] struct E { a: u8 }"#, "min", "goes on fields"),
    (r#"#[derive(Schema)] struct F { #[schema(cel("self > 1"))] a: u8 }"#, r#""self > 1""#, "say what to tell people"),
    (r#"#[derive(Resource)] #[resource(group = "g")] struct G;"#, "G", "say the version"),
    (
        r#"#[derive(Resource)] #[resource(group = "g", version = "v1", kind = "K")] struct H;"#,
        r#""g""#,
        "a group is a domain name",
    ),
    (
        r#"#[derive(Resource)] #[resource(group = "g.example", version = "v1", kind = "K", sort)] struct I;"#,
        "sort",
        "unknown attribute",
    ),
];

#[test]
fn mistakes_are_marked_where_they_are() {
    let dir = std::env::temp_dir().join(format!("windlass-derive-errors-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (source, macros) = (dir.join("mistakes.rs"), macros());
    let lines: Vec<&str> = MISTAKES.iter().map(|(line, _, _)| *line).collect();
    std::fs::write(&source, format!("use windlass_derive::{{Resource, Schema}};\n{}\n", lines.join("\n"))).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=lib", "--error-format=json", "--emit=metadata"])
        .arg(format!("--extern=windlass_derive={}", macros.display()))
        .args(["--out-dir".as_ref(), dir.as_os_str(), source.as_os_str()])
        .output()
        .unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let errors: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for (index, (line, marked, said)) in MISTAKES.iter().enumerate() {
        let on_line = |error: &&Value| error["spans"][0]["line_start"] == index + 2;
        let error = errors.iter().find(on_line).unwrap_or_else(|| panic!("nothing is said of {line}: {text}"));
        let span = &error["spans"][0];
        let column = |name: &str| usize::try_from(span[name].as_u64().unwrap()).unwrap() - 1;
        assert_eq!(&line[column("column_start")..column("column_end")], *marked, "{line}: {}", error["message"]);
        assert!(error["message"].as_str().unwrap().contains(said), "{line}: {}", error["message"]);
    }
}

/// The macros as cargo has built them for this test: the newest of them.
fn macros() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let files = std::fs::read_dir(exe.parent().unwrap()).unwrap().map(|entry| entry.unwrap());
    let is_it = |name: &str| name.starts_with("libwindlass_derive-") && name.ends_with(std::env::consts::DLL_SUFFIX);
    let mut built: Vec<_> = files.filter(|file| is_it(&file.file_name().to_string_lossy())).collect();
    built.sort_by_key(|file| file.metadata().unwrap().modified().unwrap());
    built.pop().expect("cargo built the macros").path()
}
