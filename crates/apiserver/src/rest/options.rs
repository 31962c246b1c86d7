//! The options of writes, deletes and lists, checked.

use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::{field_selector::FieldSelector, selector::LabelSelector};
use crate::{ApiError, Subject, query::Query, request::Verb};

/// What to do with fields that a kind does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The options of creates, updates and patches.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_manager: Option<String>,
    pub(crate) field_validation: FieldValidation,
    pub(crate) force: Option<bool>,
}

/// How long the name of a field manager may be.
const FIELD_MANAGER_MAX: usize = 128;

impl WriteOptions {
    /// Reads the options of a request with this verb.
    pub(crate) fn new(query: &Query, verb: Verb) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let field_manager = query.get("fieldManager").map(str::to_owned);
        if let Some(manager) = field_manager.as_ref().filter(|manager| manager.len() > FIELD_MANAGER_MAX) {
            errors.push(FieldError::too_long("fieldManager", FIELD_MANAGER_MAX as u64));
            tracing::debug!(manager, "too long");
        }
        if let Some(manager) = &field_manager
            && let Some((position, letter)) = manager.char_indices().find(|(_, letter)| letter.is_control())
        {
            let why = format!("invalid character U+{:04X} (at position {position})", u32::from(letter));
            errors.push(FieldError::invalid("fieldManager", manager.as_str(), why));
        }
        let field_validation = match query.get("fieldValidation") {
            Some("Ignore") => FieldValidation::Ignore,
            None | Some("" | "Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                errors.push(FieldError::not_supported("fieldValidation", other, &["", "Ignore", "Strict", "Warn"]));
                FieldValidation::Warn
            }
        };
        let force = query.all("force").next().map(|value| !matches!(value, "false" | "0"));
        let kind = match verb {
            Verb::Create => "CreateOptions",
            Verb::Update => "UpdateOptions",
            _ => "PatchOptions",
        };
        refuse(kind, errors)?;
        Ok(Self { dry_run, field_manager, field_validation, force })
    }

    /// The options as an object of `kind`.
    pub(crate) fn described(&self, kind: &str) -> Value {
        let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        if kind == "DeleteOptions" {
            return options;
        }
        if let Some(manager) = &self.field_manager {
            options["fieldManager"] = manager.as_str().into();
        }
        if let (Some(force), "PatchOptions") = (self.force, kind) {
            options["force"] = force.into();
        }
        options["fieldValidation"] = format!("{:?}", self.field_validation).into();
        options
    }
}

fn dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut Vec<FieldError>) -> bool {
    let values: Vec<&str> = values.filter(|value| !value.is_empty()).collect();
    if values.iter().any(|value| *value != "All") {
        errors.push(FieldError::not_supported("dryRun", json!(values), &["All"]));
    }
    !values.is_empty()
}

/// A 422 about options of the kind `kind`, unless there is nothing wrong.
pub(crate) fn refuse(kind: &str, errors: Vec<FieldError>) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid_fields(Subject { group: "meta.k8s.io", resource: kind }, "", errors))
}

/// What happens to the objects that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// The options of a delete.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    /// Whether dependents were wished away in the older form; only then is the client told that it is not done yet.
    pub(crate) cascades: bool,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    /// From the body, if there is one, and else from the query: a body without `dryRun` means it, whatever the query says.
    pub(crate) fn new(query: &Query, body: Option<&Value>) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let options = match body.filter(|body| body.is_object()) {
            Some(body) => Self::of_body(body, &mut errors),
            None => Self::of_query(query, &mut errors)?,
        };
        refuse("DeleteOptions", errors)?;
        Ok(options)
    }

    /// The options as an object.
    pub(crate) fn described(&self) -> Value {
        let mut options = json!({ "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1" });
        if let Some(seconds) = self.grace_seconds {
            options["gracePeriodSeconds"] = seconds.into();
        }
        if let Some(propagation) = self.propagation {
            options["propagationPolicy"] = format!("{propagation:?}").into();
        }
        if self.uid.is_some() || self.resource_version.is_some() {
            options["preconditions"] = json!({ "uid": self.uid, "resourceVersion": self.resource_version });
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    fn of_body(body: &Value, errors: &mut Vec<FieldError>) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let conditions = body.get("preconditions");
        let dry_run_values =
            body.get("dryRun").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let orphan = body.get("orphanDependents").and_then(Value::as_bool);
        Self {
            grace_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            propagation: propagation(body.get("propagationPolicy").and_then(Value::as_str), orphan, errors),
            cascades: orphan == Some(false),
            uid: text(conditions.and_then(|conditions| conditions.get("uid"))),
            resource_version: text(conditions.and_then(|conditions| conditions.get("resourceVersion"))),
            dry_run: dry_run(dry_run_values, errors),
        }
    }

    fn of_query(query: &Query, errors: &mut Vec<FieldError>) -> Result<Self, ApiError> {
        let orphan = query.get("orphanDependents").map(|_| query.flag("orphanDependents"));
        Ok(Self {
            grace_seconds: number(query, "gracePeriodSeconds")?,
            propagation: propagation(query.get("propagationPolicy"), orphan, errors),
            cascades: orphan == Some(false),
            uid: None,
            resource_version: None,
            dry_run: dry_run(query.all("dryRun"), errors),
        })
    }
}

