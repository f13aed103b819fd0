//! Executing recorded calls again: in the components that ran them, to see that they do the same, or in a changed one, to see
//! what it does otherwise.

use std::collections::HashMap;
use std::io;
use std::str::Utf8Error;
use std::sync::Arc;

use hotcell_budget::Fuel;
use hotcell_cells::{Cell, Difference, Gap, LoadError, Recording, digest};
use hotcell_journal::{EntryPath, JournalError, RunId, RunStore, StoredCall};
use thiserror::Error;

use crate::cells::{CarriedError, CellRuntime};
use crate::components::Carried;
use crate::host::Host;
use crate::recordings::UnreadRecording;
use crate::{python, recordings};

/// How many recordings are read at a time.
const PAGE: usize = 200;

/// Why no call of a run is executed again.
#[derive(Debug, Error)]
pub enum ReexecuteError {
    /// The journal failed
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run has no recordings
    #[error(
        "run `{0}` has no recorded calls: it called no cell, `[record]` was off, or an older version of hotcell ran it"
    )]
    NothingRecorded(RunId),
    /// There is no such place
    #[error("run `{run}` has nothing at `{place}`; `hotcell runs show {run}` shows its places")]
    NoSuchPlace {
        /// The run
        run: RunId,
        /// The place
        place: EntryPath,
    },
    /// What happened there is no call of a cell
    #[error("what run `{run}` did at `{place}` is not a sealed call, or was not recorded")]
    NoCall {
        /// The run
        run: RunId,
        /// The place
        place: EntryPath,
    },
}

/// Why a call cannot be executed again that could be, if everything were there.
#[derive(Clone, Debug, Error)]
pub enum UnusableCall {
    /// The journal does not hold its recording as it was written
    #[error("its recording cannot be used: it is damaged: {0}")]
    Damaged(String),
    /// Its recording cannot be used
    #[error("its recording cannot be used: {0}")]
    Recording(#[source] Arc<UnreadRecording>),
    /// It was to be executed in a component, and ran in an interpreter
    #[error("it is a call of a script that an interpreter runs, and no component")]
    Script,
    /// Another version of the interpreter ran it
    #[error(
        "the interpreter that ran it ({}) is not the one of this hotcell; use the version that ran it",
        shown(.digest)
    )]
    OtherInterpreter {
        /// The digest of the one that ran it
        digest: String,
    },
    /// The interpreter cannot be used
    #[error(transparent)]
    Interpreter(#[from] CarriedError),
    /// The component cannot be loaded
    #[error(transparent)]
    Load(Arc<LoadError>),
    /// The script is no text
    #[error(transparent)]
    NoText(#[from] Utf8Error),
    /// The place of what ran is not known
    #[error("the place of its {what} ({}) is not known", shown(.digest))]
    Nowhere {
        /// What ran
        what: &'static str,
        /// Its digest
        digest: String,
    },
    /// What ran is not where it was
    #[error("its {what} ({}) is not at `{origin}` any more", shown(.digest))]
    Gone {
        /// What ran
        what: &'static str,
        /// Its digest
        digest: String,
        /// The file
        origin: String,
    },
    /// What ran cannot be read
    #[error("its {what} `{origin}` cannot be read: {cause}")]
    Unreadable {
        /// What ran
        what: &'static str,
        /// The file
        origin: String,
        /// Why not
        #[source]
        cause: Arc<io::Error>,
    },
    /// Something else is where it was
    #[error("its {what} `{origin}` was changed: it was {} and is {} now", shown(.was), shown(.is))]
    Changed {
        /// What ran
        what: &'static str,
        /// The file
        origin: String,
        /// The digest of what ran
        was: String,
        /// The digest of what is there
        is: String,
    },
}

/// What came of a call that was executed again.
#[derive(Clone, Debug)]
pub enum Again {
    /// The same, to the byte and to the unit of fuel
    Same {
        /// The fuel
        fuel: Fuel,
    },
    /// Something else
    Different {
        /// The first difference of what it gave; none if only the fuel is another
        output: Option<Difference>,
        /// The fuel that was recorded, and that was used now
        fuel: (Fuel, Fuel),
    },
    /// It asks something that the recording does not hold, as words after "asks"
    Wants(String),
    /// Its recording does not hold what is needed, for a reason that lies in the call
    Left(Gap),
    /// The recording or the component cannot be used
    Unusable(UnusableCall),
}

/// A recorded call and what came of executing it again.
#[derive(Clone, Debug)]
pub struct CallReexecuted {
    /// Where in the run it was made
    pub place: EntryPath,
    /// How many calls of the run were recorded before it, and one
    pub number: u64,
    /// Whose call it was: a script or plugin
    pub name: String,
    /// What was called, in a few words; none if the recording cannot be read
    pub called: Option<String>,
    /// What came of it
    pub again: Again,
}

/// How many calls came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Gave the same
    pub same: u64,
    /// Gave something else
    pub different: u64,
    /// Asked for more than the recording holds
    pub wants: u64,
    /// Cannot be executed again, by what they are
    pub left: u64,
    /// Cannot be executed again, because something is not there or damaged
    pub unusable: u64,
    /// The fuel that was recorded, of those that gave the same or something else
    pub fuel_before: u64,
    /// The fuel that they used now
    pub fuel_after: u64,
}

