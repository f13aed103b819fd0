//! A collector of OTLP, and what it is sent, read without knowing what is in it: numbers of fields and what they have.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use hotcell_runtime::CancellationToken;
use http::{HeaderMap, StatusCode};
use tokio::net::TcpListener;

/// The fields of a message of protobuf.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<(u64, Field)>);

#[derive(Clone, Debug)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Message {
    pub(crate) fn read(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().expect("8 bytes"))),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).expect("a length");
                    Field::Bytes(take(&mut bytes, length).to_vec())
                }
                5 => Field::Number(u32::from_le_bytes(take(&mut bytes, 4).try_into().expect("4 bytes")).into()),
                other => panic!("there is no field of the type {other}"),
            };
            fields.push((key >> 3, field));
        }
        Message(fields)
    }

    pub(crate) fn bytes(&self, number: u64) -> Vec<u8> {
        self.all(number).next().unwrap_or_default()
    }

    pub(crate) fn text(&self, number: u64) -> String {
        String::from_utf8(self.bytes(number)).expect("text")
    }

    pub(crate) fn number(&self, number: u64) -> u64 {
        let found = self.0.iter().find_map(|(known, field)| match field {
            Field::Number(value) if *known == number => Some(*value),
            _ => None,
        });
        found.unwrap_or(0)
    }

    /// The messages that are at the end of these fields, one within the other.
    pub(crate) fn at(&self, numbers: &[u64]) -> Vec<Message> {
        let Some((first, rest)) = numbers.split_first() else { return vec![self.clone()] };
        self.all(*first).flat_map(|bytes| Message::read(&bytes).at(rest)).collect()
    }

    fn all(&self, number: u64) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.0.iter().filter_map(move |(known, field)| match field {
            Field::Bytes(bytes) if *known == number => Some(bytes.clone()),
            _ => None,
        })
    }

    /// The attribute of this name, where attributes have this number: a text, or a number as text.
    pub(crate) fn attribute(&self, number: u64, name: &str) -> Option<String> {
        let pair = self.at(&[number]).into_iter().find(|pair| pair.text(1) == name)?;
        let value = pair.at(&[2]).pop()?;
        Some(match value.bytes(1) {
            text if !text.is_empty() => String::from_utf8(text).expect("text"),
            _ if value.0.iter().any(|(number, _)| *number == 4) => f64::from_bits(value.number(4)).to_string(),
            _ => value.number(3).max(value.number(2)).to_string(),
        })
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = take(bytes, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// A collector.
#[derive(Clone, Default)]
pub(crate) struct Collector {
    got: Arc<Mutex<Vec<(String, HeaderMap, Bytes)>>>,
    /// How many requests it refuses for now before it takes one
    refuses: Arc<Mutex<usize>>,
    pub(crate) url: String,
}

impl Collector {
    /// One that is said to be there.
    pub(crate) fn at(url: String) -> Self {
        Collector { url, ..Collector::default() }
    }

    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let collector = Collector::at(url);
        let of = |signal: &'static str| {
            post(move |state: State<Collector>, headers: HeaderMap, body: Bytes| async move {
                take_in(signal, &state.0, headers, body)
            })
        };
        let router = Router::new()
            .route("/v1/traces", of("traces"))
            .route("/v1/metrics", of("metrics"))
            .with_state(collector.clone());
        let limits = hotcell_http::Limits::default();
        tokio::spawn(hotcell_http::serve(listener, router, limits, CancellationToken::new()));
        collector
    }

    pub(crate) fn refuse(&self, count: usize) {
        *self.refuses.lock().unwrap_or_else(PoisonError::into_inner) = count;
    }

    /// All bytes that it got, and their headers.
    pub(crate) fn everything(&self) -> Vec<(String, HeaderMap, Bytes)> {
        self.got.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn of(&self, signal: &str) -> Vec<Message> {
        self.everything().iter().filter(|(of, ..)| of == signal).map(|(_, _, body)| Message::read(body)).collect()
    }

    /// All spans that it got.
    pub(crate) fn spans(&self) -> Vec<Message> {
        self.of("traces").iter().flat_map(|request| request.at(&[1, 2, 2])).collect()
    }

    /// The metrics that it got last.
    pub(crate) fn metrics(&self) -> Vec<Message> {
        self.of("metrics").last().map(|request| request.at(&[1, 2, 2])).unwrap_or_default()
    }
}

fn take_in(signal: &str, collector: &Collector, headers: HeaderMap, body: Bytes) -> StatusCode {
    let mut refuses = collector.refuses.lock().unwrap_or_else(PoisonError::into_inner);
    if *refuses > 0 {
        *refuses -= 1;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    collector.got.lock().unwrap_or_else(PoisonError::into_inner).push((signal.to_owned(), headers, body));
    StatusCode::OK
}
