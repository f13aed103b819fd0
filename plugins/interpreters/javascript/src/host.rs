//! The native functions that the prelude builds Node's surface on. They are reachable from the prelude only.
//!
//! Failures of the file system are answers (`{ error: "ENOENT" }`), so that the prelude can throw what Node throws.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use boa_engine::builtins::promise::PromiseState;
use boa_engine::object::ObjectInitializer;
use boa_engine::object::builtins::{AlignedVec, JsArray, JsArrayBuffer, JsFunction, JsPromise, JsUint8Array};
use boa_engine::property::Attribute;
use boa_engine::{
    Context, JsArgs as _, JsNativeError, JsObject, JsResult, JsString, JsValue, NativeFunction, Source, js_string,
};
use digest::{Digest as _, DynDigest, KeyInit as _, Mac as _};
use hmac::Hmac;
use hotcell_guest_output::{self as output, Stream};
use wasip2::clocks::monotonic_clock;
use wasip2::random::random::get_random_bytes;

use crate::bindings::hotcell::cell::http;
use crate::event_loop::EventLoop;
use crate::places::BEFORE;
use crate::text::{self, Encoding};
use crate::typescript;

type Native = fn(&JsValue, &[JsValue], &mut Context) -> JsResult<JsValue>;

const FUNCTIONS: [(&str, Native, usize); 25] = [
    ("write", write, 2),
    ("exit", exit, 1),
    ("monotonic", monotonic, 0),
    ("memoryBytes", memory_bytes, 0),
    ("randomBytes", random_bytes, 1),
    ("setTimer", set_timer, 3),
    ("clearTimer", clear_timer, 1),
    ("unrefTimer", release_timer, 1),
    ("startRequest", start_request, 5),
    ("cancelRequest", cancel_request, 1),
    ("promiseState", promise_state, 1),
    ("encode", encode, 2),
    ("decode", decode, 3),
    ("digest", digest, 3),
    ("parseUrl", parse_url, 2),
    ("changeUrl", change_url, 3),
    ("compile", compile, 2),
    ("readFile", read_file, 1),
    ("writeFile", write_file, 3),
    ("stat", stat, 2),
    ("readDirectory", read_directory, 1),
    ("makeDirectory", make_directory, 2),
    ("remove", remove, 2),
    ("rename", rename, 2),
    ("flush", flush, 0),
];

/// The object that carries all of them.
pub(crate) fn object(context: &mut Context) -> JsObject {
    let mut object = ObjectInitializer::new(context);
    for (name, function, arguments) in FUNCTIONS {
        object.function(NativeFunction::from_fn_ptr(function), JsString::from(name), arguments);
    }
    object.build()
}

fn text_argument(arguments: &[JsValue], index: usize, context: &mut Context) -> JsResult<String> {
    Ok(arguments.get_or_undefined(index).to_string(context)?.to_std_string_lossy())
}

fn bytes_argument(arguments: &[JsValue], index: usize, context: &mut Context) -> JsResult<Vec<u8>> {
    let Some(object) = arguments.get_or_undefined(index).as_object() else {
        return Err(JsNativeError::typ().with_message("expected bytes").into());
    };
    JsUint8Array::from_object(object)?.to_vec(context)
}

fn buffer(bytes: &[u8], context: &mut Context) -> JsResult<JsValue> {
    let block = AlignedVec::from_slice(64, bytes);
    Ok(JsArrayBuffer::from_byte_block(block, context)?.into())
}

fn write(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let stream = if arguments.get_or_undefined(0).to_i32(context)? == 1 { Stream::Stdout } else { Stream::Stderr };
    match arguments.get_or_undefined(1).as_string() {
        Some(text) => output::write(stream, &text::utf8(&text)),
        None => output::write(stream, &bytes_argument(arguments, 1, context)?),
    }
    Ok(JsValue::undefined())
}

fn flush(_: &JsValue, _: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    output::flush();
    Ok(JsValue::undefined())
}