impl Tally {
    /// Counts a call.
    pub fn add(&mut self, again: &Again) {
        let fuel = match again {
            Again::Same { fuel } => Some((*fuel, *fuel)),
            Again::Different { fuel, .. } => Some(*fuel),
            _ => None,
        };
        let (before, after) = fuel.unwrap_or_default();
        self.fuel_before = self.fuel_before.saturating_add(before.0);
        self.fuel_after = self.fuel_after.saturating_add(after.0);
        *match again {
            Again::Same { .. } => &mut self.same,
            Again::Different { .. } => &mut self.different,
            Again::Wants(_) => &mut self.wants,
            Again::Left(_) => &mut self.left,
            Again::Unusable(_) => &mut self.unusable,
        } += 1;
    }

    /// All calls.
    pub fn calls(&self) -> u64 {
        self.same + self.different + self.wants + self.left + self.unusable
    }
}

/// Finds what ran recorded calls, by its digest. Keeps what it found.
pub struct Finder {
    journal: Arc<dyn RunStore>,
    runtime: CellRuntime,
    cells: HashMap<String, Result<Cell, UnusableCall>>,
    sources: HashMap<String, Result<Arc<str>, UnusableCall>>,
}

impl Finder {
    /// The component of a recording.
    async fn cell(&mut self, recording: &Recording) -> Result<Cell, UnusableCall> {
        let wanted = &recording.component;
        if let Some(known) = self.cells.get(wanted) {
            return known.clone();
        }
        let found = match (self.runtime.carried(wanted), &recording.source) {
            (Some(carried), _) => carried.map_err(UnusableCall::from),
            (None, Some(_)) => Err(UnusableCall::OtherInterpreter { digest: wanted.clone() }),
            (None, None) => self.bytes(recording, wanted, "component").await.and_then(|bytes| {
                let loaded = self.runtime.cells().load(&recording.plugin, &bytes);
                loaded.map_err(|error| UnusableCall::Load(Arc::new(error)))
            }),
        };
        self.cells.insert(wanted.clone(), found.clone());
        found
    }

    /// The script of a recording, where an interpreter ran one.
    async fn source(&mut self, recording: &Recording) -> Result<Option<Arc<str>>, UnusableCall> {
        let Some(wanted) = &recording.source else { return Ok(None) };
        if let Some(known) = self.sources.get(wanted) {
            return known.clone().map(Some);
        }
        let found = if let Some(harness) = python::harness_of(wanted) {
            Ok(harness.into())
        } else {
            let bytes = self.bytes(recording, wanted, "script").await;
            bytes.and_then(|bytes| Ok(std::str::from_utf8(&bytes)?.into()))
        };
        self.sources.insert(wanted.clone(), found.clone());
        found.map(Some)
    }

    /// What has this digest: kept in the journal, or in the file that it was loaded from.
    async fn bytes(&self, recording: &Recording, wanted: &str, what: &'static str) -> Result<Vec<u8>, UnusableCall> {
        if let Ok(bytes) = self.journal.artefact(wanted).await
            && digest(&bytes) == wanted
        {
            return Ok(bytes);
        }
        match &recording.origin {
            Some(origin) => file_of(origin, wanted, what),
            // One that comes with hotcell lay nowhere.
            None => Carried::of_digest(wanted).ok_or_else(|| UnusableCall::Nowhere { what, digest: wanted.to_owned() }),
        }
    }
}

