//! A build is complete or goes on where it stopped.

use std::{
    fs,
    sync::{Mutex, atomic::Ordering},
};

use hotcell_knowledge::{KnowledgeBase, Settings};
use tempfile::TempDir;

use crate::fakes::{Words, build, open, run, write};

/// Ten documents of two chunks each.
fn ten_documents() -> TempDir {
    let folder = TempDir::new().expect("a directory");
    for number in 0..10 {
        let paragraph = |part: &str| format!("{part} of number{number} {}", "with some words ".repeat(5));
        let text = format!("{}\n\n{}\n", paragraph("first"), paragraph("second"));
        write(folder.path(), &[(&format!("docs/{number}.txt"), &text)]);
    }
    folder
}

fn names(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_build_is_one_file_and_is_not_built_again() {
    let folder = ten_documents();
    let embedder = Words::new("test:words");
    let build = build(folder.path(), &["./docs/"], &embedder);
    let seen = Mutex::new(Vec::new());
    let report = build.run(&|progress| seen.lock().expect("a lock").push(progress)).await.expect("a report");
    assert_eq!((report.documents, report.chunks, report.embedded, report.already_built), (10, 20, 20, false));
    assert_eq!(names(&folder), ["docs", "kb.db"]);
    {
        let seen = seen.lock().expect("a lock");
        let last = seen.last().expect("progress");
        assert_eq!((last.documents, last.total, last.chunks), (10, 10, 20));
        assert!(last.bytes > 1000 && seen.is_sorted_by_key(|progress| (progress.documents, progress.chunks)));
    }
    let about = KnowledgeBase::about_file(&build.file).await.expect("a knowledge base");
    assert_eq!((about.embedding_model.as_str(), about.dimensions, about.documents), ("test:words", 64, 10));
    assert_eq!((about.chunk_size, about.chunk_overlap, about.top_k, about.chunks), (20, 0, 5, 20));

    let before = fs::read(&build.file).expect("the file");
    assert!(run(&build).await.expect("a report").already_built);
    open(&build).await.search("number3", None).await.expect("passages");
    assert_eq!(embedder.count(), 21, "only the question");
    assert_eq!(
        (names(&folder), fs::read(&build.file).expect("the file")),
        (vec!["docs".into(), "kb.db".into()], before)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_build_goes_on_and_embeds_nothing_twice() {
    let folder = ten_documents();
    let embedder = Words::new("test:words");
    let build = build(folder.path(), &["./docs/"], &embedder);
    embedder.fails_after.store(12, Ordering::SeqCst);
    let error = run(&build).await.expect_err("an interruption").to_string();
    assert!(error.contains("3 vectors for 4 texts"), "{error}");
    assert_eq!(names(&folder), ["docs", "kb.db.building", "kb.db.lock"]);
    assert!(KnowledgeBase::open(folder.path().join("kb.db.building"), embedder.clone()).await.is_err());

    embedder.fails_after.store(usize::MAX, Ordering::SeqCst);
    let report = run(&build).await.expect("a report");
    assert_eq!((report.documents, report.chunks, report.embedded), (10, 20, 8));
    let mut texts = embedder.texts.lock().expect("a lock").clone();
    assert_eq!(texts.len(), 20);
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 20, "each once");
}

/// Where the process of the next test builds.
const KILLED: &str = "HOTCELL_TEST_KILLED_BUILD";

/// The process that is killed: it stops for ever after eight chunks. In a usual run it does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_to_be_killed() {
    let Some(folder) = std::env::var_os(KILLED).map(std::path::PathBuf::from) else { return };
    let build = build(&folder, &["./docs/"], &Words::new("test:words"));
    let stop = |progress: hotcell_knowledge::Progress| {
        if progress.chunks >= 8 {
            fs::write(folder.join("reached"), "").expect("a file");
            loop {
                std::thread::park();
            }
        }
    };
    build.run(&stop).await.expect("never");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_build_goes_on() {
    let folder = ten_documents();
    let mut process = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "build::a_process_to_be_killed"])
        .env(KILLED, folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("a process");
    while !folder.path().join("reached").exists() {
        assert!(process.try_wait().expect("a state").is_none(), "it ended by itself");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // On Unix this is the signal that no process can handle.
    process.kill().expect("a process");
    process.wait().expect("its end");
    let embedder = Words::new("test:words");
    let report = run(&build(folder.path(), &["./docs/"], &embedder)).await.expect("a report");
    assert_eq!((report.documents, report.chunks, report.embedded, embedder.count()), (10, 20, 12, 12));
    assert_eq!(names(&folder), ["docs", "kb.db", "reached"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_changed_meanwhile_is_done_again_and_one_that_went_is_gone() {
    let folder = ten_documents();
    let embedder = Words::new("test:words");
    let build = build(folder.path(), &["./docs/"], &embedder);
    embedder.fails_after.store(12, Ordering::SeqCst);
    run(&build).await.expect_err("an interruption");
    write(folder.path(), &[("docs/0.txt", "Only platypus here."), ("docs/9.txt", "Only echidna here.")]);
    fs::remove_file(folder.path().join("docs/1.txt")).expect("a file");
    embedder.fails_after.store(usize::MAX, Ordering::SeqCst);
    let report = run(&build).await.expect("a report");
    assert_eq!((report.documents, report.chunks), (9, 16));
    let base = open(&build).await;
    assert_eq!(base.search("platypus", Some(1)).await.expect("passages").sources(), ["./docs/0.txt"]);
    let gone = base.search("number1", Some(20)).await.expect("passages");
    assert!(gone.passages.iter().all(|passage| passage.source != "./docs/1.txt"));
    assert!(!gone.context().contains("number0 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_build_with_other_settings_begins_anew() {
    for (model, settings) in [
        ("test:other", None),
        ("test:words", Some(Settings { chunk_size: 30, chunk_overlap: 0, batch_size: 4, ..Settings::default() })),
    ] {
        let folder = ten_documents();
        let first = Words::new("test:words");
        first.fails_after.store(12, Ordering::SeqCst);
        run(&build(folder.path(), &["./docs/"], &first)).await.expect_err("an interruption");
        let second = Words::new(model);
        let mut again = build(folder.path(), &["./docs/"], &second);
        again.settings = settings.unwrap_or(again.settings);
        let report = run(&again).await.expect("a report");
        assert_eq!(report.embedded, report.chunks);
        assert_eq!(open(&again).await.about().chunk_size, again.settings.chunk_size);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_where_it_is_built_is_replaced() {
    let folder = ten_documents();
    write(folder.path(), &[("kb.db.building", "rubbish"), ("kb.db.building-wal", "rubbish")]);
    let build = build(folder.path(), &["docs"], &Words::new("test:words"));
    assert_eq!(run(&build).await.expect("a report").documents, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_at_once_give_the_same_file() {
    let folder = ten_documents();
    let mut files = Vec::new();
    for in_flight in [1, 4] {
        let mut embedder = Words::new("test:words");
        std::sync::Arc::get_mut(&mut embedder).expect("alone").in_flight = in_flight;
        let mut build = build(folder.path(), &["./docs/"], &embedder);
        build.settings.batch_size = 3;
        build.file = folder.path().join(format!("kb{in_flight}"));
        assert_eq!(run(&build).await.expect("a report").chunks, 20);
        let found = open(&build).await.search("second number7", Some(20)).await.expect("passages");
        files.push(found);
    }
    assert_eq!(files[0], files[1]);
    assert_eq!(files[0].passages.len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_of_two_builders_waits_and_finds_it_built() {
    let folder = ten_documents();
    let embedder = Words::new("test:words");
    let build = build(folder.path(), &["./docs/"], &embedder);
    let (first, second) = tokio::join!(run(&build), run(&build));
    let (first, second) = (first.expect("a report"), second.expect("a report"));
    assert!(first.already_built != second.already_built);
    assert_eq!(embedder.count(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_mean_nothing_are_refused() {
    let folder = ten_documents();
    let embedder = Words::new("test:words");
    let good = build(folder.path(), &["./docs/"], &embedder);
    for (settings, part) in [
        (Settings { chunk_size: 0, ..good.settings.clone() }, "chunk size is 0"),
        (Settings { chunk_overlap: 20, ..good.settings.clone() }, "not smaller than the chunk size of 20"),
        (Settings { batch_size: 0, ..good.settings.clone() }, "batch size"),
        (Settings { top_k: 0, ..good.settings.clone() }, "top_k"),
    ] {
        let mut bad = good.clone();
        bad.settings = settings;
        let error = run(&bad).await.expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(names(&folder), ["docs"]);
}
