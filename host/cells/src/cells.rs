//! Loading: from the bytes of a plugin, or an interpreter that hotcell carries, to a cell that can be called.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use hotcell_budget::{Budget, Bytes};
use wasmtime::component::{Component, InstancePre, Linker};

use crate::cache::{self, Cache, Checked};
use crate::clock::Repeatable;
use crate::compile::{self, CompileLimits, Source};
use crate::cost;
use crate::description::{self, Description};
use crate::engine;
use crate::entries::{Entries, ScriptEntry, find_entries};
use crate::guest::GuestState;
use crate::inspect::{Shape, inspect};
use crate::linker::linker;
use crate::load_error::LoadError;
use crate::machine;
use crate::pool::{self, Allocation, HostEngine};
use crate::room::{Room, Share};

/// Calls that are prepared for, if nothing is said.
const DEFAULT_CALLS: usize = 64;

/// How the cells of a process are set up.
#[derive(Clone)]
pub struct CellsOptions {
    /// Where compiled components are kept between processes; without it everything is compiled anew.
    pub cache_dir: Option<PathBuf>,
    /// A fixed clock and seed for every call, in place of real time and fresh random numbers.
    pub repeatable: Option<Repeatable>,
    /// Calls that may run at once; others wait. The address space for so many is reserved at the start.
    pub max_concurrent_calls: usize,
    /// Memory that all calls together may have: each takes its limit from it before it starts, and waits until there is
    /// enough. None is half of what the machine has. A quarter is kept for calls that come from inside calls.
    pub memory: Option<Bytes>,
    /// What no call may exceed, whatever budget it carries.
    pub ceiling: Budget,
    /// What compiling a component may take, where [`compile_in_processes`](crate::compile_in_processes) was called.
    pub compilation: CompileLimits,
    /// Is told when a component is compiled, which may take seconds.
    pub on_compile: Option<CompileListener>,
}

impl Default for CellsOptions {
    fn default() -> Self {
        Self {
            cache_dir: None,
            repeatable: None,
            max_concurrent_calls: DEFAULT_CALLS,
            memory: None,
            ceiling: Budget::unlimited(),
            compilation: CompileLimits::default(),
            on_compile: None,
        }
    }
}

/// Is called, on the thread that compiles, with the progress of a compilation.
pub type CompileListener = Arc<dyn Fn(&CompileEvent) + Send + Sync>;

/// Progress of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileEvent {
    /// A component that was not in the cache is being compiled.
    Started {
        /// The cell's name.
        name: String,
        /// Bytes of the component.
        bytes: usize,
    },
    /// It is compiled.
    Finished {
        /// The cell's name.
        name: String,
        /// How long it took.
        elapsed: Duration,
    },
}

/// The cells of this process: one WebAssembly engine, what guests may import, and the cache. Cheap to clone.
#[derive(Clone)]
pub struct Cells {
    pub(crate) shared: Arc<Shared>,
    pub(crate) share: Shares,
}

/// What somebody has of the room for calls, and of that for calls that come from inside a call.
#[derive(Clone)]
pub(crate) struct Shares {
    pub(crate) calls: Arc<Share>,
    pub(crate) nested: Arc<Share>,
}

pub(crate) struct Shared {
    pub(crate) engine: wasmtime::Engine,
    calls: Room,
    /// For calls that come from inside a call
    nested: Room,
    /// The shares of whoever has none of their own
    rest: Shares,
    pub(crate) repeatable: Option<Repeatable>,
    pub(crate) ceiling: Budget,
    linker: Linker<GuestState>,
    compatibility: String,
    pub(crate) cache: Option<Cache>,
    compilation: CompileLimits,
    on_compile: Option<CompileListener>,
    loaded: Mutex<HashMap<String, Weak<Loaded>>>,
    warnings: Vec<String>,
}

/// Why the cells of a process cannot be set up at all.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up WebAssembly on this machine: {0}")]
pub struct CellsError(String);

/// A loaded cell. Cheap to clone; every call of it runs in a fresh instance.
#[derive(Clone)]
pub struct Cell {
    name: Arc<str>,
    pub(crate) loaded: Arc<Loaded>,
}

pub(crate) struct Loaded {
    digest: String,
    pub(crate) instance: InstancePre<GuestState>,
    pub(crate) entries: Entries,
    description: Option<Description>,
}

/// What kind of script a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptKind {
    /// A component of the contract's `script` world, which reads the state as it needs it.
    Plugin,
    /// A WASI command, which finds the state in its environment or a file.
    Command,
    /// A bundled interpreter, which runs the text it is given.
    Interpreter,
}

