//! The report of a call: its result, sorted by what ended it, and what it used.

use std::time::Instant;

use hotcell_budget::{Budget, Bytes, Fuel, Limit, Usage};
use wasmtime::component::ResourceTableError;
use wasmtime::{FrameInfo, Store, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use super::enter::{Answer, Returned, shown_metadata};
use super::guarded::Outcome;
use crate::call::{CellError, Frame, GuestErrorKind, PlaceFinder, Report};
use crate::contract::PluginError;
use crate::disk::Room;
use crate::guest::{GuestState, Unanswered};
use crate::output::OutputOverflow;
use crate::policy::Denial;
use crate::recording::{Ended, Gap, Gave, NotRecorded};
use crate::secrets::Vault;
use crate::tape::Tape;
use crate::watch::DeadlineOver;

/// Functions shown of a trap's backtrace.
const BACKTRACE_FUNCTIONS: usize = 16;
/// How the engine words the end of what a guest may hand over at once.
const TRANSFER_EXHAUSTED: &str = "fuel allocated for hostcalls has been exhausted";
/// How the engine words the end of handles.
const HANDLES_EXHAUSTED: &str = "store handle limit exceeded";

/// The report of a call that ended like this.
pub(super) fn report(store: Store<GuestState>, outcome: Outcome, budget: &Budget, started: Instant) -> Report<Answer> {
    let fuel_left = store.get_fuel().unwrap_or(0);
    let guest = store.into_data();
    let egress = guest.egress.report();
    let exhausted = guest.tape.player().map_or(egress.exhausted, |player| player.exhausted.clone());
    let error_bytes = budget.error_bytes.as_usize();
    let vault = guest.vault.clone();
    // A guest that knows a value may have asked for something by that name.
    let scrub = |denial: Denial| denial.map_texts(|text| vault.scrub(text));
    let denials: Vec<Denial> = guest.denials.take().into_iter().map(scrub).collect();
    let stderr = vault.scrub(guest.stderr.shown(error_bytes));
    let result = match outcome {
        Outcome::DeadlineOver => Err(deadline_over(budget)),
        Outcome::Panicked(message) => Err(CellError::Host { message }),
        Outcome::Returned(Ok(Returned::Code(0))) => printed(&guest),
        Outcome::Returned(Ok(Returned::Code(code))) => Err(CellError::Exit { code, stderr: stderr.clone() }),
        Outcome::Returned(Ok(Returned::Plugin(Ok(answer)))) if answer.len() as u64 > budget.output.0 => Err(limit(
            Limit::OutputTooLarge,
            format!("the result has {} bytes, more than {}", answer.len(), budget.output),
        )),
        Outcome::Returned(Ok(Returned::Plugin(Ok(answer)))) => Ok(answer),
        Outcome::Returned(Ok(Returned::Plugin(Err(error)))) => Err(guest_error(error, error_bytes)),
        Outcome::Returned(Err(error)) => failure(&error, &guest, budget, &stderr),
    };
    let result = result
        .map(|answer| answer.map_text(|text| vault.scrub(text)))
        .map_err(|error| scrubbed(behind(error, &guest, exhausted.as_deref(), budget), &vault));
    let result = match guest.tape.player().and_then(|player| player.missing(&named(&denials))) {
        Some(wanted) => Err(CellError::NotRecorded { wanted }),
        None => result,
    };
    let fuel = budget.fuel - Fuel(fuel_left);
    let recording = match &guest.tape {
        Tape::Recording(recorder) => {
            let gap = match &result {
                Err(CellError::Limit { limit: Limit::Deadline, .. }) => Some(Gap::Deadline),
                Err(CellError::Host { .. }) => Some(Gap::Host),
                _ => None,
            };
            let (gave, denied) = (Gave::of(&result), named(&denials));
            recorder.finish(Ended { gave, fuel, gap, denied, exhausted, vault: &vault })
        }
        Tape::Off | Tape::Playing(_) => None,
    };
    let Room { bytes, files } = guest.disk.used();
    let usage = Usage {
        calls: 1,
        fuel,
        wall_clock: started.elapsed(),
        peak_memory: Bytes::from(guest.limiter.peak()),
        output: result.as_ref().map_or(Bytes(guest.stdout.written()), |answer| Bytes::from(answer.len())),
        stderr: Bytes(guest.stderr.written()),
        log_lines: guest.notes.logged,
        http_requests: egress.requests,
        http_sent: egress.sent,
        http_received: egress.received,
        file_bytes: Bytes(bytes),
        files,
        ..Usage::default()
    };
    let dropped_log_lines = guest.notes.logged - guest.notes.lines.len() as u64;
    Report {
        result,
        usage,
        nested: guest.nested,
        logs: guest.notes.lines,
        dropped_log_lines,
        stderr,
        denials,
        recording,
    }
}

/// What was denied, by the names of capabilities.
fn named(denials: &[Denial]) -> Vec<String> {
    denials.iter().map(|denial| denial.capability.to_string()).collect()
}

/// What a program printed, as its result.
fn printed(guest: &GuestState) -> Result<Answer, CellError> {
    String::from_utf8(guest.stdout.take())
        .map(Answer::Text)
        .map_err(|error| CellError::NotText { at: error.utf8_error().valid_up_to() })
}

/// The error with no value of a secret in it.
fn scrubbed(error: CellError, vault: &Vault) -> CellError {
    let scrub = |text: String| vault.scrub(text);
    match error {
        CellError::Limit { limit, detail } => CellError::Limit { limit, detail: scrub(detail) },
        CellError::Exit { code, stderr } => CellError::Exit { code, stderr: scrub(stderr) },
        CellError::Trap { message, backtrace, stderr } => {
            CellError::Trap { message: scrub(message), backtrace, stderr: scrub(stderr) }
        }
        CellError::Guest { kind, message, metadata } => {
            let metadata = metadata.into_iter().map(|(name, value)| (scrub(name), scrub(value))).collect();
            CellError::Guest { kind, message: scrub(message), metadata }
        }
        CellError::Suspended { question } => CellError::Suspended { question: scrub(question) },
        other @ (CellError::NotText { .. }
        | CellError::NotRecorded { .. }
        | CellError::Directory { .. }
        | CellError::WrongKind { .. }
        | CellError::Host { .. }) => other,
    }
}

fn limit(limit: Limit, detail: String) -> CellError {
    CellError::Limit { limit, detail }
}

fn deadline_over(budget: &Budget) -> CellError {
    limit(Limit::Deadline, format!("still running after {:?}", budget.wall_clock))
}

/// Sorts an error of the engine, or takes a program's exit with code 0 as the success it is.
fn failure(error: &wasmtime::Error, guest: &GuestState, budget: &Budget, stderr: &str) -> Result<Answer, CellError> {
    if let Some(I32Exit(code)) = error.downcast_ref::<I32Exit>() {
        return match code {
            0 => printed(guest),
            code => Err(CellError::Exit { code: *code, stderr: stderr.to_owned() }),
        };
    }
    if let Some(NotRecorded(wanted)) = error.downcast_ref::<NotRecorded>() {
        return Err(CellError::NotRecorded { wanted: wanted.clone() });
    }
    if let Some(Unanswered { question }) = error.downcast_ref::<Unanswered>() {
        return Err(CellError::Suspended { question: crate::text::lines(question, budget.error_bytes.as_usize()) });
    }
    if let Some(overflow) = error.downcast_ref::<OutputOverflow>() {
        return Err(limit(Limit::OutputTooLarge, overflow.to_string()));
    }
    if error.is::<DeadlineOver>() {
        return Err(deadline_over(budget));
    }
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return Err(handles(budget));
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => {
            return Err(limit(Limit::OutOfFuel, format!("all of {} is used up", budget.fuel)));
        }
        Some(Trap::StackOverflow) => {
            return Err(limit(Limit::TooDeep, "the guest's stack is used up: a recursion does not end".to_owned()));
        }
        _ => {}
    }
    let text = format!("{error:#}");
    if text.contains(HANDLES_EXHAUSTED) {
        return Err(handles(budget));
    }
    if text.contains(TRANSFER_EXHAUSTED) {
        let detail = format!("the guest handed over more than {} at once", budget.transfer);
        return Err(limit(Limit::OutputTooLarge, detail));
    }
    Err(trap(error, budget, stderr, guest.places.as_ref()))
}

