//! What `init` and `create api` make, compared with what was agreed (`UPDATE_SNAPSHOTS=1` agrees anew), and what they say
//! to those who ask for what cannot be.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{failure, success};

/// A folder outside of the source: Cargo would take a project inside for a part of it.
struct Ground(tempfile::TempDir);

impl Ground {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// With a project `shop`, whose dependencies come from git, so that no path of this machine is in it.
    fn with_project() -> Self {
        let ground = Self::new();
        success(&mut ground.windlass("", &["init", "shop", "--domain", "example.com", "--windlass", "git"]));
        ground
    }

    fn windlass(&self, folder: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(arguments).current_dir(self.0.path().join(folder)).stdin(Stdio::null());
        command.env("CARGO_NET_OFFLINE", "true").env_remove("KUBECONFIG");
        command
    }

    fn create(&self, more: &[&str]) -> Command {
        self.windlass("shop/src", &[&["create", "api", "--group", "web", "--version", "v1"], more].concat())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Every file below a folder, in order, in one text.
fn all_files(root: &Path) -> String {
    let (mut pending, mut files) = (vec![root.to_path_buf()], Vec::new());
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() { pending.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let text = |path: &PathBuf| {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        format!("==== {name}\n{}", std::fs::read_to_string(path).unwrap())
    };
    files.iter().map(text).collect()
}

fn check(root: &Path, snapshot: &str) {
    let actual = all_files(root);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(snapshot);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(actual, expected, "{} differs", path.display());
}

#[test]
fn a_new_project_is_as_agreed() {
    check(&Ground::with_project().path("shop"), "project.txt");
}

#[test]
fn kinds_are_as_agreed() {
    let ground = Ground::with_project();
    success(&mut ground.create(&["--kind", "Site"]));
    success(&mut ground.create(&["--kind", "WebBasket", "--webhook", "--conversion"]));
    for name in ["Cargo.toml", "Dockerfile", "README.md", ".gitignore", ".github/workflows/ci.yml"] {
        std::fs::remove_file(ground.path("shop").join(name)).unwrap(); // They did not change.
    }
    check(&ground.path("shop"), "kinds.txt");
}

#[test]
fn a_project_names_the_source_that_this_program_was_built_from() {
    let ground = Ground::new();
    success(&mut ground.windlass("", &["init", "web-shop", "--domain", "example.com", "--dir", "here"]));
    let manifest = std::fs::read_to_string(ground.path("here/Cargo.toml")).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../windlass").canonicalize().unwrap();
    assert!(manifest.contains(&format!("windlass = {{ path = \"{}\" }}", source.display())), "{manifest}");
    // The versions are those that Windlass is tested with, and only those that the project needs.
    let lock = std::fs::read_to_string(ground.path("here/Cargo.lock")).unwrap();
    assert!(lock.contains("name = \"web-shop\"") && !lock.contains("name = \"windlass-cli\""), "{lock}");
}

#[test]
fn what_cannot_be_made_is_refused_with_what_to_write() {
    let ground = Ground::with_project();
    let init = |arguments: &[&str]| ground.windlass("", &[&["init"], arguments].concat());
    let rows: Vec<(Command, &[&str])> = vec![
        (init(&["Web_Shop", "--domain", "example.com"]), &["windlass init web-shop --domain"]),
        (init(&["other", "--domain", "example"]), &["not a domain", "--domain example.com"]),
        (init(&["shop", "--domain", "example.com"]), &["already there: Cargo.toml", "nothing was changed"]),
        (init(&["x", "--domain", "a.b", "--windlass", "/nowhere"]), &["not the source of Windlass"]),
        (init(&["x", "--domain", "a.b", "--dir", "shop/Cargo.toml"]), &["is not a folder"]),
        (init(&["x"]), &["--domain <DOMAIN>"]),
        (ground.create(&["--kind", "web-site"]), &["--kind WebSite"]),
        (ground.create(&["--kind", "Deployment"]), &["--kind MyDeployment"]),
        (
            ground.windlass("shop", &["create", "api", "--group", "Web", "--version", "v1", "--kind", "A"]),
            &["is not a group"],
        ),
        (ground.windlass("shop", &["create", "api", "--group", "web", "--version", "1", "--kind", "A"]), &["write v1"]),
        (
            ground.windlass(
                "shop",
                &["create", "api", "--group", "w", "--version", "v1alpha1", "--kind", "A", "--conversion"],
            ),
            &["no version before v1alpha1"],
        ),
        (
            ground.windlass("", &["create", "api", "--group", "w", "--version", "v1", "--kind", "A"]),
            &["no project of operators", "windlass init"],
        ),
        (ground.windlass("", &["dev"]), &["no project of operators", "windlass init"]),
    ];
    let before = all_files(&ground.path("shop"));
    for (mut command, expected) in rows {
        let said = failure(&mut command);
        assert!(expected.iter().all(|words| said.contains(words)), "{command:?}: {said}");
    }
    assert_eq!(all_files(&ground.path("shop")), before, "nothing was changed");
}

#[test]
fn a_kind_is_made_once() {
    let ground = Ground::with_project();
    success(&mut ground.create(&["--kind", "Site"]));
    let before = all_files(&ground.path("shop"));
    let said = failure(&mut ground.create(&["--kind", "Site", "--webhook"]));
    assert!(said.contains("already there: src/site.rs, tests/site.rs, samples/site.yaml"), "{said}");
    assert_eq!(all_files(&ground.path("shop")), before);
}

#[test]
fn a_program_beyond_recognition_is_left_to_its_author() {
    let ground = Ground::with_project();
    let mine = "//! Mine.\n\nfn all() -> windlass::Crew {\n    make_it()\n}\n";
    std::fs::write(ground.path("shop/src/lib.rs"), mine).unwrap();
    let said = failure(&mut ground.create(&["--kind", "Site"]));
    assert!(said.contains("`pub mod site;`") && said.contains("`.with(site::app())`"), "{said}");
    assert_eq!(std::fs::read_to_string(ground.path("shop/src/lib.rs")).unwrap(), mine);
    assert!(ground.path("shop/src/site.rs").is_file());
}

#[test]
fn without_cargo_it_is_said_where_to_get_it() {
    let ground = Ground::with_project();
    for arguments in [&["dev"][..], &["create", "api", "--group", "web", "--version", "v1", "--kind", "Site"]] {
        let said = failure(ground.windlass("shop", arguments).env("PATH", "/nowhere").env_remove("CARGO"));
        assert!(said.contains("cannot start cargo") && said.contains("rustup.rs"), "{said}");
    }
}

#[test]
fn shells_complete_the_new_commands() {
    let ground = Ground::new();
    let script = success(&mut ground.windlass("", &["completion", "bash"]));
    for word in ["windlass__subcmd__init", "windlass__subcmd__dev", "--conversion", "--webhook", "--domain"] {
        assert!(script.contains(word), "{word}");
    }
}
