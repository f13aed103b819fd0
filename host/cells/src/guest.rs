//! The host's side of one call: what the store of a guest carries, and the functions that guests import.
//!
//! A store lives for one call. Nothing of it is shared with another call but the engine and what is read-only.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotcell_budget::Budget;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use wasmtime::component::{Linker, ResourceTable};
use wasmtime::{StoreContextMut, Trap};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::call::{CellError, LogLine, StateView, Terms};
use crate::clock::{Clock, Monotonic, Repeatable, Wall};
use crate::contract::{ASK, CONFIG, Failure, LOG, LogLevel, PluginError, STATE, TYPES};
use crate::denials::Denials;
use crate::egress::Egress;
use crate::files;
use crate::grants::{Access, Grants};
use crate::limiter::MemoryLimiter;
use crate::output::Capture;
use crate::policy::{Decision, Request, decide};

/// Fuel that a call of the host costs beside the guest's own instructions.
const HOST_CALL_FUEL: u64 = 200;
/// Bytes that cost one unit of fuel when they cross between guest and host.
const BYTES_PER_FUEL: u64 = 8;
/// Bytes of random numbers a guest may ask for at once.
const MAX_RANDOM: u64 = 1 << 20;
/// Bytes that the header fields of one HTTP message may take on the host.
const MAX_FIELDS: usize = 64 << 10;

/// The guest put a question that has no answer; it ends the call.
#[derive(Debug, thiserror::Error)]
#[error("a question waits for its answer")]
pub(crate) struct Unanswered {
    pub(crate) question: String,
}

/// What the store of a call carries.
pub(crate) struct GuestState {
    pub(crate) limiter: MemoryLimiter,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) notes: Notes,
    pub(crate) egress: Egress,
    pub(crate) grants: Arc<Grants>,
    pub(crate) denials: Denials,
    /// The handle of the empty root directory, once the guest has it.
    pub(crate) root: Option<u32>,
    state: Option<Arc<dyn StateView>>,
    config: Arc<BTreeMap<String, String>>,
    /// Answers for `ask`; none where questions cannot be put.
    answers: Option<std::vec::IntoIter<String>>,
    table: ResourceTable,
    /// Built when the guest first uses WASI, because many plugins never do.
    wasi: Option<WasiCtx>,
    wasi_settings: WasiSettings,
    http: WasiHttpCtx,
}

/// The lines a guest logged.
pub(crate) struct Notes {
    pub(crate) lines: Vec<LogLine>,
    pub(crate) logged: u64,
    max_lines: u32,
    max_bytes: usize,
}

impl Notes {
    fn log(&mut self, level: LogLevel, message: &str) {
        self.logged += 1;
        if self.lines.len() < self.max_lines as usize {
            self.lines.push(LogLine { level, message: crate::text::one_line(message, self.max_bytes) });
        }
    }
}

/// What WASI is set up with.
#[derive(Default)]
struct WasiSettings {
    args: Vec<String>,
    env: Vec<(String, String)>,
    clock: Option<Clock>,
    seed: Option<u64>,
}

/// What differs between the kinds of calls.
pub(crate) struct GuestSetup {
    /// The program's name, its only argument.
    pub(crate) program: String,
    /// Variables beside those of the terms.
    pub(crate) env: Vec<(String, String)>,
    /// A directory of the host's own and its guest path, for reading.
    pub(crate) scratch: Option<(std::path::PathBuf, &'static str)>,
    pub(crate) state: Option<Arc<dyn StateView>>,
    pub(crate) answers: Option<Vec<String>>,
    /// Whether standard output is the result; otherwise it is read by people only, like standard error.
    pub(crate) stdout_is_result: bool,
}

impl GuestState {
    /// Prepares a call under `terms` and the already clamped `budget`.
    ///
    /// # Errors
    /// When a granted directory cannot be opened.
    pub(crate) fn new(
        setup: GuestSetup,
        terms: &Terms,
        budget: &Budget,
        repeatable: Option<&Repeatable>,
    ) -> Result<Self, CellError> {
        let stderr = Capture::tail(budget.error_bytes.0);
        let stdout = if setup.stdout_is_result { Capture::whole(budget.output.0) } else { stderr.clone() };
        let mut env = terms.env.clone();
        env.extend(setup.env);
        let clock = match repeatable {
            Some(repeatable) => Some(Clock::fixed(repeatable)),
            None if decide(&terms.grants, &Request::PreciseClock).is_allowed() => Some(Clock::precise()),
            None => None,
        };
        let seed = match repeatable {
            Some(repeatable) => Some(repeatable.seed),
            None if decide(&terms.grants, &Request::FreshRandom).is_allowed() => None,
            None => Some(0),
        };
        let mut table = ResourceTable::new();
        table.set_max_capacity(budget.handles as usize);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(MAX_FIELDS);
        let denials = Denials::new(&terms.plugin);
        let mut guest = Self {
            limiter: MemoryLimiter::new(budget.memory.as_usize()),
            stdout,
            stderr,
            notes: Notes {
                lines: Vec::new(),
                logged: 0,
                max_lines: budget.log_lines,
                max_bytes: budget.log_line_bytes.as_usize(),
            },
            egress: Egress::new(terms, budget, denials.clone()),
            grants: terms.grants.clone(),
            denials,
            root: None,
            state: setup.state,
            config: terms.config.clone(),
            answers: setup.answers.map(Vec::into_iter),
            table,
            wasi: None,
            wasi_settings: WasiSettings { args: vec![setup.program], env, clock, seed },
            http,
        };
        if setup.scratch.is_some() || !terms.grants.fs.is_empty() {
            guest.open_directories(setup.scratch, terms)?;
        }
        Ok(guest)
    }

