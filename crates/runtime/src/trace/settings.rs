//! Where traces go, from the variables that every program with OpenTelemetry reads.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};

/// How long the collector may take to answer, unless it is said.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Where traces go and what they are marked with.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSettings {
    /// The address that spans are posted to.
    pub endpoint: Uri,
    /// Headers of each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How long the collector may take to answer.
    pub timeout: Duration,
    /// What every span is marked with; `service.name` is one of them.
    pub resource: Vec<(String, String)>,
    /// Which share of traces is sent, from 0 to 1.
    pub ratio: f64,
}

/// Which variable cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("{variable}={value:?} is not understood: {expected}")]
pub struct SettingsError {
    variable: &'static str,
    value: String,
    expected: &'static str,
}

impl TraceSettings {
    /// What the variables of this process ask for; `None` if they name no collector. `service` is the name unless one is said.
    ///
    /// # Errors
    /// Names the variable that cannot be understood.
    pub fn from_environment(service: &str) -> Result<Option<Self>, SettingsError> {
        Self::read(service, |name| std::env::var(name).ok())
    }

    fn read(service: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingsError> {
        let said = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let is_off = said("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || said("OTEL_TRACES_EXPORTER").is_some_and(|value| value != "otlp");
        let Some(endpoint) = endpoint(&said)?.filter(|_| !is_off) else { return Ok(None) };
        let headers = said("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| said("OTEL_EXPORTER_OTLP_HEADERS"));
        let timeout = said("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT").or_else(|| said("OTEL_EXPORTER_OTLP_TIMEOUT"));
        let timeout = match timeout {
            Some(text) => Duration::from_millis(number("OTEL_EXPORTER_OTLP_TIMEOUT", &text)?),
            None => TIMEOUT_DEFAULT,
        };
        let mut resource = pairs(&said("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
        let service = said("OTEL_SERVICE_NAME")
            .or_else(|| taken(&mut resource, "service.name"))
            .unwrap_or_else(|| service.to_owned());
        resource.retain(|(key, _)| key != "service.name");
        resource.insert(0, ("service.name".to_owned(), service));
        let headers = headers.map_or_else(|| Ok(Vec::new()), |text| read_headers(&text))?;
        Ok(Some(Self { endpoint, headers, timeout, resource, ratio: ratio(&said)? }))
    }
}

/// The one for traces as it is, or the common one with the path that the standard adds.
fn endpoint(said: &impl Fn(&str) -> Option<String>) -> Result<Option<Uri>, SettingsError> {
    const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    const COMMON: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let (variable, value, text) = match (said(TRACES), said(COMMON)) {
        (Some(value), _) => (TRACES, value.clone(), value),
        (None, Some(value)) => (COMMON, value.clone(), format!("{}/v1/traces", value.trim_end_matches('/'))),
        (None, None) => return Ok(None),
    };
    let uri = text.parse::<Uri>().ok().filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
    let expected = "write an address such as http://collector:4318";
    uri.map(Some).ok_or(SettingsError { variable, value, expected })
}

fn ratio(said: &impl Fn(&str) -> Option<String>) -> Result<f64, SettingsError> {
    let Some(sampler) = said("OTEL_TRACES_SAMPLER") else { return Ok(1.0) };
    match sampler.trim_start_matches("parentbased_") {
        "always_on" => Ok(1.0),
        "always_off" => Ok(0.0),
        "traceidratio" => {
            let text = said("OTEL_TRACES_SAMPLER_ARG").unwrap_or_else(|| "1".to_owned());
            let ratio = text.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
            let expected = "write a share from 0 to 1";
            ratio.ok_or(SettingsError { variable: "OTEL_TRACES_SAMPLER_ARG", value: text, expected })
        }
        _ => {
            let expected = "write always_on, always_off or traceidratio";
            Err(SettingsError { variable: "OTEL_TRACES_SAMPLER", value: sampler, expected })
        }
    }
}

fn number(variable: &'static str, text: &str) -> Result<u64, SettingsError> {
    text.parse().map_err(|_| SettingsError { variable, value: text.to_owned(), expected: "write milliseconds" })
}

/// Headers are often keys of an account: a wrong one is not repeated.
fn read_headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, SettingsError> {
    let wrong = || SettingsError {
        variable: "OTEL_EXPORTER_OTLP_HEADERS",
        value: "…".to_owned(),
        expected: "write name=value, several with commas",
    };
    let header = |(name, value): (String, String)| {
        let mut value: HeaderValue = value.parse().ok()?;
        value.set_sensitive(true);
        Some((name.parse().ok()?, value))
    };
    pairs(text).into_iter().map(|pair| header(pair).ok_or_else(wrong)).collect()
}

/// `a=b,c=d`, with percent signs.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.trim().to_owned(), crate::percent::decode(value.trim()))).collect()
}

fn taken(pairs: &mut Vec<(String, String)>, key: &str) -> Option<String> {
    let position = pairs.iter().position(|(name, _)| name == key)?;
    Some(pairs.remove(position).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<TraceSettings>, SettingsError> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        TraceSettings::read("op", find)
    }

    fn check(variables: &[(&str, &str)], expected: Option<&str>) {
        let settings = read(variables).unwrap();
        let text = settings.map(|it| format!("{} {} {:?}", it.endpoint, it.ratio, it.resource[0].1));
        assert_eq!(text.as_deref(), expected, "{variables:?}");
    }

    #[test]
    fn the_usual_variables_are_understood() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        check(&[], None);
        check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], None);
        check(&[endpoint], Some(r#"http://c:4318/v1/traces 1 "op""#));
        check(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")], None);
        check(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")], None);
        check(&[endpoint, ("OTEL_SERVICE_NAME", "mine")], Some(r#"http://c:4318/v1/traces 1 "mine""#));
        check(
            &[endpoint, ("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.name=it%27s")],
            Some(r#"http://c:4318/v1/traces 1 "it's""#),
        );
        check(&[endpoint, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/x")], Some(r#"https://t/x 1 "op""#));
        check(
            &[endpoint, ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "0.25")],
            Some(r#"http://c:4318/v1/traces 0.25 "op""#),
        );
    }

    #[test]
    fn what_is_not_understood_is_named_and_headers_are_kept_secret() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        let wrong = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector")]).unwrap_err().to_string();
        assert!(wrong.starts_with("OTEL_EXPORTER_OTLP_ENDPOINT=\"collector\""), "{wrong}");
        assert!(read(&[endpoint, ("OTEL_TRACES_SAMPLER", "sometimes")]).is_err());
        assert!(read(&[endpoint, ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")]).is_err());
        let wrong = read(&[endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "a b=hunter2")]).unwrap_err().to_string();
        assert!(!wrong.contains("hunter2"), "{wrong}");
        let settings = read(&[endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=hunter2")]).unwrap().unwrap();
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
