//! What of a reply is refused before the provider library builds anything of it.
//!
//! The library makes room for as many parts as the number of one says, looks through all calls for each piece of one, and reads JSON
//! that lies as a text in an object whose key is a name of the JSON library, as deeply as it is nested in itself. Whoever answers in the
//! place of a provider could so end this process, keep it busy, or have it write what it cannot read again.

use std::{cell::Cell, fmt};

use rig_core::{
    completion::CompletionRequest,
    error::{EncodeError, ProviderError},
    operation::Completion,
    wire::{
        Decoder, Descriptor, Encoded, Flow, Mode, Out, Wire, WireEvent, WireFrame,
        document::{Reassemble, Serves},
    },
};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The largest number that a part of a reply may have.
const LARGEST_INDEX: u64 = 1023;
/// How many pieces of calls, and items of a response, may come that do not say which one they are.
const MOST_LOOSE: u32 = 16 << 10;
/// What the JSON library's own names begin with.
const PRIVATE: &str = "$serde_json::private::";

/// The library's wire, for replies within bounds.
#[derive(Debug, Clone)]
pub(super) struct Bounded<W>(pub(super) W);

/// The decoder of such a wire.
pub(super) struct BoundedDecoder<D> {
    decoder: D,
    loose: Cell<u32>,
}

/// What puts a streamed reply of such a wire together. It sees each event before the decoder does.
#[derive(Default)]
pub(super) struct BoundedReassembler<R> {
    reassembler: R,
    loose: u32,
    is_refused: bool,
}

impl<W> Wire for Bounded<W>
where
    W: Wire<Op = Completion, Payload = Encoded, Frame = WireFrame>,
{
    type Op = Completion;
    type Payload = Encoded;
    type Frame = WireFrame;
    type Decoder<'id> = BoundedDecoder<W::Decoder<'id>>;
    type Reassembler = BoundedReassembler<W::Reassembler>;

    fn describe(&self) -> Descriptor<'_> {
        self.0.describe()
    }

    fn encode(&self, request: CompletionRequest, mode: Mode) -> Result<Encoded, EncodeError> {
        self.0.encode(request, mode)
    }

    fn decoder<'id>(&self) -> Self::Decoder<'id> {
        BoundedDecoder { decoder: self.0.decoder(), loose: Cell::new(0) }
    }

    fn reassembler(&self) -> Self::Reassembler {
        BoundedReassembler { reassembler: self.0.reassembler(), loose: 0, is_refused: false }
    }
}

impl<'id, D> Decoder<'id, Completion, WireFrame> for BoundedDecoder<D>
where
    D: Decoder<'id, Completion, WireFrame>,
{
    type Event = D::Event;

    fn classify(&self, frame: WireFrame) -> WireEvent<D::Event> {
        let mut loose = self.loose.get();
        let looked_at = look_at(&frame.as_str(), &mut loose);
        self.loose.set(loose);
        match looked_at {
            Ok(()) => self.decoder.classify(frame),
            Err(error) => WireEvent::Corrupt(error),
        }
    }

    fn decode(&mut self, event: D::Event, out: Out<'id, Completion>) -> Result<Flow, ProviderError> {
        self.decoder.decode(event, out)
    }

    fn eof(&mut self, out: Out<'id, Completion>) -> Result<Flow, ProviderError> {
        self.decoder.eof(out)
    }
}

impl<R: Reassemble<WireFrame>> Reassemble<WireFrame> for BoundedReassembler<R> {
    fn absorb(&mut self, frame: &WireFrame) {
        self.is_refused = self.is_refused || look_at(&frame.as_str(), &mut self.loose).is_err();
        if !self.is_refused {
            self.reassembler.absorb(frame);
        }
    }

    fn finish(self) -> Value {
        self.reassembler.finish()
    }
}

impl<R: Serves<Completion>> Serves<Completion> for BoundedReassembler<R> {}

/// Looks at one event of a reply, or a whole one. `loose` counts over all events of a reply.
///
/// # Errors
///
/// When it is out of bounds. What is no JSON is for its reader to refuse.
pub(super) fn look_at(json: &str, loose: &mut u32) -> Result<(), serde_json::Error> {
    let mut seen = Seen { loose: *loose, is_refused: false };
    let look = Look { seen: &mut seen, place: Place::Whole };
    let looked_at = look.deserialize(&mut serde_json::Deserializer::from_str(json));
    *loose = seen.loose;
    match looked_at {
        Err(error) if seen.is_refused => Err(error),
        _ => Ok(()),
    }
}

/// Reads what a server answered as a whole, within bounds.
///
/// # Errors
///
/// When it is no JSON, or out of bounds.
pub(super) fn read(json: &[u8]) -> Result<Value, serde_json::Error> {
    // What is no text is no JSON either.
    look_at(std::str::from_utf8(json).unwrap_or_default(), &mut 0)?;
    serde_json::from_slice(json)
}

/// What was seen so far.
struct Seen {
    loose: u32,
    is_refused: bool,
}

impl Seen {
    /// One more piece comes that does not say of what.
    fn count_loose<E: de::Error>(&mut self) -> Result<(), E> {
        self.loose = self.loose.saturating_add(1);
        match self.loose > MOST_LOOSE {
            true => Err(self.refuse(&format!("more than {MOST_LOOSE} pieces have no number"))),
            false => Ok(()),
        }
    }

    fn refuse<E: de::Error>(&mut self, reason: &str) -> E {
        self.is_refused = true;
        E::custom(reason)
    }
}

/// Where in a reply a value stands. An argument of a tool may have whatever name it likes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Whole,
    Choices,
    Choice,
    Message,
    Response,
    Calls,
    Call,
    Item,
    Index,
    Elsewhere,
}