fn exit(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let code = arguments.get_or_undefined(0).to_uint8(context)?;
    Err(EventLoop::of(context).exit(code))
}

/// Milliseconds, with fractions.
fn monotonic(_: &JsValue, _: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    Ok((monotonic_clock::now() as f64 / 1e6).into())
}

fn memory_bytes(_: &JsValue, _: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    const PAGE: f64 = 65_536.0;
    Ok((core::arch::wasm32::memory_size(0) as f64 * PAGE).into())
}

fn random_bytes(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let length = arguments.get_or_undefined(0).to_index(context)?;
    buffer(&get_random_bytes(length), context)
}

fn set_timer(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let callback = arguments.get_or_undefined(0).as_object().and_then(JsFunction::from_object);
    let Some(callback) = callback else {
        return Err(JsNativeError::typ().with_message("a timer needs a function").into());
    };
    let milliseconds = arguments.get_or_undefined(1).to_number(context)?;
    let repeat = arguments.get_or_undefined(2).to_boolean();
    Ok(EventLoop::of(context).start(callback, milliseconds, repeat).into())
}

fn clear_timer(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let id = arguments.get_or_undefined(0).to_u32(context)?;
    EventLoop::of(context).stop(id);
    Ok(JsValue::undefined())
}

fn release_timer(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let id = arguments.get_or_undefined(0).to_u32(context)?;
    EventLoop::of(context).release(id);
    Ok(JsValue::undefined())
}

/// Method, address, a list of names and values, bytes or nothing, and the function that is told the outcome.
fn start_request(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let method = text_argument(arguments, 0, context)?;
    let url = text_argument(arguments, 1, context)?;
    let headers = headers_argument(arguments, 2, context)?;
    let body = match arguments.get_or_undefined(3).is_undefined() {
        true => Vec::new(),
        false => bytes_argument(arguments, 3, context)?,
    };
    let Some(callback) = arguments.get_or_undefined(4).as_object().and_then(JsFunction::from_object) else {
        return Err(JsNativeError::typ().with_message("a request needs a function").into());
    };
    let request = http::Request { method, url, headers, body, timeout: None };
    Ok(EventLoop::of(context).ask(&request, callback).into())
}

/// Pairs of text. As everywhere in HTTP, a character of a value is one byte.
fn headers_argument(arguments: &[JsValue], index: usize, context: &mut Context) -> JsResult<Vec<(String, Vec<u8>)>> {
    let Some(list) = arguments.get_or_undefined(index).as_object() else {
        return Err(JsNativeError::typ().with_message("expected a list of headers").into());
    };
    let list = JsArray::from_object(list)?;
    let mut headers = Vec::new();
    for at in 0..list.length(context)? {
        let pair = list.get(at, context)?;
        let Some(pair) = pair.as_object() else {
            return Err(JsNativeError::typ().with_message("expected the name and value of a header").into());
        };
        let name = pair.get(0, context)?.to_string(context)?;
        let value = pair.get(1, context)?.to_string(context)?;
        headers.push((name.to_std_string_lossy(), text::encode(&value, Encoding::Latin1)));
    }
    Ok(headers)
}

fn cancel_request(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let number = arguments.get_or_undefined(0).to_u32(context)?;
    EventLoop::of(context).give_up(number);
    Ok(JsValue::undefined())
}

/// What became of a request: `{ status, reason, headers, body }`, or `{ error, text }` with what the contract calls it.
pub(crate) fn outcome(outcome: http::Outcome, context: &mut Context) -> JsResult<JsValue> {
    let (error, reason) = match outcome {
        http::Outcome::Answered(answer) => return answered(&answer, context),
        http::Outcome::Invalid(reason) => (js_string!("invalid"), reason),
        http::Outcome::Denied(reason) => (js_string!("denied"), reason),
        http::Outcome::TimedOut(reason) => (js_string!("timed-out"), reason),
        http::Outcome::Failed(reason) => (js_string!("failed"), reason),
    };
    let mut object = ObjectInitializer::new(context);
    object.property(js_string!("error"), error, Attribute::all()).property(
        js_string!("text"),
        JsString::from(&*reason),
        Attribute::all(),
    );
    Ok(object.build().into())
}

