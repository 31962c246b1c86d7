//! The differences that are no differences, with the reason of each; `docs/differential.md` is made of this list.

/// What is made equal before two answers are compared, and why.
pub(super) const ALLOWED: [(&str, &str); 21] = [
    (
        "identities, versions, times, addresses, node ports, tokens, the random part of names",
        "each server makes its own",
    ),
    ("the age in tables", "time passes between two requests"),
    ("the order of managed fields", "it is that of the seconds in which they were written"),
    ("the prose of the columns of tables", "it comes with the documentation of fields, which Windlass leaves out"),
    (
        "the order of the causes of an error, and one cause told twice",
        "Kubernetes finds some by the check of an object and again by that of its change",
    ),
    (
        "values inside of errors in the form in which Go prints structs and differences",
        "they name fields inside of the server of Kubernetes; path, reason and sentence are compared",
    ),
    (
        "the words of Go's parsers after `unable to parse requirement:`, `got` and the like",
        "the sentence before them is compared",
    ),
    (
        "all but the code of a patch that makes an object unreadable",
        "Kubernetes shows the whole object as Go prints it",
    ),
    (
        "requests that Kubernetes does not answer and Windlass refuses",
        "Kubernetes panics, such as where a patch has a map for the name of an item",
    ),
    (
        "the rules of aggregated cluster roles",
        "a controller of Kubernetes adds them up, which does not run here; in Windlass the server does",
    ),
    ("bookmarks without the mark that the initial events are over", "they may come at any time"),
    ("the object of a bookmark, but for its kind and the mark", "besides its version it is the zero of a Go struct"),
    (
        "watches from versions that one of the servers no longer remembers",
        "how much is remembered is each server's affair",
    ),
    ("`items: null` of lists of metadata", "Windlass says `[]`, which every client can read"),
    ("managed fields of what a server creates at its start", "nobody applies to it, and the start is quicker without"),
    (
        "loopback addresses of endpoints",
        "Kubernetes refuses them; Pods of an embedded cluster have no others, and no story has one",
    ),
    (
        "a repeated event of an unchanged secret or config map",
        "Kubernetes stores `null` for bytes otherwise than none, so that the next write is a change",
    ),
    (
        "what else an apply does not fit, beside a field that the schema does not have",
        "Kubernetes looks at the members of a map in no order, and ends at such a field",
    ),
    (
        "watches of definitions",
        "Kubernetes accepts the names and establishes in two writes, Windlass in one, and each when its controller gets to it",
    ),
    (
        "the generation of network policies and endpoint slices after `{}` or `[]` was written for nothing, and such a value in an error",
        "Kubernetes counts it as a change, although it stores the same",
    ),
    (
        "deletes whose options take away the last finalizer and that name a version or are dry runs",
        "Kubernetes looks at an object that it never read: it refuses the version, and answers with nothing but a kind",
    ),
];

#[cfg(test)]
mod tests {
    use super::ALLOWED;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/differential.md");

    /// What else is asked of the real server.
    const RECORDINGS: &str = "
## Recordings
`cargo xtask record` asks the real kube-apiserver about some 600 CEL expressions of rules and policies (whether they compile,
in which words they are refused, what they say of an object, what they cost) and writes the answers into
`crates/apiserver/src/cel/fixtures`, and the functions that upstream declares into `functions.txt` beside them. The ordinary
tests of windlass-apiserver compare with that. A new expression is added to a fixture by hand, with `null` beside it.\n";

    /// The page of the documentation.
    fn page() -> String {
        let mut page = String::from(
            "# Compared with Kubernetes, request by request\n\n\
             `cargo xtask conformance differential` sends the same random requests to Windlass and to a real kube-apiserver with etcd:\n\
             creates, updates, every kind of patch, applies by several managers, deletes with every option, lists, pages, watches and\n\
             subresources, most of them wrong in some way. Every answer is compared, and so is every object after every request.\n\
             `--seed N` makes other requests, `--requests N` more, `--only RESOURCE` those about one kind, `--pods` those about Pods\n\
             and templates, put together of many parts and broken anywhere. It fails if an answer differs and says which.\n\n\
             These differences are allowed; the list is part of the program:\n\n\
             | what | why |\n| --- | --- |\n",
        );
        ALLOWED.iter().for_each(|(what, why)| page.push_str(&format!("| {what} | {why} |\n")));
        page + RECORDINGS
    }

    #[test]
    fn the_documentation_has_the_list_of_the_program() {
        if std::env::var_os("WRITE_DOCS").is_some() {
            std::fs::write(PAGE, page()).unwrap();
        }
        let written = std::fs::read_to_string(PAGE).unwrap();
        assert!(written == page(), "docs/differential.md is old: WRITE_DOCS=1 cargo test -p windlass-differential");
    }
}
