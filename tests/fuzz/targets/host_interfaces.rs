//! A guest that calls the host with whatever pointers, lengths and texts the bytes say. Whatever it does, the call ends with
//! a report within its limits, nothing outside of its directory changes, and no value of a secret is said.
#![no_main]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hotcell_budget::{Budget, Fuel, Usage};
use hotcell_cells::{
    Cell, Cells, CellsOptions, Grants, HttpExchange, HttpReply, HttpTape, KeyValueStore, Secrets, ServiceError,
    ServiceReply, Services, Terms, ToolCall,
};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};
use wasm_encoder::{ComponentSection as _, CustomSection};

const GUEST: &[u8] = include_bytes!(env!("HOTCELL_FUZZ_GUEST"));
const DESCRIPTION: &str = r#"{"contract":"0.2.0","name":"fuzz","tools":[{"name":"do","description":"Obeys",
    "parameters":{"type":"object"}}]}"#;
const SECRET: &str = "value-of-the-secret";
const KEPT: &str = "what must not change";

struct World {
    cells: Cells,
    cell: Cell,
    runtime: Runtime,
    folder: tempfile::TempDir,
    grants: Arc<Grants>,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let mut bytes = GUEST.to_vec();
    CustomSection { name: "hotcell:description".into(), data: DESCRIPTION.as_bytes().into() }
        .append_to_component(&mut bytes);
    let cells = Cells::new(CellsOptions { max_concurrent_calls: 2, ..CellsOptions::default() }).expect("no cells");
    let cell = cells.load("fuzz", &bytes).expect("the guest does not load");
    let runtime = Builder::new_current_thread().enable_all().build().expect("no runtime");
    let folder = tempfile::tempdir().expect("no folder");
    std::fs::create_dir(folder.path().join("open")).expect("no folder");
    let grants = format!(
        "fs = [{{ host = {:?}, guest = '/open', access = 'read-write' }}]\nhttp = ['http://granted.example']\n\
         env = ['LANG']\nkv = true\nllm = true\ntool = ['search']\nask = true\n\
         secret = [{{ name = 'KEY', servers = ['http://granted.example'] }}]",
        folder.path().join("open")
    );
    let grants = Arc::new(toml::from_str(&grants).expect("the grants are wrong"));
    World { cells, cell, runtime, folder, grants }
});

/// Answers everything with what it was asked.
struct Echo;

#[async_trait]
impl Services for Echo {
    async fn complete(&self, request: &str) -> ServiceReply {
        ServiceReply { result: Ok(request.to_owned()), usage: vec![("model".to_owned(), Usage::default())] }
    }

    async fn call_tool(&self, name: &str, arguments: &str, _: u32) -> ServiceReply {
        assert_eq!(name, "search", "a tool was called that was not granted");
        ServiceReply { result: Err(ServiceError::Other(arguments.to_owned())), usage: Vec::new() }
    }
}

impl HttpTape for Echo {
    fn reply(&self, exchange: &HttpExchange) -> Result<HttpReply, String> {
        assert!(exchange.url.starts_with("http://granted.example"), "a server was asked that was not granted");
        Ok(HttpReply { status: 200, headers: Vec::new(), body: exchange.body.clone() })
    }
}

#[derive(Default)]
struct Store(Mutex<BTreeMap<String, Vec<u8>>>);

impl Store {
    fn entries(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyValueStore for Store {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ServiceError> {
        Ok(self.entries().get(key).cloned())
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), ServiceError> {
        self.entries().insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    fn delete(&self, key: &str) -> Result<(), ServiceError> {
        self.entries().remove(key);
        Ok(())
    }

    fn keys(&self, prefix: &str, limit: usize) -> Result<Vec<String>, ServiceError> {
        Ok(self.entries().keys().filter(|key| key.starts_with(prefix)).take(limit).cloned().collect())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let world = &*WORLD;
    let kept: PathBuf = world.folder.path().join("kept");
    std::fs::write(&kept, KEPT).expect("the folder is gone");
    // A request whose body never ends waits as long as it may.
    let budget = Budget { fuel: Fuel(5_000_000), wall_clock: Duration::from_millis(200), ..Budget::default() };
    let (log_lines, error_bytes) = (budget.log_lines as usize, budget.error_bytes.as_usize());
    let terms = Terms {
        grants: world.grants.clone(),
        budget,
        secrets: Secrets::new([("KEY".to_owned(), SECRET.to_owned())]),
        kv: Some(Arc::new(Store::default())),
        services: Some(Arc::new(Echo)),
        tape: Some(Arc::new(Echo)),
        ..Terms::new("fuzz")
    };
    let arguments = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let call = ToolCall { tool: "do".to_owned(), arguments, answers: vec!["yes".to_owned()], terms };
    let report = world.runtime.block_on(world.cells.call_tool(&world.cell, call));
    assert!(report.logs.len() <= log_lines);
    if let Err(error) = &report.result {
        // A few words around what the guest said.
        assert!(error.to_string().len() <= 2 * error_bytes + 1_024, "{} bytes", error.to_string().len());
    }
    assert!(!format!("{report:?}").contains(SECRET), "a secret was said");
    assert_eq!(std::fs::read_to_string(&kept).ok().as_deref(), Some(KEPT));
});
