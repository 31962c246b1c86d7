//! The tutorial of the book, done step by step: its commands, its edits, and what it says that they print.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod delivery;
mod page;
mod support;

use std::path::{Path, PathBuf};

use page::{Reader, Step, steps};

const TUTORIAL: &str = include_str!("../../../docs/tutorial.md");

#[test]
fn the_tutorial_does_what_it_says() {
    let steps = steps(TUTORIAL);
    let counts = |wanted: fn(&Step) -> bool| steps.iter().filter(|step| wanted(step)).count();
    assert!(counts(|step| matches!(step, Step::Run(_))) >= 7, "the page has lost its commands: {steps:?}");
    assert!(counts(|step| matches!(step, Step::Edit { .. })) >= 2, "the page has lost its edits: {steps:?}");
    let mut reader = Reader::new();
    for step in &steps {
        reader.take(step);
    }
    assert!(reader.dev_has_ended(), "the page leaves `windlass dev` running");

    // The project is built: what else can go wrong is cheap to try.
    delivery::the_workflow_passes(&reader);
    delivery::the_dockerfile_makes_an_image_that_runs(&reader);
    depend_on_a_crate_beside_the_project(&reader);
    std::fs::remove_file(reader.project().join("samples/site.yaml")).unwrap();
    let another = reader.project().join("samples/another.yaml");
    std::fs::write(&another, "kind: [").unwrap();
    reader.take(&Step::Run("windlass dev".into()));
    samples_are_as_in_the_folder_once_all_of_it_can_be_read(&mut reader, &another);
    a_crate_beside_the_project_is_built_when_it_changes(&mut reader);
    // A second one in the same folder says so and changes nothing.
    let second = support::failure(&mut reader.command("windlass dev"));
    assert!(second.contains("in use by another Windlass"), "{second}");
    reader.take(&Step::Expect("^C\nstopping: …".into()));
}

fn samples_are_as_in_the_folder_once_all_of_it_can_be_read(reader: &mut Reader, another: &Path) {
    reader.take(&Step::Expect("samples: …another.yaml: not valid YAML…".into()));
    let first = support::success(&mut reader.command("windlass get sites"));
    assert!(first.contains("sample"), "nothing goes for a folder that could not be read: {first}");
    let right = "{apiVersion: web.example.com/v1, kind: Site, metadata: {name: another}, spec: {image: 'nginx:1'}}";
    std::fs::write(another, right).unwrap();
    // The sample that is gone was applied by the `windlass dev` before this one.
    let told = "samples: site.web.example.com/another created\nsamples: site.web.example.com/sample deleted";
    reader.take(&Step::Expect(told.into()));
    support::success(&mut reader.command("windlass wait --for=condition=Ready site/another"));
    std::fs::remove_file(another).unwrap();
    reader.take(&Step::Expect("samples: site.web.example.com/another deleted".into()));
    let gone = support::failure(&mut reader.command("windlass get site another"));
    assert!(gone.contains("not found"), "{gone}");
}

fn goods(reader: &Reader) -> PathBuf {
    reader.project().with_file_name("goods")
}

fn depend_on_a_crate_beside_the_project(reader: &Reader) {
    let (goods, project) = (goods(reader), reader.project());
    std::fs::create_dir_all(goods.join("src")).unwrap();
    std::fs::write(goods.join("Cargo.toml"), "[package]\nname = \"goods\"\nedition = \"2024\"\n").unwrap();
    std::fs::write(goods.join("src/lib.rs"), "//! Goods.\n\npub const GOODS: &str = \"tea\";\n").unwrap();
    let manifest = std::fs::read_to_string(project.join("Cargo.toml")).unwrap();
    let dependency = "[dependencies]\ngoods = { path = \"../goods\" }\n";
    std::fs::write(project.join("Cargo.toml"), manifest.replace("[dependencies]\n", dependency)).unwrap();
    let code = std::fs::read_to_string(project.join("src/lib.rs")).unwrap();
    std::fs::write(project.join("src/lib.rs"), code + "\npub use goods::GOODS;\n").unwrap();
}

fn a_crate_beside_the_project_is_built_when_it_changes(reader: &mut Reader) {
    std::fs::write(goods(reader).join("src/lib.rs"), "pub const GOOD: u32 = 1;\n").unwrap();
    let told = "sources changed\nbuild | error…unresolved import `goods::GOODS`…\nbuild: failed; what runs goes on";
    reader.take(&Step::Expect(told.into()));
}
