//! The functions of the contract that guests import. Importing alone gives nothing: each function asks the policy.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wasmtime::component::{Linker, LinkerInstance};
use wasmtime::{StoreContextMut, Trap};

use crate::contract::{
    ASK, CONFIG, Failure, Interface, KV, LLM, LOG, LogLevel, OTHER_TOOLS, PROGRESS, PluginError, PluginResult, SECRETS,
    STATE, TYPES,
};
use crate::guest::{GuestState, Unanswered};
use crate::policy::Request;
use crate::recording::{Blob, HostFunction, short_digest};
use crate::services::{KeyValueStore, ServiceError, ServiceReply, Services};
use crate::tape::Tape;

/// Fuel that a call of the host costs beside the guest's own instructions.
pub(crate) const HOST_CALL_FUEL: u64 = 200;
/// Fuel that a call costs which reads or writes the host's disk, or asks somebody else.
pub(crate) const STORE_CALL_FUEL: u64 = 20_000;
/// Bytes that cost one unit of fuel when they cross between guest and host.
const BYTES_PER_FUEL: u64 = 8;
/// Keys that `kv.keys` lists.
const MAX_KEYS: usize = 1_000;

pub(crate) type Caller<'a> = StoreContextMut<'a, GuestState>;

/// Takes the price of a host call that moved `bytes` from the guest's fuel.
pub(crate) fn charge(store: &mut Caller<'_>, price: u64, bytes: usize) -> wasmtime::Result<()> {
    let price = price + bytes as u64 / BYTES_PER_FUEL;
    match store.get_fuel()?.checked_sub(price) {
        Some(left) => store.set_fuel(left),
        None => {
            store.set_fuel(0)?;
            Err(Trap::OutOfFuel.into())
        }
    }
}

/// Puts every interface that guests may import into the linker, in all its versions.
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    add(linker, TYPES, |_| Ok(()))?;
    add(linker, STATE, add_state)?;
    add(linker, LOG, add_log)?;
    add(linker, PROGRESS, add_progress)?;
    add(linker, CONFIG, add_config)?;
    add(linker, ASK, add_ask)?;
    add(linker, KV, add_kv)?;
    add(linker, SECRETS, add_secrets)?;
    add(linker, LLM, add_llm)?;
    add(linker, OTHER_TOOLS, add_other_tools)
}

fn add(
    linker: &mut Linker<GuestState>,
    interface: Interface,
    functions: fn(&mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()>,
) -> wasmtime::Result<()> {
    interface.names().try_for_each(|name| functions(&mut linker.instance(&name)?))
}

fn add_state(state: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    state.func_wrap("get", |mut store: Caller<'_>, (path,): (String,)| {
        let of_state = |guest: &GuestState| guest.state.as_ref().and_then(|state| state.get(&path));
        let value = store.data().take(HostFunction::State, || path.clone(), of_state)?;
        charge(&mut store, HOST_CALL_FUEL, path.len() + value.as_ref().map_or(0, String::len))?;
        Ok((value,))
    })?;
    state.func_wrap("all", |mut store: Caller<'_>, (): ()| {
        let guest = store.data();
        let all = match guest.tape {
            Tape::Off => guest.all_of_state(),
            _ => guest.take(HostFunction::State, || "*".to_owned(), |guest| guest.all_of_state().to_string())?.into(),
        };
        charge(&mut store, HOST_CALL_FUEL, all.len())?;
        Ok((all,))
    })
}

fn add_log(log: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    log.func_wrap("log", |mut store: Caller<'_>, (level, message): (LogLevel, String)| {
        charge(&mut store, HOST_CALL_FUEL, message.len())?;
        store.data_mut().log(level, &message, None);
        Ok(())
    })
}

fn add_progress(progress: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    progress.func_wrap("report", |mut store: Caller<'_>, (done, total, message): (u64, Option<u64>, String)| {
        charge(&mut store, HOST_CALL_FUEL, message.len())?;
        store.data_mut().log(LogLevel::Info, &message, Some((done, total)));
        Ok(())
    })
}

fn add_config(config: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    config.func_wrap("get", |mut store: Caller<'_>, (key,): (String,)| {
        let value = store.data().config.get(&key).cloned();
        charge(&mut store, HOST_CALL_FUEL, key.len() + value.as_ref().map_or(0, String::len))?;
        Ok((value,))
    })
}

fn add_ask(ask: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    ask.func_wrap("ask", |mut store: Caller<'_>, (question,): (String,)| {
        charge(&mut store, HOST_CALL_FUEL, question.len())?;
        let guest = store.data_mut();
        let Some(answers) = &mut guest.answers else {
            return Ok((Err(denied("questions cannot be put from here; use a node that asks")),));
        };
        if let Some(answer) = answers.next() {
            return Ok((Ok(answer),));
        }
        if let Err(message) = guest.permit(&Request::Ask) {
            return Ok((Err(denied(message)),));
        }
        Err(wasmtime::Error::new(Unanswered { question }))
    })
}

