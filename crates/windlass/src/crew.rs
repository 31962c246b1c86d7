//! Several operators as one program.

use std::process::ExitCode;

use kube::ResourceExt;
use windlass_runtime::engine::Declared;
use windlass_runtime::webhook::Registration;
use windlass_runtime::{Handle, Manager, Namespaces};

use crate::app::{OwnCommand, Program};
use crate::capability::Provided;
use crate::rbac::Need;

/// Makes one program of several operators: add each by [`Crew::with`], then call [`Crew::main`].
///
/// They share the process, its caches and its connections, the name, the account and the lease; each has a queue and
/// workers of its own.
pub fn program(name: impl Into<String>) -> Crew {
    Crew { name: name.into(), version: None, members: Vec::new() }
}

/// Several operators in one program.
#[must_use = "call .main()"]
pub struct Crew {
    name: String,
    version: Option<String>,
    members: Vec<Box<dyn Program>>,
}

impl Crew {
    /// Adds an operator. Its own name no longer counts: field manager, Deployment and account are those of the program.
    ///
    /// # Panics
    /// If its kind, or one of its webhooks, is in the program already.
    pub fn with(mut self, operator: impl Program + 'static) -> Self {
        let kinds =
            |program: &dyn Program| -> Vec<String> { program.crds().iter().map(ResourceExt::name_any).collect() };
        let hooks = |program: &dyn Program| -> Vec<String> {
            program.registration(Vec::new()).hooks.iter().map(windlass_core::admission::Hook::path).collect()
        };
        let known = [kinds(&self), hooks(&self)].concat();
        let twice = [kinds(&operator), hooks(&operator)].concat().into_iter().find(|it| known.contains(it));
        assert!(twice.is_none(), "{} is in the program twice", twice.unwrap_or_default());
        self.members.push(Box::new(operator));
        self
    }

    /// The program's version, which charts and bundles carry: usually `env!("CARGO_PKG_VERSION")`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The `main` of the program.
    pub fn main(self) -> ExitCode {
        self.run_blocking(std::env::args_os().collect())
    }
}

impl Program for Crew {
    fn as_program(&self) -> &dyn Program {
        self
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    fn registration(&self, namespaces: Vec<String>) -> Registration {
        let mut all =
            Registration { name: self.name.clone(), hooks: Vec::new(), chains: Vec::new(), namespaces: Vec::new() };
        for member in &self.members {
            let of = member.registration(namespaces.clone());
            all.hooks.extend(of.hooks);
            all.chains.extend(of.chains);
            // A member without namespaces leaves them out; hooks of such kinds are not narrowed in any case.
            if all.namespaces.is_empty() {
                all.namespaces = of.namespaces;
            }
        }
        all
    }

    fn commands(&self) -> Vec<OwnCommand> {
        self.members.iter().flat_map(|member| member.commands()).collect()
    }

    fn abilities(&self) -> Vec<Provided> {
        self.members.iter().flat_map(|member| member.abilities()).collect()
    }

    fn kinds(&self) -> Vec<Declared> {
        self.members.iter().flat_map(|member| member.kinds()).collect()
    }

    fn needs(&self) -> Vec<Need> {
        let mut all: Vec<Need> = Vec::new();
        for need in self.members.iter().flat_map(|member| member.needs()) {
            if !all.contains(&need) {
                all.push(need);
            }
        }
        all
    }

    fn install_in(&self, manager: &mut Manager, cluster: &Handle, namespaces: Namespaces) {
        if self.members.is_empty() {
            tracing::warn!("There is no operator in this program yet: `windlass create api` adds one");
        }
        for member in &self.members {
            member.install_in(manager, cluster, namespaces.clone());
        }
    }
}
