//! The templates of a chart, made of the objects that `manifests` prints.

use serde_json::{Value, json};

use super::super::{Extra, Maker, ManifestOptions, needs, roles, value};
use super::yaml::{DEEPER, add_lines, emit, line, raw};
use crate::app::Program;
use crate::rbac::{Need, Part, Scope};

/// Stands for the namespace of the release.
const RELEASE: &str = "windlass-namespace-of-the-release";
/// Stands for each served namespace.
const SERVED: &str = "windlass-namespace-that-is-served";

/// All templates by name; what the operator does not have is empty.
pub(super) fn all(program: &dyn Program, options: &ManifestOptions) -> Vec<(&'static str, String)> {
    let options = ManifestOptions {
        namespace: RELEASE.to_owned(),
        watch_namespaces: Vec::new(),
        labels: Default::default(),
        // Several, so that all that several take is there.
        replicas: 2,
        shards: None,
        extras: Extra::all(),
        ..options.clone()
    };
    let of = Templates { program, options };
    vec![
        ("definitions", of.definitions()),
        ("permissions", of.permissions()),
        ("roles-of-kinds", wrap("$.Values.kindRoles.enabled", &documents(of.maker().kind_roles()))),
        ("operator", of.operator()),
        ("network", of.network()),
        ("webhooks", of.webhooks()),
    ]
}

struct Templates<'a> {
    program: &'a dyn Program,
    options: ManifestOptions,
}

impl Templates<'_> {
    fn maker(&self) -> Maker<'_> {
        Maker::new(self.program, &self.options)
    }

    /// Helm never changes what is in a folder `crds`, so definitions are templates like all else; they outlive the release
    /// unless it is said otherwise, since resources go with them.
    fn definitions(&self) -> String {
        let mut all = self.maker().definitions();
        for definition in &mut all {
            let keep = "{{- if $.Values.crds.keep }}\nannotations:\n  helm.sh/resource-policy: keep\n{{- end }}";
            add_lines(&mut definition["metadata"], keep);
        }
        wrap("$.Values.crds.install", &documents(all))
    }

    fn permissions(&self) -> String {
        let of = |needs: &[Need], options: &ManifestOptions| documents(roles(self.program.name(), options, needs));
        let part = |part: Part, shards: bool| -> Vec<Need> {
            let options = ManifestOptions { shards: shards.then_some(1), ..self.options.clone() };
            needs(self.program, &options).into_iter().filter(|need| need.part == part).collect()
        };
        let work = part(Part::Work, false);
        let (served, cluster): (Vec<Need>, Vec<Need>) =
            work.iter().cloned().partition(|need| need.scope == Scope::Served);
        let narrowed = ManifestOptions { watch_namespaces: vec![SERVED.to_owned()], ..self.options.clone() };
        let each = format!(
            "{{{{- range $namespace := $.Values.watchNamespaces }}}}\n{}{{{{- end }}}}\n",
            of(&served, &narrowed)
        );
        let mut text =
            either("$.Values.watchNamespaces", &(each + &of(&cluster, &narrowed)), &of(&work, &self.options));
        let lead = |shards| of(&part(Part::Lead, shards), &self.options);
        text.push_str(&either("$.Values.shards", &lead(true), &lead(false)));
        text.push_str(&wrap("$.Values.webhooks.enabled", &of(&part(Part::Webhooks, false), &self.options)));
        text
    }

    fn operator(&self) -> String {
        let maker = self.maker();
        let mut account = value(&maker.account());
        add_lines(&mut account["metadata"], with("serviceAccount.annotations", "annotations"));
        let mut text = documents(vec![account, self.deployment()]);
        let budget = maker.disruption_budget().iter().map(value).collect();
        text.push_str(&wrap("gt (int $.Values.replicas) 1", &documents(budget)));
        text
    }

    fn deployment(&self) -> Value {
        let mut deployment = value(&self.maker().deployment());
        deployment["spec"]["replicas"] = raw("{{ $.Values.replicas }}");
        let template = &mut deployment["spec"]["template"];
        add_lines(&mut template["metadata"], with("podAnnotations", "annotations"));
        add_lines(&mut template["metadata"]["labels"], MORE_LABELS);
        let pod = &mut template["spec"];
        if let Some(spread) = pod.as_object_mut().and_then(|pod| pod.remove("topologySpreadConstraints")) {
            let spread = emit(&json!({"topologySpreadConstraints": spread}));
            add_lines(pod, format!("{{{{- if gt (int $.Values.replicas) 1 }}}}\n{spread}{{{{- end }}}}"));
        }
        for (value, field) in [
            ("imagePullSecrets", "imagePullSecrets"),
            ("nodeSelector", "nodeSelector"),
            ("tolerations", "tolerations"),
            ("affinity", "affinity"),
        ] {
            add_lines(pod, with(value, field));
        }
        let container = &mut pod["containers"][0];
        let of = "$.Values.image";
        container["image"] = raw(&format!(
            "\"{{{{ {of}.repository }}}}{{{{ if {of}.digest }}}}@{{{{ {of}.digest }}}}{{{{ else }}}}:{{{{ {of}.tag }}}}{{{{ end }}}}\""
        ));
        add_lines(container, "{{- with $.Values.image.pullPolicy }}\nimagePullPolicy: {{ . }}\n{{- end }}");
        add_lines(container, with("resources", "resources"));
        if let Some(fields) = container.as_object_mut() {
            fields.remove("resources");
        }
        container["args"] = self.args();
        if let Some(ports) = container["ports"].as_array_mut() {
            in_conditions(ports, "webhooks");
        }
        deployment
    }

    fn args(&self) -> Value {
        let mut args = vec![
            json!("run"),
            line("{{- if $.Values.shards }}\n- --shards={{ $.Values.shards }}\n{{- else }}"),
            json!("--leader-elect"),
            line("{{- end }}"),
            line("{{- with $.Values.watchNamespaces }}\n- --watch-namespace={{ join \",\" . }}\n{{- end }}"),
        ];
        if self.has_webhooks() {
            args.push(line("{{- if $.Values.webhooks.enabled }}\n- --webhooks=cluster\n{{- end }}"));
        }
        args.push(line("{{- range $.Values.extraArgs }}\n- {{ . | quote }}\n{{- end }}"));
        args.into()
    }

    fn network(&self) -> String {
        let mut text = String::new();
        for mut object in self.maker().network() {
            let condition = if object["kind"] == "Service" { "metrics.service" } else { "networkPolicy.enabled" };
            if let Some(rules) = object.pointer_mut("/spec/ingress").and_then(Value::as_array_mut) {
                in_conditions(rules, "webhooks");
            }
            text.push_str(&wrap(&format!("$.Values.{condition}"), &documents(vec![object])));
        }
        text
    }

    fn webhooks(&self) -> String {
        if !self.has_webhooks() {
            return String::new();
        }
        let narrowed = ManifestOptions { watch_namespaces: vec![SERVED.to_owned()], ..self.options.clone() };
        let mut all = Maker::new(self.program, &narrowed).webhooks();
        for object in &mut all {
            for hook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
                let selector = hook.as_object_mut().and_then(|hook| hook.remove("namespaceSelector"));
                if let Some(mut selector) = selector {
                    selector["matchExpressions"][0]["values"] = raw("{{ toJson . }}");
                    let selector = emit(&json!({"namespaceSelector": selector}));
                    add_lines(hook, format!("{{{{- with $.Values.watchNamespaces }}}}\n{selector}{{{{- end }}}}"));
                }
            }
        }
        let converts = self.program.registration(Vec::new()).chains.iter().any(windlass_core::Chain::converts);
        let why = "the kinds have several versions, which takes webhooks: webhooks.enabled must be true";
        let refusal = if converts { format!("{{{{- fail {why:?} }}}}\n") } else { String::new() };
        either("$.Values.webhooks.enabled", &documents(all), &refusal)
    }

    fn has_webhooks(&self) -> bool {
        !self.program.registration(Vec::new()).is_empty()
    }
}

