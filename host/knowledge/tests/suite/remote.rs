//! Models behind HTTP, with a server of a few lines.

use std::{
    sync::{
        Arc, Mutex, Once,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hotcell_knowledge::{Embedder, Endpoint, Protocol, RemoteEmbedder, RemoteReranker, Reranker};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// Answers each request with the next of `answers` (status, further headers, body), the last one for ever.
async fn server(answers: Vec<(u16, &'static str, String)>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let base = format!("http://{}/v1/", listener.local_addr().expect("an address"));
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let (seen, next) = (requests.clone(), Arc::new(AtomicUsize::new(0)));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let complete = |request: &[u8]| {
                let text = String::from_utf8_lossy(request).to_lowercase();
                let head = text.find("\r\n\r\n")?;
                let length = text.split("content-length: ").nth(1)?.split("\r\n").next()?.parse::<usize>().ok()?;
                (request.len() >= head + 4 + length).then_some(())
            };
            let mut piece = [0; 4096];
            while complete(&request).is_none() {
                match stream.read(&mut piece).await {
                    Ok(0) | Err(_) => break,
                    Ok(read) => request.extend_from_slice(&piece[..read]),
                }
            }
            seen.lock().expect("a lock").push(String::from_utf8_lossy(&request).into_owned());
            let at = next.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            let (status, headers, body) = &answers[at];
            if *status == 0 {
                continue;
            }
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (base, requests)
}

fn client() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

fn endpoint(base: &str) -> Endpoint {
    Endpoint {
        key: Some("sk-secret".to_owned()),
        first_wait: Duration::from_millis(5),
        timeout: Duration::from_secs(60),
        attempts: 3,
        max_reply: 10_000,
        ..Endpoint::new("test:model", "model", base)
    }
}

fn embedder(protocol: Protocol, base: &str) -> RemoteEmbedder {
    RemoteEmbedder::new(client(), protocol, endpoint(base)).expect("an embedder")
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("text {number}")).collect()
}

fn ok(body: &str) -> (u16, &'static str, String) {
    (200, "", body.to_owned())
}

const TWO: &str = r#"{"data": [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": [1, 2.5]}], "usage": {}}"#;

#[tokio::test]
async fn openai_and_ollama_are_asked_in_their_own_ways() {
    let (base, requests) = server(vec![ok(TWO)]).await;
    let vectors = embedder(Protocol::OpenAi, &base).embed(&texts(2)).await.expect("vectors");
    assert_eq!(vectors, [[1.0, 2.5], [3.0, 4.0]]);
    let request = requests.lock().expect("a lock")[0].clone();
    assert!(request.starts_with("POST /v1/embeddings HTTP/1.1"), "{request}");
    assert!(request.contains("authorization: Bearer sk-secret"), "{request}");
    let body = r#"{"model":"model","input":["text 0","text 1"],"encoding_format":"float"}"#;
    assert!(request.ends_with(body), "{request}");

    let (base, requests) = server(vec![ok(r#"{"embeddings": [[1, 2], [3, 4]]}"#)]).await;
    let vectors = embedder(Protocol::Ollama, &base).embed(&texts(2)).await.expect("vectors");
    assert_eq!(vectors, [[1.0, 2.0], [3.0, 4.0]]);
    assert!(requests.lock().expect("a lock")[0].starts_with("POST /v1/api/embed HTTP/1.1"));
    assert_eq!(embedder(Protocol::Ollama, &base).embed(&[]).await.expect("vectors").len(), 0);
}

#[tokio::test]
async fn what_passes_is_asked_again() {
    for first in [(429, "retry-after: 0\r\n", "slow down".to_owned()), (503, "", String::new()), (0, "", String::new())]
    {
        let (base, requests) = server(vec![first.clone(), ok(TWO)]).await;
        let vectors = embedder(Protocol::OpenAi, &base).embed(&texts(2)).await;
        assert_eq!(vectors.unwrap_or_else(|error| panic!("{first:?}: {error}")).len(), 2);
        assert_eq!(requests.lock().expect("a lock").len(), 2);
    }
}

#[tokio::test]
async fn what_does_not_pass_is_said() {
    let large = format!(r#"{{"data": [{{"embedding": [{}1]}}]}}"#, "1,".repeat(10_000));
    for (answer, count, asked, part) in [
        ((500, "", "on fire".to_owned()), 2, 3, "status 500: on fire"),
        ((401, "", "bad key sk-secret\u{1b}[2J".to_owned()), 2, 1, "status 401: bad key [key]\\u{1b}[2J"),
        ((302, "location: http://127.0.0.1:1/\r\n", String::new()), 2, 1, "cannot be"),
        (ok(TWO), 3, 1, "2 vectors for 3 texts"),
        (ok(r#"{"data": [{"embedding": [1, 2]}, {"embedding": [1]}]}"#), 2, 1, "1 numbers where 2"),
        (ok(r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}"#), 2, 1, "index 0 is wrong"),
        (ok(r#"{"data": [{"index": 7, "embedding": [1]}]}"#), 1, 1, "index 7 is wrong"),
        (ok(r#"{"data": [{"embedding": [1e999]}]}"#), 1, 1, "cannot be read"),
        (ok(r#"{"data": [{"embedding": []}]}"#), 1, 1, "empty or not finite"),
        (ok("<html>hello</html>"), 1, 1, "cannot be read: expected value"),
        (ok(&large), 1, 1, "more than 10000 bytes"),
    ] {
        let (base, requests) = server(vec![answer]).await;
        let error = embedder(Protocol::OpenAi, &base).embed(&texts(count)).await.expect_err(part).to_string();
        assert!(
            error.contains(part) && error.contains("test:model") && !error.contains("sk-secret"),
            "{part}: {error}"
        );
        if part != "cannot be" {
            assert_eq!(requests.lock().expect("a lock").len(), asked, "{part}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_or_silent_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let mut silent = endpoint(&base);
    (silent.timeout, silent.attempts) = (Duration::from_millis(50), 2);
    let silent = RemoteEmbedder::new(client(), Protocol::OpenAi, silent).expect("an embedder");
    let error = silent.embed(&texts(1)).await.expect_err("a time-out").to_string();
    assert!(error.contains("did not answer within 50ms"), "{error}");
    drop(listener);
    let error = embedder(Protocol::OpenAi, &base).embed(&texts(1)).await.expect_err("no server").to_string();
    assert!(error.contains("cannot be reached") && error.contains("refused"), "{error}");
}

#[tokio::test]
async fn addresses_and_keys_are_checked_before_anything_is_sent() {
    for (base, part) in [
        ("nonsense", "is not a valid address"),
        ("ftp://a.example", "must begin with `http://`"),
        ("https://me:pw@a.example", "must not hold a user"),
        ("https://a.example/?key=1", "must end with the path"),
    ] {
        let error = RemoteEmbedder::new(client(), Protocol::OpenAi, endpoint(base)).err().expect(part).to_string();
        assert!(error.contains(part), "{error}");
    }
    let bad = Endpoint { key: Some("a\nb".to_owned()), ..endpoint("https://a.example") };
    assert!(!format!("{bad:?}").contains("a\\nb"));
    let error = RemoteReranker::new(client(), bad).err().expect("an error").to_string();
    assert!(error.contains("characters that cannot be sent"), "{error}");
}

#[tokio::test]
async fn rerankers_order_passages() {
    let answer = r#"{"results": [{"index": 0, "relevance_score": 0.1}, {"index": 2, "relevance_score": 0.9}]}"#;
    let (base, requests) = server(vec![ok(answer)]).await;
    let reranker = RemoteReranker::new(client(), endpoint(&base)).expect("a reranker");
    let ranked = reranker.rerank("question", &texts(3), 2).await.expect("an order");
    assert_eq!(ranked, [(2, 0.9), (0, 0.1)]);
    let request = requests.lock().expect("a lock")[0].clone();
    assert!(request.starts_with("POST /v1/rerank HTTP/1.1"), "{request}");
    let body = r#"{"model":"model","query":"question","documents":["text 0","text 1","text 2"],"top_n":2}"#;
    assert!(request.ends_with(body), "{request}");
    for (answer, part) in [
        (r#"{"results": [{"index": 3, "relevance_score": 0.1}]}"#, "passage 3 of 3"),
        (r#"{"results": [{"index": 1, "relevance_score": 1}, {"index": 1, "relevance_score": 1}]}"#, "passage 1 of 3"),
        ("[]", "cannot be read"),
    ] {
        let (base, _) = server(vec![ok(answer)]).await;
        let reranker = RemoteReranker::new(client(), endpoint(&base)).expect("a reranker");
        let error = reranker.rerank("question", &texts(3), 2).await.expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
}