fn answered(answer: &http::Response, context: &mut Context) -> JsResult<JsValue> {
    let mut headers = Vec::with_capacity(answer.headers.len());
    for (name, value) in &answer.headers {
        let value = text::decode(value, Encoding::Latin1, false).unwrap_or_default();
        headers.push(JsArray::from_iter([JsString::from(&**name).into(), value], context).into());
    }
    let headers = JsArray::from_iter(headers, context);
    let body = buffer(&answer.body, context)?;
    let mut object = ObjectInitializer::new(context);
    object
        .property(js_string!("status"), i32::from(answer.status), Attribute::all())
        .property(js_string!("reason"), JsString::from(&*answer.reason), Attribute::all())
        .property(js_string!("headers"), headers, Attribute::all())
        .property(js_string!("body"), body, Attribute::all());
    Ok(object.build().into())
}

fn promise_state(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let Some(object) = arguments.get_or_undefined(0).as_object() else {
        return Err(JsNativeError::typ().with_message("expected a promise").into());
    };
    let (name, value) = match JsPromise::from_object(object)?.state() {
        PromiseState::Pending => (js_string!("pending"), JsValue::undefined()),
        PromiseState::Fulfilled(value) => (js_string!("fulfilled"), value),
        PromiseState::Rejected(value) => (js_string!("rejected"), value),
    };
    Ok(JsArray::from_iter([name.into(), value], context).into())
}

fn encoding_argument(arguments: &[JsValue], index: usize, context: &mut Context) -> JsResult<Encoding> {
    let name = text_argument(arguments, index, context)?;
    Encoding::named(&name).ok_or_else(|| JsNativeError::typ().with_message(format!("Unknown encoding: {name}")).into())
}

fn encode(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let encoding = encoding_argument(arguments, 1, context)?;
    let text = arguments.get_or_undefined(0).to_string(context)?;
    buffer(&text::encode(&text, encoding), context)
}

fn decode(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let encoding = encoding_argument(arguments, 1, context)?;
    let bytes = bytes_argument(arguments, 0, context)?;
    let fatal = arguments.get_or_undefined(2).to_boolean();
    text::decode(&bytes, encoding, fatal)
        .ok_or_else(|| JsNativeError::typ().with_message("The encoded data was not valid for encoding utf-8").into())
}

/// Algorithm, data and, for an HMAC, the key.
fn digest(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let algorithm = text_argument(arguments, 0, context)?;
    let data = bytes_argument(arguments, 1, context)?;
    let bytes = if arguments.get_or_undefined(2).is_undefined() {
        plain_digest(&algorithm, &data)
    } else {
        keyed_digest(&algorithm, &bytes_argument(arguments, 2, context)?, &data)
    };
    match bytes {
        Some(bytes) => buffer(&bytes, context),
        None => Err(JsNativeError::error().with_message(format!("Digest method not supported: {algorithm}")).into()),
    }
}

fn plain_digest(algorithm: &str, data: &[u8]) -> Option<Vec<u8>> {
    let mut hasher: Box<dyn DynDigest> = match algorithm {
        "md5" => Box::new(md5::Md5::new()),
        "sha1" => Box::new(sha1::Sha1::new()),
        "sha224" => Box::new(sha2::Sha224::new()),
        "sha256" => Box::new(sha2::Sha256::new()),
        "sha384" => Box::new(sha2::Sha384::new()),
        "sha512" => Box::new(sha2::Sha512::new()),
        _ => return None,
    };
    hasher.update(data);
    Some(hasher.finalize().into_vec())
}