/// A file that has to have this digest.
fn file_of(origin: &str, wanted: &str, what: &'static str) -> Result<Vec<u8>, UnusableCall> {
    let (origin, wanted) = (origin.to_owned(), wanted.to_owned());
    match hotcell_files::read(&origin, hotcell_files::MAX_COMPONENT) {
        Ok(bytes) => match digest(&bytes) {
            found if found == wanted => Ok(bytes),
            found => Err(UnusableCall::Changed { what, origin, was: wanted, is: found }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(UnusableCall::Gone { what, digest: wanted, origin })
        }
        Err(error) => Err(UnusableCall::Unreadable { what, origin, cause: Arc::new(error) }),
    }
}

/// The beginning of a digest, for people.
fn shown(digest: &str) -> String {
    format!("SHA-256 {}…", digest.get(..12).unwrap_or(digest))
}

/// In what calls are executed again.
enum In<'a> {
    /// The component, and the script, that ran them
    WhatRanIt(&'a mut Finder),
    /// This component
    Another(&'a Cell),
}

impl Host {
    /// Looks for components and scripts of recordings, for [`Host::reexecute`].
    pub fn finder(&self) -> Finder {
        let runtime = self.context().cell_runtime().clone();
        Finder { journal: self.journal().clone(), runtime, cells: HashMap::new(), sources: HashMap::new() }
    }

    /// Executes the recorded calls of a run again, all of them or those at `place` and within it, in the components that ran
    /// them. Nothing outside is asked. `told` is told of each.
    ///
    /// # Errors
    /// When there is no such run or place, or nothing is recorded there.
    pub async fn reexecute(
        &self,
        finder: &mut Finder,
        run: &RunId,
        place: Option<&EntryPath>,
        told: &mut (dyn FnMut(CallReexecuted) + Send),
    ) -> Result<Tally, ReexecuteError> {
        let there =
            |call: &StoredCall| place.is_none_or(|place| call.place == *place || call.place.strip(place).is_some());
        let executed = self.each(run, there, In::WhatRanIt(finder), told).await?;
        match (executed, place) {
            (Some(tally), None) => Ok(tally),
            (Some(tally), Some(_)) if tally.calls() > 0 => Ok(tally),
            (_, Some(place)) => Err(self.nothing_at(run, place).await?),
            (None, None) => Err(ReexecuteError::NothingRecorded(run.clone())),
        }
    }

    /// Executes recorded calls of a run, those that are `wanted`, and tells of each. None if nothing is recorded of the run.
    async fn each(
        &self,
        run: &RunId,
        wanted: impl Fn(&StoredCall) -> bool + Send,
        mut component: In<'_>,
        told: &mut (dyn FnMut(CallReexecuted) + Send),
    ) -> Result<Option<Tally>, JournalError> {
        let mut tally = None;
        let mut after = 0;
        loop {
            let calls = self.journal().calls(run, after, PAGE).await?;
            let Some(last) = calls.last() else { return Ok(tally) };
            after = last.number;
            let tally: &mut Tally = tally.get_or_insert_default();
            for StoredCall { number, place, name, body } in calls.into_iter().filter(&wanted) {
                let recording = body
                    .map_err(UnusableCall::Damaged)
                    .and_then(|body| recordings::read(&body).map_err(|error| UnusableCall::Recording(Arc::new(error))));
                let called = recording.as_ref().ok().map(|recording| recording.call.to_string());
                let again = match recording {
                    Err(error) => Again::Unusable(error),
                    Ok(Recording { gap: Some(gap), .. }) => Again::Left(gap),
                    Ok(recording) => self.again(&mut component, &recording).await,
                };
                tally.add(&again);
                told(CallReexecuted { place, number, name, called, again });
            }
        }
    }

    /// Why there is no recorded call at a place.
    async fn nothing_at(&self, run: &RunId, place: &EntryPath) -> Result<ReexecuteError, JournalError> {
        let history = self.journal().history(run).await?;
        let is_there = history.entries.iter().any(|entry| entry.place == *place || entry.place.strip(place).is_some());
        let (run, place) = (run.clone(), place.clone());
        Ok(match is_there {
            true => ReexecuteError::NoCall { run, place },
            false => ReexecuteError::NoSuchPlace { run, place },
        })
    }

    /// Executes one recorded call again.
    async fn again(&self, component: &mut In<'_>, recording: &Recording) -> Again {
        let finder = match component {
            In::WhatRanIt(finder) => finder,
            In::Another(_) if recording.source.is_some() => return Again::Unusable(UnusableCall::Script),
            In::Another(cell) => return self.execute(cell, None, recording).await,
        };
        match (finder.cell(recording).await, finder.source(recording).await) {
            (Ok(cell), Ok(source)) => match self.execute(&cell, source, recording).await {
                Again::Wants(_) | Again::Different { .. } if recording.has_failed_request() => {
                    Again::Left(Gap::FailedRequest)
                }
                again => again,
            },
            (Err(error), _) | (_, Err(error)) => Again::Unusable(error),
        }
    }

    async fn execute(&self, cell: &Cell, source: Option<Arc<str>>, recording: &Recording) -> Again {
        let again = self.context().cell_runtime().cells().reexecute(cell, source, recording).await;
        match (again.wanted, recording.gave.difference(&again.gave)) {
            (Some(wanted), _) => Again::Wants(wanted),
            (None, None) if again.fuel == recording.fuel => Again::Same { fuel: again.fuel },
            (None, output) => Again::Different { output, fuel: (recording.fuel, again.fuel) },
        }
    }

    /// Compiles a component for [`Host::replay`], and gives it with the name that its calls were recorded under, if it says one.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub fn load_for_replay(&self, name: &str, bytes: &[u8]) -> Result<(Cell, Option<String>), LoadError> {
        let cell = self.context().cell_runtime().cells().load(name, bytes)?;
        let named = cell.description().map(|description| description.name.clone());
        Ok((cell, named))
    }

    /// Executes the recorded calls of a run that were made of `plugin` again in `cell`, which may be another component. `told` is
    /// told of each. Calls of others are left out.
    ///
    /// # Errors
    /// When the journal fails.
    pub async fn replay(
        &self,
        cell: &Cell,
        plugin: &str,
        run: &RunId,
        told: &mut (dyn FnMut(CallReexecuted) + Send),
    ) -> Result<Tally, JournalError> {
        let of_plugin = |call: &StoredCall| call.name == plugin;
        Ok(self.each(run, of_plugin, In::Another(cell), told).await?.unwrap_or_default())
    }
}
