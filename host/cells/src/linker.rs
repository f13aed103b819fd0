//! Everything that a guest may import: WASI, with functions of ours in the place of those that have to be limited or told
//! of, and our own interfaces.

use wasmtime::component::Linker;

use crate::guest::GuestState;
use crate::{exchange_calls, files, imports, listings, messages, sockets, writes};

/// A linker with everything a guest may import.
pub(crate) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<GuestState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    files::add_to_linker(&mut linker)?;
    listings::add_to_linker(&mut linker)?;
    writes::add_to_linker(&mut linker)?;
    sockets::add_to_linker(&mut linker)?;
    messages::add_to_linker(&mut linker)?;
    exchange_calls::add_to_linker(&mut linker)?;
    imports::add_to_linker(&mut linker)?;
    Ok(linker)
}
