//! The host's side of one call: what the store of a guest carries, and the functions that guests import.
//!
//! A store lives for one call. Nothing of it is shared with another call but the engine and what is read-only.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use hotcell_budget::{Budget, Usage};
use rand::rngs::{SmallRng, StdRng};
use rand::{Rng as _, SeedableRng as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::call::{CellError, PlaceFinder, StateView, Terms};
use crate::clock::{Clock, Monotonic, Repeatable, Wall};
use crate::contract::LogLevel;
use crate::denials::Denials;
use crate::directories::OpenedDirectory;
use crate::disk::Disk;
use crate::egress::Egress;
use crate::exchanges::Exchanges;
use crate::grants::{Access, Grants};
use crate::limiter::MemoryLimiter;
use crate::output::Capture;
use crate::policy::{Decision, Request, decide};
use crate::recording::{Begun, HostFunction, Player, Random, Recorder, key_of, random_key};
use crate::secrets::Vault;
use crate::services::{KeyValueStore, LogLine, LogListener, Services};
use crate::tape::Tape;
use crate::watch::{Watch, Watched};

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
    pub(crate) watch: Watch,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) notes: Notes,
    pub(crate) egress: Egress,
    /// What an interpreter's script has asked over HTTP and not heard of.
    pub(crate) exchanges: Exchanges,
    /// Things of the host's that the guest may hold at once.
    pub(crate) max_handles: usize,
    pub(crate) grants: Arc<Grants>,
    pub(crate) denials: Denials,
    /// The handle of the empty root directory, once the guest has it.
    pub(crate) root: Option<u32>,
    /// What may be left on the disk.
    pub(crate) disk: Disk,
    /// By the number of a handle, the granted directory with a limit of its own that it lies in.
    pub(crate) limited: HashMap<u32, usize>,
    /// By the number of a handle, the bytes of the entries of a directory that the guest reads.
    pub(crate) listings: HashMap<u32, usize>,
    /// How many files guests may have open together, once that was too few.
    pub(crate) open_files_exhausted: Option<u64>,
    pub(crate) state: Option<Arc<dyn StateView>>,
    pub(crate) config: Arc<BTreeMap<String, String>>,
    /// Answers for `ask`; none where questions cannot be put.
    pub(crate) answers: Option<std::vec::IntoIter<String>>,
    pub(crate) services: Option<Arc<dyn Services>>,
    pub(crate) kv: Option<Arc<dyn KeyValueStore>>,
    pub(crate) vault: Arc<Vault>,
    /// What other plugins and models used on behalf of this call.
    pub(crate) nested: Vec<(String, Usage)>,
    pub(crate) depth: u32,
    /// Where what the guest takes from the host is recorded, or comes from.
    pub(crate) tape: Tape,
    /// Says where in the source the guest trapped.
    pub(crate) places: Option<PlaceFinder>,
    listener: Option<LogListener>,
    table: ResourceTable,
    /// Built when the guest first uses WASI, because many plugins never do.
    wasi: Option<WasiCtx>,
    wasi_settings: WasiSettings,
    http: WasiHttpCtx,
}

/// Whether a call is to be recorded, or executed again.
pub(crate) enum Taping {
    /// Neither
    Off,
    /// It is recorded
    Record(Box<Begun>),
    /// It is executed again, with this in the place of the host
    Play(Arc<Player>),
}

impl Taping {
    pub(crate) fn new(player: Option<Arc<Player>>, begun: Option<Begun>) -> Self {
        match (player, begun) {
            (Some(player), _) => Self::Play(player),
            (None, Some(begun)) => Self::Record(Box::new(begun)),
            (None, None) => Self::Off,
        }
    }
}

/// The lines a guest logged.
pub(crate) struct Notes {
    pub(crate) lines: Vec<LogLine>,
    pub(crate) logged: u64,
    max_lines: u32,
    max_bytes: usize,
}

