//! Wrote `runs-605af10.db`. It is a test program of commit 605af10 and is not compiled here; README.md says how it is run.

#[path = "../common/mod.rs"]
mod common;
mod graphs;
mod world;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotcell_engine::{
    Engine, Entry, Fact, RunInput, Journal, Outcome, RunId, RunReport, RunRequest, RunStatus, SqliteJournal,
    open_questions,
};
use hotcell_graph::ir::Graph;
use tokio_util::sync::CancellationToken;
use world::World;

/// Starts a run of this graph; `source` is the name by which the tests know it.
async fn start(world: World, journal: &Arc<SqliteJournal>, graph: Arc<Graph>, source: &str, given: RunInput) -> RunReport {
    let request = RunRequest { graph, source: source.into(), digest: "605af10".into(), given };
    let engine = Engine::new(Arc::new(world).ports(), journal.clone());
    engine.start(request, CancellationToken::new()).await.unwrap()
}

/// Starts a run and drops it when everything that hangs was asked for: its process dies there.
async fn die(world: World, journal: &Arc<SqliteJournal>, graph: Arc<Graph>, source: &'static str, given: RunInput) {
    let world = Arc::new(world);
    let engine = Engine::new(world.ports(), journal.clone());
    let request = RunRequest { graph, source: source.into(), digest: "605af10".into(), given };
    let run = tokio::spawn(async move { engine.start(request, CancellationToken::new()).await.map(|_| ()) });
    let hang = || {
        let asked = world.asked.lock().unwrap();
        world.hangs.iter().all(|hangs| asked.iter().any(|asked| asked == hangs))
    };
    while !hang() {
        assert!(!run.is_finished(), "{source} ended");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
}

/// Answers the oldest open question of a run, as `hotcell runs answer` did.
fn answer(journal: &Arc<SqliteJournal>, run: &RunId, text: &str) {
    let _lock = journal.lock(run).unwrap();
    let open = open_questions(&journal.entries(run).unwrap()).remove(0);
    let fact = Fact::Answered { number: open.number, text: text.into() };
    journal.append(run, &Entry { place: open.place, fact }).unwrap();
}

fn said(input: &str) -> RunInput {
    RunInput { input: Some(input.into()), ..RunInput::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write() {
    let path = Path::new("runs-605af10.db");
    assert!(!path.exists(), "{} is there already", path.display());
    let journal = Arc::new(SqliteJournal::open(path).unwrap());

    // A run that waited, was answered and completed.
    let report = start(World::default(), &journal, graphs::journey(), "completed", RunInput::default()).await;
    answer(&journal, &report.run, " ja ");
    let engine = Engine::new(Arc::new(World::default()).ports(), journal.clone());
    let report = engine.resume(&report.run, graphs::journey(), CancellationToken::new()).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Completed { .. }));

    let broken = World { is_broken: true, ..World::default() };
    let report = start(broken, &journal, graphs::brittle(), "failed", RunInput::default()).await;
    assert!(matches!(report.outcome, Outcome::Failed { .. }));

    let report = start(World::default(), &journal, graphs::journey(), "waiting", RunInput::default()).await;
    assert!(matches!(report.outcome, Outcome::Waiting { .. }));

    for source in ["two questions", "half answered", "cancelled"] {
        let report = start(World::default(), &journal, graphs::doubts(), source, said("Äpfel & Öl")).await;
        let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
        assert_eq!(questions.len(), 2);
        match source {
            "half answered" => answer(&journal, &report.run, "blau"),
            "cancelled" => journal.set_status(&report.run, RunStatus::Cancelled, None).unwrap(),
            _ => {}
        }
    }

    let world = World {
        hangs: &["model with 1 results of weather", "write Besançon", "fetch Česká Lípa"],
        ..World::default()
    };
    let given = RunInput { variables: [("city".into(), "Zürich".into())].into(), ..RunInput::default() };
    die(world, &journal, graphs::survey(), "died", given).await;

    // The model refused its second request, and the node began anew.
    let world = World {
        refuses: "model with 1 results of weather",
        hangs: &["model with 2 results of weather"],
        ..World::default()
    };
    die(world, &journal, graphs::patience(), "refused", RunInput::default()).await;

    // A run that has all its entries, and died before it could say so.
    let report = start(World::default(), &journal, graphs::brittle(), "at its end", RunInput::default()).await;
    assert!(matches!(report.outcome, Outcome::Completed { .. }));
    journal.set_status(&report.run, RunStatus::Running, None).unwrap();

    let given = RunInput { thread: Some("größe".into()), ..said("Ich heiße Zoë 🌷") };
    let first = start(World::default(), &journal, graphs::thread(), "thread", given).await;
    let given = RunInput {
        thread: Some("größe".into()),
        earlier: Some(first.state.to_object()),
        after: Some(first.run.to_string()),
        depth: 1,
        ..said("Wie heiße ich? こんにちは")
    };
    let second = start(World::default(), &journal, graphs::thread(), "thread", given).await;
    assert!(matches!(second.outcome, Outcome::Completed { .. }));
}
