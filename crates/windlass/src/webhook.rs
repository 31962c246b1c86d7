//! The functions of admission that an operator declares.

use windlass_core::World;
use windlass_core::admission::{Hook, Request, Verdict};
use windlass_runtime::engine::Style;

use crate::app::App;

impl<O: Style> App<O> {
    /// `fill` enters what new and changed resources do not say, before they are checked and stored.
    pub fn defaulting(self, fill: impl Fn(&mut O::Resource, &Request<O::Resource>) + Send + Sync + 'static) -> Self {
        self.webhook(Hook::default(fill))
    }

    /// `judge` may refuse new and changed resources, and warn of them.
    pub fn validating(
        self,
        judge: impl Fn(&O::Resource, &Request<O::Resource>) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        self.webhook(Hook::validate(judge))
    }

    /// `judge` may refuse new and changed resources, and warn of them, also by what there is: `world` has the kinds that are
    /// declared and all resources of this kind, as the caches have them. Two requests at the same time do not see each other.
    pub fn validating_in_world(
        mut self,
        judge: impl Fn(&O::Resource, &Request<O::Resource>, &World) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        let window = self.declaration.window();
        self.webhook(Hook::validate_in(window, judge))
    }

    /// `judge` may refuse the deletion of resources.
    pub fn validating_deletion(
        self,
        judge: impl Fn(&O::Resource, &Request<O::Resource>) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        self.webhook(Hook::validate_deletion(judge))
    }

    /// A webhook for objects of any kind, with options: see [`Hook`]. There is one of each sort for a kind.
    ///
    /// # Panics
    /// If there is one of this sort for the kind already.
    pub fn webhook(mut self, hook: Hook) -> Self {
        assert!(self.hooks.iter().all(|known| known.path() != hook.path()), "there are two webhooks {}", hook.path());
        self.hooks.push(hook);
        self
    }
}
