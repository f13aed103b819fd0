//! Hostile guests, run against a set-up to see what stops them.
//!
//! An attack is a guest that tries to get or to spoil something. It ends with success only if it got what it wanted,
//! and its file says in comments what it tries and what has to stop it:
//!
//! ```wat
//! ;; loops without end
//! ;; expect: out-of-fuel or deadline
//! (module (memory (export "memory") 1)
//!   (func (export "_start") (loop $again (br $again))))
//! ```
//!
//! Each runs as one sealed call without any grant, beside a harmless neighbour that has to keep answering.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hotcell_budget::{Budget, Limit};
use hotcell_cells::{Cell, CellError, Cells, CellsOptions, Report, ScriptCall, StateView, Terms};
use rust_embed::Embed;
use thiserror::Error;

use crate::play::HarnessError;

/// The name under which limits of attacks can be set.
pub const ATTACK_NAME: &str = "hostile";
/// The name under which limits of the neighbour can be set.
pub const NEIGHBOUR_NAME: &str = "neighbour";
/// How long the neighbour rests between two calls.
const NEIGHBOUR_REST: Duration = Duration::from_millis(2);
/// A guest that does a little work and says so.
const NEIGHBOUR: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1) (data (i32.const 100) "here")
    (func (export "_start") (local $left i32)
        (local.set $left (i32.const 10000))
        (loop $work (br_if $work (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 4))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

#[derive(Embed)]
#[folder = "hostile"]
#[include = "*.wat"]
struct BuiltIn;

/// A hostile guest.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The name of its file, without the ending
    pub name: String,
    /// What it tries, in its own words; empty if it does not say
    pub tries: String,
    /// What has to stop it: one of these. Empty means anything that does
    pub expects: Vec<Stop>,
    /// The guest
    wasm: Vec<u8>,
}

/// What stopped a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was not even loaded
    Refused,
    /// A limit of its budget
    Limit(Limit),
    /// A capability that it was not granted
    Denied,
    /// It trapped
    Trap,
    /// It found nothing and ended with an exit code or an error of its own
    GaveUp,
}

impl Stop {
    fn of(word: &str) -> Option<Self> {
        match word {
            "refused" => Some(Self::Refused),
            "denied" => Some(Self::Denied),
            "trap" => Some(Self::Trap),
            "gave-up" => Some(Self::GaveUp),
            other => Limit::ALL.into_iter().find(|limit| limit.to_string() == other).map(Self::Limit),
        }
    }

    /// The word for it, as it is written behind `expect:`.
    pub fn word(self) -> Cow<'static, str> {
        match self {
            Self::Refused => "refused".into(),
            Self::Limit(limit) => limit.to_string().into(),
            Self::Denied => "denied".into(),
            Self::Trap => "trap".into(),
            Self::GaveUp => "gave-up".into(),
        }
    }
}

/// Why attacks cannot be read.
#[derive(Debug, Error)]
#[error("cannot use `{}`: {reason}", path.display())]
pub struct AttackError {
    path: PathBuf,
    reason: String,
}

/// The attacks that hotcell carries.
///
/// # Errors
/// When one is not of its form, which is a defect of hotcell.
pub fn built_in_attacks() -> Result<Vec<Attack>, AttackError> {
    let mut names: Vec<Cow<'static, str>> = BuiltIn::iter().collect();
    names.sort();
    let read = |name: Cow<'static, str>| {
        let bytes = BuiltIn::get(&name).map(|file| file.data.into_owned()).unwrap_or_default();
        Attack::read(Path::new(&*name), &bytes)
    };
    names.into_iter().map(read).collect()
}

