//! Servers on loopback, and what a guest may ask of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hotcell_budget::{Budget, Bytes};
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use wasmtime_wasi_http::{Error, WasiBody};

use super::{Denials, Egress, HttpRequest, Resolve, Vault, send};
use crate::call::Terms;
use crate::secrets::Secrets;

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// A server that counts connections, remembers the last request and gives the same answer to every one.
struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    request: Arc<std::sync::Mutex<String>>,
}

async fn serve(answer: Vec<u8>) -> std::io::Result<Server> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = Server { address: listener.local_addr()?, connections: Arc::default(), request: Arc::default() };
    let (connections, request) = (server.connections.clone(), server.request.clone());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.fetch_add(1, Ordering::SeqCst);
            let (answer, request) = (answer.clone(), request.clone());
            tokio::spawn(async move {
                let mut head = vec![0; 4_096];
                let read = stream.read(&mut head).await.unwrap_or(0);
                if let Ok(mut request) = request.lock() {
                    *request = String::from_utf8_lossy(&head[..read]).into_owned();
                }
                if answer.is_empty() {
                    std::future::pending::<()>().await;
                }
                let _ = stream.write_all(&answer).await;
            });
        }
    });
    Ok(server)
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len()).into_bytes()
}

fn egress(grants: &str, budget: &Budget) -> Egress {
    let grants = toml::from_str(grants).unwrap_or_else(|error| panic!("{error}"));
    let secrets = Secrets::new([("KEY".to_owned(), "value-of-the-key".to_owned())]);
    let terms = Terms { grants: Arc::new(grants), secrets, ..Terms::new("test") };
    Egress::new(&terms, budget, Denials::of(&terms), Arc::new(Vault::new(&terms.secrets, &terms.grants, None)))
}

/// The status and body of a response.
async fn get(egress: &Egress, url: &str) -> Result<(u16, String), Error> {
    ask(egress, "GET", url).await
}

async fn ask(egress: &Egress, method: &str, url: &str) -> Result<(u16, String), Error> {
    let body: WasiBody = Empty::new().map_err(Error::from).boxed_unsync();
    let request = HttpRequest::builder()
        .method(method)
        .uri(url)
        .header("host", "what.the.guest.says")
        .body(body)
        .map_err(|_| Error::HttpRequestUriInvalid)?;
    let (response, rest) = send(egress.shared.clone(), request, Default::default()).await?;
    tokio::spawn(Box::into_pin(rest));
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

#[tokio::test]
async fn attack_42_without_a_grant_nothing_is_connected() -> TestResult {
    let server = serve(answer("200 OK", "", "no")).await?;
    let budget = Budget::default();
    let url = format!("http://{}/path", server.address);
    for grants in ["", "http = ['https://127.0.0.1']", "http = ['http://127.0.0.1']", "http = ['http://localhost']"] {
        let egress = egress(grants, &budget);
        for _ in 0..2 {
            assert!(matches!(get(&egress, &url).await, Err(Error::HttpRequestDenied)), "{grants}");
        }
        let report = egress.report();
        let denials: Vec<String> = egress.shared.denials.take().iter().map(ToString::to_string).collect();
        assert_eq!((denials.len(), report.requests, report.sent), (1, 0, Bytes(0)));
        assert!(denials[0].contains(&format!("http = [\"http://{}\"]", server.address)), "{denials:?}");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    Ok(())
}

#[tokio::test]
async fn attack_48_a_granted_request_is_sent_with_the_host_of_its_url_and_counted() -> TestResult {
    let server = serve(answer("200 OK", "", "hello")).await?;
    let budget = Budget::default();
    let egress = egress(&format!("http = ['http://{}']", server.address), &budget);
    let (status, body) = get(&egress, &format!("http://{}/a?b=c", server.address)).await?;
    assert_eq!((status, body.as_str()), (200, "hello"));
    let request = server.request.lock().map(|request| request.clone()).unwrap_or_default();
    assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("host: {}\r\n", server.address)), "{request}");
    assert!(!request.contains("what.the.guest.says"), "{request}");
    let report = egress.report();
    assert_eq!((report.requests, report.sent), (1, Bytes::from(request.len())));
    assert!(report.received > Bytes(40) && report.exhausted.is_none() && egress.shared.denials.take().is_empty());
    Ok(())
}

