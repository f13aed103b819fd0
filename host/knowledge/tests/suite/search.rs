//! Asking a knowledge base.

use std::{fs, sync::Arc};

use async_trait::async_trait;
use hotcell_knowledge::{KnowledgeBase, RerankError, Reranker, Signal};
use tempfile::TempDir;

use crate::fakes::{Words, build, open, run, write};

async fn animals() -> (TempDir, hotcell_knowledge::Build, Arc<Words>) {
    let folder = TempDir::new().expect("a directory");
    write(
        folder.path(),
        &[
            (
                "knowledge/bees.md",
                "# Bees\n\nA honeybee colony keeps its brood nest warm. Error E-4021 is a cold nest.",
            ),
            ("knowledge/glass.md", "# Glass\n\nFloat glass is poured onto a bath of molten tin."),
            ("knowledge/tides.md", "# Tides\n\nSpring tides follow the new moon and the full moon."),
        ],
    );
    let embedder = Words::new("test:words");
    let build = build(folder.path(), &["./knowledge/"], &embedder);
    run(&build).await.expect("a report");
    (folder, build, embedder)
}

#[tokio::test(flavor = "multi_thread")]
async fn passages_come_with_context_and_sources() {
    let (_folder, build, embedder) = animals().await;
    let base = open(&build).await;
    let found = base.search("molten glass", Some(1)).await.expect("passages");
    assert_eq!(
        found.context(),
        "[Source: ./knowledge/glass.md]\n# Glass\n\nFloat glass is poured onto a bath of molten tin."
    );
    assert_eq!(found.sources(), ["./knowledge/glass.md"]);
    let before = embedder.count();
    let found = base.search("tides, glass and bees", None).await.expect("passages");
    assert_eq!((found.passages.len(), found.sources().len(), embedder.count() - before), (3, 3, 1));
    assert_eq!(found.context().matches("\n\n[Source: ").count(), 2);
    assert!(found.passages.is_sorted_by(|a, b| a.score >= b.score));
    assert_eq!(base.search("tides, glass and bees", None).await.expect("passages"), found);
    assert_eq!(base.search("  \n", None).await.expect("passages").passages, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_data() {
    let (_folder, build, _) = animals().await;
    let base = open(&build).await;
    let long = "moon ".repeat(20_000);
    for question in [
        "\"a\" OR NEAR(",
        "*",
        "-x",
        "\"",
        "'",
        "''; DROP TABLE chunks; --",
        "text : moon",
        "^moon",
        "moon*",
        "{a b}",
        "( ( (",
        "AND OR NOT",
        "?? !! --",
        "\u{0}",
        "a\u{0}b",
        "\u{fffd}",
        "the of and",
        "🌕",
        "e\u{301}",
        "½ ² ①",
        "מים",
        "月",
        &long,
    ] {
        base.search(question, Some(3)).await.unwrap_or_else(|error| panic!("{question}: {error}"));
        base.search_by(Signal::Words, question, Some(3)).await.unwrap_or_else(|error| panic!("{question}: {error}"));
    }
    for question in ["E-4021", "what is `E-4021`?", "moon* OR e-4021", "honeybees"] {
        let found = base.search_by(Signal::Words, question, Some(3)).await.expect("passages");
        assert!(found.sources().contains(&"./knowledge/bees.md"), "{question}: {found:?}");
    }
    let none = base.search_by(Signal::Words, "xylophone", Some(3)).await.expect("passages");
    assert_eq!(none.passages, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_is_refused() {
    let (_folder, build, _) = animals().await;
    let error = KnowledgeBase::open(&build.file, Words::new("test:other")).await.err().expect("an error").to_string();
    assert!(error.contains("built with the embedding model `test:words`, and `test:other`"), "{error}");
    assert!(error.contains("kb.db") && error.contains("delete the file"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_files_are_refused() {
    let (folder, build, embedder) = animals().await;
    let damaged = {
        let mut bytes = fs::read(&build.file).expect("the file");
        let half = bytes.len() / 2;
        bytes[100..half].fill(0x5a);
        bytes
    };
    let foreign = {
        let path = folder.path().join("foreign.db");
        let connection = rusqlite::Connection::open(&path).expect("SQLite");
        connection.execute_batch("CREATE TABLE a (b)").expect("a table");
        drop(connection);
        fs::read(path).expect("the file")
    };
    let newer = {
        let path = folder.path().join("newer.db");
        fs::copy(&build.file, &path).expect("a copy");
        let connection = rusqlite::Connection::open(&path).expect("SQLite");
        connection.execute_batch("PRAGMA user_version = 99").expect("a version");
        drop(connection);
        fs::read(path).expect("the file")
    };
    for (bytes, part) in [
        (&b""[..], "is not a knowledge base of hotcell; delete it"),
        (b"nodes:\n  - a\n", "is not a knowledge base of hotcell"),
        (&foreign, "is not a knowledge base of hotcell"),
        (&newer, "has format 99, and this version reads format 1"),
        (&damaged, "delete it to have it built again"),
    ] {
        let path = folder.path().join("other.db");
        fs::write(&path, bytes).expect("a file");
        let error = KnowledgeBase::open(&path, embedder.clone()).await.err().expect(part).to_string();
        assert!(error.contains(part) && error.contains("other.db"), "{part}: {error}");
        assert_eq!(fs::read(&path).expect("the file"), bytes);
    }
    let error = KnowledgeBase::open(folder.path(), embedder.clone()).await.err().expect("an error").to_string();
    assert!(error.contains("is not a knowledge base"), "{error}");
    let error = KnowledgeBase::open(folder.path().join("x"), embedder).await.err().expect("an error").to_string();
    assert!(error.contains("there is no knowledge base"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_file_says_moves_no_terminal() {
    let (folder, build, embedder) = animals().await;
    for (change, part) in [
        ("UPDATE about SET embedding_model = 'a' || char(27, 10) || 'b'", "the embedding model `a\\u{1b} b`"),
        (
            "PRAGMA writable_schema = on; UPDATE sqlite_schema SET name = 'a' || char(27, 10) || 'b', sql = 'x' WHERE name = 'about'",
            "malformed database schema (a\\u{1b} b)",
        ),
    ] {
        let path = folder.path().join("changed.db");
        fs::copy(&build.file, &path).expect("a copy");
        let connection = rusqlite::Connection::open(&path).expect("SQLite");
        connection.execute_batch(change).unwrap_or_else(|error| panic!("{change}: {error}"));
        drop(connection);
        let error = KnowledgeBase::open(&path, embedder.clone()).await.err().expect(change).to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// A stranger's file may be a database that does something when it is read, or say what nothing else would.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_anything_more_in_it_is_refused() {
    let (folder, build, embedder) = animals().await;
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n";
    for change in [
        "CREATE VIEW more AS SELECT 1".to_owned(),
        "CREATE TABLE more (a)".to_owned(),
        "CREATE INDEX more ON chunks (text)".to_owned(),
        "CREATE TRIGGER more AFTER INSERT ON chunks BEGIN DELETE FROM about; END".to_owned(),
        "ALTER TABLE chunks ADD COLUMN more TEXT".to_owned(),
        "DROP TABLE words".to_owned(),
        format!("DROP TABLE documents; CREATE VIEW documents AS {endless}"),
        format!("DROP TABLE vectors; CREATE VIEW vectors (chunk, vector) AS SELECT x, x FROM ({endless})"),
        format!(
            "ALTER TABLE about RENAME TO old; CREATE VIEW about AS SELECT * FROM old WHERE (SELECT count(*) FROM ({endless}))"
        ),
    ] {
        let path = folder.path().join("changed.db");
        fs::copy(&build.file, &path).expect("a copy");
        let connection = rusqlite::Connection::open(&path).expect("SQLite");
        let change = format!("PRAGMA foreign_keys = off; {change}");
        connection.execute_batch(&change).unwrap_or_else(|error| panic!("{change}: {error}"));
        drop(connection);
        let error = KnowledgeBase::open(&path, embedder.clone()).await.err().expect(&change).to_string();
        assert!(error.contains("is not a knowledge base of hotcell"), "{change}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_file_says_of_itself_is_limited() {
    let (folder, build, embedder) = animals().await;
    let (path, other) = (folder.path().join("greedy.db"), embedder.clone());
    fs::copy(&build.file, &path).expect("a copy");
    let connection = rusqlite::Connection::open(&path).expect("SQLite");
    connection.execute_batch(&format!("UPDATE about SET top_k = {}", i64::MAX)).expect("an update");
    drop(connection);
    let base = KnowledgeBase::open(&path, embedder).await.expect("a knowledge base");
    assert_eq!(base.search("molten glass", None).await.expect("passages").passages.len(), 3);
    assert_eq!(base.search("molten glass", Some(usize::MAX)).await.expect("passages").passages.len(), 3);

    let connection = rusqlite::Connection::open(&path).expect("SQLite");
    connection.execute_batch("UPDATE chunks SET text = hex(zeroblob(6 << 20))").expect("an update");
    drop((base, connection));
    let base = KnowledgeBase::open(&path, other).await.expect("a knowledge base");
    assert_eq!(base.search("molten glass", Some(2)).await.expect("passages").passages.len(), 2);
    let error = base.search("molten glass", Some(3)).await.expect_err("too much").to_string();
    assert!(error.contains("more than 32 MiB; ask for fewer"), "{error}");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_link_leads_nowhere() {
    use std::os::unix::fs::symlink;

    let (folder, build, embedder) = animals().await;
    let link = folder.path().join("link.db");
    symlink(&build.file, &link).expect("a link");
    let error = KnowledgeBase::open(&link, embedder.clone()).await.err().expect("an error").to_string();
    assert!(error.contains("is not a knowledge base of hotcell"), "{error}");

    // What lies beside the place of a knowledge base is ours, or taken away: nothing is written to where it leads.
    let precious = folder.path().join("precious");
    for (end, built) in [(".building", true), (".building-wal", true), (".building-journal", true), (".lock", false)] {
        fs::write(&precious, "precious").expect("a file");
        let again = hotcell_knowledge::Build { file: folder.path().join("again.db"), ..build.clone() };
        let beside = folder.path().join(format!("again.db{end}"));
        symlink(&precious, &beside).expect("a link");
        let result = run(&again).await;
        assert_eq!(result.is_ok(), built, "{end}: {result:?}");
        if let Err(error) = result {
            assert!(error.to_string().contains("it is a link, not a regular file"), "{error}");
        }
        assert_eq!(fs::read_to_string(&precious).expect("the file"), "precious", "{end}");
        for left in [&again.file, &beside] {
            let _ = fs::remove_file(left);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_ask_at_once() {
    let (_folder, build, _) = animals().await;
    let base = Arc::new(open(&build).await);
    let alone = base.search("molten glass moon", None).await.expect("passages");
    let tasks: Vec<_> = (0..40)
        .map(|_| {
            let base = base.clone();
            tokio::spawn(async move { base.search("molten glass moon", None).await.expect("passages") })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.expect("a task"), alone);
    }
}

/// Prefers the longest passage, or answers wrongly.
struct Longest {
    wrong: bool,
}

#[async_trait]
impl Reranker for Longest {
    fn name(&self) -> &str {
        "test:longest"
    }

    async fn rerank(&self, _: &str, passages: &[String], top: usize) -> Result<Vec<(usize, f64)>, RerankError> {
        let mut ranked: Vec<_> = passages.iter().enumerate().map(|(at, text)| (at, text.len() as f64)).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        if self.wrong {
            ranked[0].0 = 99;
        }
        ranked.truncate(top);
        Ok(ranked)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reranker_has_the_last_word() {
    let (_folder, build, _) = animals().await;
    let base = open(&build).await.with_reranker(Arc::new(Longest { wrong: false }));
    let found = base.search("molten glass", Some(1)).await.expect("passages");
    assert_eq!(found.sources(), ["./knowledge/bees.md"]);
    let base = open(&build).await.with_reranker(Arc::new(Longest { wrong: true }));
    let error = base.search("molten glass", Some(1)).await.expect_err("an error").to_string();
    assert!(error.contains("`test:longest` answered with passage 99 of 3"), "{error}");
}