    /// Opens what the guest finds as directories; without any this need not happen before the guest uses WASI.
    fn open_directories(
        &mut self,
        scratch: Option<(std::path::PathBuf, &'static str)>,
        terms: &Terms,
    ) -> Result<(), CellError> {
        let mut builder = self.wasi_settings.builder(&self.stdout, &self.stderr);
        // The host's own directory answers at once; a granted one may lie on a slow disk or hold a pipe, and is
        // left to threads that may wait.
        builder.allow_blocking_current_thread(terms.grants.fs.is_empty());
        if let Some((host, guest)) = scratch {
            builder.preopened_dir(&host, guest, FsPerms::ReadOnly).map_err(|error| CellError::Host {
                message: format!("cannot open the directory of the state file: {error:#}"),
            })?;
        }
        for grant in &terms.grants.fs {
            if !grant.guest.starts_with('/') || grant.guest.trim_matches('/').is_empty() {
                return Err(CellError::Directory {
                    message: format!(
                        "the directory `{}` is granted to `{}` as `{}`; it needs an absolute path of its own, such as `/data`",
                        grant.host.display(),
                        terms.plugin,
                        grant.guest
                    ),
                });
            }
            let request = Request::Directory { guest: &grant.guest, access: grant.access };
            if decide(&terms.grants, &request) != Decision::Allow {
                continue;
            }
            let permissions = match grant.access {
                Access::Read => FsPerms::ReadOnly,
                Access::ReadWrite => FsPerms::ReadWrite,
            };
            builder.preopened_dir(&grant.host, &grant.guest, permissions).map_err(|error| CellError::Directory {
                message: format!(
                    "cannot open the directory `{}`, which is granted to `{}` as `{}`: {error:#}",
                    grant.host.display(),
                    terms.plugin,
                    grant.guest
                ),
            })?;
        }
        self.wasi = Some(builder.build());
        Ok(())
    }
}

impl WasiSettings {
    fn builder(&mut self, stdout: &Capture, stderr: &Capture) -> WasiCtxBuilder {
        let clock = self.clock.take().unwrap_or_else(Clock::coarse);
        let mut builder = WasiCtxBuilder::new();
        builder
            .args(&self.args)
            .envs(&self.env)
            .stdout(stdout.clone())
            .stderr(stderr.clone())
            .wall_clock(Wall(clock.clone()))
            .monotonic_clock(Monotonic(clock))
            .max_random_size(MAX_RANDOM)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .allow_blocking_current_thread(true);
        if let Some(seed) = self.seed {
            builder
                .secure_random(SmallRng::seed_from_u64(seed))
                .insecure_random(SmallRng::seed_from_u64(seed.wrapping_add(1)))
                .insecure_random_seed(u128::from(seed));
        }
        builder
    }
}

impl WasiView for GuestState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let ctx = self.wasi.get_or_insert_with(|| self.wasi_settings.builder(&self.stdout, &self.stderr).build());
        WasiCtxView { ctx, table: &mut self.table }
    }
}

impl WasiHttpView for GuestState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { hooks: &mut self.egress, table: &mut self.table, ctx: &mut self.http }
    }
}

/// Takes the price of a host call that moved `bytes` from the guest's fuel.
fn charge(store: &mut StoreContextMut<'_, GuestState>, bytes: usize) -> wasmtime::Result<()> {
    let price = HOST_CALL_FUEL + bytes as u64 / BYTES_PER_FUEL;
    match store.get_fuel()?.checked_sub(price) {
        Some(left) => store.set_fuel(left),
        None => {
            store.set_fuel(0)?;
            Err(Trap::OutOfFuel.into())
        }
    }
}

/// A linker with everything a guest may import. Importing alone gives nothing: each function asks the policy.
pub(crate) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<GuestState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    files::add_to_linker(&mut linker)?;
    linker.instance(TYPES)?;

    let mut state = linker.instance(STATE)?;
    state.func_wrap("get", |mut store: StoreContextMut<'_, GuestState>, (path,): (String,)| {
        let value = store.data().state.as_ref().and_then(|state| state.get(&path));
        charge(&mut store, path.len() + value.as_ref().map_or(0, String::len))?;
        Ok((value,))
    })?;
    state.func_wrap("all", |mut store: StoreContextMut<'_, GuestState>, (): ()| {
        let all = store.data().state.as_ref().map_or_else(|| Arc::from("{}"), |state| state.all());
        charge(&mut store, all.len())?;
        Ok((all,))
    })?;

    linker.instance(LOG)?.func_wrap(
        "log",
        |mut store: StoreContextMut<'_, GuestState>, (level, message): (LogLevel, String)| {
            charge(&mut store, message.len())?;
            store.data_mut().notes.log(level, &message);
            Ok(())
        },
    )?;

    linker.instance(CONFIG)?.func_wrap("get", |mut store: StoreContextMut<'_, GuestState>, (key,): (String,)| {
        let value = store.data().config.get(&key).cloned();
        charge(&mut store, key.len() + value.as_ref().map_or(0, String::len))?;
        Ok((value,))
    })?;

    linker.instance(ASK)?.func_wrap("ask", |mut store: StoreContextMut<'_, GuestState>, (question,): (String,)| {
        charge(&mut store, question.len())?;
        let Some(answers) = &mut store.data_mut().answers else {
            let message = "a script cannot put questions; use an `input` node".to_owned();
            return Ok((Err(PluginError::Denied(Failure { message, metadata: Vec::new() })),));
        };
        match answers.next() {
            Some(answer) => Ok((Ok(answer),)),
            None => Err(wasmtime::Error::new(Unanswered { question })),
        }
    })?;
    Ok(linker)
}
