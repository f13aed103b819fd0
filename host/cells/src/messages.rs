//! What the host keeps for a guest of messages over `wasi:http` that are not sent yet counts as the guest's memory:
//! header fields, the texts of requests, room for bodies.
//!
//! Nothing is given back before the call ends: a call makes few requests, and copies that share their fields cannot be
//! told from others.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Resource};
use wasmtime_wasi::p2::DynOutputStream;
use wasmtime_wasi_http::p2::bindings::http::types::{
    HeaderError, Host as _, HostFields as _, HostOutgoingBody as _, HostOutgoingRequest as _, Method, Scheme,
};
use wasmtime_wasi_http::p2::body::HostOutgoingBody;
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;
use wasmtime_wasi_http::{FieldMap, WasiHttpView as _};

use crate::egress::BODY_PIECE;
use crate::guest::GuestState;

/// What a body that is begun takes: a piece that is written, and those that wait.
const BODY: usize = 3 * BODY_PIECE;
/// Bytes that a name and its value take beside their texts.
const FIELD: usize = 128;

type Store<'a> = StoreContextMut<'a, GuestState>;

/// Puts the functions of this module in the place of WASI's own.
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance("wasi:http/types@0.2.12")?;
    add_fields(&mut types)?;
    add_requests(&mut types)?;
    linker.allow_shadowing(false);
    Ok(())
}

fn add_fields(types: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    types.func_wrap("[static]fields.from-list", |mut store: Store<'_>, (entries,): (Vec<(String, Vec<u8>)>,)| {
        let guest = store.data_mut();
        guest.keep(entries.iter().map(|(name, value)| name.len() + value.len() + FIELD).sum())?;
        let made = guest.http().from_list(entries);
        Ok((guest.plain_header(made)?,))
    })?;
    types.func_wrap(
        "[method]fields.set",
        |mut store: Store<'_>, (fields, name, values): (Resource<FieldMap>, String, Vec<Vec<u8>>)| {
            let guest = store.data_mut();
            guest.keep(values.iter().map(|value| name.len() + value.len() + FIELD).sum())?;
            let set = guest.http().set(fields, name, values);
            Ok((guest.plain_header(set)?,))
        },
    )?;
    types.func_wrap(
        "[method]fields.append",
        |mut store: Store<'_>, (fields, name, value): (Resource<FieldMap>, String, Vec<u8>)| {
            let guest = store.data_mut();
            guest.keep(name.len() + value.len() + FIELD)?;
            let appended = guest.http().append(fields, name, value);
            Ok((guest.plain_header(appended)?,))
        },
    )?;
    types.func_wrap("[method]fields.clone", |mut store: Store<'_>, (fields,): (Resource<FieldMap>,)| {
        let guest = store.data_mut();
        let size = |(name, value): (&http::HeaderName, &http::HeaderValue)| name.as_str().len() + value.len() + FIELD;
        let kept = guest.http().table.get(&fields)?.iter().map(size).sum();
        guest.keep(kept)?;
        Ok((guest.http().clone(fields)?,))
    })
}

fn add_requests(types: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    type Request = Resource<HostOutgoingRequest>;
    types.func_wrap(
        "[method]outgoing-request.set-method",
        |mut store: Store<'_>, (request, method): (Request, Method)| {
            let guest = store.data_mut();
            if let Method::Other(text) = &method {
                guest.keep(text.len())?;
            }
            Ok((guest.http().set_method(request, method)?,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-scheme",
        |mut store: Store<'_>, (request, scheme): (Request, Option<Scheme>)| {
            let guest = store.data_mut();
            if let Some(Scheme::Other(text)) = &scheme {
                guest.keep(text.len())?;
            }
            Ok((guest.http().set_scheme(request, scheme)?,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-path-with-query",
        |mut store: Store<'_>, (request, path): (Request, Option<String>)| {
            let guest = store.data_mut();
            guest.keep(path.as_ref().map_or(0, String::len))?;
            Ok((guest.http().set_path_with_query(request, path)?,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-authority",
        |mut store: Store<'_>, (request, authority): (Request, Option<String>)| {
            let guest = store.data_mut();
            guest.keep(authority.as_ref().map_or(0, String::len))?;
            Ok((guest.http().set_authority(request, authority)?,))
        },
    )?;
    types.func_wrap("[method]outgoing-body.write", |mut store: Store<'_>, (body,): (Resource<HostOutgoingBody>,)| {
        let guest = store.data_mut();
        guest.keep(BODY)?;
        let stream: Result<Resource<DynOutputStream>, ()> = guest.http().write(body)?;
        Ok((stream,))
    })
}

impl GuestState {
    /// Counts what the host keeps for the guest as its memory.
    ///
    /// # Errors
    /// When it is more than the guest has left, which ends the call.
    fn keep(&mut self, bytes: usize) -> wasmtime::Result<()> {
        if self.limiter.keep(bytes) {
            return Ok(());
        }
        Err(wasmtime::Error::msg("no memory is left for what is to be sent"))
    }

    fn plain_header<T>(
        &mut self,
        result: wasmtime_wasi_http::p2::HeaderResult<T>,
    ) -> wasmtime::Result<Result<T, HeaderError>> {
        match result {
            Ok(value) => Ok(Ok(value)),
            Err(error) => Ok(Err(self.http().convert_header_error(error)?)),
        }
    }
}