fn handles(budget: &Budget) -> CellError {
    limit(Limit::TooManyHandles, format!("more than {} handles are open", budget.handles))
}

/// A trap in readable form: what happened, in which of the guest's functions, and where in the source if that is known.
fn trap(error: &wasmtime::Error, budget: &Budget, stderr: &str, places: Option<&PlaceFinder>) -> CellError {
    let shown = |text: &str| crate::text::one_line(text, budget.error_bytes.as_usize());
    let message = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string().replacen("wasm trap: ", "", 1),
        None => format!("{:#}", error.root_cause()),
    };
    let frames = error.downcast_ref::<WasmBacktrace>().map(WasmBacktrace::frames).unwrap_or_default();
    let frames = &frames[..frames.len().min(BACKTRACE_FUNCTIONS)];
    let function = |frame: &FrameInfo| match frame.func_name() {
        Some(name) => shown(&format!("{:#}", rustc_demangle::demangle(name))),
        None => format!("function {}", frame.func_index()),
    };
    // Code that has no offset is at an offset that no code has.
    let offset = |frame: &FrameInfo| frame.module_offset().map_or(u64::MAX, |offset| offset as u64);
    let places = places.map(|places| places(&frames.iter().map(offset).collect::<Vec<_>>())).unwrap_or_default();
    let places = places.into_iter().map(|place| place.map(|place| shown(&place))).chain(std::iter::repeat(None));
    let backtrace =
        frames.iter().zip(places).map(|(frame, place)| Frame { function: function(frame), place }).collect();
    CellError::Trap { message: shown(&message), backtrace, stderr: stderr.to_owned() }
}

