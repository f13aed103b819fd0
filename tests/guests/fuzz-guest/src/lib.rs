//! Calls the host as the bytes of its arguments say: which function, and with which pointers and lengths, which may point
//! anywhere. It goes past the generated bindings, because those only ever hand over what is well formed.

use std::fs;
use std::path::Path;

use contract::exports::hotcell::plugin::call_tool::{Error, Guest, Json};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{Fields, Method, OutgoingBody, OutgoingRequest, RequestOptions, Scheme};

mod contract {
    // `generate_all` keeps the imports although nothing here uses their bindings.
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "tools",
    });
}

#[link(wasm_import_module = "hotcell:plugin/log@0.2.0")]
unsafe extern "C" {
    fn log(level: u32, text: u32, length: u32);
}

#[link(wasm_import_module = "hotcell:plugin/progress@0.2.0")]
unsafe extern "C" {
    fn report(done: u64, is_some: u32, total: u64, text: u32, length: u32);
}

#[link(wasm_import_module = "hotcell:plugin/config@0.2.0")]
unsafe extern "C" {
    #[link_name = "get"]
    fn config(key: u32, length: u32, into: u32);
}

#[link(wasm_import_module = "hotcell:plugin/kv@0.2.0")]
unsafe extern "C" {
    #[link_name = "get"]
    fn kv_get(key: u32, length: u32, into: u32);
    #[link_name = "set"]
    fn kv_set(key: u32, length: u32, value: u32, bytes: u32, into: u32);
    #[link_name = "delete"]
    fn kv_delete(key: u32, length: u32, into: u32);
    #[link_name = "keys"]
    fn kv_keys(prefix: u32, length: u32, into: u32);
}

#[link(wasm_import_module = "hotcell:plugin/secrets@0.2.0")]
unsafe extern "C" {
    fn placeholder(name: u32, length: u32, into: u32);
}

#[link(wasm_import_module = "hotcell:plugin/llm@0.2.0")]
unsafe extern "C" {
    fn complete(request: u32, length: u32, into: u32);
}

#[link(wasm_import_module = "hotcell:plugin/other-tools@0.2.0")]
unsafe extern "C" {
    #[link_name = "call"]
    fn call_other(name: u32, length: u32, arguments: u32, bytes: u32, into: u32);
}

#[link(wasm_import_module = "hotcell:plugin/ask@0.2.0")]
unsafe extern "C" {
    fn ask(question: u32, length: u32, into: u32);
}

/// What is left of the instructions.
struct Bytes<'a> {
    all: &'a [u8],
    at: usize,
    /// Where the host writes results; large enough for each of them
    results: u32,
}

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.all.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn number(&mut self) -> u32 {
        (0..4).fold(0, |number, _| (number << 8) | u32::from(self.byte().unwrap_or(0)))
    }

    /// A text: mostly one among the instructions, now and then anywhere.
    fn text(&mut self) -> (u32, u32) {
        match self.byte().unwrap_or(0) {
            0xff => (self.number(), self.number()),
            0xfe => (self.all.as_ptr() as u32, self.number()),
            length => {
                let from = self.at.min(self.all.len());
                let to = (from + usize::from(length)).min(self.all.len());
                self.at = to;
                (self.all.as_ptr() as u32 + from as u32, (to - from) as u32)
            }
        }
    }

    /// Where a result goes: mostly to a place for it, now and then anywhere.
    fn into(&mut self) -> u32 {
        if self.byte() == Some(0xff) { self.number() } else { self.results }
    }

    /// A path, as files are named.
    fn path(&mut self) -> String {
        let (from, length) = self.text();
        let from = (from as usize).wrapping_sub(self.all.as_ptr() as usize);
        let bytes = self.all.get(from..from.saturating_add(length as usize)).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }
}

struct FuzzGuest;

