//! Documents of every kind, good and bad.

use std::fs::{self, File};

use tempfile::TempDir;

use crate::fakes::{Words, build, open, run, write};

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a directory");
    write(folder.path(), files);
    folder
}

/// The sources of all chunks, in the order of a search for `query`.
async fn sources(folder: &TempDir, documents: &[&str], query: &str) -> Vec<String> {
    let build = build(folder.path(), documents, &Words::new("test:words"));
    run(&build).await.expect("a report");
    let found = open(&build).await.search(query, Some(50)).await.expect("passages");
    let mut sources: Vec<String> = found.sources().into_iter().map(str::to_owned).collect();
    sources.sort();
    sources
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_are_shown_as_they_were_written() {
    let folder = folder(&[
        ("docs/b.md", "# B\n\nsome words"),
        ("docs/a.txt", "some words"),
        ("docs/sub/c.rs", "fn words() {}"),
        ("docs/README", "some words"),
        ("docs/.hidden.md", "no words"),
        ("docs/.git/x.md", "no words"),
        ("docs/empty.txt", " \n"),
        ("docs/picture.png", "no words"),
        ("docs/page.html", "<h1>words</h1>"),
        ("docs/paper.pdf", "%PDF words"),
        ("docs/data.csv", "a,b\nwords,2\n"),
        ("docs/data.json", "{\"words\": 1}"),
    ]);
    fs::write(folder.path().join("docs/binary"), b"\0\x01\x02").expect("a file");
    fs::write(folder.path().join("docs/database.yaml"), b"SQLite format 3\0").expect("a file");
    let all = ["README", "a.txt", "b.md", "data.csv", "data.json", "page.html", "paper.pdf", "sub/c.rs"];
    for (written, begin) in [("./docs/", "./docs/"), ("./docs", "./docs/"), ("docs/", "docs/"), (".", "./docs/")] {
        let expected: Vec<String> = all.iter().map(|name| format!("{begin}{name}")).collect();
        assert_eq!(sources(&folder, &[written], "words").await, expected, "{written}");
        fs::remove_file(folder.path().join("kb.db")).expect("the file");
    }
    for (written, expected) in [
        ("./docs/*.md", vec!["./docs/b.md"]),
        ("docs/**/*.{rs,txt}", vec!["docs/a.txt", "docs/empty.txt", "docs/sub/c.rs"]),
        ("docs/sub/../a.txt", vec!["docs/sub/../a.txt"]),
    ] {
        let mut expected = expected;
        expected.retain(|name| !name.contains("empty"));
        assert_eq!(sources(&folder, &[written], "words").await, expected, "{written}");
        fs::remove_file(folder.path().join("kb.db")).expect("the file");
    }
    let build = build(folder.path(), &["docs", "docs/a.txt", "docs/*.txt"], &Words::new("test:words"));
    let report = run(&build).await.expect("a report");
    assert_eq!((report.documents, report.empty.as_slice()), (8, &["docs/empty.txt".to_owned()][..]));
    assert_eq!(report.unknown, ["docs/binary", "docs/database.yaml", "docs/picture.png"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_and_loaders_are_documents() {
    let folder = folder(&[]);
    let documents = ["https://a.example/page", "https://a.example/notes.md", "notes:the plan"];
    assert_eq!(sources(&folder, &documents, "walrus narwhal plan").await, {
        let mut sorted = documents;
        sorted.sort();
        sorted
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_documents_are_named_with_what_to_do() {
    let outside = folder(&[("secret.md", "secret")]);
    let folder = folder(&[
        ("good.md", "some words"),
        ("empty.md", ""),
        ("blank.md", " \n\t"),
        ("bad.pdf", "no PDF"),
        ("none/x.png", "?"),
        ("blanks/x.md", ""),
        ("links/good.md", "some words"),
    ]);
    let path = folder.path();
    fs::write(path.join("latin1.txt"), b"caf\xe9").expect("a file");
    fs::write(path.join("utf16.txt"), b"\xff\xfea\0b\0").expect("a file");
    fs::write(path.join("binary.txt"), b"ab\0cd").expect("a file");
    fs::create_dir(path.join("wide")).expect("a directory");
    fs::write(path.join("wide/1.txt"), b"\xff\xfea\0b\0").expect("a file");
    fs::create_dir(path.join("latin")).expect("a directory");
    fs::write(path.join("latin/1.txt"), b"caf\xe9").expect("a file");
    File::create(path.join("sparse.txt")).and_then(|file| file.set_len(1 << 30)).expect("a file");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(outside.path().join("secret.md"), path.join("links/link.md")).expect("a link");
        std::os::unix::fs::symlink(outside.path(), path.join("away")).expect("a link");
    }
    let up = format!("../{}/secret.md", outside.path().file_name().expect("a name").to_string_lossy());
    let absolute = outside.path().join("secret.md").to_string_lossy().into_owned();
    let cases: &[(&str, &[&str])] = &[
        ("missing.md", &["`missing.md` is not there"]),
        ("missing/", &["`missing/` is not there"]),
        ("good.md/x", &["`good.md/x` is not there"]),
        ("*.xyz", &["pattern `*.xyz` matches no file"]),
        ("empty.md", &["`empty.md` is empty"]),
        ("blank.md", &["`blank.md` is empty"]),
        ("latin1.txt", &["`latin1.txt`", "byte 3", "save it as UTF-8"]),
        ("latin", &["`latin/1.txt`", "byte 3"]),
        ("utf16.txt", &["`utf16.txt`", "UTF-16"]),
        ("wide", &["`wide/1.txt`", "UTF-16"]),
        ("binary.txt", &["`binary.txt`", "byte 2 is zero"]),
        ("sparse.txt", &["`sparse.txt` has 1073741824 bytes, and at most 67108864"]),
        ("bad.pdf", &["`bad.pdf` gives no text as PDF: it is damaged"]),
        ("none", &["no document to read in `none`", "1 files of unknown format"]),
        ("blanks", &["no document to read in `blanks`", "1 empty"]),
        #[cfg(unix)]
        ("links", &["`links/link.md` is outside the folder"]),
        #[cfg(unix)]
        ("links/link.md", &["`links/link.md` is outside the folder"]),
        #[cfg(unix)]
        ("away/secret.md", &["`away/secret.md` is outside the folder"]),
        #[cfg(unix)]
        ("away/*.md", &["`away/secret.md` is outside the folder"]),
        (&up, &["is outside the folder"]),
        (&absolute, &["is outside the folder"]),
        ("", &["has no name"]),
        ("ftp://a.example/x", &["unknown scheme"]),
        ("https://b.example/", &["`https://b.example/` could not be fetched", "not granted"]),
        ("https://a.example/picture", &["`https://a.example/picture` is `image/png`"]),
        ("nobody:x", &["`nobody:x` could not be loaded by `nobody`: there is no loader"]),
    ];
    for (document, parts) in cases {
        let build = build(path, &["good.md", document], &Words::new("test:words"));
        let result = if document == &"none" || document == &"blanks" {
            let mut only = build.clone();
            only.documents.remove(0);
            run(&only).await
        } else {
            run(&build).await
        };
        let error = result.expect_err(document).to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{document}: {error}");
        assert!(!build.file.exists());
    }
    let mut build = build(path, &["https://a.example/large"], &Words::new("test:words"));
    build.settings.max_document = 4999;
    let error = run(&build).await.expect_err("a large document").to_string();
    assert!(error.contains("has 5000 bytes, and at most 4999"), "{error}");
    build.folder = path.join("nowhere");
    assert!(run(&build).await.expect_err("no folder").to_string().contains("nowhere` cannot be read"));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn links_within_the_folder_are_followed_once() {
    let folder = folder(&[("docs/a.md", "some words"), ("docs/sub/b.md", "some words")]);
    std::os::unix::fs::symlink("..", folder.path().join("docs/sub/up")).expect("a link");
    std::os::unix::fs::symlink("a.md", folder.path().join("docs/same.md")).expect("a link");
    assert_eq!(sources(&folder, &["docs"], "words").await, ["docs/a.md", "docs/sub/b.md"]);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_is_not_waited_for() {
    let folder = folder(&[("docs/a.md", "some words")]);
    let socket = std::os::unix::net::UnixListener::bind(folder.path().join("docs/b.md")).expect("a socket");
    assert_eq!(sources(&folder, &["docs"], "words").await, ["docs/a.md"]);
    let build = build(folder.path(), &["docs/b.md"], &Words::new("test:other"));
    fs::remove_file(&build.file).expect("the file");
    let error = run(&build).await.expect_err("a socket").to_string();
    assert!(error.contains("neither a file nor a directory"), "{error}");
    drop(socket);
}