/// A request with a secret's placeholder in every place, to a server that answers with what it got.
async fn send_secret(egress: &Egress, server: &Server) -> Result<(String, String), Box<dyn std::error::Error>> {
    let placeholder = egress.shared.vault.placeholder("KEY").ok_or("it is granted")?;
    let body: WasiBody = Full::from(format!("{{\"key\": \"{placeholder}\"}}")).map_err(Error::from).boxed_unsync();
    let request = HttpRequest::post(format!("http://{}/?key={placeholder}", server.address))
        .header("authorization", format!("Bearer {placeholder}"))
        .header("content-type", "application/json")
        .body(body)?;
    let (response, _) = send(egress.shared.clone(), request, Default::default()).await?;
    let told = response.headers().get("x-told").and_then(|told| told.to_str().ok()).unwrap_or_default().to_owned();
    let body = response.into_body().collect().await?.to_bytes();
    assert!(!format!("{told}{}", String::from_utf8_lossy(&body)).contains("value-of-the-key"));
    let request = server.request.lock().map(|request| request.clone()).unwrap_or_default();
    Ok((request, format!("{told} {}", String::from_utf8_lossy(&body))))
}

#[tokio::test]
async fn attack_55_a_secret_goes_out_to_its_servers_and_never_comes_back() -> TestResult {
    let echo = answer("200 OK", "x-told: value-of-the-key\r\n", "you sent value-of-the-key");
    let server = serve(echo).await?;
    let address = server.address;
    let grants = format!("http = ['http://{address}']\nsecret = [{{ name = 'KEY', servers = ['http://{address}'] }}]");
    let (request, told) = send_secret(&egress(&grants, &Budget::default()), &server).await?;
    assert!(request.starts_with("POST /?key=value-of-the-key HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer value-of-the-key\r\n"), "{request}");
    assert!(request.ends_with("{\"key\": \"value-of-the-key\"}"), "{request}");
    assert!(request.contains("content-length: 27\r\n"), "{request}");
    assert_eq!(told, "(secret KEY) you sent (secret KEY)");
    Ok(())
}

#[tokio::test]
async fn attack_53_towards_another_server_a_placeholder_stays_what_it_is() -> TestResult {
    let server = serve(answer("200 OK", "", "")).await?;
    let grants = format!(
        "http = ['http://{}']\nsecret = [{{ name = 'KEY', servers = ['https://elsewhere.example'] }}]",
        server.address
    );
    let egress = egress(&grants, &Budget::default());
    let (request, _) = send_secret(&egress, &server).await?;
    assert_eq!(request.matches("hotcell-secret-").count(), 3, "{request}");
    assert!(!request.contains("value-of-the-key"), "{request}");
    let denials: Vec<String> = egress.shared.denials.take().iter().map(ToString::to_string).collect();
    let line = format!("secret = [{{ name = \"KEY\", servers = [\"http://{}\"] }}]", server.address);
    assert!(denials.len() == 1 && denials[0].contains(&line), "{denials:?}");
    Ok(())
}

#[tokio::test]
async fn attack_55_a_server_that_may_have_a_secret_is_asked_for_whole_and_readable_answers() -> TestResult {
    let server = serve(answer("200 OK", "", "dmFsdWUtb2YtdGhlLWtleQ== is what you stored with POST")).await?;
    let address = server.address;
    let grants = format!(
        "http = ['http://{address}']\nsecret = [{{ name = 'KEY', servers = [{{ url = 'http://{address}', methods = ['POST'] }}] }}]"
    );
    let egress = egress(&grants, &Budget::default());
    let request = HttpRequest::get(format!("http://{address}/"))
        .header("range", "bytes=3-9")
        .header("if-range", "x")
        .header("accept-encoding", "gzip")
        .body(Full::default().map_err(Error::from).boxed_unsync())?;
    let (response, _) = send(egress.shared.clone(), request, Default::default()).await?;
    let body = response.into_body().collect().await?.to_bytes();
    let body = String::from_utf8_lossy(&body);
    assert!(body.starts_with("(secret KEY)") && body.ends_with("== is what you stored with POST"), "{body}");
    let request = server.request.lock().map(|request| request.clone()).unwrap_or_default();
    for header in ["range", "accept-encoding"] {
        assert!(!request.contains(header), "{request}");
    }
    Ok(())
}

