//! Which columns each built-in kind shows.

use serde_json::Value;

use super::{
    cluster,
    column::{Column, columns},
    metrics, network, pod, security, storage,
    view::View,
    workloads,
};

/// How a kind is shown.
pub(super) struct Printer {
    pub(super) columns: Vec<Column>,
    pub(super) cells: fn(&View<'_>) -> Vec<Value>,
    /// Whether the kind has no columns of its own.
    pub(super) is_plain: bool,
}

const TEMPLATE: &str = "Containers* Images* Selector*";

/// How a built-in resource is shown.
pub(super) fn printer(group: &str, resource: &str) -> Printer {
    let (line, cells): (&str, fn(&View<'_>) -> Vec<Value>) = match (group, resource) {
        ("", "pods") => ("Name Ready Status Restarts Age IP* Node* Nominated_Node* Readiness_Gates*", pod::cells),
        ("", "replicationcontrollers") => {
            ("Name Desired:integer Current:integer Ready:integer Age +", workloads::replication_controller)
        }
        ("apps", "replicasets") => ("Name Desired:integer Current:integer Ready:integer Age +", workloads::replica_set),
        ("apps", "deployments") => ("Name Ready Up-to-date Available Age +", workloads::deployment),
        ("apps", "statefulsets") => ("Name Ready Age Containers* Images*", workloads::stateful_set),
        ("apps", "daemonsets") => (
            "Name Desired:integer Current:integer Ready:integer Up-to-date:integer Available:integer Node_Selector Age +",
            workloads::daemon_set,
        ),
        ("apps", "controllerrevisions") => ("Name Controller Revision Age", workloads::controller_revision),
        ("batch", "jobs") => ("Name Status Completions Duration Age +", workloads::job),
        ("batch", "cronjobs") => {
            ("Name Schedule Timezone Suspend:boolean Active:integer Last_Schedule Age +", workloads::cron_job)
        }
        ("policy", "poddisruptionbudgets") => {
            ("Name Min_Available Max_Unavailable Allowed_Disruptions:integer Age", workloads::disruption_budget)
        }
        ("autoscaling", "horizontalpodautoscalers") => {
            ("Name Reference Targets MinPods MaxPods Replicas Age", workloads::autoscaler)
        }
        ("", "services") => ("Name Type Cluster-IP External-IP Port(s) Age Selector*", network::service),
        ("", "endpoints") => ("Name Endpoints Age", network::endpoints),
        ("discovery.k8s.io", "endpointslices") => ("Name AddressType Ports Endpoints Age", network::endpoint_slice),
        ("networking.k8s.io", "ingresses") => ("Name Class Hosts Address Ports Age", network::ingress),
        ("networking.k8s.io", "ingressclasses") => ("Name Controller Parameters Age", network::ingress_class),
        ("networking.k8s.io", "networkpolicies") => ("Name Pod-Selector Age", network::network_policy),
        ("", "nodes") => (
            "Name Status Roles Age Version Internal-IP* External-IP* OS-Image* Kernel-Version* Container-Runtime*",
            cluster::node,
        ),
        ("", "namespaces") => ("Name Status Age", cluster::namespace),
        ("" | "events.k8s.io", "events") => {
            ("Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*", cluster::event)
        }
        ("", "configmaps") => ("Name Data Age", cluster::config_map),
        ("", "secrets") => ("Name Type Data Age", cluster::secret),
        ("", "serviceaccounts") | ("resource.k8s.io", "deviceclasses" | "resourceclaimtemplates") => {
            ("Name Age", cluster::name_and_age)
        }
        ("", "resourcequotas") => ("Name Request Limit Age", cluster::resource_quota),
        ("coordination.k8s.io", "leases") => ("Name Holder Age", cluster::lease),
        ("scheduling.k8s.io", "priorityclasses") => {
            ("Name Value:integer Global-Default:boolean Age PreemptionPolicy", cluster::priority_class)
        }
        ("node.k8s.io", "runtimeclasses") => ("Name Handler Age", cluster::runtime_class),
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => {
            ("Name PriorityLevel MatchingPrecedence DistinguisherMethod Age MissingPL", cluster::flow_schema)
        }
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => {
            ("Name Type NominalConcurrencyShares Queues HandSize QueueLengthLimit Age", cluster::priority_level)
        }
        _ => return more(group, resource),
    };
    Printer { columns: columns(&line.replace('+', TEMPLATE)), cells, is_plain: false }
}

fn more(group: &str, resource: &str) -> Printer {
    let (line, cells): (&str, fn(&View<'_>) -> Vec<Value>) = match (group, resource) {
        ("", "persistentvolumes") => (
            "Name Capacity Access_Modes Reclaim_Policy Status Claim StorageClass VolumeAttributesClass Reason Age VolumeMode*",
            storage::volume,
        ),
        ("", "persistentvolumeclaims") => (
            "Name Status Volume Capacity Access_Modes StorageClass VolumeAttributesClass Age VolumeMode*",
            storage::claim,
        ),
        ("storage.k8s.io", "storageclasses") => {
            ("Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age", storage::storage_class)
        }
        ("storage.k8s.io", "volumeattributesclasses") => ("Name DriverName Age", storage::attributes_class),
        ("storage.k8s.io", "volumeattachments") => ("Name Attacher PV Node Attached:boolean Age", storage::attachment),
        ("storage.k8s.io", "csinodes") => ("Name Drivers:integer Age", storage::csi_node),
        ("storage.k8s.io", "csidrivers") => (
            "Name AttachRequired:boolean PodInfoOnMount:boolean StorageCapacity:boolean TokenRequests RequiresRepublish:boolean Modes Age",
            storage::csi_driver,
        ),
        ("storage.k8s.io", "csistoragecapacities") => ("Name StorageClassName Capacity", storage::storage_capacity),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            ("Name Role Age Users* Groups* ServiceAccounts*", security::binding)
        }
        ("certificates.k8s.io", "certificatesigningrequests") => {
            ("Name Age SignerName Requestor RequestedDuration Condition", security::signing_request)
        }
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations" | "validatingwebhookconfigurations") => {
            ("Name Webhooks:integer Age", security::webhooks)
        }
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => {
            ("Name Validations:integer ParamKind Age", security::validating_policy)
        }
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies") => {
            ("Name Mutations:integer ParamKind Age", security::mutating_policy)
        }
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings") => {
            ("Name PolicyName ParamRef Age", security::policy_binding)
        }
        ("apiregistration.k8s.io", "apiservices") => ("Name Service Available Age", security::api_service),
        ("", "componentstatuses") => ("Name Status Message Error", cluster::component_status),
        ("metrics.k8s.io", "pods") => ("Name cpu memory Window", metrics::pod),
        ("metrics.k8s.io", "nodes") => ("Name cpu memory Window", metrics::node),
        (_, "scale") => ("Name Desired:integer Available:integer Age", cluster::scale),
        _ => return Printer { columns: columns("Name Created_At:date"), cells: name_and_creation, is_plain: true },
    };
    Printer { columns: columns(line), cells, is_plain: false }
}

/// The cells of a kind that has no columns of its own, with the time as it is.
fn name_and_creation(view: &View<'_>) -> Vec<Value> {
    vec![view.name().into(), view.text("metadata.creationTimestamp").into()]
}
