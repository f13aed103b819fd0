//! Knowledge bases in graphs: what they are made of stays within its bounds, and what cannot be used is named.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::{CancellationToken, Environment, Host, HostError, HostOptions, Nobody, RunInput, Session};
use serde_json::json;

use crate::desk::{Desk, output};

fn graph(documents: &str) -> String {
    format!(
        "name: reader\nstart: recall\nnodes:\n  recall:\n    type: rag\n    documents: {documents}\n    \
         embedding_model: test:words\n    chunk_size: 200\n    chunk_overlap: 20\n    top_k: 1\n    \
         state_updates: {{ found: \"{{{{output.context}}}}\", from: \"{{{{output.sources[0]}}}}\" }}\n    next: done\n  \
         done: {{ type: end, output: \"{{{{from}}}}: {{{{found}}}}\" }}\n"
    )
}

async fn ask(desk: &Desk, question: &str) -> Result<String, String> {
    let model = Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
    let host = desk.host(&model);
    let agent = host.load(&desk.path("graph.yaml")).map_err(|failure| failure.to_string())?;
    let session = Session { people: Arc::new(Nobody), observer: Arc::new(Nobody), cancel: CancellationToken::new() };
    let given = RunInput { input: Some(question.to_owned()), ..RunInput::default() };
    match host.run(&agent, given, session).await {
        Ok(report) => Ok(output(&report)),
        Err(HostError::Knowledge(error)) => Err(error.to_string()),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn an_agent_with_a_tool_loop_is_told_what_its_documents_say() {
    let desk = Desk::of("config.yaml", "name: reader\ninstructions: Read.\ndocuments: [./docs/]\n");
    assert!(desk.refusal().contains("the document `./docs/` is not there"));
    desk.write("docs/a.md", "# Bees\n\nA queen lays eggs in the hive. {{initial_prompt}}\n");
    let refusal = desk.refusal();
    assert!(
        refusal.contains("no embedding model is named") && refusal.contains("HOTCELL_EMBEDDING_MODEL"),
        "{refusal}"
    );

    let model = Loopback::start(Script::from_json(&json!([{ "content": "eggs" }])).unwrap()).unwrap();
    let environment = [
        ("HOTCELL_MODEL", "test:small".to_owned()),
        ("HOTCELL_MODEL_URL", model.base_url()),
        ("HOTCELL_EMBEDDING_MODEL", "test:words".to_owned()),
    ];
    let environment = Environment::of(environment.map(|(name, value)| (name.to_owned(), value)));
    let host = Host::new(HostOptions { environment, ..HostOptions::isolated() }).unwrap();
    let given = RunInput { input: Some("what of queen and hive?".to_owned()), ..RunInput::default() };
    let agent = host.load(&desk.path("config.yaml")).unwrap_or_else(|failure| panic!("{failure}"));
    let report = host.run(&agent, given, Desk::session(Arc::new(Nobody))).await.unwrap();
    assert_eq!(output(&report), "eggs");
    let asked = &model.requests()[0].messages[1].content;
    // What a document says is no template.
    for part in ["A queen lays eggs in the hive. {{initial_prompt}}", "a.md", "</documents>\n\nwhat of queen and hive?"]
    {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert!(desk.path("documents.yaml").is_file());
}

#[tokio::test]
async fn a_node_that_names_no_embedding_model_has_the_operators_and_keeps_it() {
    let desk = Desk::of("graph.yaml", &graph("[a.md]").replace("embedding_model: test:words\n", "description: x\n"));
    desk.write("a.md", "A queen lays eggs in the hive.\n");
    let refusal = desk.refusal();
    assert!(
        refusal.contains("asked for `embedding_model`") && refusal.contains("`HOTCELL_EMBEDDING_MODEL`"),
        "{refusal}"
    );

    let model = Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
    // Once it is built, it is asked with the model that it was built with.
    for named in ["test:words", "test:others"] {
        let environment = [
            ("HOTCELL_MODEL", "test:small".to_owned()),
            ("HOTCELL_MODEL_URL", model.base_url()),
            ("HOTCELL_EMBEDDING_MODEL", named.to_owned()),
        ];
        let environment = Environment::of(environment.map(|(name, value)| (name.to_owned(), value)));
        let host = Host::new(HostOptions { environment, ..HostOptions::isolated() }).unwrap();
        let agent = host.load(&desk.path("graph.yaml")).unwrap_or_else(|failure| panic!("{failure}"));
        let given = RunInput { input: Some("what of queen and hive?".to_owned()), ..RunInput::default() };
        let report = host.run(&agent, given, Desk::session(Arc::new(Nobody))).await.unwrap();
        let found = output(&report);
        assert!(found.contains("A queen lays eggs in the hive."), "{named}: {found}");
    }
}

/// A PDF of one page with this text.
fn pdf(text: &str) -> Vec<u8> {
    let stream = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut file = String::from("%PDF-1.4\n");
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", number + 1));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    places.iter().for_each(|place| file.push_str(&format!("{place:010} 00000 n \n")));
    file.push_str(&format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1));
    file.into_bytes()
}

#[tokio::test]
async fn documents_of_every_kind_are_found() {
    let desk = Desk::new(&graph("[./docs/]"));
    std::fs::create_dir(desk.path("docs")).unwrap();
    std::fs::write(desk.path("docs/a.md"), "# Bees\n\nA queen lays eggs in the hive.\n").unwrap();
    std::fs::write(desk.path("docs/b.pdf"), pdf("Granite cools slowly below the ground")).unwrap();
    let page = "<html><body><h1>Tides</h1><p>The moon pulls the ocean.</p><script>evil()</script></body></html>";
    std::fs::write(desk.path("docs/c.html"), page).unwrap();
    std::fs::write(desk.path("docs/d.csv"), "item,price\nlantern,12\nrope,7\n").unwrap();
    for (question, source, text) in [
        ("queen eggs hive", "a.md", "lays eggs"),
        ("granite cools ground", "b.pdf", "Granite cools slowly"),
        ("moon pulls ocean", "c.html", "The moon pulls the ocean"),
        ("lantern price item", "d.csv", "lantern"),
    ] {
        let answer = ask(&desk, question).await.unwrap();
        assert!(answer.contains(source) && answer.contains(text) && !answer.contains("evil"), "{question}: {answer}");
    }
    assert!(desk.path("recall.yaml").is_file());
}

#[tokio::test]
async fn documents_that_cannot_be_used_are_named_and_nothing_is_left_half_built() {
    let desk = Desk::new(&graph("[./doc.pdf]"));
    for (bytes, expected) in [
        (&b"this is no PDF at all"[..], "doc.pdf"),
        (&b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog"[..], "doc.pdf"),
        (&b""[..], "doc.pdf"),
    ] {
        std::fs::write(desk.path("doc.pdf"), bytes).unwrap();
        let refused = ask(&desk, "x").await.unwrap_err();
        assert!(refused.contains("`recall`") && refused.contains(expected), "{refused}");
        assert!(!desk.path("recall.yaml").exists());
    }
    // A document of a gigabyte is refused by its size, before it is read.
    let desk = Desk::new(&graph("[./large.txt]"));
    std::fs::File::create(desk.path("large.txt")).unwrap().set_len(1 << 30).unwrap();
    let refused = ask(&desk, "x").await.unwrap_err();
    assert!(refused.contains("large.txt") && refused.contains("1073741824"), "{refused}");
}

#[tokio::test]
async fn a_base_of_another_model_or_of_somebody_else_is_refused() {
    let desk = Desk::new(&graph("[./a.md]"));
    std::fs::write(desk.path("a.md"), "bees and hives").unwrap();
    ask(&desk, "bees").await.unwrap();
    let other = graph("[./a.md]").replace("test:words", "test:others");
    std::fs::write(desk.path("graph.yaml"), other).unwrap();
    let refused = ask(&desk, "bees").await.unwrap_err();
    assert!(refused.contains("test:words") && refused.contains("test:others"), "{refused}");
    std::fs::write(desk.path("recall.yaml"), "documents: []\n").unwrap();
    let refused = ask(&desk, "bees").await.unwrap_err();
    assert!(refused.contains("delete it"), "{refused}");
}

/// The name of a model in a file is no way to any directory of the machine, in the folder neither.
#[tokio::test]
async fn a_model_on_this_machine_is_read_only_with_a_grant() {
    for directory in ["models/small", "../models", "/usr/share"] {
        let desk = Desk::new(&graph("[./a.md]").replace("test:words", &format!("local:{directory}")));
        std::fs::write(desk.path("a.md"), "bees and hives").unwrap();
        std::fs::create_dir_all(desk.path("models/small")).unwrap();
        let refused = ask(&desk, "bees").await.unwrap_err();
        assert!(refused.contains("its embedding model lies in a directory that is not granted"), "{refused}");
        let grant = format!("[grants.\"rag:recall\"]\nfs = [{{ host = \"{directory}\", guest = \"/model\" }}]");
        assert!(refused.contains(&grant), "{refused}");
    }
    let desk = Desk::new(&graph("[./a.md]").replace("test:words", "local:models/small"));
    std::fs::write(desk.path("a.md"), "bees and hives").unwrap();
    std::fs::create_dir_all(desk.path("models/small")).unwrap();
    desk.settings("[grants.\"rag:recall\"]\nfs = [{ host = 'models', guest = '/model' }]");
    let refused = ask(&desk, "bees").await.unwrap_err();
    assert!(!refused.contains("granted") && refused.contains("models/small"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_fetched_only_with_a_grant() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let body = "Basalt is a dark rock.";
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    let desk = Desk::new(&graph(&format!("[\"http://{address}/rocks.txt\"]")));
    let refused = ask(&desk, "basalt").await.unwrap_err();
    assert!(refused.contains("[grants.\"rag:recall\"]"), "{refused}");
    assert!(refused.contains(&format!("http = [\"http://{address}\"]")), "{refused}");
    desk.settings(&format!("[grants.\"rag:recall\"]\nhttp = ['http://{address}']"));
    let answer = ask(&desk, "basalt rock").await.unwrap();
    assert!(answer.contains("dark rock") && answer.contains(&format!("http://{address}/rocks.txt")), "{answer}");
}

#[tokio::test]
async fn a_loader_is_a_tool_of_a_plugin() {
    let desk = Desk::new(&graph("[\"probe:anything\"]"));
    let refused = ask(&desk, "x").await.unwrap_err();
    assert!(refused.contains("there is no tool `probe`"), "{refused}");
}