impl Place {
    fn of_entry(self, key: &str) -> Self {
        match (self, key) {
            (Place::Whole, "choices") => Place::Choices,
            (Place::Choice, "delta" | "message") => Place::Message,
            (Place::Whole, "response") => Place::Response,
            (Place::Whole, "item") => Place::Item,
            (Place::Message, "tool_calls") | (Place::Whole | Place::Response, "output") => Place::Calls,
            (Place::Whole | Place::Call, "index") | (Place::Whole, "output_index") => Place::Index,
            _ => Place::Elsewhere,
        }
    }

    fn of_item(self) -> Self {
        match self {
            Place::Choices => Place::Choice,
            Place::Calls => Place::Call,
            _ => Place::Elsewhere,
        }
    }
}

/// Looks at a value, and says whether it is the number of a part, or an object with one.
struct Look<'a> {
    seen: &'a mut Seen,
    place: Place,
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<bool, E> {
        let is_index = self.place == Place::Index;
        match is_index && number > LARGEST_INDEX {
            true => Err(self.seen.refuse(&format!("a part has a number above {LARGEST_INDEX}"))),
            false => Ok(is_index),
        }
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let Look { seen, place } = self;
        let of_item = place.of_item();
        while let Some(has_index) = items.next_element_seed(Look { seen: &mut *seen, place: of_item })? {
            if of_item == Place::Call && !has_index {
                seen.count_loose::<A::Error>()?;
            }
        }
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<bool, A::Error> {
        let Look { seen, place } = self;
        let (mut has_index, mut has_item) = (false, false);
        while let Some(key) = entries.next_key::<String>()? {
            if key.starts_with(PRIVATE) {
                return Err(seen.refuse("a key has a name of the JSON library's own"));
            }
            let of_entry = place.of_entry(&key);
            let said = entries.next_value_seed(Look { seen: &mut *seen, place: of_entry })?;
            // Of a key that is there twice the last value counts.
            has_index = if of_entry == Place::Index { said } else { has_index };
            has_item |= of_entry == Place::Item;
        }
        if has_item && !has_index {
            seen.count_loose::<A::Error>()?;
        }
        Ok(has_index)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(json: &str) -> String {
        look_at(json, &mut 0).expect_err(json).to_string()
    }

    #[test]
    fn a_part_has_a_small_number() {
        for ending in ["1024", "100000000000", "18446744073709551615"] {
            for event in [
                format!(r#"{{"type":"content_block_start","index":{ending},"content_block":{{"type":"text"}}}}"#),
                format!(r#"{{"type":"content_block_start","inde\u0078":{ending}}}"#),
                format!(r#"{{"type":"response.output_item.added","output_index":{ending}}}"#),
                format!(
                    r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0}},{{"index":{ending}}}]}}}}]}}"#
                ),
            ] {
                assert!(refused(&event).contains("above 1023"), "{event}");
            }
        }
        for event in [
            r#"{"type":"content_block_start","index":1023}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"index":5000}}}]}}]}"#,
            r#"{"content":[{"type":"tool_use","input":{"tool_calls":[{"index":5000}],"index":5000}}]}"#,
            r#"{"choices":[{"message":{"tool_calls":[{"function":{"arguments":{"index":5000}}}]}}]}"#,
            "[DONE]",
            "<html>",
        ] {
            assert!(look_at(event, &mut 0).is_ok(), "{event}");
        }
    }

    #[test]
    fn pieces_of_calls_without_a_number_are_counted_over_all_events() {
        let calls =
            |call: Value| json!({ "choices": [{ "delta": { "tool_calls": [call.clone(), call] } }] }).to_string();
        let mut loose = 0;
        for _ in 0..MOST_LOOSE / 2 {
            look_at(&calls(json!({ "index": null, "id": "a" })), &mut loose).expect("few");
            look_at(&calls(json!({ "index": 1, "id": "a" })), &mut loose).expect("it has a number");
        }
        let error = look_at(&calls(json!({ "id": "a" })), &mut loose).expect_err("one more");
        assert!(error.to_string().contains("have no number"), "{error}");
        let many = |text: &str| vec![text; MOST_LOOSE as usize + 1].join(",");
        for whole in
            [format!(r#"{{"output":[{}]}}"#, many("{}")), format!(r#"{{"response":{{"output":[{}]}}}}"#, many("1"))]
        {
            assert!(refused(&whole).contains("have no number"));
        }
        let (added, mut loose) = (r#"{"type":"response.output_item.added","item":{}}"#, MOST_LOOSE);
        assert!(look_at(added, &mut loose).is_err());
        assert!(look_at(r#"{"item":{},"output_index":0}"#, &mut loose.min(MOST_LOOSE)).is_ok());
    }

    #[test]
    fn what_is_within_bounds_is_read_as_it_is() {
        assert_eq!(read(br#"{"index":[1]}"#).expect("JSON"), json!({ "index": [1] }));
        for none in [&b"{"[..], b"", b"\"\xff\""] {
            assert!(read(none).is_err(), "{none:?}");
        }
    }

    #[test]
    fn no_json_lies_in_a_text() {
        for event in [
            r#"{"$serde_json::private::RawValue":"{\"index\":100000000000}"}"#,
            r#"{"choices":[{"delta":{"reasoning_details":[{"a":{"\u0024serde_json::private::RawValue":"[]"}}]}}]}"#,
        ] {
            assert!(refused(event).contains("library's own"), "{event}");
            assert!(read(event.as_bytes()).is_err(), "{event}");
        }
    }
}
