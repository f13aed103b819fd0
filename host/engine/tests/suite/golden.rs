//! A journal that an older version wrote is brought to this one, and its runs go on as they would have gone on there.

mod graphs;
mod world;

use std::path::Path;
use std::sync::Arc;

use hotcell_engine::{Engine, Outcome, RunError, RunInput, RunReport, RunRequest};
use hotcell_graph::ir::Graph;
use hotcell_journal::{
    Entry, EntryPath, Fact, JournalError, RunId, RunQuery, RunRecord, RunStatus, RunStore, RunSummary, SqliteStore,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use self::world::World;
use crate::common::journal::{answer, before_the_end, entries, journal_with, open};
use crate::common::shown;

/// A copy of the golden file, opened by this version.
struct Journal {
    folder: TempDir,
    store: Arc<SqliteStore>,
}

impl Journal {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/runs-605af10.db");
        let copy = folder.path().join("runs.db");
        std::fs::copy(golden, &copy).expect("copied");
        Journal { store: Arc::new(SqliteStore::open(&copy).expect("brought to this layout")), folder }
    }

    /// What a later process sees.
    fn reopened(self) -> Self {
        let Journal { folder, store } = self;
        drop(store);
        Journal { store: Arc::new(SqliteStore::open(&folder.path().join("runs.db")).expect("opened")), folder }
    }

    /// All runs, the oldest first.
    async fn runs(&self) -> Vec<RunSummary> {
        let mut runs = self.store.list(&RunQuery { limit: 100, ..RunQuery::default() }).await.expect("listed").runs;
        runs.reverse();
        runs
    }

    /// The latest run of that name.
    async fn run(&self, source: &str) -> RunId {
        self.runs().await.into_iter().rfind(|run| run.source == source).expect("a run of the file").id
    }

    async fn record(&self, run: &RunId) -> RunRecord {
        self.store.find(run.as_str()).await.expect("found")
    }

    fn engine(&self, world: &Arc<World>) -> Engine {
        Engine::new(world.ports(), self.store.clone())
    }

    /// Goes on with a run, which comes to a result; gives that and what was asked for it, in the order of texts.
    async fn finish(&self, run: &RunId, graph: Arc<Graph>) -> (String, Vec<String>, RunReport) {
        let world = Arc::new(World::default());
        let report = self.engine(&world).resume(run, graph, CancellationToken::new()).await.expect("it goes on");
        let Outcome::Completed { output } = &report.outcome else { panic!("{:?}", report.outcome) };
        let record = self.record(run).await;
        assert_eq!((record.status, record.outcome.as_deref()), (RunStatus::Completed, Some(output.as_str())));
        (output.clone(), world.sorted(), report)
    }
}

/// An entry in a line.
fn line(entry: &Entry) -> String {
    let fact = match &entry.fact {
        Fact::Started(header) => {
            format!("started {} {}", header.digest, hotcell_graph::Value::Object(header.given.clone()).to_json())
        }
        Fact::Completed(done) => {
            let writes: String =
                done.writes.iter().map(|write| format!(" {}={}", write.key, write.value.to_json())).collect();
            let next = done.next.clone().unwrap_or_default().join(" ");
            let (output, calls) = (done.output.as_deref().unwrap_or("-"), done.account.total().calls);
            format!("completed {}{writes}, next: {next}, output: {output}, calls: {calls}", done.node)
        }
        Fact::Effect { number, kind, answer, .. } => format!("effect {number} {kind} {}", answer.to_json()),
        Fact::Asked { number, question } => {
            let default = question.default.as_deref().unwrap_or("-");
            format!("asked {number} {}: {} {:?}, default: {default}", question.node, question.text, question.options)
        }
        Fact::Answered { number, text } => format!("answered {number} {text:?}"),
        other => format!("{other:?}"),
    };
    let place = if entry.place == EntryPath::of_run() { "run".to_owned() } else { entry.place.to_string() };
    format!("  {place} {fact}\n")
}

async fn listing(journal: &Journal) -> String {
    let mut text = String::new();
    for run in journal.runs().await {
        let record = journal.record(&run.id).await;
        let outcome = record.outcome.as_deref().unwrap_or("-");
        text += &format!("{} ({}): {}, outcome: {outcome}\n", run.source, run.id, record.status);
        text.extend(entries(&*journal.store, &run.id).await.iter().map(line));
    }
    text
}

