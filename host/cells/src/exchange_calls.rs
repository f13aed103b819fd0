//! The functions by which an interpreter's script has HTTP: it starts requests, waits for whichever is done first, and cancels.

use std::future::pending;
use std::time::Duration;

use wasmtime::component::{Linker, ResourceTableError};

use crate::exchanges::{INTERFACE, Outcome, Request};
use crate::guest::GuestState;
use crate::imports::{Caller, HOST_CALL_FUEL, STORE_CALL_FUEL, charge};
use crate::recording::HostFunction;

/// Puts the interface into the linker. A plugin cannot import it: what plugins import is compared with the contract
/// before they are compiled.
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    let mut http = linker.instance(INTERFACE)?;
    http.func_wrap("start", |mut store: Caller<'_>, (request,): (Request,)| {
        let bytes = request.bytes();
        charge(&mut store, STORE_CALL_FUEL, bytes)?;
        let guest = store.data_mut();
        guest.take(HostFunction::HttpStart, || request.shown(), |_| ())?;
        if guest.exchanges.count() >= guest.max_handles {
            return Err(ResourceTableError::Full.into());
        }
        let bytes = bytes as u64;
        let outcome = guest.egress.admit(guest.exchanges.bytes().saturating_add(bytes));
        let number = match outcome {
            // Its outcome is recorded.
            Ok(()) if guest.tape.player().is_some() => guest.exchanges.add(bytes, pending()),
            Ok(()) => guest.exchanges.add(bytes, request.send(&guest.egress, guest.denials.clone())),
            Err(exhausted) => guest.exchanges.add(0, async move { Outcome::Failed(exhausted) }),
        };
        Ok((number,))
    })?;
    http.func_wrap_async("wait", |mut store: Caller<'_>, (most,): (Option<u64>,)| {
        Box::new(async move {
            let guest = store.data_mut();
            let played = guest.tape.player().map(|player| player.take(HostFunction::HttpWait, ""));
            let done = match (played, most) {
                (Some(played), _) => guest.exchanges.close(played?),
                (None, Some(most)) => {
                    let time = Duration::from_nanos(most);
                    tokio::time::timeout(time, guest.exchanges.next()).await.unwrap_or_default()
                }
                (None, None) => guest.exchanges.next().await,
            };
            guest.tape.note(HostFunction::HttpWait, String::new, &done);
            let bytes = match &done {
                Some((_, Outcome::Answered(response))) => response.bytes(),
                _ => 0,
            };
            charge(&mut store, HOST_CALL_FUEL, bytes)?;
            Ok((done,))
        })
    })?;
    http.func_wrap("cancel", |mut store: Caller<'_>, (number,): (u32,)| {
        charge(&mut store, HOST_CALL_FUEL, 0)?;
        store.data_mut().exchanges.cancel(number);
        Ok(())
    })
}
