//! Manifests as a Helm chart: what the default values render to is what `manifests` prints.

mod templates;
mod values;
mod yaml;

use super::ManifestOptions;
use super::output::File;
use crate::app::Program;

/// What marks files that are made anew each time.
pub(super) const MARK: &str = "manifests --format helm";
/// The folder that belongs to the command.
pub(super) const TEMPLATES: &str = "templates";

/// The files of a chart.
pub(super) fn files(program: &dyn Program, options: &ManifestOptions, version: &str) -> Vec<File> {
    let made =
        format!("Made by `{} {MARK}`, and made anew by it: say what differs in values of your own.", program.name());
    let mut files = vec![
        File::new("Chart.yaml", format!("# {made}\n{}", values::chart(program, version))),
        File::new("values.yaml", format!("# {made}\n{}", values::values(program, options))),
        File::new("values.schema.json", values::schema(&made)),
        File::new(format!("{TEMPLATES}/NOTES.txt"), format!("{{{{- /* {made} */ -}}}}\n{}", values::notes(program))),
    ];
    let templates = templates::all(program, options).into_iter().filter(|(_, text)| !text.is_empty());
    files.extend(templates.map(|(name, text)| {
        File::new(format!("{TEMPLATES}/{name}.yaml"), format!("{{{{- /* {made} */ -}}}}\n{text}"))
    }));
    files
}

/// The repository and the tag of an image; `latest` if it names neither tag nor digest.
pub(super) fn split_image(image: &str) -> (&str, &str) {
    let name = image.split('@').next().unwrap_or(image);
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (name, "latest"),
    }
}

/// The digest of an image, if it names one.
fn digest(image: &str) -> &str {
    image.split_once('@').map_or("", |(_, digest)| digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_read_as_registries_read_them() {
        for (image, expected) in [
            ("a", ("a", "latest", "")),
            ("a:1", ("a", "1", "")),
            ("r:5000/a", ("r:5000/a", "latest", "")),
            ("r:5000/a:1@sha256:0", ("r:5000/a", "1", "sha256:0")),
            ("r/a@sha256:0", ("r/a", "latest", "sha256:0")),
        ] {
            let (repository, tag) = split_image(image);
            assert_eq!((repository, tag, digest(image)), expected, "{image}");
        }
    }
}