/// By what is taken out of its answers, a server that never had the secret could be used to guess it.
#[tokio::test]
async fn attack_55_nothing_is_taken_out_of_what_others_answer() -> TestResult {
    let server = serve(answer("200 OK", "x-told: value-of-the-key\r\n", "value-of-the-key")).await?;
    let grants = format!(
        "http = ['http://{}']\nsecret = [{{ name = 'KEY', servers = ['https://elsewhere.example'] }}]",
        server.address
    );
    let egress = egress(&grants, &Budget::default());
    egress.shared.vault.placeholder("KEY").ok_or("it is granted")?;
    let request = HttpRequest::get(format!("http://{}/", server.address))
        .body(Full::default().map_err(Error::from).boxed_unsync())?;
    let (response, _) = send(egress.shared.clone(), request, Default::default()).await?;
    assert_eq!(response.headers()["x-told"], "value-of-the-key");
    assert_eq!(&response.into_body().collect().await?.to_bytes()[..], b"value-of-the-key");
    Ok(())
}

/// A body of so many pieces of 4 KiB, and how many of them were read.
fn pieces(count: usize) -> (WasiBody, Arc<AtomicUsize>) {
    let read = Arc::new(AtomicUsize::new(0));
    let counter = read.clone();
    let pieces = futures::stream::iter((0..count).map(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(http_body::Frame::data(bytes::Bytes::from_static(&[b'x'; 4_096])))
    }));
    (StreamBody::new(pieces).boxed_unsync(), read)
}

#[tokio::test]
async fn a_body_is_taken_to_its_end_whatever_becomes_of_its_request() -> TestResult {
    let early = serve(answer("413 Payload Too Large", "connection: close\r\n", "")).await?;
    let nobody = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let grants = format!("http = ['http://{}', 'http://{nobody}']", early.address);
    let budget = Budget { http_requests: 2, ..Budget::default() };
    let egress = egress(&grants, &budget);
    let urls = [
        ("http://127.0.0.1:1".to_owned(), "denied"),
        (format!("http://{nobody}"), "nobody listens"),
        (format!("http://{}", early.address), "answered early"),
        (format!("http://{}", early.address), "one request too many"),
    ];
    for (url, what) in urls {
        let (body, read) = pieces(1_000);
        let request = HttpRequest::post(&url).body(body)?;
        let sent = send(egress.shared.clone(), request, Default::default()).await;
        // Whether an early answer arrives before its connection is reset is chance.
        assert!(sent.is_err() || what == "answered early", "{what}");
        drop(sent);
        let all = async {
            while read.load(Ordering::SeqCst) < 1_000 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all).await.map_err(|_| what)?;
    }
    Ok(())
}

#[tokio::test]
async fn nothing_is_read_of_a_body_when_its_call_is_over() -> TestResult {
    let egress = egress("", &Budget::default());
    let read = Arc::new(AtomicUsize::new(0));
    let counter = read.clone();
    let endless = futures::stream::repeat_with(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(http_body::Frame::data(bytes::Bytes::from_static(b"x")))
    });
    let slow = futures::StreamExt::then(endless, |frame| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        frame
    });
    let request = HttpRequest::post("http://127.0.0.1:1").body(StreamBody::new(slow).boxed_unsync())?;
    assert!(send(egress.shared.clone(), request, Default::default()).await.is_err());
    while read.load(Ordering::SeqCst) < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(egress);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let before = read.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(read.load(Ordering::SeqCst), before);
    Ok(())
}

#[tokio::test]
async fn attack_46_a_redirect_is_an_answer_and_not_followed() -> TestResult {
    let elsewhere = serve(answer("200 OK", "", "elsewhere")).await?;
    let location = format!("location: http://{}/\r\n", elsewhere.address);
    let server = serve(answer("302 Found", &location, "")).await?;
    let budget = Budget::default();
    let egress = egress(&format!("http = ['http://{}']", server.address), &budget);
    let (status, _) = get(&egress, &format!("http://{}/", server.address)).await?;
    assert_eq!((status, elsewhere.connections.load(Ordering::SeqCst)), (302, 0));
    Ok(())
}