fn add_kv(kv: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    kv.func_wrap("get", |mut store: Caller<'_>, (key,): (String,)| {
        charge(&mut store, STORE_CALL_FUEL, key.len())?;
        let asked = || format!("get {key}");
        let value = with_store(store.data(), asked, |kv| Ok(kv.get(&key)?.map(Blob)))?;
        let value = value.map(|value| value.map(|Blob(bytes)| bytes));
        if let Ok(Some(value)) = &value {
            charge(&mut store, 0, value.len())?;
        }
        Ok((value,))
    })?;
    kv.func_wrap("set", |mut store: Caller<'_>, (key, value): (String, Vec<u8>)| {
        charge(&mut store, STORE_CALL_FUEL, key.len() + value.len())?;
        let asked = || format!("set {key} {}", short_digest([value.as_slice()]));
        Ok((with_store(store.data(), asked, |kv| kv.set(&key, &value))?,))
    })?;
    kv.func_wrap("delete", |mut store: Caller<'_>, (key,): (String,)| {
        charge(&mut store, STORE_CALL_FUEL, key.len())?;
        Ok((with_store(store.data(), || format!("delete {key}"), |kv| kv.delete(&key))?,))
    })?;
    kv.func_wrap("keys", |mut store: Caller<'_>, (prefix,): (String,)| {
        charge(&mut store, STORE_CALL_FUEL, prefix.len())?;
        let keys = with_store(store.data(), || format!("keys {prefix}"), |kv| kv.keys(&prefix, MAX_KEYS))?;
        if let Ok(keys) = &keys {
            charge(&mut store, 0, keys.iter().map(String::len).sum())?;
        }
        Ok((keys,))
    })
}

fn with_store<T: Serialize + DeserializeOwned>(
    guest: &GuestState,
    asked: impl FnOnce() -> String,
    act: impl FnOnce(&dyn KeyValueStore) -> Result<T, ServiceError>,
) -> wasmtime::Result<Result<T, PluginError>> {
    if let Err(message) = guest.permit(&Request::KeyValue) {
        return Ok(Err(denied(message)));
    }
    guest.take(HostFunction::Kv, asked, |guest| match &guest.kv {
        Some(kv) => act(kv.as_ref()).map_err(PluginError::from),
        None => Err(unavailable("there is no store where this plugin runs")),
    })
}

fn add_secrets(secrets: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    secrets.func_wrap("placeholder", |mut store: Caller<'_>, (name,): (String,)| {
        charge(&mut store, HOST_CALL_FUEL, name.len())?;
        let guest = store.data();
        let placeholder = match guest.permit(&Request::Secret { name: &name }) {
            Err(message) => Err(denied(message)),
            Ok(()) => guest.vault.placeholder(&name).ok_or_else(|| {
                let name = crate::text::one_line(&name, 100);
                unavailable(format!("the secret `{name}` is granted, but the operator has not set it"))
            }),
        };
        Ok((placeholder,))
    })
}

fn add_llm(llm: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    llm.func_wrap_async("complete", |mut store: Caller<'_>, (request,): (String,)| {
        Box::new(async move {
            charge(&mut store, STORE_CALL_FUEL, request.len())?;
            let asked = || format!("request {}", short_digest([request.as_bytes()]));
            let services = match services(store.data(), &Request::Model, HostFunction::Model, asked)? {
                Ok(services) => services,
                Err(known) => return Ok((settled(&mut store, known)?,)),
            };
            let reply = services.complete(&request).await;
            Ok((settle(&mut store, reply, HostFunction::Model, asked)?,))
        })
    })
}

fn add_other_tools(tools: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    tools.func_wrap_async("call", |mut store: Caller<'_>, (name, arguments): (String, String)| {
        Box::new(async move {
            charge(&mut store, STORE_CALL_FUEL, name.len() + arguments.len())?;
            let asked = || format!("`{name}` with {}", short_digest([arguments.as_bytes()]));
            let services = match services(store.data(), &Request::Tool { name: &name }, HostFunction::Tool, asked)? {
                Ok(services) => services,
                Err(known) => return Ok((settled(&mut store, known)?,)),
            };
            let depth = store.data().depth + 1;
            let reply = services.call_tool(&name, &arguments, depth).await;
            Ok((settle(&mut store, reply, HostFunction::Tool, asked)?,))
        })
    })
}

/// The services of the run; or what is known without them, because the request is not granted, or recorded.
fn services(
    guest: &GuestState,
    request: &Request<'_>,
    from: HostFunction,
    asked: impl FnOnce() -> String,
) -> wasmtime::Result<Result<Arc<dyn Services>, PluginResult>> {
    if let Err(message) = guest.permit(request) {
        return Ok(Err(Err(denied(message))));
    }
    match &guest.services {
        Some(services) if guest.tape.player().is_none() => Ok(Ok(services.clone())),
        _ => {
            let nobody = || unavailable("neither models nor tools are within reach where this plugin runs");
            Ok(Err(guest.take(from, asked, |_| Err(nobody()))?))
        }
    }
}

/// Notes what a service used, and takes the price of its answer.
fn settle(
    store: &mut Caller<'_>,
    reply: ServiceReply,
    from: HostFunction,
    asked: impl FnOnce() -> String,
) -> wasmtime::Result<PluginResult> {
    let guest = store.data_mut();
    guest.nested.extend(reply.usage);
    let result = reply.result.map_err(PluginError::from);
    guest.tape.note(from, asked, &result);
    settled(store, result)
}

/// Takes the price of an answer.
fn settled(store: &mut Caller<'_>, result: PluginResult) -> wasmtime::Result<PluginResult> {
    charge(store, 0, result.as_ref().map_or(0, String::len))?;
    Ok(result)
}

fn failure(message: impl Into<String>) -> Failure {
    Failure { message: message.into(), metadata: Vec::new() }
}

fn denied(message: impl Into<String>) -> PluginError {
    PluginError::Denied(failure(message))
}

fn unavailable(message: impl Into<String>) -> PluginError {
    PluginError::Unavailable(failure(message))
}

impl From<ServiceError> for PluginError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::InvalidInput(message) => Self::InvalidInput(failure(message)),
            ServiceError::Denied(message) => Self::Denied(failure(message)),
            ServiceError::Unavailable(message) => Self::Unavailable(failure(message)),
            ServiceError::Other(message) => Self::Other(failure(message)),
        }
    }
}
