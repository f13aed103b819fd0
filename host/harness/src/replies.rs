//! The host of a case: it answers what the case says.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hotcell_budget::Usage;
use hotcell_cells::{
    HttpExchange, HttpReply, HttpTape, KeyValueStore, Recording, ServiceError, ServiceReply, Services, StoreShare,
};
use serde_json::{Value, json};

use crate::case::{HostCall, HostReply};

/// Calls without a reply that are told of, and bytes of what is told of each: a plugin makes as many as it likes.
const MOST_MISSING: usize = 20;
const MOST_SHOWN: usize = 4 << 10;

/// What the host of one case has left to say, and what it was asked in vain.
pub(crate) struct Replies {
    left: Mutex<Vec<HostReply>>,
    missing: Mutex<Vec<String>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replies {
    pub(crate) fn new(replies: &[HostReply]) -> Self {
        Self { left: Mutex::new(replies.to_vec()), missing: Mutex::default() }
    }

    /// The first reply that is left for such a call.
    fn take(&self, call: HostCall, request: &Value) -> Result<Value, String> {
        let mut left = locked(&self.left);
        let fits = |reply: &HostReply| {
            reply.call == call && reply.request.as_ref().is_none_or(|wanted| is_part_of(wanted, request))
        };
        let Some(place) = left.iter().position(fits) else {
            let mut request = request.to_string();
            if request.len() > MOST_SHOWN {
                request.truncate(request.floor_char_boundary(MOST_SHOWN));
                request.push('…');
            }
            let text = format!("the case has no reply left for this `{}` call: {request}", call.as_str());
            let mut missing = locked(&self.missing);
            if missing.len() < MOST_MISSING {
                missing.push(text.clone());
            }
            return Err(text);
        };
        let reply = left.remove(place);
        match (reply.reply, reply.error) {
            (_, Some(error)) => Err(error),
            (reply, None) => Ok(reply.unwrap_or_default()),
        }
    }

    /// The reply to a question to the model.
    pub(crate) fn complete_now(&self, request: &str) -> Result<Value, String> {
        let request = serde_json::from_str(request).unwrap_or_else(|_| Value::from(request));
        self.take(HostCall::Llm, &request)
    }

    /// The reply to a call of another tool.
    pub(crate) fn call_tool_now(&self, name: &str, arguments: &str) -> Result<Value, String> {
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
        self.take(HostCall::Tool, &json!({ "name": name, "arguments": arguments }))
    }

    /// What the plugin asked for and the case does not answer.
    pub(crate) fn missing(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.missing))
    }

    /// Replies that nobody asked for.
    pub(crate) fn unused(&self) -> Vec<HostReply> {
        locked(&self.left).clone()
    }
}

/// Whether everything that `wanted` names is in `given`.
fn is_part_of(wanted: &Value, given: &Value) -> bool {
    match (wanted, given) {
        (Value::Object(wanted), Value::Object(given)) => {
            wanted.iter().all(|(key, value)| given.get(key).is_some_and(|found| is_part_of(value, found)))
        }
        (wanted, given) => wanted == given,
    }
}

fn service(result: Result<Value, String>) -> ServiceReply {
    let usage = vec![("host".to_owned(), Usage::default())];
    ServiceReply { result: result.map(|value| value.to_string()).map_err(ServiceError::Unavailable), usage }
}

#[async_trait]
impl Services for Replies {
    async fn complete(&self, request: &str) -> ServiceReply {
        service(self.complete_now(request))
    }

    async fn call_tool(&self, name: &str, arguments: &str, _: u32) -> ServiceReply {
        service(self.call_tool_now(name, arguments))
    }
}

fn headers(headers: &[(String, String)]) -> Value {
    Value::Object(headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect())
}

fn request_of(exchange: &HttpExchange) -> Value {
    json!({
        "method": exchange.method,
        "url": exchange.url,
        "headers": headers(&exchange.headers),
        "body": String::from_utf8_lossy(&exchange.body),
    })
}

