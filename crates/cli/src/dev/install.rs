//! What a program needs of the cluster: its kinds, and an account with the rights that it asks for and no others.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use kube::Client;
use kube::config::{AuthInfo, Kubeconfig};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::commands::apply::{Mode, apply_all};
use crate::commands::request;
use crate::failure::Failure;
use crate::manifest::{self, Manifest};

/// How long the program may take to print what it needs.
const PRINT_WAIT: Duration = Duration::from_secs(30);
/// How long a token of the account holds.
const TOKEN_SECONDS: u32 = 3600;

/// A resource by its group and plural.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KindPath {
    pub(crate) group: String,
    pub(crate) plural: String,
}

impl KindPath {
    /// As it is said in commands.
    pub(crate) fn word(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// What was put into the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Installed {
    /// The account that the operator has.
    pub(crate) account: String,
    /// The namespace of the account.
    pub(crate) namespace: String,
    /// The kinds of the program.
    pub(crate) kinds: Vec<KindPath>,
    /// The kinds that it makes objects of: its role says so.
    pub(crate) owned: Vec<KindPath>,
}

/// Asks the program what it needs and puts that into the cluster.
pub(crate) async fn install(client: &Client, program: &Path) -> Result<Installed, Failure> {
    let manifests = needs(program).await?;
    let installed = Installed::of(&manifests)
        .ok_or_else(|| Failure::new("the program asks for no account: build it with this version of Windlass"))?;
    for result in apply_all(client, "default", &manifests, Mode { force: true, dry_run: false }).await? {
        result?;
    }
    Ok(installed)
}

async fn needs(program: &Path) -> Result<Vec<Manifest>, Failure> {
    let name = program.display();
    let mut command = Command::new(program);
    command.args(["manifests", "--local"]).stdin(Stdio::null()).kill_on_drop(true);
    let output = match tokio::time::timeout(PRINT_WAIT, command.output()).await {
        Ok(output) => output.map_err(|error| Failure::new(format!("cannot start {name}: {error}")))?,
        Err(_) => return Err(Failure::new(format!("{name} printed no manifests within {PRINT_WAIT:?}"))),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let lines = said.lines().filter(|line| !line.trim().is_empty()).take(3).collect::<Vec<_>>().join(" ");
        return Err(Failure::new(format!("`{name} manifests --local` failed: {lines}")));
    }
    manifest::parse(&String::from_utf8_lossy(&output.stdout), "the program's manifests")
}

impl Installed {
    fn of(manifests: &[Manifest]) -> Option<Self> {
        let of_kind = |kind: &'static str| manifests.iter().filter(move |it| it.object["kind"] == kind);
        let account = of_kind("ServiceAccount").next()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kinds = of_kind("CustomResourceDefinition").map(|it| {
            let spec = &it.object["spec"];
            KindPath { group: text(&spec["group"]), plural: text(&spec["names"]["plural"]) }
        });
        let role = of_kind("ClusterRole").find(|role| role.name() == account.name());
        let rules = role.and_then(|role| role.object["rules"].as_array()).into_iter().flatten();
        let has =
            |rule: &Value, verb: &str| rule["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|it| it == verb));
        let makes = rules.filter(|rule| has(rule, "create") && has(rule, "delete"));
        let owned = makes.flat_map(|rule| {
            let resources = rule["resources"].as_array().into_iter().flatten();
            resources.map(|plural| KindPath { group: text(&rule["apiGroups"][0]), plural: text(plural) })
        });
        Some(Self {
            account: account.name().to_owned(),
            namespace: account.namespace().unwrap_or_default().to_owned(),
            kinds: kinds.collect(),
            owned: owned.collect(),
        })
    }
}

/// The way to the cluster as the operator's account; the token is in a file beside it, where a new one is found.
pub(crate) async fn write_kubeconfig(client: &Client, installed: &Installed, dir: &Path) -> Result<PathBuf, Failure> {
    let admin = dir.join("kubeconfig");
    let wrong = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", admin.display()));
    let mut config = Kubeconfig::read_from(&admin).map_err(|error| wrong(&error))?;
    let token = std::path::absolute(dir.join("operator.token"))?;
    write_token(client, installed, &token).await?;
    for named in &mut config.auth_infos {
        let token_file = Some(token.display().to_string());
        named.auth_info = Some(AuthInfo { token_file, ..AuthInfo::default() });
    }
    for named in &mut config.contexts {
        if let Some(context) = &mut named.context {
            context.namespace = Some(installed.namespace.clone());
        }
    }
    let text = serde_json::to_string_pretty(&config).map_err(|error| wrong(&error))?;
    let path = dir.join("operator.kubeconfig");
    write_private(&path, &text)?;
    Ok(path)
}

/// Writes a new token of the account to a file.
pub(crate) async fn write_token(client: &Client, installed: &Installed, file: &Path) -> Result<(), Failure> {
    let Installed { namespace, account, .. } = installed;
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let wanted = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": TOKEN_SECONDS},
    });
    let answer = request::send(client, "POST", &path, &[], &wanted).await?;
    let token = answer["status"]["token"].as_str();
    write_private(file, token.ok_or_else(|| Failure::new("the cluster gave the operator no token"))?)
}

/// Writes a file that nobody else reads, at once or not at all.
fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let wrong = |error: std::io::Error| Failure::new(format!("{}: {error}", path.display()));
    let new = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    options.create(true).write(true).truncate(true).mode(0o600);
    options.open(&new).and_then(|mut file| file.write_all(text.as_bytes())).map_err(wrong)?;
    std::fs::rename(&new, path).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_makes_is_what_its_role_lets_it_make() {
        let text = r#"
{kind: ServiceAccount, apiVersion: v1, metadata: {name: shop, namespace: shop-system}}
---
{kind: CustomResourceDefinition, apiVersion: x/v1, metadata: {name: s}, spec: {group: e.com, names: {plural: sites}}}
---
{kind: ClusterRole, apiVersion: x/v1, metadata: {name: shop-webhooks}, rules: [{apiGroups: [""], resources: [secrets], verbs: [create, delete]}]}
---
{kind: ClusterRole, apiVersion: x/v1, metadata: {name: shop}, rules: [
  {apiGroups: [""], resources: [events], verbs: [create, patch]},
  {apiGroups: [apps], resources: [deployments], verbs: [get, create, patch, delete]}]}
"#;
        let installed = Installed::of(&manifest::parse(text, "x").unwrap()).unwrap();
        let path = |group: &str, plural: &str| KindPath { group: group.into(), plural: plural.into() };
        assert_eq!((installed.account.as_str(), installed.namespace.as_str()), ("shop", "shop-system"));
        assert_eq!(installed.kinds, [path("e.com", "sites")]);
        assert_eq!(installed.owned, [path("apps", "deployments")]);
        assert_eq!(Installed::of(&[]), None);
    }
}
