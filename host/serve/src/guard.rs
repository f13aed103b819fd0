//! What a request has to pass before anything answers it, and what every reply has.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;
use hotcell_http::{HostRefused, Hosts, Peer, with_body};
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN, REFERRER_POLICY,
    VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

use crate::access::audit::Audited;
use crate::access::{Asker, Caller, Identity};
use crate::api::params::means_nothing;
use crate::log;
use crate::mesh::meshes::{MESHES, NamedMesh};
use crate::problem::{MEDIA_TYPE, Problem};
use crate::rules::Needs;
use crate::shares::share_of;
use crate::state::Server;
use crate::step::Next;

/// Headers of replies that pages of other origins may read.
const EXPOSED: &str = "content-location, idempotency-replayed, location, mcp-session-id, retry-after, www-authenticate, x-request-id, x-should-retry";

/// Marks a reply that says that something is wrong and has a form of its own, which is documented.
#[derive(Clone, Copy)]
pub(crate) struct Documented;

/// Refuses what was sent from another page, or by somebody who may not do it, and writes down what was done.
pub(crate) async fn admit(server: Server, mut request: Request, next: Next) -> Response {
    let (method, mut path) = (request.method().clone(), request.uri().path().to_owned());
    if let Some(NamedMesh(name)) = request.extensions().get() {
        path = format!("{MESHES}{name}{path}");
    }
    let asked = Audited::new(&method, path, request.uri().query());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let needs = match check(&server, &request) {
        Ok(needs) => needs,
        Err(problem) => return problem.into_response(),
    };
    // Whoever did not come by the front is nobody.
    let identity = request.extensions_mut().remove().unwrap_or(Identity::Nobody);
    let caller = match server.access().admit(&identity, needs) {
        Ok(caller) => caller,
        Err(refused) => {
            let (caller, problem) = *refused;
            let response = problem.into_response();
            server.access().audit.note(&caller, server.tenant(), &asked, response.status());
            return response;
        }
    };
    log::caller(&caller);
    if *needs == Needs::Nothing {
        return next.run(request).await;
    }
    let known = request.extensions().get::<Peer>().map(Peer::known_while);
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    let within = within_quota(&server, &method, route).and_then(|()| check_query(&server, &request, route));
    let share = match within.and_then(|()| share_of(server.shares(), server.tenant(), &caller)) {
        Ok(share) => share,
        Err(problem) => {
            let response = problem.into_response();
            server.access().audit.note(&caller, server.tenant(), &asked, response.status());
            return response;
        }
    };
    server.ready().cancelled().await;
    request.extensions_mut().insert(Asker::of(&caller, &identity));
    request.extensions_mut().insert(caller.clone());
    let gone = StatusCode::from_u16(GONE).unwrap_or(StatusCode::REQUEST_TIMEOUT);
    let mut noted = Noted { server: &server, caller: &caller, asked: &asked, status: gone };
    let response = next.run(request).await;
    noted.status = response.status();
    // A stream takes its place until it ends.
    response.map(|body| with_body(body, (known, share)))
}

/// What the audit log says of a request whose client was gone before there was a reply: what was asked may have been done.
const GONE: u16 = 499;

/// A request that is written down when this is dropped: when there is a reply, or when whoever sent it goes away.
struct Noted<'a> {
    server: &'a Server,
    caller: &'a Caller,
    asked: &'a Audited,
    status: StatusCode,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        let server = self.server;
        server.access().audit.note(self.caller, server.tenant(), self.asked, self.status);
    }
}

/// Refuses one request too many, and what would be kept where no more may be. What only looks, or ends something, goes on. The route
/// says which that is: the address has names that a client thinks of.
fn within_quota(server: &Server, method: &Method, route: &str) -> Result<(), Problem> {
    const KEEPS_NOTHING: [&str; 11] = [
        "search",
        "namespaces",
        "history",
        "count",
        "checkpoint",
        "versions",
        "prune",
        "reexecute",
        "cancel",
        "answers",
        "reply",
    ];
    // Of these protocols, one address looks, answers and begins runs; whether one may begin is asked where it does.
    const MIXED: [&str; 4] = ["/a2a/", "/ag-ui/", "/mcp", "/v1/"];
    server.quotas().request()?;
    let keeps = match *method {
        Method::PUT | Method::PATCH => true,
        Method::POST => {
            let is_mixed = MIXED.iter().any(|begin| route.starts_with(begin));
            !is_mixed && !KEEPS_NOTHING.contains(&route.rsplit('/').next().unwrap_or_default())
        }
        _ => false,
    };
    match keeps {
        true => server.quotas().keep(),
        false => Ok(()),
    }
}

/// Refuses a query where the document has none.
fn check_query(server: &Server, request: &Request, route: &str) -> Result<(), Problem> {
    let query = request.uri().query().unwrap_or_default();
    match url::form_urlencoded::parse(query.as_bytes()).next() {
        Some((name, _)) if !server.rules().takes_query(request.method(), route) => Err(means_nothing(&name)),
        _ => Ok(()),
    }
}

/// What a request needs that has no route, or not for its method: it is refused by the router.
static NOTHING: Needs = Needs::Nothing;