impl Cell {
    /// The name it was loaded under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The SHA-256 digest of its WebAssembly, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.loaded.digest
    }

    /// What kind of script it is, if it is one.
    pub fn script_kind(&self) -> Option<ScriptKind> {
        self.loaded.entries.script.map(|entry| match entry {
            ScriptEntry::Plugin(_) => ScriptKind::Plugin,
            ScriptEntry::Command(_) => ScriptKind::Command,
            ScriptEntry::Interpreter(_) => ScriptKind::Interpreter,
        })
    }

    /// What it says about itself, if it says anything.
    pub fn description(&self) -> Option<&Description> {
        self.loaded.description.as_ref()
    }
}

impl std::fmt::Debug for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cell")
            .field("name", &self.name)
            .field("digest", &self.digest())
            .field("script", &self.script_kind())
            .field("description", &self.description().map(|description| &description.name))
            .finish()
    }
}

impl Cells {
    /// Sets up the engine. Do it once in a process: every engine reserves address space for its calls.
    ///
    /// # Errors
    /// When WebAssembly cannot be run here at all. An unusable cache or a lack of address space only leads to
    /// [`Cells::warnings`].
    pub fn new(options: CellsOptions) -> Result<Self, CellsError> {
        let failed = |error: wasmtime::Error| CellsError(format!("{error:#}"));
        let calls = u32::try_from(options.max_concurrent_calls.clamp(1, 4_096)).unwrap_or(u32::MAX);
        let HostEngine { engine, allocation, mut warnings } =
            pool::host_engine(calls.saturating_mul(2)).map_err(failed)?;
        let linker = linker(&engine).map_err(failed)?;
        let cache = match options.cache_dir.as_deref().map(Cache::open) {
            Some(Ok(cache)) => Some(cache),
            Some(Err(error)) => {
                warnings.push(error.to_string());
                None
            }
            None => None,
        };
        let memory = options.memory.unwrap_or_else(machine::of_this_machine);
        let (permits, nested) = match allocation {
            Allocation::Pool(slots) => (slots.div_ceil(2).min(calls), slots / 2),
            Allocation::OnDemand => (calls, calls),
        };
        let calls = Room::new(permits as usize, Bytes(memory.0 - memory.0 / 4));
        let nested = Room::new(nested as usize, Bytes(memory.0 / 4));
        let rest = Shares { calls: calls.rest(), nested: nested.rest() };
        Ok(Self {
            share: rest.clone(),
            shared: Arc::new(Shared {
                compatibility: engine::compatibility(&engine),
                engine,
                calls,
                nested,
                rest,
                repeatable: options.repeatable,
                ceiling: options.ceiling,
                linker,
                cache,
                compilation: options.compilation,
                on_compile: options.on_compile,
                loaded: Mutex::default(),
                warnings,
            }),
        })
    }

    /// The same cells for somebody who shares them with others: where all of them want more than there is, each gets a part by its
    /// weight, and something is always left free for those who want less. Without a weight it is the share of all who have none of
    /// their own.
    #[must_use]
    pub fn sharing(&self, weight: Option<u32>) -> Self {
        let Shared { calls, nested, rest, .. } = &*self.shared;
        let own = |weight| Shares { calls: calls.share(weight), nested: nested.share(weight) };
        Self { shared: self.shared.clone(), share: weight.map_or_else(|| rest.clone(), own) }
    }