#[tokio::test]
async fn attack_52_requests_and_bytes_are_counted_out() -> TestResult {
    let server = serve(answer("200 OK", "", &"x".repeat(100_000))).await?;
    let (grants, url) = (format!("http = ['http://{}']", server.address), format!("http://{}/", server.address));
    let budget = Budget { http_requests: 2, ..Budget::default() };
    let few = egress(&grants, &budget);
    assert!(get(&few, &url).await.is_ok() && get(&few, &url).await.is_ok());
    assert!(few.report().exhausted.is_none());
    assert!(matches!(get(&few, &url).await, Err(Error::ConnectionLimitReached)));
    assert_eq!((few.report().requests, server.connections.load(Ordering::SeqCst)), (2, 2));
    assert!(few.report().exhausted.is_some_and(|text| text.contains("2 HTTP requests")));

    let budget = Budget { http_bytes: Bytes(50_000), ..Budget::default() };
    let small = egress(&grants, &budget);
    assert!(get(&small, &url).await.is_err());
    assert!(small.report().exhausted.is_some());
    Ok(())
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_with_the_call() -> TestResult {
    let server = serve(Vec::new()).await?;
    let budget = Budget { wall_clock: Duration::from_millis(50), ..Budget::default() };
    let egress = egress(&format!("http = ['http://{}']", server.address), &budget);
    let outcome = get(&egress, &format!("http://{}/", server.address)).await;
    assert!(matches!(outcome, Err(Error::HttpResponseTimeout | Error::ConnectionTimeout)), "{outcome:?}");
    Ok(())
}

/// A server that sends without end after the head of its answer, and counts what it got rid of.
async fn serve_without_end(piece: usize, pause: Duration) -> std::io::Result<(SocketAddr, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, sent) = (listener.local_addr()?, Arc::new(AtomicUsize::new(0)));
    let counter = sent.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counter = counter.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 4_096];
                let _ = stream.read(&mut head).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                let piece = vec![b'x'; piece];
                while let Ok(written) = stream.write(&piece).await {
                    counter.fetch_add(written, Ordering::SeqCst);
                    tokio::time::sleep(pause).await;
                }
            });
        }
    });
    Ok((address, sent))
}

/// What a server can push into a body that nobody reads is what the two ends of the connection hold.
#[tokio::test]
async fn attack_22_a_body_that_is_never_read_is_not_kept_by_the_host() -> TestResult {
    let (address, sent) = serve_without_end(64 << 10, Duration::ZERO).await?;
    let budget = Budget { http_bytes: Bytes(1 << 30), ..Budget::default() };
    let egress = egress(&format!("http = ['http://{address}']"), &budget);
    let body: WasiBody = Empty::new().map_err(Error::from).boxed_unsync();
    let request = HttpRequest::get(format!("http://{address}/")).body(body)?;
    let (response, rest) = send(egress.shared.clone(), request, Default::default()).await?;
    let rest = tokio::spawn(Box::into_pin(rest));
    let mut before = usize::MAX;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = sent.load(Ordering::SeqCst);
        if now == before {
            break;
        }
        before = now;
    }
    assert_eq!(sent.load(Ordering::SeqCst), before, "the server is still sending");
    let received = egress.report().received;
    assert!(received < Bytes::mib(2), "the host took {received} that nobody asked for");
    drop(response);
    rest.abort();
    Ok(())
}

#[tokio::test]
async fn attack_23_a_response_without_end_meets_the_byte_limit_or_the_deadline() -> TestResult {
    let (flood, _) = serve_without_end(64 << 10, Duration::ZERO).await?;
    let budget = Budget { http_bytes: Bytes::kib(300), ..Budget::default() };
    let flooded = egress(&format!("http = ['http://{flood}']"), &budget);
    assert!(get(&flooded, &format!("http://{flood}/")).await.is_err());
    assert!(flooded.report().exhausted.is_some());
    assert!(flooded.report().received < Bytes::mib(1), "{}", flooded.report().received);

    // Where secrets are in use the host itself reads to the end, and it is the host that has to stop.
    let (drip, _) = serve_without_end(1, Duration::from_millis(10)).await?;
    let budget = Budget { wall_clock: Duration::from_millis(200), ..Budget::default() };
    let grants = format!("http = ['http://{drip}']\nsecret = [{{ name = 'KEY', servers = ['http://{drip}'] }}]");
    let dripped = egress(&grants, &budget);
    dripped.shared.vault.placeholder("KEY").ok_or("it is granted")?;
    let outcome = get(&dripped, &format!("http://{drip}/")).await;
    assert!(matches!(outcome, Err(Error::HttpResponseTimeout)), "{outcome:?}");
    Ok(())
}

