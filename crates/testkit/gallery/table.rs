//! What hangs in the gallery: each bug with the real one that it is after.

/// A bug; `None` is the fixed reconciler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bug {
    #[default]
    None,
    LostUpdate,
    KeyNeverRemoved,
    NeverUpdated,
    ErrorSwallowed,
    ConflictSwallowed,
    TooManyIsFinal,
    TimeoutIsSuccess,
    ExistsIsFatal,
    DoneInMemory,
    DoneByName,
    WritesAlways,
    TimeInStatus,
    RandomOrder,
    BusyLoop,
    NoOwner,
    WrongOwner,
    PanicOnValue,
    CountsUp,
    TakesUsers,
    DeletesByLabel,
    ScalesByView,
    DisablesByView,
    GuardedByFirst,
    OnlyWhenParentIsNew,
    StuckPhase,
    EdgeTriggered,
    ByCount,
    LeaksLast,
    VolumesStay,
    FeatureStays,
    DoubleCreate,
    RotatedTwice,
    CountsItsCache,
    TaskRunsAgain,
    NoFinalizer,
    FinalizerAfter,
    FinalizerBefore,
    GoneIsFatal,
    HandleInMemory,
    DismissesByName,
    DeletionFallsThrough,
    ReadyFirst,
    NoteStays,
    GivesUp,
    BlockedForEver,
    ErrorIsAbsence,
    WholeObjectPut,
    TrustsTheClock,
    IgnoresField,
    SilentFailure,
    SecretInStatus,
    SecretInLog,
    SecretInObject,
    SecretInError,
    OtherNamespace,
    AllNamespaces,
    ClusterWide,
    Undeclared,
    AsksTooMuch,
}

/// A reconciler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Settings,
    Members,
    Credentials,
    Outside,
    Reports,
    Vaults,
}

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Play {
    Life,
    Again,
    Neighbours,
    Sizes,
    Switch,
    Licence,
    /// With many calls: what a run costs is measured with it.
    Many,
    Access,
    /// Every property is changed, and changed back.
    Changes,
}

/// A bug of the gallery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub bug: Bug,
    pub family: Family,
    pub play: Play,
    /// What is wrong.
    pub what: &'static str,
    /// Where the same was reported for a real operator.
    pub link: &'static str,
    /// The class of faults that the tests look for it with; empty if the run without faults shows it.
    pub class: &'static str,
}

const fn entry(
    bug: Bug,
    (family, play): (Family, Play),
    class: &'static str,
    what: &'static str,
    link: &'static str,
) -> Entry {
    Entry { bug, family, play, what, link, class }
}

const LIFE: (Family, Play) = (Family::Settings, Play::Life);
const BESIDE: (Family, Play) = (Family::Settings, Play::Neighbours);
const SIZES: (Family, Play) = (Family::Members, Play::Sizes);
const SWITCH: (Family, Play) = (Family::Members, Play::Switch);
const KEYS: (Family, Play) = (Family::Credentials, Play::Life);
const OUTSIDE: (Family, Play) = (Family::Outside, Play::Life);
const LICENCE: (Family, Play) = (Family::Reports, Play::Licence);

const ACCESS: (Family, Play) = (Family::Vaults, Play::Access);

macro_rules! github {
    ($path:literal) => {
        concat!("https://github.com/", $path)
    };
}

