//! OTLP: traces and metrics for a collector, as protobuf over HTTP.

pub(crate) mod encode;
mod message;
pub(crate) mod sender;
pub(crate) mod settings;