/// The attacks of a folder: every `.wat` and `.wasm` file in it, in the order of their names.
///
/// # Errors
/// When the folder or a file cannot be read, or expects something that cannot be.
pub fn read_attacks(folder: &Path) -> Result<Vec<Attack>, AttackError> {
    let wrong =
        |path: &Path, reason: &dyn std::fmt::Display| AttackError { path: path.to_owned(), reason: reason.to_string() };
    let entries = std::fs::read_dir(folder).map_err(|error| wrong(folder, &error))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wat" || extension == "wasm"))
        .collect();
    files.sort();
    let mut attacks = Vec::with_capacity(files.len());
    for file in files {
        let bytes = hotcell_files::read(&file, hotcell_files::MAX_COMPONENT).map_err(|error| wrong(&file, &error))?;
        attacks.push(Attack::read(&file, &bytes)?);
    }
    Ok(attacks)
}

impl Attack {
    fn read(file: &Path, bytes: &[u8]) -> Result<Self, AttackError> {
        let wrong = |reason: String| AttackError { path: file.to_owned(), reason };
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let (mut tries, mut expects) = (String::new(), Vec::new());
        if file.extension().is_none_or(|extension| extension != "wat") {
            return Ok(Self { name, tries, expects, wasm: bytes.to_vec() });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
        for line in text.lines().map_while(|line| line.trim_start().strip_prefix(";;")).map(str::trim) {
            let Some(words) = line.strip_prefix("expect:") else {
                tries = if tries.is_empty() { line.to_owned() } else { format!("{tries} {line}") };
                continue;
            };
            for word in words.split(" or ").map(str::trim) {
                let stop = Stop::of(word).ok_or_else(|| wrong(format!("it expects `{word}`, which stops nothing")))?;
                expects.push(stop);
            }
        }
        let wasm = wat::parse_str(text).map_err(|error| wrong(format!("it is not WebAssembly text: {error}")))?;
        Ok(Self { name, tries, expects, wasm })
    }
}

/// What came of an attack.
#[derive(Clone, Debug)]
pub struct Attacked {
    /// What stopped it; none if it got what it wanted, or if the host itself failed
    pub stopped: Option<Stop>,
    /// What was said about it, in one line
    pub detail: String,
    /// How long it took, loading not included
    pub took: Duration,
    /// How the neighbour fared meanwhile
    pub neighbour: Neighbour,
    /// Whether it was stopped by what was expected and the neighbour went on
    pub passed: bool,
}

/// How the neighbour of an attack fared.
#[derive(Clone, Debug, Default)]
pub struct Neighbour {
    /// Calls that it answered
    pub answered: u32,
    /// The longest that one took
    pub slowest: Duration,
    /// What the first call failed with, if one did
    pub failed: Option<String>,
}

/// A set-up that is attacked.
pub struct Siege {
    cells: Cells,
    neighbour: Cell,
    attack_budget: Budget,
    neighbour_budget: Budget,
}

impl Siege {
    /// A set-up with these limits of one attack and of one call of the neighbour. Compiled guests are kept in `cache`.
    ///
    /// # Errors
    /// When WebAssembly cannot be used here.
    pub fn new(cache: Option<PathBuf>, attack: Budget, neighbour: Budget) -> Result<Self, HarnessError> {
        let cells = Cells::new(CellsOptions { cache_dir: cache, ..CellsOptions::default() })?;
        let wasm = wat::parse_str(NEIGHBOUR).map_err(|error| HarnessError::Case(error.to_string()))?;
        let neighbour_cell = cells.load(NEIGHBOUR_NAME, &wasm)?;
        Ok(Self { cells, neighbour: neighbour_cell, attack_budget: attack, neighbour_budget: neighbour })
    }

