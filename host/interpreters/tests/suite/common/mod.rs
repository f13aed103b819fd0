//! Calls of the embedded interpreters for the tests.
pub(crate) mod server;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use hotcell_budget::Budget;
use hotcell_cells::{Cell, Cells, CellsOptions, RecordTerms, Recording, Report, ScriptCall, StateView, Terms};
use hotcell_interpreters::{Lookup, for_extension};

/// A state that is only text.
struct Text(Arc<str>);

impl StateView for Text {
    fn get(&self, _path: &str) -> Option<String> {
        None
    }

    fn all(&self) -> Arc<str> {
        self.0.clone()
    }
}

/// The cells of this test process; without a cache, so that nothing outside the test takes part.
pub(crate) fn cells() -> &'static Cells {
    static CELLS: OnceLock<Cells> = OnceLock::new();
    CELLS.get_or_init(|| Cells::new(CellsOptions::default()).expect("this machine runs cells"))
}

/// The cell for scripts with an extension, or none where hotcell was built without it. It is unpacked once.
pub(crate) fn cell(extension: &str) -> Option<Cell> {
    static LOADED: Mutex<BTreeMap<&str, Cell>> = Mutex::new(BTreeMap::new());
    match for_extension(extension) {
        Lookup::Found(one) => {
            let mut loaded = LOADED.lock().expect("no test panics while it loads a cell");
            let load = || cells().load_carried(one.name, one.wasm_digest, || one.unpack()).expect("the cell loads");
            Some(loaded.entry(one.name).or_insert_with(load).clone())
        }
        Lookup::NotBuilt { .. } => None,
        Lookup::Unknown => panic!("no interpreter runs `.{extension}`"),
    }
}

/// Runs a script with a state and variables, under the budget of interpreters or another.
pub(crate) async fn run(
    extension: &str,
    source: &str,
    state: &str,
    env: &[(String, String)],
    budget: Option<Budget>,
) -> Option<Report<String>> {
    let mut terms = Terms::new(format!("scripts/script.{extension}"));
    terms.budget = budget.unwrap_or_else(Budget::interpreter);
    terms.env = env.to_vec();
    run_under(extension, source, state, terms).await
}

/// Runs a script under given terms.
pub(crate) async fn run_under(extension: &str, source: &str, state: &str, terms: Terms) -> Option<Report<String>> {
    let cell = cell(extension)?;
    let file_name = format!("scripts/script.{extension}");
    let terms = Terms { record: Some(RecordTerms::default()), ..terms };
    let call = ScriptCall { file_name, source: Some(source.into()), state: Arc::new(Text(state.into())), terms };
    let report = cells().run_script(&cell, call).await;
    let recording = report.recording.as_deref().map(|text| Recording::read(text).expect("it was written just now"));
    if let Some(recording) = recording.filter(|recording| recording.gap.is_none()) {
        // Everything that a test does has to be the same when it is executed again from its recording.
        let again = cells().reexecute(&cell, Some(source.into()), &recording).await;
        assert_eq!((again.wanted, again.gave), (None, recording.gave), "{extension}: {source}");
        assert_eq!(again.fuel, recording.fuel, "{extension}: {source}");
    }
    Some(report)
}