fn propagation(policy: Option<&str>, orphan: Option<bool>, errors: &mut Vec<FieldError>) -> Option<Propagation> {
    if policy.is_some() && orphan.is_some() {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid("propagationPolicy", policy.unwrap_or_default(), why));
    }
    match policy {
        Some("Orphan") => Some(Propagation::Orphan),
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some(other) => {
            errors.push(FieldError::not_supported(
                "propagationPolicy",
                other,
                &["Foreground", "Background", "Orphan", "nil"],
            ));
            None
        }
        None => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
    }
}

/// How a list relates to the revision that the client names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    NotOlderThan,
}

/// The options of lists and watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) limit: Option<usize>,
    pub(crate) continue_token: Option<String>,
    /// The revision that the client names; 0 stands for any.
    pub(crate) revision: Option<u64>,
    pub(crate) revision_match: Option<Match>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
}

impl ListOptions {
    pub(crate) fn new(query: &Query, watch: bool) -> Result<Self, ApiError> {
        let options = Self {
            labels: LabelSelector::parse(query.get("labelSelector").unwrap_or_default())?,
            fields: FieldSelector::parse(query.get("fieldSelector").unwrap_or_default())?,
            limit: number::<i64>(query, "limit")?
                .and_then(|limit| usize::try_from(limit).ok())
                .filter(|limit| *limit > 0),
            continue_token: query.get("continue").map(str::to_owned),
            revision: if watch { watched_revision(query)? } else { revision(query)? },
            revision_match: match query.get("resourceVersionMatch") {
                None => None,
                Some("Exact") => Some(Match::Exact),
                Some("NotOlderThan") => Some(Match::NotOlderThan),
                Some(other) => return Err(unknown_match(other)),
            },
            timeout_seconds: number::<u64>(query, "timeoutSeconds")?.filter(|seconds| *seconds > 0),
            bookmarks: query.flag("allowWatchBookmarks"),
            initial_events: query.get("sendInitialEvents").map(|_| query.flag("sendInitialEvents")),
        };
        refuse("ListOptions", if watch { options.watch_errors() } else { options.list_errors() })?;
        Ok(options)
    }

    fn list_errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if self.initial_events.is_some() {
            errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        if self.revision_match.is_none() {
            return errors;
        }
        let field = "resourceVersionMatch";
        if self.continue_token.is_some() {
            errors.push(FieldError::forbidden(field, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if self.revision.is_none() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(field, why));
        }
        if self.revision_match == Some(Match::Exact) && self.revision == Some(0) {
            let why = "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(field, why));
        }
        errors
    }

    fn watch_errors(&self) -> Vec<FieldError> {
        let field = "resourceVersionMatch";
        let mut errors = Vec::new();
        let mut forbid = |why: &str| errors.push(FieldError::forbidden(field, why));
        match (self.initial_events, self.revision_match) {
            (None, Some(_)) => {
                forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
            }
            (Some(_), None) => forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
            _ => {}
        }
        if self.revision_match == Some(Match::Exact) {
            errors.push(FieldError::not_supported(field, "Exact", &["NotOlderThan"]));
        }
        if self.continue_token.is_some() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(field, why));
        }
        errors
    }
}

fn unknown_match(value: &str) -> ApiError {
    let error = FieldError::not_supported("resourceVersionMatch", value, &["Exact", "NotOlderThan", ""]);
    ApiError::invalid_fields(Subject { group: "meta.k8s.io", resource: "ListOptions" }, "", vec![error])
}

/// The revision that the query names.
pub(crate) fn revision(query: &Query) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.get("resourceVersion") else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
        ApiError::bad_request(format!("invalid resource version: resourceVersion: Invalid value: {text:?}: {why}"))
    })
}

/// The same for a watch, which words the error in another way.
fn watched_revision(query: &Query) -> Result<Option<u64>, ApiError> {
    revision(query).map_err(|error| {
        let why = error.message.trim_start_matches("invalid resource version: ").to_owned();
        ApiError::unsorted(why)
    })
}

/// A number of the query; the error is Go's, which does not name the parameter.
fn number<T: std::str::FromStr>(query: &Query, key: &str) -> Result<Option<T>, ApiError> {
    let parse = |text: &str| {
        let why = || format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
        text.parse().map_err(|_| ApiError::bad_request(why()))
    };
    query.get(key).map(parse).transpose()
}
