//! A [`Reconcile`] as a program.

use kube::Resource;
use windlass_core::CustomResource;
use windlass_runtime::{Object, Reconcile, Reconciled};

use crate::app::App;

/// A [`Reconcile`] with its declared kinds. Its objects have the switches of every operator.
pub type ReconcileApp<R> = App<Reconciled<R>>;

/// Makes a program of a [`Reconcile`] of a kind of one's own: declare its kinds, then call [`App::main`].
pub fn reconcile<R: Reconcile<Resource: CustomResource>>(reconcile: R) -> ReconcileApp<R> {
    App::of(name_of::<R>(), Reconciled::with_conditions(reconcile))
}

/// Makes a program of a [`Reconcile`] of a kind that somebody else defines.
pub fn controller<R: Reconcile<Resource: Object<DynamicType = ()>>>(reconcile: R) -> ReconcileApp<R> {
    App::new(name_of::<R>(), Reconciled::new(reconcile))
}

fn name_of<R: Reconcile<Resource: Resource<DynamicType = ()>>>() -> String {
    format!("{}-operator", R::Resource::kind(&()).to_lowercase())
}
