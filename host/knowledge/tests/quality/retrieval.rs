//! Recall: of the documents that answer a question, how many are among the first five passages.

// The table is what this is read for.
#![allow(clippy::print_stdout)]

use std::path::Path;

use hotcell_knowledge::{Build, KnowledgeBase, Outside, Settings, Signal};
use tempfile::TempDir;

const SIGNALS: [Signal; 3] = [Signal::Words, Signal::Vectors, Signal::Both];
const PASSAGES: usize = 5;

struct Question {
    kind: String,
    text: String,
    documents: Vec<String>,
}

fn questions(folder: &Path) -> Vec<Question> {
    let mut reader = csv::Reader::from_path(folder.join("questions.csv")).expect("questions");
    let question = |record: csv::StringRecord| Question {
        kind: record[0].to_owned(),
        text: record[1].to_owned(),
        documents: record[2].split(';').map(|document| format!("corpus/{document}")).collect(),
    };
    reader.records().map(|record| question(record.expect("a record"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn words_and_vectors_together_find_more_than_either() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quality");
    let embedder = super::embedder().await;
    let place = TempDir::new().expect("a directory");
    let build = Build {
        file: place.path().join("kb"),
        folder: folder.clone(),
        documents: vec!["corpus".to_owned()],
        settings: Settings { chunk_size: 128, chunk_overlap: 16, ..Settings::default() },
        embedder: embedder.clone(),
        outside: Outside::nothing(),
    };
    let report = build.run(&|_| {}).await.expect("a report");
    let base = KnowledgeBase::open(&build.file, embedder).await.expect("a knowledge base");
    let questions = questions(&folder);

    // By signal: found and wanted documents, of exact questions and of the others, and the reciprocal of the first place.
    let mut table = [[(0.0_f64, 0.0_f64); 2]; 3];
    let mut first = [0.0; 3];
    for question in &questions {
        for (signal, (row, first)) in SIGNALS.iter().zip(table.iter_mut().zip(&mut first)) {
            let found = base.search_by(*signal, &question.text, Some(PASSAGES)).await.expect("passages");
            let sources = found.sources();
            let hits = question.documents.iter().filter(|document| sources.contains(&document.as_str())).count();
            let cell = &mut row[usize::from(question.kind != "exact")];
            cell.0 += hits as f64 / question.documents.len() as f64;
            cell.1 += 1.0;
            let place = sources.iter().position(|source| question.documents.iter().any(|wanted| wanted == source));
            *first += place.map_or(0.0, |place| 1.0 / (place as f64 + 1.0));
            if hits < question.documents.len() {
                println!("{signal:?} misses {:?}: {sources:?}", question.text);
            }
        }
    }
    println!("{} documents, {} chunks, {} questions", report.documents, report.chunks, questions.len());
    println!("recall@{PASSAGES}   exact  paraphrased  all    mean reciprocal rank");
    let mut recall = [0.0; 3];
    for (at, signal) in SIGNALS.iter().enumerate() {
        let [exact, other] = table[at];
        recall[at] = (exact.0 + other.0) / (exact.1 + other.1);
        println!(
            "{:<10} {:.3}  {:.3}        {:.3}  {:.3}",
            format!("{signal:?}"),
            exact.0 / exact.1,
            other.0 / other.1,
            recall[at],
            first[at] / questions.len() as f64
        );
    }
    let [words, vectors, both] = recall;
    assert!(both >= words.max(vectors), "together {both}, words {words}, vectors {vectors}");
    assert!(both >= 0.9, "{both}");
}