impl HttpTape for Replies {
    fn reply(&self, exchange: &HttpExchange) -> Result<HttpReply, String> {
        self.take(HostCall::Http, &request_of(exchange)).map(|reply| {
            let headers = reply["headers"].as_object().cloned().unwrap_or_default();
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            HttpReply {
                status: reply["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200),
                headers: headers.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
                body: reply.get("body").map(text).unwrap_or_default().into_bytes(),
            }
        })
    }
}

/// What servers answered while a call was recorded, as replies of a case.
pub(crate) fn recorded(recording: &Recording) -> Vec<HostReply> {
    let reply = |(method, url, reply): (String, String, HttpReply)| HostReply {
        call: HostCall::Http,
        request: Some(json!({ "method": method, "url": url })),
        reply: Some(json!({
            "status": reply.status,
            "headers": headers(&reply.headers),
            "body": String::from_utf8_lossy(&reply.body),
        })),
        error: None,
    };
    recording.http_replies().into_iter().map(reply).collect()
}

/// The store of one case, with the share that a plugin has.
pub(crate) struct Store(Mutex<BTreeMap<String, Vec<u8>>>);

impl Store {
    pub(crate) fn new(entries: &BTreeMap<String, String>) -> Self {
        let entry = |(key, value): (&String, &String)| (key.clone(), value.clone().into_bytes());
        Self(Mutex::new(entries.iter().map(entry).collect()))
    }
}

impl KeyValueStore for Store {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ServiceError> {
        StoreShare::check_key(key)?;
        Ok(locked(&self.0).get(key).cloned())
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), ServiceError> {
        let mut entries = locked(&self.0);
        let others = entries.iter().filter(|(other, _)| *other != key);
        let (keys, bytes) =
            others.fold((0, 0), |(keys, bytes), (key, value)| (keys + 1, bytes + key.len() + value.len()));
        StoreShare::check_entry(key, value, keys, bytes)?;
        entries.insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    fn delete(&self, key: &str) -> Result<(), ServiceError> {
        StoreShare::check_key(key)?;
        locked(&self.0).remove(key);
        Ok(())
    }

    fn keys(&self, prefix: &str, limit: usize) -> Result<Vec<String>, ServiceError> {
        let entries = locked(&self.0);
        Ok(entries.keys().filter(|key| key.starts_with(prefix)).take(limit).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use hotcell_cells::{KeyValueStore as _, ServiceError, Services as _, StoreShare};
    use serde_json::json;

    use super::{MOST_MISSING, MOST_SHOWN, Replies, Store};
    use crate::case::{HostCall, HostReply};

    #[tokio::test]
    async fn a_call_without_reply_is_said_as_the_plugin_made_it() {
        let request = Some(json!({ "name": "Find" }));
        let reply = HostReply { call: HostCall::Tool, request, reply: Some(json!(1)), error: None };
        let replies = Replies::new(&[reply]);
        assert_eq!(replies.call_tool("Find", "{}", 0).await.result, Ok("1".to_owned()));
        let told = r#"the case has no reply left for this `tool` call: {"name":"Find","arguments":{"Key":"OSLO"}}"#;
        let called = replies.call_tool("Find", r#"{"Key":"OSLO"}"#, 0).await.result;
        assert_eq!(called, Err(ServiceError::Unavailable(told.to_owned())));
        assert_eq!(replies.missing(), [told]);
    }

    #[tokio::test]
    async fn what_a_plugin_asks_in_vain_and_keeps_takes_so_much_memory_and_no_more() {
        let replies = Replies::new(&[]);
        let long = json!({ "text": "x".repeat(1 << 20) }).to_string();
        for _ in 0..100 {
            assert!(replies.complete(&long).await.result.is_err());
        }
        let missing = replies.missing();
        assert!(missing.len() == MOST_MISSING && missing.iter().all(|text| text.len() < MOST_SHOWN + 100));

        let store = Store::new(&Default::default());
        let value = vec![0; StoreShare::VALUE];
        let kept = (0..100).filter(|number| store.set(&number.to_string(), &value).is_ok()).count();
        assert_eq!(kept, 63);
        assert!(store.set("0", b"small").is_ok() && store.set("0", &vec![0; value.len() + 1]).is_err());
        assert!(store.set(&"k".repeat(257), b"").is_err());
    }
}