/// All bugs of the gallery.
#[rustfmt::skip]
pub(crate) const ENTRIES: [Entry; 65] = [
    entry(Bug::LostUpdate, LIFE, "meddle", "replaces an object and loses what others wrote", github!("bank-vaults/bank-vaults/pull/893")),
    entry(Bug::KeyNeverRemoved, LIFE, "fresh", "a key that was removed stays downstream", github!("k8ssandra/cass-operator/issues/330")),
    entry(Bug::NeverUpdated, LIFE, "fresh", "a change has no effect: the object is only ever created", github!("OT-CONTAINER-KIT/redis-operator/issues/290")),
    entry(Bug::ErrorSwallowed, LIFE, "failed", "a failure of the API is taken for the end of the work", github!("operator-framework/helm-operator-plugins/issues/378")),
    entry(Bug::ConflictSwallowed, LIFE, "conflict", "a conflict is taken for the end of the work", github!("streamnative/pulsar-resources-operator/pull/122")),
    entry(Bug::TooManyIsFinal, LIFE, "too-many", "a busy API server is not asked again", github!("apache/spark-kubernetes-operator/pull/530")),
    entry(Bug::TimeoutIsSuccess, LIFE, "timeout", "no answer is taken for a good one", github!("Altinity/clickhouse-operator/issues/2026")),
    entry(Bug::ExistsIsFatal, LIFE, "crash-after", "an own object that exists already stops everything", github!("rancher/cluster-api-provider-rke2/issues/656")),
    entry(Bug::DoneInMemory, LIFE, "delete", "an object that somebody deleted is not made again", github!("zalando/postgres-operator/issues/1299")),
    entry(Bug::DoneByName, (Family::Settings, Play::Again), "restart", "a new resource is taken for the old one of its name", github!("rabbitmq/cluster-operator/issues/648")),
    entry(Bug::WritesAlways, LIFE, "", "each run writes, and is woken by that", github!("operator-framework/operator-lifecycle-manager/pull/1816")),
    entry(Bug::TimeInStatus, LIFE, "", "the time in the status is new in each run", github!("multigres/multigres-operator/pull/185")),
    entry(Bug::RandomOrder, LIFE, "restart", "a list has another order in each run", github!("stacklok/toolhive/issues/5063")),
    entry(Bug::BusyLoop, LIFE, "", "asks without a pause until something is there", github!("statnett/image-scanner-operator/pull/1389")),
    entry(Bug::NoOwner, LIFE, "", "objects stay after their resource: no owner", github!("digitalocean/do-operator/issues/5")),
    entry(Bug::WrongOwner, LIFE, "", "objects are collected at once: the owner is another", github!("kubernetes/kubernetes/issues/100751")),
    entry(Bug::PanicOnValue, LIFE, "", "panics on a valid value", github!("cockroachdb/cockroach-operator/pull/922")),
    entry(Bug::CountsUp, LIFE, "crash-after", "counts again what was counted", github!("konpyutaika/nifikop/issues/49")),
    entry(Bug::TakesUsers, BESIDE, "", "takes an object of the user's for its own", github!("crossplane/crossplane/issues/48")),
    entry(Bug::DeletesByLabel, BESIDE, "", "deletes by a label that others use, too", github!("elastic/cloud-on-k8s/pull/3992")),
    entry(Bug::ScalesByView, SIZES, "stale", "an old size makes it delete a volume in use", github!("pravega/zookeeper-operator/issues/314")),
    entry(Bug::DisablesByView, SWITCH, "stale", "an old flag makes it delete what is in use", github!("yugabyte/yugabyte-operator/issues/36")),
    entry(Bug::GuardedByFirst, SIZES, "crash-after", "the second write depends on the effect of the first", github!("rabbitmq/cluster-operator/issues/782")),
    entry(Bug::OnlyWhenParentIsNew, SWITCH, "fresh", "what belongs to it is made only while it is new", github!("yugabyte/yugabyte-operator/issues/35")),
    entry(Bug::StuckPhase, SIZES, "crash-after", "stays in a phase that it was interrupted in", github!("Orange-OpenSource/casskop/issues/370")),
    entry(Bug::EdgeTriggered, SIZES, "delete-while-down", "acts only if it sees a member go", github!("instaclustr/cassandra-operator/issues/398")),
    entry(Bug::ByCount, SIZES, "delete", "counts members instead of naming them", github!("ray-project/kuberay/issues/715")),
    entry(Bug::LeaksLast, SIZES, "fresh", "one member too many stays", github!("Orange-OpenSource/casskop/issues/342")),
    entry(Bug::VolumesStay, SIZES, "fresh", "volumes stay when members go", github!("pravega/zookeeper-operator/pull/526")),
    entry(Bug::FeatureStays, SWITCH, "fresh", "what a feature needed stays when it is off", github!("knative/operator/pull/1176")),
    entry(Bug::DoubleCreate, KEYS, "crash-after", "makes a second object under another random name", github!("k0sproject/k0smotron/pull/1535")),
    entry(Bug::RotatedTwice, KEYS, "lost", "a credential is rotated twice for one wish", github!("AMRC-FactoryPlus/amrc-connectivity-stack/pull/647")),
    entry(Bug::CountsItsCache, KEYS, "stale", "counts what its cache knows", github!("kubernetes-sigs/cluster-api/issues/13649")),
    entry(Bug::TaskRunsAgain, KEYS, "restart", "a task runs again after each restart", github!("siddhi-io/siddhi-operator/issues/133")),
    entry(Bug::NoFinalizer, OUTSIDE, "", "nothing holds the resource until the cleanup", github!("zalando/postgres-operator/pull/941")),
    entry(Bug::FinalizerAfter, (Family::Outside, Play::Again), "user", "holds the resource after the work that needs it", github!("outscale/cluster-api-provider-outscale/issues/917")),
    entry(Bug::FinalizerBefore, OUTSIDE, "crash-after", "lets go of the resource before the cleanup", github!("open-cluster-management-io/work/pull/16")),
    entry(Bug::GoneIsFatal, OUTSIDE, "lost", "a cleanup that was done cannot be repeated", github!("coralogix/coralogix-operator/issues/239")),
    entry(Bug::HandleInMemory, OUTSIDE, "crash-before", "forgets in a restart what is to be cleaned up", github!("sky-uk/cassandra-operator/issues/7")),
    entry(Bug::DismissesByName, (Family::Outside, Play::Again), "stale", "an old deletion ends what a new resource has", github!("instaclustr/cassandra-operator/issues/402")),
    entry(Bug::DeletionFallsThrough, OUTSIDE, "", "goes on with its work during the deletion", github!("pravega/zookeeper-operator/issues/312")),
    entry(Bug::ReadyFirst, LICENCE, "", "says that it is ready before it is", github!("opendatahub-io/opendatahub-operator/issues/778")),
    entry(Bug::NoteStays, LICENCE, "failed", "a failure that is over stays in the status", github!("telekom-mms/cmcc-operator/issues/64")),
    entry(Bug::GivesUp, LICENCE, "failed", "one failure, and it never tries again", github!("operator-framework/operator-marketplace/pull/84")),
    entry(Bug::BlockedForEver, LICENCE, "fresh", "a bad wish that was taken back still blocks", github!("pingcap/tidb-operator/issues/4946")),
    entry(Bug::ErrorIsAbsence, LICENCE, "failed", "what cannot be read is taken for absent", github!("netbirdio/kubernetes-operator/issues/191")),
    entry(Bug::WholeObjectPut, LICENCE, "user", "writes the whole resource, and the user's change is lost", github!("stacklok/toolhive/pull/5731")),
    entry(Bug::TrustsTheClock, LIFE, "back", "waits for a time that it took from a clock that was fast", github!("FoundationDB/fdb-kubernetes-operator/issues/241")),
    entry(Bug::DoubleCreate, KEYS, "deposed", "the next replica makes again what the last one made", github!("kubernetes/kubernetes/issues/129795")),
    entry(Bug::KeyNeverRemoved, (Family::Settings, Play::Changes), "change", "a key of a map is never removed", github!("k8ssandra/cass-operator/issues/330")),
    entry(Bug::PanicOnValue, (Family::Settings, Play::Changes), "change", "panics on a value that the schema allows", github!("cockroachdb/cockroach-operator/pull/922")),
    entry(Bug::IgnoresField, (Family::Settings, Play::Changes), "change", "a field is accepted and has no effect", github!("OT-CONTAINER-KIT/redis-operator/pull/301")),
    entry(Bug::FeatureStays, (Family::Members, Play::Changes), "change", "a feature that is switched off leaves its objects", github!("knative/operator/pull/1176")),
    entry(Bug::VolumesStay, (Family::Members, Play::Changes), "change", "fewer members, and their volumes stay", github!("pravega/zookeeper-operator/pull/526")),
    entry(Bug::BlockedForEver, (Family::Reports, Play::Changes), "change", "a bad value blocks the way back", github!("mongodb/mongodb-kubernetes-operator/pull/1118")),
    entry(Bug::SilentFailure, (Family::Reports, Play::Changes), "change", "a bad value is accepted, and nobody says what is wrong", github!("k8ssandra/cass-operator/issues/315")),
    entry(Bug::SecretInStatus, ACCESS, "", "a password is in the status", github!("keycloak/keycloak/issues/22080")),
    entry(Bug::SecretInLog, ACCESS, "", "a password is in the log", github!("k8ssandra/k8ssandra/issues/1396")),
    entry(Bug::SecretInObject, ACCESS, "", "a password is in an annotation, as hex", github!("Altinity/clickhouse-operator/issues/1416")),
    entry(Bug::SecretInError, ACCESS, "failed", "a password is in the message of an error", github!("pulumi/pulumi-kubernetes-operator/issues/140")),
    entry(Bug::OtherNamespace, (Family::Vaults, Play::Changes), "change", "reads a Secret of another namespace that the resource names", "https://arxiv.org/html/2507.03387v1"),
    entry(Bug::AllNamespaces, ACCESS, "", "reads the Secrets of all namespaces for one resource", "https://arxiv.org/html/2507.03387v1"),
    entry(Bug::ClusterWide, ACCESS, "", "a resource of one namespace makes a role of the cluster", github!("golang/vulndb/issues/4125")),
    entry(Bug::Undeclared, ACCESS, "", "does what its roles do not allow", github!("Altinity/clickhouse-operator/issues/1051")),
    entry(Bug::AsksTooMuch, ACCESS, "", "its roles allow what it never does", github!("doitintl/kubeip/pull/32")),
];
