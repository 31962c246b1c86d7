//! `windlass image build`: a Dockerfile becomes an image that a Pod runs, and mistakes are told with their lines.

mod support;

use std::fs;
use std::path::Path;

use support::{TestCluster, eventually, failure, success};

const DOCKERFILE: &str = r#"# Two stages: one makes a file, the other runs with it.
ARG suite=latest
FROM debian:${suite} AS maker
WORKDIR /source
COPY . .
RUN tr a-z A-Z < source.txt > made.txt && rm source.txt /etc/nsswitch.conf && \
    mkdir -m 750 /made && test ! -e secret.txt
RUN apt-get update && apt-get install -y --no-install-recommends hello && rm -rf /var/lib/apt/lists/*

FROM maker
ARG greeting=hello
ENV GREETING="$greeting" MORE=${NONE:-more}
COPY --from=maker --chmod=644 /source/made.txt /srv/
COPY --chmod=755 run.sh /usr/local/bin/
WORKDIR /srv
USER nobody
EXPOSE 8080/tcp
VOLUME ["/data"]
LABEL made.by="the tests"
STOPSIGNAL SIGINT
HEALTHCHECK CMD true
ENTRYPOINT ["run.sh"]
CMD ["an argument"]
"#;

const RUN: &str = "#!/bin/sh
echo \"$GREETING $MORE, $1: $(cat made.txt)\"
ls /source /data; stat -c %a /made; test -e /etc/nsswitch.conf || echo removed
hello --greeting='from a package'
exec sleep 1000
";

fn context(folder: &Path) {
    fs::create_dir(folder).expect("the folder can be made");
    let files = [
        ("Dockerfile", DOCKERFILE),
        ("run.sh", RUN),
        ("source.txt", "text\n"),
        ("secret.txt", "hidden\n"),
        (".dockerignore", "# not for images\n.dockerignore\nDockerfile\nsecret.*\n"),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("the folder can be written");
    }
}

#[test]
fn a_dockerfile_becomes_an_image_that_runs() {
    let cluster = TestCluster::up(&["--no-operators"]);
    let folder = cluster.dir.path().join("context");
    context(&folder);
    let name = "windlass-test-build:1.0";
    let build = |more: &[&str]| success(cluster.windlass().args(["image", "build", name]).arg(&folder).args(more));
    let first = build(&[]);
    assert_eq!(build(&[]), first, "the same files make the same image");
    let other = build(&["--build-arg", "greeting=good morning"]);
    assert_ne!(other, first);
    let list = success(cluster.windlass().args(["image", "ls"]));
    let line = list.lines().find(|line| line.starts_with("windlass-test-build:1.0 "));
    assert!(line.is_some_and(|line| line.contains("built from") && line.contains("Dockerfile")), "{list}");

    let image = format!("--image={name}");
    cluster.kubectl(&["run", "built", &image, "--image-pull-policy=Never", "--restart=Never"]);
    cluster.kubectl(&["wait", "--for=condition=Ready", "--timeout=120s", "pod/built"]);
    let expect =
        "good morning more, an argument: TEXT\n/data:\n\n/source:\nmade.txt\nrun.sh\n750\nremoved\nfrom a package\n";
    eventually("the program to have said everything", || {
        let log = cluster.kubectl(&["logs", "built"]);
        if log == expect { Ok(()) } else { Err(log) }
    });
    cluster.kubectl(&["delete", "pod", "built", "--now"]);
    eventually("the image to be let go", || {
        let output = cluster.windlass().args(["image", "rm", name]).output().expect("windlass runs");
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    });
}

#[test]
fn what_cannot_be_built_is_told_with_its_line() {
    let cluster = TestCluster::new();
    let folder = cluster.dir.path().join("context");
    fs::create_dir(&folder).expect("the folder can be made");
    let check = |text: &str, expect: &[&str]| {
        fs::write(folder.join("Dockerfile"), text).expect("the folder can be written");
        let said = failure(cluster.windlass().args(["image", "build", "windlass-test-none:1.0"]).arg(&folder));
        for part in expect {
            assert!(said.contains(part), "no {part:?} in\n{said}");
        }
    };
    check("FROM scratch\n\nCOPY missing /\n", &["Dockerfile:3: ", "\"missing\" is not in"]);
    check("FROM scratch\nCOPY ../outside /\n", &["Dockerfile:2: ", "leads out"]);
    check("FROM scratch\nRUN true\n", &["Dockerfile:2: ", "/bin/sh"]);
    check("FROM registry.example.com/none:1\n", &["Dockerfile:1: ", "does not exist", "windlass image add"]);
    check("FROM scratch\nADD https://example.com/x /\n", &["Dockerfile:2: ", "COPY"]);
    check("COPY a b\n", &["Dockerfile:1: ", "FROM"]);
    fs::remove_file(folder.join("Dockerfile")).expect("it is there");
    let said = failure(cluster.windlass().args(["image", "build", "windlass-test-none:1.0"]).arg(&folder));
    assert!(said.contains("no Dockerfile or Containerfile"), "{said}");
    assert!(!success(cluster.windlass().args(["image", "ls"])).contains("windlass-test-none"));
}
