//! The tutorial of the book, done step by step: its commands, its edits, and what it says that they print.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod delivery;
mod page;
mod support;

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
    broken_samples_are_told_and_taken_up_when_they_are_right(&mut reader);
    delivery::the_workflow_passes(&reader);
    delivery::the_dockerfile_makes_an_image_that_runs(&reader);
}

fn broken_samples_are_told_and_taken_up_when_they_are_right(reader: &mut Reader) {
    let sample = reader.project().join("samples/another.yaml");
    std::fs::write(&sample, "kind: [").unwrap();
    reader.take(&Step::Run("windlass dev".into()));
    reader.take(&Step::Expect("samples: …another.yaml: not valid YAML…".into()));
    let right = "{apiVersion: web.example.com/v1, kind: Site, metadata: {name: another}, spec: {image: 'nginx:1'}}";
    std::fs::write(&sample, right).unwrap();
    reader.take(&Step::Expect("samples: site.web.example.com/another created\nsite/another ready…".into()));
    // A second one in the same folder says so and changes nothing.
    let second = support::failure(&mut reader.command("windlass dev"));
    assert!(second.contains("in use by another Windlass"), "{second}");
    reader.take(&Step::Expect("^C\nstopping: …".into()));
}