/// What a request needs, if it is not from a page that has no business here.
fn check<'s>(server: &'s Server, request: &Request) -> Result<&'s Needs, Problem> {
    let mesh = request.extensions().get::<NamedMesh>();
    check_origin(server, request.uri(), request.headers(), mesh)?;
    let path = request.extensions().get::<MatchedPath>();
    if mesh.is_some() && path.is_some_and(|path| !server.rules().is_of_mesh(path.as_str())) {
        return Err(Problem::not_found(
            "a mesh has no such address; it is one of the server, without the name of a mesh",
        ));
    }
    let needs = path.and_then(|path| server.rules().get(request.method(), path.as_str()));
    Ok(needs.unwrap_or(&NOTHING))
}

/// Refuses what was sent to another name than those of the server.
pub(crate) fn check_host(hosts: &Hosts, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    hosts.check(uri, headers).map_err(|refused| {
        let status = match refused {
            HostRefused::Missing => StatusCode::BAD_REQUEST,
            HostRefused::Unknown => StatusCode::MISDIRECTED_REQUEST,
        };
        Problem::new(status, format!("{refused}; `--host NAME` adds one"))
    })
}

fn check_origin(server: &Server, uri: &Uri, headers: &HeaderMap, mesh: Option<&NamedMesh>) -> Result<(), Problem> {
    // A browser says from which page a request comes. Other pages get nothing here, those of other servers of this machine
    // neither: the name and the port have to be those that the request was sent to.
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    if server.lets_in(origin, mesh) {
        return Ok(());
    }
    let page = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
    let sent_to = uri.authority().map(Authority::as_str).or_else(|| headers.get(HOST)?.to_str().ok());
    let is_own = page.as_ref().and_then(Uri::authority).zip(sent_to).is_some_and(|(page, host)| page == host);
    match is_own {
        true => Ok(()),
        false => Err(Problem::new(StatusCode::FORBIDDEN, "requests from web pages of other origins are not answered")
            .kind("origin", "The page may not use this server")),
    }
}

/// Lets the pages of other origins use the server that its operator or a mesh names, and those alone: browsers are told so, before
/// a request and with each reply.
pub(crate) async fn pages(server: Server, request: Request, next: Next) -> Response {
    let mesh = request.extensions().get::<NamedMesh>();
    let origin = request.headers().get(ORIGIN).filter(|origin| server.lets_in(origin, mesh)).cloned();
    let Some(origin) = origin else { return next.run(request).await };
    let asks_first =
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    // Clients of protocols have headers of their own, some of them many.
    let wanted = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let mut response = if asks_first { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    headers.insert(VARY, HeaderValue::from_static("origin"));
    if asks_first {
        let (methods, names) = (
            "GET, POST, PUT, PATCH, DELETE",
            "authorization, content-type, idempotency-key, last-event-id, x-api-key, x-tenant-id",
        );
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.unwrap_or(HeaderValue::from_static(names)));
    }
    response
}

/// Makes a problem of every reply that says that something is wrong and is none, and adds what every reply has.
pub(crate) async fn finish(request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let mut response = next.run(request).await;
    let status = response.status();
    let is_problem = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == MEDIA_TYPE)
        || response.extensions().get::<Documented>().is_some();
    if (status.is_client_error() || status.is_server_error()) && !is_problem {
        let mut problem = Problem::new(status, detail(status, &method, uri.path())).into_response();
        // A method that is not allowed comes with those that are.
        let kept: Vec<HeaderName> = response.headers().keys().cloned().collect();
        for name in kept {
            if name != CONTENT_TYPE
                && name != http::header::CONTENT_LENGTH
                && let Some(value) = response.headers_mut().remove(&name)
            {
                problem.headers_mut().insert(name, value);
            }
        }
        response = problem;
    }
    secured(response)
}

/// Adds what every reply has.
pub(crate) fn secured(mut response: Response) -> Response {
    let headers = response.headers_mut();
    // Otherwise they grow while these are added, and everything in them is put in its place again.
    headers.reserve(SECURED.len() + 1);
    for (name, value) in &SECURED {
        headers.entry(name).or_insert_with(|| value.clone());
    }
    response
}

/// What every reply has. One more header is added to it outside: the id of the request.
static SECURED: [(HeaderName, HeaderValue); 7] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
];

fn detail(status: StatusCode, method: &Method, path: &str) -> String {
    let path = crate::problem::shown(path);
    match status {
        StatusCode::NOT_FOUND => format!("there is nothing at `{path}`; `/openapi.json` says what there is"),
        StatusCode::METHOD_NOT_ALLOWED => {
            format!("`{path}` takes no `{method}`; the header `Allow` says what it takes")
        }
        StatusCode::BAD_REQUEST => "the address or the body cannot be read".to_owned(),
        StatusCode::INTERNAL_SERVER_ERROR => "something is wrong on the server; its log says what".to_owned(),
        other => other.canonical_reason().unwrap_or("the request was not answered").to_ascii_lowercase(),
    }
}

/// Answers a request also if what answers it panics.
pub(crate) async fn caught(answer: impl Future<Output = Response>) -> Response {
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(panicked)
}

/// What is said of the middle of a panic: nothing, but in the log.
pub(crate) fn panicked(error: Box<dyn std::any::Any + Send>) -> Response {
    let text = error.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| error.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    Problem::internal(&Arc::<str>::from(text)).into_response()
}
