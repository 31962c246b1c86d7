//! Step 3: pages are an intent; what is done about it is up to the runtime.

use kube::Client;
use windlass::prelude::*;
use windlass::runtime::{Manager, Namespaces};
use windlass::{App, Program};

use crate::before::teams;
use crate::kinds::{self, NAME, PageStatus};
use crate::step1::config;

/// A page, kept in a ConfigMap.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[resource(group = "site.example.com", version = "v1", kind = "Page", status = PageStatus)]
pub(crate) struct PageSpec {
    pub(crate) title: String,
    pub(crate) text: String,
}

struct Pages;

impl Operator for Pages {
    type Resource = Page;

    fn desired(&self, page: &Page, _: &World) -> Outcome<PageStatus> {
        let map = kinds::config_map(page.name_any(), &page.spec.title, &page.spec.text);
        Desired::new().child(map).status(PageStatus { path: kinds::path(&page.spec.title) }).settled()
    }
}

/// The operator of pages; teams go along as they were.
pub(crate) fn app() -> App<impl Operator> {
    windlass::operator(Pages).named(NAME).owns::<ConfigMap>().with(|manager, cluster, _| {
        let client = cluster.client.clone();
        manager.add_task(move |stop| teams(client, stop));
    })
}

/// All of it in a manager; `app().main()` is the same as a program.
pub(crate) fn manager(client: Client) -> Manager {
    let mut manager = Manager::new(client, config());
    app().install(&mut manager, Namespaces::all());
    manager
}
