//! Functions of admission, asked by a cluster in this process over HTTPS.

#![expect(missing_docs, reason = "the kinds are those of a test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod served;

use served::{Served, serve};
use tokio_util::sync::CancellationToken;
use windlass::k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use windlass::kube::Api;
use windlass::kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use windlass::prelude::*;
use windlass::runtime::webhook::{Reach, Way, Webhooks};
use windlass::runtime::{Clock, Health, Manager, ManagerConfig};
use windlass::serde_json::json;
use windlass::{App, Program, k8s_openapi};
use windlass_testkit::{PATIENCE, TestClock, TestCluster};

/// A ticket.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "desk.example.com", version = "v1", kind = "Ticket")]
pub struct TicketSpec {
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default)]
    pub done: bool,
}

struct Tickets;

impl Operator for Tickets {
    type Resource = Ticket;

    fn desired(&self, _: &Ticket, _: &World) -> Outcome<NoStatus> {
        Desired::new().settled()
    }
}

fn fill(ticket: &mut Ticket, request: &Request<Ticket>) {
    let owner = || request.user_name().to_owned();
    ticket.spec.owner.get_or_insert_with(owner);
}

fn judge(ticket: &Ticket, request: &Request<Ticket>) -> Verdict {
    assert!(ticket.spec.title != "panic", "the author made a mistake");
    let old_owner = request.old.as_ref().and_then(|old| old.spec.owner.as_deref());
    let is_taken = old_owner.is_some_and(|owner| owner != request.user_name());
    Verdict::allow()
        .deny_if(is_taken, format!("only {} may change it", old_owner.unwrap_or_default()))
        .invalid_if(ticket.spec.title.is_empty(), "spec.title", "say what it is about")
        .invalid_if(ticket.spec.owner.as_deref() == Some("nobody"), "spec.owner", "somebody must care")
        .warn_if(request.dry_run, "this was only a try")
}

fn keep(ticket: &Ticket, _: &Request<Ticket>) -> Verdict {
    Verdict::allow().deny_if(!ticket.spec.done, "finish it first")
}

fn app() -> App<Tickets> {
    windlass::operator(Tickets).defaulting(fill).validating(judge).validating_deletion(keep)
}