fn keyed_digest(algorithm: &str, key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    macro_rules! hmac {
        ($hash:ty) => {
            Hmac::<$hash>::new_from_slice(key).ok()?.chain_update(data).finalize().into_bytes().to_vec()
        };
    }
    Some(match algorithm {
        "md5" => hmac!(md5::Md5),
        "sha1" => hmac!(sha1::Sha1),
        "sha224" => hmac!(sha2::Sha224),
        "sha256" => hmac!(sha2::Sha256),
        "sha384" => hmac!(sha2::Sha384),
        "sha512" => hmac!(sha2::Sha512),
        _ => return None,
    })
}

fn parse_url(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let text = text_argument(arguments, 0, context)?;
    let parsed = if arguments.get_or_undefined(1).is_undefined() {
        url::Url::parse(&text).ok()
    } else {
        let base = text_argument(arguments, 1, context)?;
        url::Url::parse(&base).and_then(|base| base.join(&text)).ok()
    };
    Ok(parsed.map_or(JsValue::null(), |url| url_parts(&url, context)))
}

fn change_url(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let href = text_argument(arguments, 0, context)?;
    let part = text_argument(arguments, 1, context)?;
    let value = text_argument(arguments, 2, context)?;
    let Ok(mut url) = url::Url::parse(&href) else { return Ok(JsValue::null()) };
    let done = match part.as_str() {
        "href" => url::quirks::set_href(&mut url, &value).is_ok(),
        "protocol" => url::quirks::set_protocol(&mut url, &value).is_ok(),
        "username" => url::quirks::set_username(&mut url, &value).is_ok(),
        "password" => url::quirks::set_password(&mut url, &value).is_ok(),
        "host" => url::quirks::set_host(&mut url, &value).is_ok(),
        "hostname" => url::quirks::set_hostname(&mut url, &value).is_ok(),
        "port" => url::quirks::set_port(&mut url, &value).is_ok(),
        "pathname" => {
            url::quirks::set_pathname(&mut url, &value);
            true
        }
        "search" => {
            url::quirks::set_search(&mut url, &value);
            true
        }
        "hash" => {
            url::quirks::set_hash(&mut url, &value);
            true
        }
        _ => false,
    };
    Ok(if done { url_parts(&url, context) } else { JsValue::null() })
}

fn url_parts(url: &url::Url, context: &mut Context) -> JsValue {
    use url::quirks;
    let parts: [(&str, &str); 10] = [
        ("href", quirks::href(url)),
        ("protocol", quirks::protocol(url)),
        ("username", quirks::username(url)),
        ("password", quirks::password(url)),
        ("host", quirks::host(url)),
        ("hostname", quirks::hostname(url)),
        ("port", quirks::port(url)),
        ("pathname", quirks::pathname(url)),
        ("search", quirks::search(url)),
        ("hash", quirks::hash(url)),
    ];
    let origin = quirks::origin(url);
    let mut object = ObjectInitializer::new(context);
    for (name, value) in parts {
        object.property(JsString::from(name), JsString::from(value), Attribute::all());
    }
    object.property(js_string!("origin"), JsString::from(&*origin), Attribute::all());
    object.build().into()
}

/// Makes the function of a CommonJS file that a script requires.
fn compile(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let file = text_argument(arguments, 0, context)?;
    let source = text_argument(arguments, 1, context)?;
    let prepared =
        typescript::prepare(&file, &source).map_err(|problem| JsNativeError::syntax().with_message(problem))?;
    common_function(&file, &prepared.source, context)
}

/// The function that a CommonJS source is the body of.
pub(crate) fn common_function(file: &str, source: &str, context: &mut Context) -> JsResult<JsValue> {
    let wrapped = format!("{BEFORE}{source}\n}})");
    context.eval(Source::from_bytes(wrapped.as_bytes()).with_path(Path::new(file)))
}

fn code_of(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "ENOENT",
        ErrorKind::PermissionDenied => "EACCES",
        ErrorKind::AlreadyExists => "EEXIST",
        ErrorKind::NotADirectory => "ENOTDIR",
        ErrorKind::IsADirectory => "EISDIR",
        ErrorKind::DirectoryNotEmpty => "ENOTEMPTY",
        ErrorKind::ReadOnlyFilesystem => "EROFS",
        ErrorKind::InvalidInput => "EINVAL",
        ErrorKind::Unsupported => "ENOSYS",
        _ => "EIO",
    }
}

