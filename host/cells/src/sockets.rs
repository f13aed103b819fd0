//! Sockets and look-ups of names, which nothing grants: they fail, and the operator is told.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::ResolveAddressStream;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily, Network};
use wasmtime_wasi::p2::{TcpSocket, UdpSocket};

use crate::guest::GuestState;
use crate::policy::Request;

type Store<'a> = StoreContextMut<'a, GuestState>;
type Made<T> = Result<Resource<T>, ErrorCode>;

/// Puts the functions of this module in the place of WASI's own, which would refuse the same without a word.
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    linker
        .instance("wasi:sockets/tcp-create-socket@0.2.12")?
        .func_wrap("create-tcp-socket", |store: Store<'_>, (_,): (IpAddressFamily,)| {
            Ok((refused::<TcpSocket>(store, ErrorCode::AccessDenied),))
        })?;
    linker
        .instance("wasi:sockets/udp-create-socket@0.2.12")?
        .func_wrap("create-udp-socket", |store: Store<'_>, (_,): (IpAddressFamily,)| {
            Ok((refused::<UdpSocket>(store, ErrorCode::AccessDenied),))
        })?;
    linker.instance("wasi:sockets/ip-name-lookup@0.2.12")?.func_wrap(
        "resolve-addresses",
        |store: Store<'_>, (_, _): (Resource<Network>, String)| {
            Ok((refused::<ResolveAddressStream>(store, ErrorCode::PermanentResolverFailure),))
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

fn refused<T>(mut store: Store<'_>, error: ErrorCode) -> Made<T> {
    // The policy has no other answer; it is asked so that what was wanted is noted as a denial.
    let _ = store.data_mut().permit(&Request::Socket);
    Err(error)
}