impl Notes {
    /// Takes down a line and gives it back, unless there were too many before it.
    fn add(&mut self, level: LogLevel, message: &str, progress: Option<(u64, Option<u64>)>) -> Option<&LogLine> {
        self.logged += 1;
        if self.lines.len() >= self.max_lines as usize {
            return None;
        }
        self.lines.push(LogLine { level, message: crate::text::one_line(message, self.max_bytes), progress });
        self.lines.last()
    }
}

/// What WASI is set up with.
#[derive(Default)]
struct WasiSettings {
    /// The only argument
    program: String,
    env: Vec<(String, String)>,
    clock: Option<Clock>,
    random: Option<Random>,
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
    /// Whether the placeholders of secrets are variables, for guests that cannot ask for one.
    pub(crate) secrets_in_env: bool,
    /// Whether it is recorded, or executed again.
    pub(crate) taping: Taping,
}

impl GuestState {
    /// Prepares a call that began then, under `terms` and the already clamped `budget`.
    ///
    /// # Errors
    /// When a granted directory cannot be opened.
    pub(crate) fn new(
        setup: GuestSetup,
        terms: &Terms,
        budget: &Budget,
        repeatable: Option<&Repeatable>,
        began: Instant,
    ) -> Result<Self, CellError> {
        let stderr = Capture::tail(budget.error_bytes.0);
        let stdout = if setup.stdout_is_result { Capture::whole(budget.output.0) } else { stderr.clone() };
        let player = match &setup.taping {
            Taping::Play(player) => Some(player.clone()),
            Taping::Off | Taping::Record(_) => None,
        };
        let vault = Arc::new(match &player {
            Some(player) => Vault::played(player.secrets.as_ref()),
            None => Vault::new(&terms.secrets, &terms.grants, repeatable),
        });
        let mut env = terms.env.clone();
        if setup.secrets_in_env {
            let placeholders = vault.placeholders();
            // Whoever made something a secret does not mean it to be read where it is a variable, too.
            env.retain(|(name, _)| !placeholders.iter().any(|(secret, _)| secret == name));
            env.extend(placeholders);
        }
        env.extend(setup.env);
        let is_precise = || decide(&terms.grants, &Request::PreciseClock).is_allowed();
        let mut clock = match (&player, repeatable) {
            (Some(player), _) => Some(Clock::played(player.clone(), is_precise())),
            (None, Some(repeatable)) => Some(Clock::fixed(repeatable)),
            (None, None) if is_precise() => Some(Clock::precise()),
            (None, None) => None,
        };
        let random = match (&player, repeatable) {
            (Some(player), _) => Some(player.random.clone()),
            (None, Some(repeatable)) => Some(Random::Seed(repeatable.seed)),
            (None, None) if !decide(&terms.grants, &Request::FreshRandom).is_allowed() => Some(Random::default()),
            // What comes from a key can be had again, and is as hard to foresee.
            (None, None) => matches!(setup.taping, Taping::Record(_)).then(random_key),
        };
        let tape = match setup.taping {
            Taping::Off => Tape::Off,
            Taping::Play(player) => Tape::Playing(player),
            Taping::Record(begun) => {
                let recorder = Recorder::new(*begun, terms, budget, random.clone().unwrap_or_default(), &vault);
                clock = Some(clock.unwrap_or_else(Clock::coarse).recorded(recorder.clone()));
                Tape::Recording(recorder)
            }
        };
        let mut table = ResourceTable::new();
        table.set_max_capacity(budget.handles as usize);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(MAX_FIELDS);
        let denials = Denials::of(terms);
        let mut guest = Self {
            limiter: MemoryLimiter::new(budget.memory.as_usize()),
            watch: Watch::start(began, budget.wall_clock),
            stdout,
            stderr,
            notes: Notes {
                lines: Vec::new(),
                logged: 0,
                max_lines: budget.log_lines,
                max_bytes: budget.log_line_bytes.as_usize(),
            },
            egress: Egress::new(terms, budget, denials.clone(), vault.clone()).with_tape(&tape),
            exchanges: Exchanges::default(),
            max_handles: budget.handles as usize,
            grants: terms.grants.clone(),
            denials,
            root: None,
            disk: Disk::new(budget, &terms.grants),
            limited: HashMap::new(),
            listings: HashMap::new(),
            open_files_exhausted: None,
            state: setup.state,
            config: terms.config.clone(),
            answers: setup.answers.map(Vec::into_iter),
            services: terms.services.clone(),
            kv: terms.kv.clone(),
            vault,
            nested: Vec::new(),
            depth: terms.depth,
            tape,
            places: terms.places.clone(),
            listener: terms.listener.clone(),
            table,
            wasi: None,
            wasi_settings: WasiSettings { program: setup.program, env, clock, random },
            http,
        };
        if setup.scratch.is_some() || !terms.grants.fs.is_empty() {
            guest.open_directories(setup.scratch, terms)?;
        }
        Ok(guest)
    }