impl Guest for FuzzGuest {
    fn call(_: String, arguments: Json) -> Result<Json, Error> {
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
        let all: Vec<u8> = arguments
            .as_bytes()
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |sum, byte| sum << 4 | digit(*byte)))
            .collect();
        let results = vec![0_u64; 16];
        let mut bytes = Bytes { all: &all, at: 0, results: results.as_ptr() as u32 };
        while let Some(what) = bytes.byte() {
            step(what, &mut bytes);
        }
        Ok(bytes.path())
    }
}

fn step(what: u8, bytes: &mut Bytes<'_>) {
    let number = u64::from(bytes.byte().unwrap_or(0));
    let (text, length) = bytes.text();
    // SAFETY: none. The pointers are wrong on purpose: the host has to refuse what lies outside of the memory, and what it
    // writes into the memory of this guest is the guest's own loss.
    unsafe {
        match what % 19 {
            0 => log(number as u32, text, length),
            1 => report(number, number as u32 & 3, number << 32, text, length),
            2 => config(text, length, bytes.into()),
            3 => kv_get(text, length, bytes.into()),
            4 => {
                let (value, size) = bytes.text();
                kv_set(text, length, value, size, bytes.into());
            }
            5 => kv_delete(text, length, bytes.into()),
            6 => kv_keys(text, length, bytes.into()),
            7 => placeholder(text, length, bytes.into()),
            8 => complete(text, length, bytes.into()),
            9 => {
                let (arguments, size) = bytes.text();
                call_other(text, length, arguments, size, bytes.into());
            }
            10 => ask(text, length, bytes.into()),
            11 => drop(fs::read(bytes.path())),
            12 => drop(fs::write(bytes.path(), b"written")),
            13 => drop(fs::create_dir_all(Path::new("/open").join(bytes.path()))),
            14 => drop(fs::rename(bytes.path(), Path::new("/open").join(bytes.path()))),
            15 => drop(fs::remove_dir_all(bytes.path())),
            16 => drop(std::env::var(bytes.path())),
            17 => drop(send(number, bytes)),
            _ => drop(std::net::TcpStream::connect(("127.0.0.1", number as u16))),
        }
    }
}

/// A request whose parts are texts of the instructions. What was asked for is handed over well formed: its bindings are part of
/// what the pointers above go past, and the host cannot tell them apart.
fn send(number: u64, bytes: &mut Bytes<'_>) -> Option<()> {
    let fields = Fields::new();
    for _ in 0..number % 4 {
        let _ = fields.append(&bytes.path(), bytes.path().as_bytes());
    }
    let fields = if number & 4 == 0 { fields } else { fields.clone() };
    let request = OutgoingRequest::new(fields);
    let method = match number & 3 {
        0 => Method::Get,
        1 => Method::Post,
        _ => Method::Other(bytes.path()),
    };
    request.set_method(&method).ok()?;
    let scheme = if number & 8 == 0 { Scheme::Http } else { Scheme::Other(bytes.path()) };
    request.set_scheme(Some(&scheme)).ok()?;
    let server = if number & 16 == 0 { "granted.example".to_owned() } else { bytes.path() };
    request.set_authority(Some(&server)).ok()?;
    request.set_path_with_query(Some(&bytes.path())).ok()?;
    let body = request.body().ok()?;
    if number & 32 == 0 {
        let stream = body.write().ok()?;
        let _ = stream.blocking_write_and_flush(bytes.path().as_bytes());
    }
    if number & 64 == 0 {
        OutgoingBody::finish(body, None).ok()?;
    }
    let options = RequestOptions::new();
    let _ = options.set_first_byte_timeout(Some(number * 1_000_000));
    let response = outgoing_handler::handle(request, Some(options)).ok()?;
    response.subscribe().block();
    let response = response.get()?.ok()?.ok()?;
    let _ = (response.status(), response.headers().entries());
    let body = response.consume().ok()?;
    let _ = body.stream().ok()?.blocking_read(number * 100);
    Some(())
}

contract::export!(FuzzGuest with_types_in contract);
