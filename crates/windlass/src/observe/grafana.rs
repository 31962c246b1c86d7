//! The parts of a Grafana dashboard that are needed here.

use serde::Serialize;

/// The version of the form.
const SCHEMA_VERSION: u32 = 39;
/// A row of panels is this wide.
const WIDTH: u32 = 24;
/// How wide and how high a panel is.
const PANEL: (u32, u32) = (8, 7);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dashboard {
    pub(super) uid: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) tags: Vec<String>,
    schema_version: u32,
    editable: bool,
    refresh: &'static str,
    time: TimeRange,
    templating: Templating,
    panels: Vec<Panel>,
}

#[derive(Serialize)]
struct TimeRange {
    from: &'static str,
    to: &'static str,
}

#[derive(Serialize)]
struct Templating {
    list: Vec<Variable>,
}

/// Something to choose at the top.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Variable {
    name: &'static str,
    label: &'static str,
    #[serde(rename = "type")]
    type_: &'static str,
    query: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    regex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    datasource: Option<Source>,
    multi: bool,
    include_all: bool,
    refresh: u8,
}

#[derive(Clone, Serialize)]
struct Source {
    #[serde(rename = "type")]
    type_: &'static str,
    uid: &'static str,
}

const PROMETHEUS: Source = Source { type_: "prometheus", uid: "${datasource}" };

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Panel {
    id: u32,
    title: String,
    description: String,
    #[serde(rename = "type")]
    type_: &'static str,
    datasource: Source,
    grid_pos: Position,
    targets: Vec<Target>,
    field_config: FieldConfig,
}

#[derive(Serialize)]
struct Position {
    x: u32,
    y: u32,
    w: u32,
    h: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    ref_id: String,
    expr: String,
    legend_format: &'static str,
    datasource: Source,
}

#[derive(Serialize)]
struct FieldConfig {
    defaults: Defaults,
    overrides: [(); 0],
}

#[derive(Serialize)]
struct Defaults {
    unit: &'static str,
    min: u32,
}

/// A picture: what it shows, in what unit, from which questions with which legends.
pub(super) struct Picture {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) unit: &'static str,
    pub(super) questions: Vec<(String, &'static str)>,
}

impl Variable {
    /// Which Prometheus.
    pub(super) fn source() -> Self {
        let query = "prometheus".to_owned();
        Self::new("datasource", "Source", "datasource", query, None)
    }

    /// The values of a label.
    pub(super) fn label(name: &'static str, label: &'static str, query: String, regex: Option<String>) -> Self {
        let datasource = Some(PROMETHEUS);
        Self { datasource, multi: true, include_all: true, ..Self::new(name, label, "query", query, regex) }
    }

    fn new(name: &'static str, label: &'static str, type_: &'static str, query: String, regex: Option<String>) -> Self {
        Self { name, label, type_, query, regex, datasource: None, multi: false, include_all: false, refresh: 2 }
    }
}

impl Dashboard {
    /// A dashboard with the pictures from left to right and from top to bottom.
    pub(super) fn new(title: String, description: String, variables: Vec<Variable>, pictures: Vec<Picture>) -> Self {
        let panels = (0..).zip(pictures).map(|(index, picture)| panel(index, picture)).collect();
        Self {
            uid: title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect(),
            title,
            description,
            tags: vec!["windlass".to_owned(), "operator".to_owned()],
            schema_version: SCHEMA_VERSION,
            editable: true,
            refresh: "30s",
            time: TimeRange { from: "now-1h", to: "now" },
            templating: Templating { list: variables },
            panels,
        }
    }
}

fn panel(index: u32, picture: Picture) -> Panel {
    let (width, height) = PANEL;
    let columns = WIDTH / width;
    let target = |(letter, (expr, legend_format)): (char, (String, &'static str))| Target {
        ref_id: letter.to_string(),
        expr,
        legend_format,
        datasource: PROMETHEUS,
    };
    Panel {
        id: index + 1,
        title: picture.title.to_owned(),
        description: picture.about.to_owned(),
        type_: "timeseries",
        datasource: PROMETHEUS,
        grid_pos: Position { x: index % columns * width, y: index / columns * height, w: width, h: height },
        targets: ('A'..='Z').zip(picture.questions).map(target).collect(),
        field_config: FieldConfig { defaults: Defaults { unit: picture.unit, min: 0 }, overrides: [] },
    }
}
