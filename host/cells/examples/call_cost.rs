//! Prints what one call of a script costs, over many calls.
#![allow(clippy::print_stdout, clippy::unwrap_used)]
use hotcell_cells::*;
use std::sync::Arc;
use std::time::Instant;
struct S(Arc<str>);
impl StateView for S {
    fn get(&self, path: &str) -> Option<String> {
        (path == "order").then(|| r#"{"items":[{"price":3.5},{"price":12.25}]}"#.to_owned())
    }
    fn all(&self) -> Arc<str> {
        self.0.clone()
    }
}
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let t = Instant::now();
    let cells = Cells::new(CellsOptions { cache_dir: Some("/tmp/hc-cache2".into()), ..Default::default() }).unwrap();
    println!("engine {:?} {:?}", t.elapsed(), cells.warnings());
    let bytes = std::fs::read(&args[1]).unwrap();
    let source: Option<Arc<str>> = args.get(3).map(|f| std::fs::read_to_string(f).unwrap().into());
    let cell = if source.is_some() {
        let t = Instant::now();
        let c: &'static [u8] = precompile(&bytes).unwrap().leak();
        println!("precompile {:?} {} bytes", t.elapsed(), c.len());
        for _ in 0..3 {
            let cells =
                Cells::new(CellsOptions { cache_dir: Some("/tmp/hc-cache2".into()), ..Default::default() }).unwrap();
            let t = Instant::now();
            let _cell = cells.load_precompiled("x", &format!("{:x}", bytes.len()), c).unwrap();
            println!("load cached {:?}", t.elapsed());
            let cells = Cells::new(CellsOptions::default()).unwrap();
            let t = Instant::now();
            let _cell = cells.load_precompiled("x", &format!("{:x}", bytes.len()), c).unwrap();
            println!("load memory {:?}", t.elapsed());
        }
        Some(cells.load_precompiled("x", &format!("{:x}", bytes.len()), c).unwrap())
    } else {
        None
    };
    let t = Instant::now();
    let cell = cell.unwrap_or_else(|| cells.load("x", &bytes).unwrap());
    println!("load {:?} {cell:?}", t.elapsed());
    let n: usize = args.get(2).map_or(20000, |n| n.parse().unwrap());
    let state: Arc<dyn StateView> = Arc::new(S(r#"{"order":{"items":[{"price":3.5},{"price":12.25}]}}"#.into()));
    let mut times = Vec::new();
    let mut terms = Terms::new("x");
    if source.is_some() {
        terms.budget = hotcell_budget::Budget::interpreter();
    }
    let mut last = None;
    for _ in 0..n {
        let call = ScriptCall {
            file_name: args.get(3).cloned().unwrap_or("x".into()),
            source: source.clone(),
            state: state.clone(),
            terms: terms.clone(),
        };
        let t = Instant::now();
        let r = cells.run_script(&cell, call).await;
        times.push(t.elapsed());
        last = Some(r);
    }
    times.sort();
    println!("p50 {:?} p90 {:?} p99 {:?}", times[n / 2], times[n * 9 / 10], times[n * 99 / 100]);
    println!("{last:?}");
}