#[tokio::test]
async fn every_run_of_an_older_journal_is_there() {
    let journal = Journal::new();
    let expected = include_str!("../golden/runs-605af10.txt");
    let found = listing(&journal).await;
    assert_eq!(found, expected, "{found}");
    assert_eq!(listing(&journal.reopened()).await, expected);
}

#[tokio::test]
async fn runs_of_an_older_journal_that_have_ended_stay_as_they_are() {
    let journal = Journal::new();
    let world = Arc::new(World::default());
    let graphs = [("completed", graphs::journey()), ("failed", graphs::brittle()), ("cancelled", graphs::doubts())];
    for (source, graph) in graphs {
        let run = journal.run(source).await;
        let error = journal.engine(&world).resume(&run, graph, CancellationToken::new()).await.unwrap_err();
        assert!(matches!(error, RunError::Ended { .. }), "{error}");
    }
    let run = journal.run("cancelled").await;
    let asked = open(&*journal.store, &run).await;
    let late = Entry { place: asked[0].place.clone(), fact: Fact::Answered { number: 0, text: "blau".into() } };
    assert!(matches!(journal.store.send(&run, late).await, Err(JournalError::Cancelled(_))));
    assert!(world.sorted().is_empty());

    // One that failed can be tried again: what it had done is done.
    let run = journal.run("failed").await;
    let report = journal.engine(&world).retry(&run, graphs::brittle(), CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: "first, break".into() });
    assert_eq!(world.sorted(), ["break"]);
}

#[tokio::test]
async fn a_question_of_an_older_journal_is_answered() {
    let journal = Journal::new();
    let run = journal.run("waiting").await;
    let asked = open(&*journal.store, &run).await;
    assert_eq!(asked[0].question.text, "weiter nach [10,20,30,40]?");
    answer(&*journal.store, &run, &asked[0], " ja ").await;
    let (output, asked, report) = journal.finish(&run, graphs::journey()).await;
    let trail = r#"["first","left","right","deep","deeper","join","turn 1","turn 2","turn 3"]"#;
    assert_eq!(output, format!("{trail} [10,20,30,40] ja"));
    assert_eq!(asked, ["turn 0", "turn 1", "turn 2"]);
    assert_eq!(report.account.total().calls, 11, "what was used before counts, too");
    // The same as in a run that was completed by the version that began it.
    let earlier = journal.record(&journal.run("completed").await).await;
    assert_eq!(earlier.outcome.as_deref(), Some(output.as_str()));
}

#[tokio::test]
async fn every_prefix_of_an_older_journal_leads_to_the_same_result() {
    let journal = Journal::new();
    let run = journal.run("completed").await;
    let expected = Outcome::Completed { output: journal.record(&run).await.outcome.expect("a result") };
    let entries = before_the_end(&*journal.store, &run).await;
    for length in 1..=entries.len() {
        let (store, run) = journal_with(&entries[..length]).await;
        let world = Arc::new(World::default());
        let engine = Engine::new(world.ports(), store.clone());
        let go_on =
            async || engine.resume(&run, graphs::journey(), CancellationToken::new()).await.expect("it goes on");
        let mut report = go_on().await;
        if let Outcome::Waiting { .. } = report.outcome {
            answer(&*store, &run, &open(&*store, &run).await[0], "ja").await;
            report = go_on().await;
        }
        assert_eq!(report.outcome, expected, "after {length} entries");
        // An entry of a program, or of an item of the map, saves its call.
        let saves = |entry: &&Entry| match &entry.fact {
            Fact::Completed(completed) => completed.account.total().calls == 1,
            fact => matches!(fact, Fact::Effect { .. }),
        };
        let saved = entries[..length].iter().filter(saves).count();
        assert_eq!(world.sorted().len(), 11 - saved, "after {length} entries");
    }
}

#[tokio::test]
async fn two_questions_of_an_older_journal_are_answered_in_any_order() {
    for order in [[0, 1], [1, 0]] {
        let journal = Journal::new();
        let run = journal.run("two questions").await;
        let asked = open(&*journal.store, &run).await;
        let texts: Vec<&str> = asked.iter().map(|open| open.question.text.as_str()).collect();
        assert_eq!(texts, ["Welche Farbe? 🎨", "Wirklich löschen? ⚠"]);
        // No text means the default.
        let answers = ["", "na ja…"];
        // One after the other, each by a process of its own.
        let [first, second] = order;
        answer(&*journal.store, &run, &asked[first], answers[first]).await;
        let world = Arc::new(World::default());
        let report =
            journal.engine(&world).resume(&run, graphs::doubts(), CancellationToken::new()).await.expect("it goes on");
        let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
        assert_eq!(questions.len(), 1);
        let journal = journal.reopened();
        answer(&*journal.store, &run, &asked[second], answers[second]).await;
        let (output, mut asked, _) = journal.finish(&run, graphs::doubts()).await;
        assert_eq!(output, "grün|gehört: na ja…|yes");
        asked.extend(world.sorted());
        asked.sort();
        assert_eq!(asked, ["confirm {}na ja…", "model with 1 results of confirm"]);
    }
}