#[tokio::test]
async fn attack_26_a_response_with_too_many_headers_is_an_error() -> TestResult {
    let many = "x-filler: 0123456789012345678901234567890123456789\r\n".repeat(3_000);
    let server = serve(answer("200 OK", &many, "")).await?;
    let budget = Budget::default();
    let egress = egress(&format!("http = ['http://{}']", server.address), &budget);
    assert!(get(&egress, &format!("http://{}/", server.address)).await.is_err());
    assert!(egress.report().received < Bytes::kib(200), "{}", egress.report().received);
    Ok(())
}

/// Names whose meaning changes with every look-up.
struct Rebinding {
    answers: Vec<Vec<SocketAddr>>,
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl Resolve for Rebinding {
    async fn resolve(&self, _: &str, _: u16) -> std::io::Result<Vec<SocketAddr>> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.answers[number % self.answers.len()].clone())
    }
}

fn rebinding(grants: &str, answers: &[&[SocketAddr]]) -> (Egress, Arc<Rebinding>) {
    let names = Arc::new(Rebinding {
        answers: answers.iter().map(|answer| answer.to_vec()).collect(),
        asked: AtomicUsize::new(0),
    });
    let grants = toml::from_str(grants).unwrap_or_else(|error| panic!("{error}"));
    let terms = Terms { grants: Arc::new(grants), ..Terms::new("test") };
    let vault = Arc::new(Vault::new(&terms.secrets, &terms.grants, None));
    (Egress::with_names(&terms, &Budget::default(), Denials::of(&terms), vault, Some(names.clone())), names)
}

/// A name that leads elsewhere when it is looked up again finds no second look-up.
#[tokio::test]
async fn attack_45_the_address_that_was_checked_is_the_one_that_is_connected() -> TestResult {
    let (first, second) = (serve(answer("200 OK", "", "first")).await?, serve(answer("200 OK", "", "second")).await?);
    let connections = || [&first, &second].map(|server| server.connections.load(Ordering::SeqCst));
    let url = "http://rebound.example/";
    let grants = "http = [{ url = 'http://rebound.example', private = true }]";
    let (egress, names) = rebinding(grants, &[&[first.address], &[second.address]]);
    assert_eq!(get(&egress, url).await?, (200, "first".to_owned()));
    assert_eq!((names.asked.load(Ordering::SeqCst), connections()), (1, [1, 0]));

    // Without `private` every address is looked at, also those that come after one that is allowed but dead.
    let (egress, names) = rebinding("http = ['http://rebound.example']", &[&[first.address, second.address]]);
    let outcome = get(&egress, url).await;
    assert!(matches!(outcome, Err(Error::DestinationIpProhibited)), "{outcome:?}");
    assert_eq!((names.asked.load(Ordering::SeqCst), connections()), (1, [1, 0]));
    assert_eq!(egress.shared.denials.take().len(), 1);
    Ok(())
}

#[tokio::test]
async fn attack_44_47_49_odd_urls_are_read_once_and_canonically() {
    let budget = Budget::default();
    let egress = egress("http = ['http://granted.example', 'http://[::1]:1']", &budget);
    let cases = [
        ("http://granted.example@127.0.0.1/", "", Error::HttpRequestUriInvalid),
        ("http://granted.example:pw@127.0.0.1/", "", Error::HttpRequestUriInvalid),
        ("http://2130706433/", "http://127.0.0.1", Error::HttpRequestDenied),
        ("http://0x7f.1/", "http://127.0.0.1", Error::HttpRequestDenied),
        ("http://0177.0.0.1/", "http://127.0.0.1", Error::HttpRequestDenied),
        ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]", Error::HttpRequestDenied),
        ("http://granted.example./", "http://granted.example.", Error::HttpRequestDenied),
        ("http://granted.example:81/", "http://granted.example:81", Error::HttpRequestDenied),
        ("https://granted.example/", "https://granted.example", Error::HttpRequestDenied),
    ];
    for (url, server, expected) in cases {
        let outcome = get(&egress, url).await;
        assert_eq!(outcome.map_err(|error| error.to_string()), Err(expected.to_string()), "{url}");
        let denials = egress.shared.denials.take();
        assert!(
            server.is_empty() || denials.iter().any(|denial| denial.to_string().contains(&format!("\"{server}\""))),
            "{url}: {denials:?}"
        );
    }
    let outcome = ask(&egress, "CONNECT", "http://granted.example/").await;
    assert!(matches!(outcome, Err(Error::HttpRequestMethodInvalid)), "{outcome:?}");
    assert_eq!(egress.report().requests, 0);
}