    /// Runs one attack. Needs a runtime with more than one thread, as hotcell itself has, to be worth anything.
    pub async fn attack(&self, attack: &Attack) -> Attacked {
        let over = Arc::new(AtomicBool::new(false));
        let neighbour = tokio::spawn(live_on(
            self.cells.clone(),
            self.neighbour.clone(),
            self.neighbour_budget.clone(),
            over.clone(),
        ));
        let (loaded, started) = (self.cells.load(&attack.name, &attack.wasm), Instant::now());
        let (stopped, detail) = match loaded {
            Err(error) => (Some(Stop::Refused), error.to_string()),
            Ok(cell) => judge(&call(&self.cells, &cell, ATTACK_NAME, &self.attack_budget).await),
        };
        let took = started.elapsed();
        over.store(true, Ordering::Relaxed);
        let neighbour = neighbour.await.unwrap_or_else(|error| Neighbour {
            failed: Some(format!("its task did not end well: {error}")),
            ..Neighbour::default()
        });
        let right = stopped.is_some_and(|stop| attack.expects.is_empty() || attack.expects.contains(&stop));
        let passed = right && neighbour.failed.is_none();
        Attacked { stopped, detail, took, neighbour, passed }
    }
}

/// Calls the neighbour until the attack is over, and once more after that.
async fn live_on(cells: Cells, cell: Cell, budget: Budget, over: Arc<AtomicBool>) -> Neighbour {
    let mut neighbour = Neighbour::default();
    loop {
        let last = over.load(Ordering::Relaxed);
        let started = Instant::now();
        match call(&cells, &cell, NEIGHBOUR_NAME, &budget).await.result {
            Ok(text) if text == "here" => neighbour.answered += 1,
            Ok(_) => neighbour.failed = Some("it answered something else".to_owned()),
            Err(error) => neighbour.failed = Some(error.to_string()),
        }
        neighbour.slowest = neighbour.slowest.max(started.elapsed());
        if last || neighbour.failed.is_some() {
            return neighbour;
        }
        tokio::time::sleep(NEIGHBOUR_REST).await;
    }
}

async fn call(cells: &Cells, cell: &Cell, name: &str, budget: &Budget) -> Report<String> {
    let terms = Terms { budget: budget.clone(), ..Terms::new(name) };
    let call = ScriptCall { file_name: name.to_owned(), source: None, state: Arc::new(Nothing), terms };
    cells.run_script(cell, call).await
}

fn judge(report: &Report<String>) -> (Option<Stop>, String) {
    let denial = report.denials.first();
    let (stop, detail) = match &report.result {
        Ok(_) => return (None, "it got what it wanted".to_owned()),
        Err(error @ CellError::Host { .. }) => return (None, error.to_string()),
        // It is there to be loaded and offers nothing to call: nothing of it was run.
        Err(error @ CellError::WrongKind { .. }) => (Stop::Refused, error.to_string()),
        Err(error @ CellError::Limit { limit, .. }) => (Stop::Limit(*limit), error.to_string()),
        Err(error @ CellError::Trap { .. }) => (Stop::Trap, error.to_string()),
        Err(error) => match denial {
            Some(denial) => (Stop::Denied, format!("{} is not granted", denial.capability)),
            None => (Stop::GaveUp, error.to_string()),
        },
    };
    (Some(stop), detail)
}

/// The state that guests find.
struct Nothing;

impl StateView for Nothing {
    fn get(&self, _: &str) -> Option<String> {
        None
    }

    fn all(&self) -> Arc<str> {
        "{}".into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Attack, Stop, built_in_attacks};

    #[test]
    fn every_attack_says_what_it_tries_and_what_has_to_stop_it() {
        let attacks = built_in_attacks().unwrap();
        assert!(attacks.len() >= 25, "{}", attacks.len());
        for attack in attacks {
            assert!(!attack.tries.is_empty() && !attack.expects.is_empty(), "{}", attack.name);
        }
    }

    #[test]
    fn what_an_attack_expects_has_to_exist() {
        let read = |text: &str| Attack::read("x.wat".as_ref(), text.as_bytes());
        let attack = read(";; does\n;; this\n;; expect: deadline or trap\n(module)").unwrap();
        assert_eq!((attack.tries.as_str(), attack.expects.len()), ("does this", 2));
        assert_eq!(attack.expects.iter().map(|stop| stop.word()).collect::<Vec<_>>(), ["deadline", "trap"]);
        assert_eq!(attack.expects[1], Stop::Trap);
        for text in [";; expect: mercy\n(module)", "(modul)", ";; expect: \n(module)"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read("(module)").unwrap().expects.is_empty());
    }
}