fn ticket(name: &str, title: &str) -> Ticket {
    Ticket::new(name, TicketSpec { title: title.into(), owner: None, done: false })
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_fill_in_refuse_and_warn() {
    let served = Served::start(&app()).await;
    assert!(served.health.is_ready(), "{:?}", served.health.report());
    let alice: Api<Ticket> = Api::namespaced(served.cluster.client_as("alice", &["system:masters"]), "default");
    let bob: Api<Ticket> = Api::namespaced(served.cluster.client_as("bob", &["system:masters"]), "default");

    let made = alice.create(&PostParams::default(), &ticket("t", "lamp")).await.unwrap();
    assert_eq!(made.spec.owner.as_deref(), Some("alice"));

    let rename = Patch::Merge(json!({"spec": {"title": "light"}}));
    let refusal = bob.patch("t", &PatchParams::default(), &rename).await.unwrap_err().to_string();
    assert!(refusal.contains("only alice may change it"), "{refusal}");
    alice.patch("t", &PatchParams::default(), &rename).await.unwrap();

    let mut bad = ticket("u", "");
    bad.spec.owner = Some("nobody".into());
    let windlass::kube::Error::Api(status) = alice.create(&PostParams::default(), &bad).await.unwrap_err() else {
        panic!("not an answer of the API")
    };
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{status:?}");
    assert!(status.message.contains("spec.title: say what it is about; spec.owner: somebody must care"), "{status:?}");

    let refusal = alice.delete("t", &DeleteParams::default()).await.unwrap_err().to_string();
    assert!(refusal.contains("finish it first"), "{refusal}");
    alice.patch("t", &PatchParams::default(), &Patch::Merge(json!({"spec": {"done": true}}))).await.unwrap();
    alice.delete("t", &DeleteParams::default()).await.unwrap();
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_is_known_to_be_one_and_warnings_arrive() {
    let served = Served::start(&app()).await;
    let request = windlass::kube::core::Request::new("/apis/desk.example.com/v1/namespaces/default/tickets");
    let body = windlass::serde_json::to_vec(&ticket("t", "lamp")).unwrap();
    let dry_run = PostParams { dry_run: true, field_manager: None };
    let request = request.create(&dry_run, body).unwrap();
    let answer = served.cluster.client().send(request.map(Into::into)).await.unwrap();
    assert_eq!(answer.status(), 201);
    assert!(answer.headers()["warning"].to_str().unwrap().contains("this was only a try"));
    assert!(served.cluster.list::<Ticket>().await.is_empty());
    served.end().await;
}

/// Refuses a title that another ticket has, while somebody is at the desk.
fn judge_by_others(ticket: &Ticket, _: &Request<Ticket>, world: &World) -> Verdict {
    let is_same = |other: &Ticket| other.spec.title == ticket.spec.title && other.name_any() != ticket.name_any();
    let is_staffed = world.get::<ConfigMap>(Some("default"), "desk").is_some();
    let is_taken = world.all::<Ticket>().iter().any(|other| is_same(other));
    Verdict::allow().deny_if(!is_staffed, "nobody is at the desk").invalid_if(
        is_taken,
        "spec.title",
        "another ticket has this title",
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judge_sees_the_kinds_that_are_declared_and_the_other_resources() {
    let cluster = TestCluster::start().await;
    let app = windlass::operator(Tickets).watches::<ConfigMap>(|_| Vec::new()).validating_in_world(judge_by_others);
    // At once: whoever asks before the caches are filled waits for them.
    let operator = cluster.run(&app).await;
    let tickets: Api<Ticket> = cluster.api();
    let create = async |name, title| tickets.create(&PostParams::default(), &ticket(name, title)).await;
    let refusal = create("t", "lamp").await.unwrap_err().to_string();
    assert!(refusal.contains("nobody is at the desk"), "{refusal}");

    cluster.create::<ConfigMap>(json!({"metadata": {"name": "desk"}})).await;
    let first = async {
        while let Err(refusal) = create("t", "lamp").await {
            assert!(refusal.to_string().contains("nobody is at the desk"), "{refusal}");
        }
    };
    tokio::time::timeout(PATIENCE, first).await.unwrap();
    create("other", "chair").await.unwrap();
    // That a ticket exists is in the cache a moment after it does.
    let refused = async {
        while let Ok(made) = create("u", "lamp").await {
            tickets.delete(&made.name_any(), &DeleteParams::default()).await.unwrap();
        }
        create("u", "lamp").await.unwrap_err().to_string()
    };
    let refusal = tokio::time::timeout(PATIENCE, refused).await.unwrap();
    assert!(refusal.contains("spec.title: another ticket has this title"), "{refusal}");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judge_that_cannot_see_fails_the_request_and_refuses_nothing() {
    let served = Served::start(&windlass::operator(Tickets).validating_in_world(judge_by_others)).await;
    // The operator is not at work in this process, so nothing is known of the world.
    let failure = served.cluster.api().create(&PostParams::default(), &ticket("t", "lamp")).await.unwrap_err();
    assert!(failure.to_string().contains("failed calling webhook"), "{failure}");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_fails_one_request_and_no_other() {
    let served = Served::start(&app()).await;
    let tickets: Api<Ticket> = served.cluster.api();
    let refusal = tickets.create(&PostParams::default(), &ticket("t", "panic")).await.unwrap_err().to_string();
    assert!(refusal.contains("the webhook panicked"), "{refusal}");
    tickets.create(&PostParams::default(), &ticket("t", "lamp")).await.unwrap();
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_say_when_a_function_is_asked() {
    let hook = Hook::validate(judge).when("titled", "object.spec.title != 'panic'");
    let served = Served::start(&windlass::operator(Tickets).webhook(hook)).await;
    let tickets: Api<Ticket> = served.cluster.api();
    tickets.create(&PostParams::default(), &ticket("t", "panic")).await.unwrap();
    assert!(tickets.create(&PostParams::default(), &ticket("u", "")).await.is_err());
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_outside_of_the_cluster_takes_its_webhooks_with_it() {
    let served = Served::start(&app()).await;
    let cluster = served.end_webhooks().await;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
    assert!(configurations.get_opt("ticket-operator").await.unwrap().is_none());
    cluster.api::<Ticket>().create(&PostParams::default(), &ticket("t", "")).await.unwrap();
    cluster.stop().await;
}

fn data(secret: &Secret, name: &str) -> String {
    let data = secret.data.as_ref().and_then(|data| data.get(name)).map(|bytes| bytes.0.clone());
    String::from_utf8(data.unwrap_or_default()).unwrap()
}

async fn bundle(cluster: &TestCluster) -> String {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
    let configuration = configurations.get("ticket-operator").await.unwrap();
    let bundle = configuration.webhooks.unwrap()[0].client_config.ca_bundle.clone().unwrap();
    String::from_utf8(bundle.0).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_renewed_before_their_end_without_a_failed_request() {
    let day = Duration::from_secs(24 * 60 * 60);
    let long_ago = k8s_openapi::jiff::Timestamp::now() - 252 * day;
    let clock = TestClock::running_from(&long_ago.to_string());
    let served = Served::on(TestCluster::start().await, &app(), clock.clock()).await;
    let (cluster, secret) = (&served.cluster, "ticket-operator-webhook-keys");
    let first = cluster.api::<Secret>().get(secret).await.unwrap();

    // The certificate has ended, and the authority is near its end: the next one is made known, but not used.
    clock.advance(250 * day);
    let second = cluster.until::<Secret>(secret, |secret| !data(secret, "next-ca.crt").is_empty()).await;
    assert_eq!(data(&second, "ca.crt"), data(&first, "ca.crt"));
    assert_ne!(data(&second, "tls.crt"), data(&first, "tls.crt"));
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
    let knows_both = |all: &[ValidatingWebhookConfiguration]| {
        let hooks = all.iter().flat_map(|it| it.webhooks.iter().flatten());
        let bundles = hooks.filter_map(|hook| hook.client_config.ca_bundle.clone());
        bundles.into_iter().all(|bundle| String::from_utf8(bundle.0).unwrap().matches("BEGIN CERT").count() == 2)
    };
    windlass_testkit::until(configurations, knows_both).await;
    let tickets = cluster.api::<Ticket>();
    tickets.create(&PostParams::default(), &ticket("a", "lamp")).await.unwrap();

    // After a day everybody knows it.
    clock.advance(day + Duration::from_secs(60));
    let third = cluster.until::<Secret>(secret, |secret| data(secret, "ca.crt") != data(&second, "ca.crt")).await;
    assert_eq!(data(&third, "ca.crt"), data(&second, "next-ca.crt"));
    assert_ne!(data(&third, "tls.crt"), data(&second, "tls.crt"));
    assert_eq!(bundle(cluster).await.matches("BEGIN CERT").count(), 2, "the old one is trusted to its end");
    for index in 0..5 {
        tickets.create(&PostParams::default(), &ticket(&format!("b-{index}"), "lamp")).await.unwrap();
    }
    assert!(tickets.get("b-4").await.unwrap().spec.owner.is_some(), "the functions were asked");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_one_set_of_keys() {
    let cluster = TestCluster::start().await;
    let (health, stop) = (Health::default(), CancellationToken::new());
    let app = app();
    let start = || serve(&cluster, &app, &health, Clock::system(), &stop);
    let (mut one, mut two, mut three) = tokio::join!(start(), start(), start());
    tokio::join!(one.ready(), two.ready(), three.ready());
    let secrets: Vec<Secret> = cluster.list().await;
    let kept: Vec<_> = secrets.iter().filter(|it| it.name_any() == "ticket-operator-webhook-keys").collect();
    let [secret] = kept.as_slice() else { panic!("{kept:?}") };
    assert_eq!(bundle(&cluster).await, data(secret, "ca.crt"), "all trust the one authority");
    stop.cancel();
    tokio::join!(one.ended(), two.ended(), three.ended());
    cluster.stop().await;
}

#[test]
fn manifests_carry_what_webhooks_need_and_no_more() {
    let app = app();
    let manifests = app.manifests(&windlass::ManifestOptions::of(&app));
    let find = |kind: &str, name: &str| {
        let found = manifests.iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}")).clone()
    };
    let role = find("Role", "ticket-operator-webhooks");
    assert_eq!(
        role["rules"],
        json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "update"],
                "resourceNames": ["ticket-operator-webhook-keys"]}])
    );
    let role = find("ClusterRole", "ticket-operator-webhooks");
    assert!(
        role["rules"].as_array().unwrap().iter().all(|rule| rule["resourceNames"] == json!(["ticket-operator"])),
        "{role}"
    );
    let service = find("Service", "ticket-operator-webhook");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], "webhooks");
    find("Secret", "ticket-operator-webhook-keys");
    let configuration = find("ValidatingWebhookConfiguration", "ticket-operator");
    let client = &configuration["webhooks"][0]["clientConfig"];
    assert_eq!(
        client["service"],
        json!({"namespace": "ticket-system", "name": "ticket-operator-webhook", "port": 443,
               "path": "/validate-desk-example-com-v1-ticket"})
    );
    let deployment = find("Deployment", "ticket-operator");
    let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(args, &json!(["run", "--leader-elect", "--webhooks=cluster"]));
}

/// A certificate for 127.0.0.1 in a folder, by an authority of its own, which is returned.
fn issue(folder: &std::path::Path) -> String {
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = ca.self_signed(&ca_key).unwrap().pem();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &rcgen::Issuer::new(ca, ca_key)).unwrap();
    std::fs::write(folder.join("tls.crt"), certificate.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    authority
}

/// Waits until the function itself refuses: before that, the API server may not know it, or not trust it.
async fn until_refused(attempt: &impl AsyncFn() -> String) {
    let asked = async {
        while !attempt().await.contains("say what it is about") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, asked).await.is_ok(), "{}", attempt().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_others_are_served_and_renewed_with_their_files() {
    let (cluster, app, folder) = (TestCluster::start().await, app(), tempfile::tempdir().unwrap());
    cluster.define(app.crds()).await;
    let (health, stop, clock) = (Health::default(), CancellationToken::new(), TestClock::default());
    let registration = app.registration(Vec::new());
    let way = Way::Given(folder.path().to_path_buf());
    let webhooks = Webhooks { registration: registration.clone(), address: "127.0.0.1:0".parse().unwrap(), way };
    let config = ManagerConfig { clock: clock.clock(), ..ManagerConfig::new(app.name()) };
    let manager = Manager::new(cluster.client(), config);
    let check = health.check("webhooks", "are not served yet");
    let mut serving = webhooks.start(&manager.handle(), check, stop.clone()).await.unwrap();
    let trouble = || health.report().into_iter().find_map(|(_, trouble)| trouble).unwrap_or_default();
    while !trouble().contains("tls.crt") {
        tokio::task::yield_now().await;
    }
    assert!(trouble().contains("mount the Secret with the certificate there"), "{}", trouble());

    let first = issue(folder.path());
    clock.advance(Duration::from_secs(5));
    serving.ready().await;
    assert!(health.is_ready(), "{:?}", health.report());
    let reach = Reach::Url(format!("https://{}", serving.address()));
    let trust = async |authority: &str| {
        let configuration = registration.validating(&reach, Some(authority)).unwrap();
        let all: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
        let params = PatchParams::apply("somebody").force();
        all.patch(app.name(), &params, &Patch::Apply(&configuration)).await.unwrap();
    };
    let refusal = async || {
        let made = cluster.api().create(&PostParams { dry_run: true, ..PostParams::default() }, &ticket("t", "")).await;
        made.err().map(|error| error.to_string()).unwrap_or_default()
    };
    trust(&first).await;
    until_refused(&refusal).await;
    let second = issue(folder.path());
    trust(&second).await;
    clock.advance(Duration::from_secs(60));
    until_refused(&refusal).await;
    stop.cancel();
    serving.ended().await;
}
