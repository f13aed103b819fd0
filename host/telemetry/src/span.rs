//! Spans: what took how long within what.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

/// Bytes of a text that are kept: of a name, an error, what a tool was called with.
const MOST_BYTES: usize = 8192;

/// Names a trace.
pub(crate) type TraceId = [u8; 16];
/// Names a span within all.
pub(crate) type SpanId = [u8; 8];

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Attribute {
    Text(Cow<'static, str>),
    Number(i64),
    Decimal(f64),
    Truth(bool),
    List(Vec<String>),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Attribute::Text(short(text).into_owned().into())
    }
}

impl From<u64> for Attribute {
    fn from(number: u64) -> Self {
        Attribute::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Attributes with their names.
pub(crate) type Attributes = Vec<(&'static str, Attribute)>;

/// What a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Work of this process
    Internal,
    /// A request to somebody else
    Client,
}

/// Something that took time and is over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) trace: TraceId,
    pub(crate) id: SpanId,
    pub(crate) parent: Option<SpanId>,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) begun: SystemTime,
    pub(crate) ended: SystemTime,
    pub(crate) attributes: Attributes,
    /// What happened meanwhile, at a moment
    pub(crate) moments: Vec<(SystemTime, &'static str)>,
    pub(crate) failed: bool,
    /// What is said of the failure
    pub(crate) message: Option<String>,
}

impl Span {
    /// A span that is over now and took so long.
    pub(crate) fn over(trace: TraceId, parent: SpanId, name: String, took: Duration) -> Self {
        let ended = SystemTime::now();
        Span {
            trace,
            id: fresh(),
            parent: Some(parent),
            name,
            kind: Kind::Internal,
            begun: ended.checked_sub(took).unwrap_or(ended),
            ended,
            attributes: Vec::new(),
            moments: Vec::new(),
            failed: false,
            message: None,
        }
    }
}

/// The trace of a run: the same in every process that works on it.
pub(crate) fn trace_of(run: &str) -> TraceId {
    first(&Sha256::digest(format!("hotcell trace of run {run}")))
}

/// The first span of a run, which those of later processes are within.
pub(crate) fn root_of(run: &str) -> SpanId {
    first(&Sha256::digest(format!("hotcell first span of run {run}")))
}

fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut taken = [0; N];
    taken.copy_from_slice(&bytes[..N]);
    taken
}

/// A name that no other span has.
pub(crate) fn fresh() -> SpanId {
    // Zero stands for none.
    fastrand::u64(1..).to_be_bytes()
}

/// The beginning of a text.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST_BYTES {
        return text.into();
    }
    let end = text.floor_char_boundary(MOST_BYTES);
    format!("{}…", &text[..end]).into()
}