/// The labels of the values, after those of the object.
const MORE_LABELS: &str = "{{- with $.Values.labels }}\n{{- toYaml . | nindent %indent% }}\n{{- end }}";

/// A field that is there if the values have something for it.
fn with(value: &str, field: &str) -> String {
    format!("{{{{- with $.Values.{value} }}}}\n{field}: {{{{- toYaml . | nindent {DEEPER} }}}}\n{{{{- end }}}}")
}

/// Puts the items that name the port `webhooks` into a condition.
fn in_conditions(items: &mut Vec<Value>, port: &str) {
    let is_it = |item: &Value| item["name"] == port || item["ports"][0]["port"] == port;
    let Some(position) = items.iter().position(is_it) else { return };
    items.insert(position + 1, line("{{- end }}"));
    items.insert(position, line("{{- if $.Values.webhooks.enabled }}"));
}

fn wrap(condition: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n") }
}

fn either(condition: &str, text: &str, other: &str) -> String {
    if other.is_empty() {
        return wrap(condition, text);
    }
    format!("{{{{- if {condition} }}}}\n{text}{{{{- else }}}}\n{other}{{{{- end }}}}\n")
}

/// Objects with gaps in place of what stands for namespaces, and for labels.
fn documents(objects: Vec<Value>) -> String {
    let text = |mut object: Value| {
        fill(&mut object);
        if object["metadata"]["labels"].is_object() {
            add_lines(&mut object["metadata"]["labels"], MORE_LABELS);
        }
        format!("---\n{}", emit(&object))
    };
    objects.into_iter().map(text).collect()
}

fn fill(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(fill),
        Value::Array(items) => items.iter_mut().for_each(fill),
        Value::String(text) if text == RELEASE => *value = raw("{{ $.Release.Namespace }}"),
        Value::String(text) if text == SERVED => *value = raw("{{ $namespace }}"),
        _ => {}
    }
}