fn failure(error: &io::Error, context: &mut Context) -> JsValue {
    let mut object = ObjectInitializer::new(context);
    object.property(js_string!("error"), js_string!(code_of(error)), Attribute::all());
    object.build().into()
}

fn read_file(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = text_argument(arguments, 0, context)?;
    match fs::read(&path) {
        Ok(bytes) => buffer(&bytes, context),
        Err(error) => Ok(failure(&error, context)),
    }
}

fn write_file(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = text_argument(arguments, 0, context)?;
    let bytes = bytes_argument(arguments, 1, context)?;
    let mut options = fs::OpenOptions::new();
    match text_argument(arguments, 2, context)?.as_str() {
        "append" => options.append(true).create(true),
        "new" => options.write(true).create_new(true),
        _ => options.write(true).create(true).truncate(true),
    };
    match options.open(&path).and_then(|mut file| file.write_all(&bytes)) {
        Ok(()) => Ok(JsValue::undefined()),
        Err(error) => Ok(failure(&error, context)),
    }
}

/// Path, and whether symbolic links are followed.
fn stat(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = text_argument(arguments, 0, context)?;
    let found =
        if arguments.get_or_undefined(1).to_boolean() { fs::metadata(&path) } else { fs::symlink_metadata(&path) };
    let found = match found {
        Ok(found) => found,
        Err(error) => return Ok(failure(&error, context)),
    };
    let modified = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let mut object = ObjectInitializer::new(context);
    object
        .property(js_string!("kind"), js_string!(kind_of(found.file_type())), Attribute::all())
        .property(js_string!("size"), found.len() as f64, Attribute::all())
        .property(
            js_string!("modified"),
            modified.map_or(0.0, |time| (time.as_secs_f64() * 1000.0).floor()),
            Attribute::all(),
        );
    Ok(object.build().into())
}

fn kind_of(kind: fs::FileType) -> &'static str {
    if kind.is_dir() {
        "directory"
    } else if kind.is_symlink() {
        "link"
    } else {
        "file"
    }
}

fn read_directory(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = text_argument(arguments, 0, context)?;
    let found: io::Result<Vec<(String, &str)>> = fs::read_dir(&path).and_then(|entries| {
        entries
            .map(|entry| {
                let entry = entry?;
                Ok((entry.file_name().to_string_lossy().into_owned(), kind_of(entry.file_type()?)))
            })
            .collect()
    });
    let found = match found {
        Ok(found) => found,
        Err(error) => return Ok(failure(&error, context)),
    };
    let rows: Vec<JsValue> = found
        .iter()
        .map(|(name, kind)| {
            let pair = [JsString::from(name.as_str()).into(), JsString::from(*kind).into()];
            JsArray::from_iter(pair, context).into()
        })
        .collect();
    Ok(JsArray::from_iter(rows, context).into())
}

fn done(result: io::Result<()>, context: &mut Context) -> JsResult<JsValue> {
    Ok(match result {
        Ok(()) => JsValue::undefined(),
        Err(error) => failure(&error, context),
    })
}

fn make_directory(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = text_argument(arguments, 0, context)?;
    let with_parents = arguments.get_or_undefined(1).to_boolean();
    done(if with_parents { fs::create_dir_all(&path) } else { fs::create_dir(&path) }, context)
}

/// Path and what may be removed: `file`, `directory` (an empty one) or `tree`.
fn remove(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = text_argument(arguments, 0, context)?;
    let result = match text_argument(arguments, 1, context)?.as_str() {
        "directory" => fs::remove_dir(&path),
        "tree" if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) => fs::remove_dir_all(&path),
        _ => fs::remove_file(&path),
    };
    done(result, context)
}

fn rename(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let from = text_argument(arguments, 0, context)?;
    let to = text_argument(arguments, 1, context)?;
    done(fs::rename(from, to), context)
}