    /// What a function of the host gives: what `live` does, which is recorded where the call is, or what was recorded.
    pub(crate) fn take<T: Serialize + DeserializeOwned>(
        &self,
        from: HostFunction,
        asked: impl FnOnce() -> String,
        live: impl FnOnce(&Self) -> T,
    ) -> wasmtime::Result<T> {
        if let Tape::Playing(player) = &self.tape {
            return player.take(from, &asked()).map_err(wasmtime::Error::new);
        }
        let gave = live(self);
        self.tape.note(from, asked, &gave);
        Ok(gave)
    }

    /// The whole state as one JSON object.
    pub(crate) fn all_of_state(&self) -> Arc<str> {
        self.state.as_ref().map_or_else(|| Arc::from("{}"), |state| state.all())
    }

    /// The name of the program that runs, as it is told itself.
    pub(crate) fn program(&self) -> &str {
        &self.wasi_settings.program
    }

    /// Asks the policy. A denial is noted for the operator; the text is for the guest.
    pub(crate) fn permit(&self, request: &Request<'_>) -> Result<(), String> {
        match decide(&self.grants, request) {
            Decision::Allow => Ok(()),
            Decision::Deny(capability) => {
                let message = format!("{capability} is not granted");
                self.denials.add(capability);
                Err(message)
            }
        }
    }

    /// Takes down a line that the guest logged, and tells whoever listens.
    pub(crate) fn log(&mut self, level: LogLevel, message: &str, progress: Option<(u64, Option<u64>)>) {
        let message = self.vault.scrub(message.to_owned());
        let line = self.notes.add(level, &message, progress);
        if let (Some(line), Some(listener)) = (line, &self.listener) {
            listener(line);
        }
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
            let failed = |error: &dyn std::fmt::Display| CellError::Directory {
                message: format!(
                    "cannot open the directory `{}`, which is granted to `{}` as `{}`: {error:#}",
                    grant.host.display(),
                    terms.plugin,
                    grant.guest
                ),
            };
            let opened = OpenedDirectory::open(&grant.host).map_err(|error| failed(&error))?;
            builder.preopened_dir(opened.path(), &grant.guest, permissions).map_err(|error| failed(&error))?;
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
            .arg(&self.program)
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
        match self.random.take() {
            Some(Random::Seed(seed)) => {
                builder
                    .secure_random(SmallRng::seed_from_u64(seed))
                    .insecure_random(SmallRng::seed_from_u64(seed.wrapping_add(1)))
                    .insecure_random_seed(u128::from(seed));
            }
            Some(Random::Key(key)) => {
                let mut others = StdRng::from_seed(key_of(&key));
                let insecure_seed = u128::from(others.next_u64()) << 64 | u128::from(others.next_u64());
                builder
                    .insecure_random(SmallRng::seed_from_u64(others.next_u64()))
                    .secure_random(others)
                    .insecure_random_seed(insecure_seed);
            }
            None => {}
        }
        builder
    }
}

impl Watched for GuestState {
    fn watch(&mut self) -> &mut Watch {
        &mut self.watch
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