fn guest_error(error: PluginError, limit: usize) -> CellError {
    let (kind, failure) = match error {
        PluginError::InvalidInput(failure) => (GuestErrorKind::InvalidInput, failure),
        PluginError::Denied(failure) => (GuestErrorKind::Denied, failure),
        PluginError::Unavailable(failure) => (GuestErrorKind::Unavailable, failure),
        PluginError::Other(failure) => (GuestErrorKind::Other, failure),
    };
    let metadata = shown_metadata(&failure.metadata);
    CellError::Guest { kind, message: crate::text::lines(&failure.message, limit), metadata }
}

/// A guest that was refused memory or egress usually fails in its own way afterwards; this puts the cause first.
fn behind(error: CellError, guest: &GuestState, egress: Option<&str>, budget: &Budget) -> CellError {
    if !matches!(error, CellError::Exit { .. } | CellError::Trap { .. } | CellError::Guest { .. }) {
        return error;
    }
    if let Some(wanted) = guest.limiter.refused() {
        let detail = format!("{} wanted, {} allowed; {error}", Bytes::from(wanted), budget.memory);
        return limit(Limit::OutOfMemory, detail);
    }
    if let Some(most) = guest.open_files_exhausted {
        let detail = format!("all guests together may have {most} files open; {error}");
        return limit(Limit::TooManyHandles, detail);
    }
    if let Some(full) = guest.disk.refused() {
        return limit(Limit::Files, format!("{full}; {error}"));
    }
    match egress {
        Some(exhausted) => limit(Limit::Egress, format!("{exhausted}; {error}")),
        None => error,
    }
}