#[tokio::test]
async fn an_answer_that_an_older_version_took_counts() {
    let journal = Journal::new();
    let run = journal.run("half answered").await;
    let asked = open(&*journal.store, &run).await;
    assert_eq!(asked.len(), 1);
    answer(&*journal.store, &run, &asked[0], "nein").await;
    let (output, asked, _) = journal.finish(&run, graphs::doubts()).await;
    assert_eq!(output, "blau|gehört: nein|yes");
    assert_eq!(asked, ["confirm {}nein", "model with 1 results of confirm"]);
}

#[tokio::test]
async fn a_run_whose_older_process_died_goes_on_where_it_was() {
    let journal = Journal::new();
    let run = journal.run("died").await;
    let (output, asked, report) = journal.finish(&run, graphs::survey()).await;
    let reports = ["Århus", "Besançon", "Česká Lípa", "Łódź"].map(|city| format!("\"Bericht aus {city} ✓\""));
    assert_eq!(output, format!("gehört: 22 °C ☀ [{}]", reports.join(",")));
    assert_eq!(
        asked,
        [
            "fetch Česká Lípa",
            "fetch Łódź",
            "model with 1 results of weather",
            "model with 2 results of weather",
            r#"weather {"place":"Łódź"}"#,
            "write Besançon",
            "write Česká Lípa",
            "write Łódź",
        ]
    );
    assert_eq!(shown(&report.state, "city"), "\"Zürich\"");
    assert_eq!(listing(&journal).await, listing(&journal.reopened()).await);
}

/// Older versions left no trace of a model's refusal but a number that is missing.
#[tokio::test]
async fn a_run_that_an_older_version_began_anew_after_a_refusal_goes_on() {
    let journal = Journal::new();
    let run = journal.run("refused").await;
    let (output, asked, _) = journal.finish(&run, graphs::patience()).await;
    assert_eq!(output, "gehört: 22 °C ☀");
    assert_eq!(asked, ["model with 3 results of weather"]);
}

#[tokio::test]
async fn a_run_whose_older_process_died_at_its_end_has_its_result() {
    let journal = Journal::new();
    let run = journal.run("at its end").await;
    let (output, asked, _) = journal.finish(&run, graphs::brittle()).await;
    assert_eq!(output, "first, break");
    assert!(asked.is_empty(), "{asked:?}");
}

#[tokio::test]
async fn a_thread_of_an_older_journal_goes_on() {
    let journal = Journal::new();
    let world = Arc::new(World::default());
    let engine = journal.engine(&world);
    let second = journal.store.last_of_thread("thread", "größe").await.expect("read").expect("a run of the thread");
    assert_eq!(second.header.input(), Some("Wie heiße ich? こんにちは"));
    let state = engine.state_of(&second.id, graphs::thread()).await.expect("read");
    assert_eq!(shown(&state, "said"), r#"["Ich heiße Zoë 🌷","Wie heiße ich? こんにちは"]"#);
    assert_eq!(shown(&state, "turns"), "2");

    let given = RunInput {
        input: Some("Auf Wiedersehen 👋".into()),
        thread: Some("größe".into()),
        earlier: Some(state.to_object()),
        after: Some(second.id.to_string()),
        depth: RunInput::depth_of(&second.header.given) + 1,
        ..RunInput::default()
    };
    let (graph, digest) = (graphs::thread(), second.header.digest);
    let request = RunRequest { graph, source: "thread".into(), digest, kept: false, given, follows: Some(second.id) };
    let third = engine.start(request, CancellationToken::new()).await.expect("it follows");
    assert_eq!(shown(&third.state, "turns"), "3");
    let journal = journal.reopened();
    let state = journal.engine(&world).state_of(&third.run, graphs::thread()).await.expect("read");
    assert_eq!(shown(&state, "said"), r#"["Ich heiße Zoë 🌷","Wie heiße ich? こんにちは","Auf Wiedersehen 👋"]"#);
    assert_eq!(RunInput::depth_of(&journal.record(&third.run).await.header.given), 2);
}
