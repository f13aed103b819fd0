//! Where telemetry is sent, as the standard variables of OpenTelemetry say it.

use std::fmt;
use std::time::Duration;

use hotcell_tls::TlsFiles;
use http::{HeaderMap, HeaderName, HeaderValue};
use thiserror::Error;
use url::Url;

use crate::names::Names;

/// Where collectors listen that run on this machine.
const LOCAL: &str = "http://localhost:4318";

/// A variable that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{variable}` {reason}")]
pub struct VariableError {
    /// The variable
    pub variable: String,
    /// What is wrong with it
    pub reason: String,
}

fn wrong(variable: &str, reason: impl Into<String>) -> VariableError {
    VariableError { variable: variable.to_owned(), reason: reason.into() }
}

/// Where one kind of telemetry is sent.
#[derive(Clone, PartialEq)]
pub(crate) struct Endpoint {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) timeout: Duration,
    pub(crate) tls: TlsFiles,
}

/// Headers hold keys.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// What is sent, where, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpSettings {
    pub(crate) traces: Option<Endpoint>,
    pub(crate) metrics: Option<Endpoint>,
    /// What the telemetry is about
    pub(crate) resource: Vec<(String, String)>,
    /// Spans that wait to be sent; further ones are dropped
    pub(crate) queue: usize,
    /// Spans that are sent together
    pub(crate) batch: usize,
    /// How long a span waits for others
    pub(crate) delay: Duration,
    /// How often metrics are sent
    pub(crate) interval: Duration,
    /// Which part of all traces is sent
    pub(crate) ratio: f64,
    /// Whose names are used
    pub names: Names,
    /// Whether what people, models and tools say is sent, too
    pub content: bool,
}

impl OtlpSettings {
    /// What the variables of OpenTelemetry say, and those of hotcell: `HOTCELL_TELEMETRY_NAMES` (`gen-ai`, `agentloom`). None if
    /// nothing is to be sent: where no variable names an endpoint or an exporter, nothing is.
    ///
    /// # Errors
    /// Which variable cannot be used, and why.
    pub fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, VariableError> {
        let read = Variables(lookup);
        if read.truth("OTEL_SDK_DISABLED")? {
            return Ok(None);
        }
        let (traces, metrics) = (read.endpoint("TRACES")?, read.endpoint("METRICS")?);
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let queue = read.number("OTEL_BSP_MAX_QUEUE_SIZE", 2048, 1_000_000)?;
        let batch = read.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, 1_000_000)?.min(queue);
        let names = match read.get("HOTCELL_TELEMETRY_NAMES") {
            None => Names::default(),
            Some(word) => Names::from_word(&word)
                .ok_or_else(|| wrong("HOTCELL_TELEMETRY_NAMES", "has to be `gen-ai` or `agentloom`"))?,
        };
        Ok(Some(OtlpSettings {
            traces,
            metrics,
            resource: read.resource()?,
            queue: usize::try_from(queue).unwrap_or(usize::MAX),
            batch: usize::try_from(batch).unwrap_or(usize::MAX),
            delay: Duration::from_millis(read.number("OTEL_BSP_SCHEDULE_DELAY", 5000, 3_600_000)?),
            interval: Duration::from_millis(read.number("OTEL_METRIC_EXPORT_INTERVAL", 60_000, 86_400_000)?),
            ratio: read.ratio()?,
            names,
            content: read.truth("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")?,
        }))
    }
}

struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    /// Empty ones count as not set.
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn truth(&self, name: &str) -> Result<bool, VariableError> {
        match self.get(name).map(|value| value.to_ascii_lowercase()).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(wrong(name, "has to be `true` or `false`")),
        }
    }

    fn number(&self, name: &str, default: u64, most: u64) -> Result<u64, VariableError> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| wrong(name, format!("has to be a whole number from 1 to {most}")))
    }

    /// The variable of a kind of telemetry, or that of all kinds, with its name.
    fn of_signal(&self, signal: &str, name: &str) -> Option<(String, String)> {
        let names = [format!("OTEL_EXPORTER_OTLP_{signal}_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")];
        names.into_iter().find_map(|name| Some((self.get(&name)?, name)))
    }

    /// Where a kind of telemetry is sent, if it is.
    fn endpoint(&self, signal: &str) -> Result<Option<Endpoint>, VariableError> {
        let exporter = format!("OTEL_{signal}_EXPORTER");
        let wanted = match self.get(&exporter).as_deref() {
            None => None,
            Some("otlp") => Some(LOCAL),
            Some("none") => return Ok(None),
            Some("prometheus") if signal == "METRICS" => {
                let reason =
                    "cannot be `prometheus`: `hotcell serve` always has that, at `/metrics`; use `otlp` or `none`";
                return Err(wrong(&exporter, reason));
            }
            Some(_) => return Err(wrong(&exporter, "has to be `otlp` or `none`")),
        };
        let path = format!("v1/{}", signal.to_ascii_lowercase());
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
        let general = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let (name, text) = match (self.get(&own), self.get(general), wanted) {
            (Some(url), _, _) => (&*own, url),
            (None, Some(base), _) => (general, format!("{}/{path}", base.trim_end_matches('/'))),
            (None, None, Some(local)) => (&*exporter, format!("{local}/{path}")),
            (None, None, None) => return Ok(None),
        };
        let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| wrong(name, "has to be an address that begins with `http://` or `https://`"))?;
        if let Some((protocol, name)) = self.of_signal(signal, "PROTOCOL")
            && protocol != "http/protobuf"
        {
            return Err(wrong(
                &name,
                "has to be `http/protobuf`, which every collector takes; `grpc` and `http/json` are not supported",
            ));
        }
        if let Some((compression, name)) = self.of_signal(signal, "COMPRESSION")
            && compression != "none"
        {
            return Err(wrong(&name, "has to be `none`: compression is not supported"));
        }
        let timeout = match self.of_signal(signal, "TIMEOUT") {
            Some((_, name)) => Duration::from_millis(self.number(&name, 10_000, 600_000)?),
            None => Duration::from_secs(10),
        };
        let headers = match self.of_signal(signal, "HEADERS") {
            Some((text, name)) => headers(&text).ok_or_else(|| wrong(&name, "has to be `NAME=VALUE,NAME=VALUE`"))?,
            None => HeaderMap::new(),
        };
        let file = |name: &str| self.of_signal(signal, name).map(|(path, _)| path.into());
        let tls = TlsFiles {
            ca_file: file("CERTIFICATE"),
            client_certificate: file("CLIENT_CERTIFICATE"),
            client_key: file("CLIENT_KEY"),
        };
        Ok(Some(Endpoint { url, headers, timeout, tls }))
    }

    /// Which part of all traces is sent. No trace of ours begins elsewhere, so what follows a parent follows none.
    fn ratio(&self) -> Result<f64, VariableError> {
        let (sampler, argument) = ("OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG");
        match self.get(sampler).as_deref() {
            None | Some("always_on" | "parentbased_always_on") => Ok(1.0),
            Some("always_off" | "parentbased_always_off") => Ok(0.0),
            Some("traceidratio" | "parentbased_traceidratio") => {
                let Some(text) = self.get(argument) else { return Ok(1.0) };
                let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
                ratio.ok_or_else(|| wrong(argument, "has to be a number from 0 to 1"))
            }
            Some(_) => Err(wrong(
                sampler,
                "has to be `always_on`, `always_off`, `traceidratio`, or one of them after `parentbased_`",
            )),
        }
    }

    fn resource(&self) -> Result<Vec<(String, String)>, VariableError> {
        let name = "OTEL_RESOURCE_ATTRIBUTES";
        let mut given = match self.get(name) {
            Some(text) => pairs(&text).ok_or_else(|| wrong(name, "has to be `NAME=VALUE,NAME=VALUE`"))?,
            None => Vec::new(),
        };
        let version = env!("CARGO_PKG_VERSION");
        if let Some(service) = self.get("OTEL_SERVICE_NAME") {
            given.retain(|(name, _)| name != "service.name");
            given.push(("service.name".to_owned(), service));
        }
        for (name, value) in [
            ("service.name", "hotcell"),
            ("service.version", version),
            ("telemetry.sdk.name", "hotcell"),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.version", version),
        ] {
            if !given.iter().any(|(known, _)| known == name) {
                given.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(given)
    }
}

/// Names and values, where values may be percent-encoded.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim().to_owned(), decoded(value.trim())?)).filter(|(name, _)| !name.is_empty())
    };
    text.split(',').filter(|pair| !pair.trim().is_empty()).map(pair).collect()
}

fn headers(text: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs(text)? {
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name).ok()?, value);
    }
    Some(headers)
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<OtlpSettings>, VariableError> {
        let lookup =
            |wanted: &str| variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned());
        OtlpSettings::from_environment(&lookup)
    }

    #[test]
    fn nothing_is_sent_unless_a_variable_says_where() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("OTEL_SERVICE_NAME", "mine")]), Ok(None));
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/base/");
        assert_eq!(read(&[endpoint, ("OTEL_SDK_DISABLED", "true")]), Ok(None));
        let settings = read(&[endpoint, ("OTEL_METRICS_EXPORTER", "none")]).expect("read").expect("sent");
        assert_eq!(settings.traces.expect("sent").url.as_str(), "http://collector:4318/base/v1/traces");
        assert_eq!(settings.metrics, None);
        assert!(!settings.content);
        let settings = read(&[("OTEL_TRACES_EXPORTER", "otlp")]).expect("read").expect("sent");
        assert_eq!(settings.traces.expect("sent").url.as_str(), "http://localhost:4318/v1/traces");
        let own = [endpoint, ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://other/m")];
        assert_eq!(read(&own).expect("read").expect("sent").metrics.expect("sent").url.as_str(), "https://other/m");
    }

    #[test]
    fn headers_and_attributes_are_decoded_and_keys_are_not_shown() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s%20ecret, x=1"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=prod"),
            ("OTEL_SERVICE_NAME", "mine"),
        ]);
        let settings = settings.expect("read").expect("sent");
        assert_eq!(settings.traces.as_ref().expect("sent").headers["api-key"], "s ecret");
        assert!(!format!("{settings:?}").contains("ecret"), "{settings:?}");
        let resource = |name: &str| settings.resource.iter().filter(|(known, _)| known == name).collect::<Vec<_>>();
        assert_eq!(resource("service.name"), [&("service.name".to_owned(), "mine".to_owned())]);
        assert_eq!(resource("deployment.environment.name").len(), 1);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://c"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "no value"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=c"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=%zz"),
            ("OTEL_RESOURCE_ATTRIBUTES", "=x"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_METRICS_EXPORTER", "prometheus"),
            ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
            ("OTEL_BSP_SCHEDULE_DELAY", "-1"),
            ("OTEL_SDK_DISABLED", "perhaps"),
            ("HOTCELL_TELEMETRY_NAMES", "mine"),
        ] {
            let endpoint = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c/t");
            let error = read(&[endpoint, ("OTEL_TRACES_SAMPLER_ARG", "2"), (name, value)]).expect_err(name);
            assert_eq!(error.variable, name, "{value}");
        }
        let ratio = [("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "2")];
        let error = read(&[ratio[0], ratio[1], ("OTEL_TRACES_EXPORTER", "otlp")]).expect_err("no ratio");
        assert_eq!(error.variable, "OTEL_TRACES_SAMPLER_ARG");
    }
}