    /// What had to be left out on this machine, one sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.shared.warnings
    }

    /// Loads a plugin: a component of the contract, a WASI command component, or a WASI preview 1 command module.
    ///
    /// It is compiled, or taken from the cache, on this thread, which can take seconds; nothing of it is run. The
    /// same bytes are compiled once, whatever their names.
    ///
    /// # Errors
    /// When `bytes` are something else, are larger than what is accepted, import what does not exist, or use
    /// WebAssembly that is switched off. The message names `name` and fits on one line.
    pub fn load(&self, name: &str, bytes: &[u8]) -> Result<Cell, LoadError> {
        let digest = cache::digest(bytes);
        if let Some(loaded) = self.already_loaded(&digest) {
            return Ok(Cell { name: name.into(), loaded });
        }
        let shape = inspect(bytes).map_err(|error| LoadError::Inspect { name: name.to_owned(), error })?;
        let (component, description) = match shape {
            Shape::Preview1Command => (self.component(name, &digest, Source::Preview1Command(bytes))?, None),
            Shape::Component { exports, descriptions, .. } => {
                let description = description::read_for(&descriptions, &exports)
                    .map_err(|error| LoadError::Description { name: name.to_owned(), error })?;
                (self.component(name, &digest, Source::Component(bytes))?, description)
            }
        };
        let entries = find_entries(&self.shared.engine, &component, name)?;
        self.finish(name, digest, &component, entries, description)
    }

    /// Loads an interpreter that is carried inside this binary: what [`precompile`](crate::precompile) made from
    /// WebAssembly with the SHA-256 digest `wasm_digest`, and `unpack` gives.
    ///
    /// The artefact is trusted because it is part of the program: it must never come from anywhere else. With a
    /// cache it is unpacked once, written there, and mapped from then on, so that only the pages in use are read.
    ///
    /// # Errors
    /// When it cannot be unpacked, or was made by another version or for another processor.
    pub fn load_carried(
        &self,
        name: &str,
        wasm_digest: &str,
        unpack: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> Result<Cell, LoadError> {
        if let Some(loaded) = self.already_loaded(wasm_digest) {
            return Ok(Cell { name: name.into(), loaded });
        }
        let failed = |detail: String| LoadError::Compile { name: name.to_owned(), detail };
        let key = cache::key(wasm_digest, &format!("{}-carried", self.shared.compatibility));
        let cache = self.shared.cache.as_ref();
        let mapped = cache.and_then(|cache| cache.find(&key)).and_then(|found| self.map(&found).ok());
        let component = match mapped {
            Some(component) => component,
            None => {
                let cwasm = unpack().map_err(|error| failed(format!("it cannot be unpacked: {error}")))?;
                self.keep(&key, &cwasm).map_err(failed)?
            }
        };
        let run = component.get_export_index(None, "run").ok_or_else(|| LoadError::Compile {
            name: name.to_owned(),
            detail: "the interpreter has no function `run`".to_owned(),
        })?;
        let entries = Entries { script: Some(ScriptEntry::Interpreter(run)), ..Entries::default() };
        self.finish(name, wasm_digest.to_owned(), &component, entries, None)
    }

    fn already_loaded(&self, digest: &str) -> Option<Arc<Loaded>> {
        let loaded = self.shared.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.get(digest).and_then(Weak::upgrade)
    }

    fn finish(
        &self,
        name: &str,
        digest: String,
        component: &Component,
        entries: Entries,
        description: Option<Description>,
    ) -> Result<Cell, LoadError> {
        let instance = self.shared.linker.instantiate_pre(component).map_err(|error| LoadError::Compile {
            name: name.to_owned(),
            detail: crate::text::one_line(&format!("it disagrees with what it imports: {error:#}"), 500),
        })?;
        let loaded = Arc::new(Loaded { digest: digest.clone(), instance, entries, description });
        let mut all = self.shared.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, loaded| loaded.strong_count() > 0);
        all.insert(digest, Arc::downgrade(&loaded));
        Ok(Cell { name: name.into(), loaded })
    }

    /// The compiled component of `digest`: from the cache, or compiled from `source`.
    fn component(&self, name: &str, digest: &str, source: Source<'_>) -> Result<Component, LoadError> {
        let key = cache::key(digest, &self.shared.compatibility);
        let cached =
            || self.shared.cache.as_ref().and_then(|cache| cache.find(&key)).and_then(|found| self.map(&found).ok());
        if let Some(component) = cached() {
            return Ok(component);
        }
        let _place = compile::place();
        // Whoever was waited for may have compiled the same.
        if let Some(component) = cached() {
            return Ok(component);
        }
        cost::check(source.bytes()).map_err(|error| LoadError::Inspect { name: name.to_owned(), error })?;
        let failed = |detail: String| LoadError::Compile { name: name.to_owned(), detail };
        self.tell(&CompileEvent::Started { name: name.to_owned(), bytes: source.bytes().len() });
        let started = Instant::now();
        let compiled =
            compile::compile(&self.shared.engine, &self.shared.compatibility, self.shared.compilation, source);
        // Also told of what failed: whoever shows the progress takes it away.
        self.tell(&CompileEvent::Finished { name: name.to_owned(), elapsed: started.elapsed() });
        self.keep(&key, &compiled.map_err(failed)?).map_err(failed)
    }

    /// The component of machine code that this program made or carries: written to the cache and mapped from there,
    /// or, where that cannot be, copied into memory.
    fn keep(&self, key: &str, compiled: &[u8]) -> Result<Component, String> {
        let stored = self.shared.cache.as_ref().and_then(|cache| match cache.store(key, compiled) {
            Ok(stored) => Some(stored),
            Err(error) => {
                tracing::warn!("{error}");
                None
            }
        });
        if let Some(component) = stored.and_then(|stored| self.map(&stored).ok()) {
            return Ok(component);
        }
        // SAFETY: the bytes were made by this engine, or are carried inside this program, and have not left the process.
        unsafe { Component::deserialize(&self.shared.engine, compiled) }.map_err(|error| format!("{error:#}"))
    }

    /// Maps an entry of the cache.
    fn map(&self, checked: &Checked) -> Result<Component, wasmtime::Error> {
        // SAFETY: the entry lies in a directory that only this user can write, and its hash was compared with the
        // one recorded when this program wrote it; entries are replaced whole, never written to.
        unsafe { Component::deserialize_file(&self.shared.engine, &checked.path) }
    }

    fn tell(&self, event: &CompileEvent) {
        if let Some(listener) = &self.shared.on_compile {
            listener(event);
        }
    }
}
