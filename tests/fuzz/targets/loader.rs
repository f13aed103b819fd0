//! Any bytes as a component: it is refused, or it can be read, loaded and instantiated, and the host goes on. What begins with a
//! bracket is the text form, so that the hostile guests of the harness are seeds.
#![no_main]

use std::sync::LazyLock;

use hotcell_budget::{Budget, Fuel};
use hotcell_cells::{Cells, CellsOptions, Terms, survey};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

static CELLS: LazyLock<Cells> = LazyLock::new(|| {
    Cells::new(CellsOptions { max_concurrent_calls: 2, ..CellsOptions::default() }).expect("cells cannot be set up")
});
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("no runtime"));

fuzz_target!(|bytes: &[u8]| {
    let parsed = if bytes.starts_with(b"(") { wat::parse_bytes(bytes).ok() } else { None };
    let bytes = parsed.as_deref().unwrap_or(bytes);
    let surveyed = survey(bytes);
    let loaded = CELLS.load("fuzzed", bytes);
    match (&surveyed, &loaded) {
        (Ok(survey), Ok(cell)) => {
            assert_eq!(survey.digest, cell.digest());
            assert_eq!(survey.description.as_ref(), cell.description());
        }
        // What an engine is needed to see, only loading sees.
        (Ok(_), Err(_)) => {}
        (Err(error), Ok(_)) => panic!("it was loaded, and cannot be read: {error}"),
        (Err(_), Err(error)) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
    if let Ok(cell) = loaded {
        let budget = Budget { fuel: Fuel(1_000_000), ..Budget::default() };
        let _ = RUNTIME.block_on(CELLS.instantiate(&cell, &Terms { budget, ..Terms::new("fuzzed") }));
    }
});
