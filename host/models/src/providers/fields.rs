//! Requests of the provider library with some fields of our own.

use rig_core::{
    completion::CompletionRequest,
    error::EncodeError,
    operation::Completion,
    wire::{Body, Descriptor, Encoded, Mode, Wire, WireFrame},
};
use serde_json::{Map, Value, json};

use super::settings::Protocol;
use crate::Request;

/// The library's wire with these fields of the body replaced.
#[derive(Debug, Clone)]
pub(super) struct WithFields<W> {
    wire: W,
    fields: Map<String, Value>,
}

impl<W> WithFields<W> {
    pub(super) fn new(wire: W, fields: Map<String, Value>) -> Self {
        Self { wire, fields }
    }
}

/// The settings of a request that the library does not send for us; those that are `None` are not sent.
pub(super) fn settings(request: &Request, protocol: Protocol) -> Map<String, Value> {
    let mut fields = request.more.clone();
    let temperature = temperature(request, protocol);
    for (name, setting) in [("temperature", temperature), ("top_p", request.top_p)] {
        if let Some(value) = setting {
            fields.insert(name.to_owned(), json!(value));
        }
    }
    fields
}

/// The temperature of a request; none where a model that thinks takes only its own.
pub(super) fn temperature(request: &Request, protocol: Protocol) -> Option<f64> {
    let is_fixed = request.reasoning.is_some() && matches!(protocol, Protocol::OpenAi | Protocol::Anthropic);
    request.temperature.filter(|_| !is_fixed)
}

impl<W> Wire for WithFields<W>
where
    W: Wire<Op = Completion, Payload = Encoded, Frame = WireFrame>,
{
    type Op = Completion;
    type Payload = Encoded;
    type Frame = WireFrame;
    type Decoder<'id> = W::Decoder<'id>;
    type Reassembler = W::Reassembler;

    fn describe(&self) -> Descriptor<'_> {
        self.wire.describe()
    }

    fn encode(&self, request: CompletionRequest, mode: Mode) -> Result<Encoded, EncodeError> {
        let mut encoded = self.wire.encode(request, mode)?;
        let Body::Bytes(bytes) = encoded.request.body() else {
            return Err(EncodeError::request("the body of a request to a model is not JSON"));
        };
        let mut body: Map<String, Value> = serde_json::from_slice(bytes)?;
        body.extend(self.fields.clone());
        *encoded.request.body_mut() = Body::Bytes(serde_json::to_vec(&body)?);
        Ok(encoded)
    }

    fn decoder<'id>(&self) -> Self::Decoder<'id> {
        self.wire.decoder()
    }

    fn reassembler(&self) -> Self::Reassembler {
        self.wire.reassembler()
    }
}
