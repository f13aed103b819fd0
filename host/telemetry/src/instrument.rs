//! What something that is measured is made of. What there is, is in the table of [`crate::names`].

/// What an instrument does with what it is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Adds it up
    Counter,
    /// Takes the last one
    Gauge,
    /// Counts how many are not above each of these
    Histogram(&'static [f64]),
}

/// A label: its name in Prometheus text, and over OTLP.
pub(crate) type Label = (&'static str, &'static str);

/// Something that is measured.
#[derive(Debug)]
pub(crate) struct Instrument {
    pub(crate) name: &'static str,
    pub(crate) otlp: &'static str,
    /// The name in the AgentLoom document
    pub(crate) agentloom: Option<&'static str>,
    pub(crate) help: &'static str,
    /// As UCUM has it
    pub(crate) unit: &'static str,
    pub(crate) kind: Kind,
    /// What a number that is kept has to be multiplied with
    pub(crate) scale: f64,
    pub(crate) labels: &'static [Label],
    /// Attributes that are always the same, over OTLP
    pub(crate) always: &'static [(&'static str, &'static str)],
}
