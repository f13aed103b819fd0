//! Posting what is to be told, until it is taken.

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use hotcell_graph::Value as GraphValue;
use hotcell_runtime::{RunId, WebCall};
use url::Url;

use super::Webhooks;
use super::store::{AtOnce, Post};
use super::tell::tell;
use crate::post::{Failed, posted};
use crate::state::Server;
use crate::store::StoreError;

/// How long is waited after each attempt that failed; after the last one it is given up.
const PAUSES: [Duration; 8] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(5 * 60 * 60),
    Duration::from_secs(12 * 60 * 60),
    Duration::from_secs(24 * 60 * 60),
];
/// How long a server may take to answer.
const WITHIN: Duration = Duration::from_secs(15);
/// Posts that are under way at a time, and those of them to one server and to one address.
const AT_ONCE: AtOnce = AtOnce { all: 32, to_server: 16, to_address: 4 };
/// Posts that are looked at for that, some of which may be under way.
const LOOKED_AT: AtOnce = AtOnce { all: 128, to_server: 64, to_address: AT_ONCE.to_address };
/// How long to wait before the file is looked at again, when it could not be used.
const AGAIN: Duration = Duration::from_secs(10);
/// How `410 Gone` says that nobody wants it any more.
const GONE: u16 = 410;

/// The server and the address of each post that is under way, by its id.
type UnderWay = HashMap<String, (String, String)>;
type Sending = BoxFuture<'static, (Post, Result<(), Failed>)>;

/// Tells what becomes of runs until the server closes.
pub(crate) async fn deliver(server: Server) {
    let closing = server.closing().clone();
    if !server.webhooks().is_used() {
        return;
    }
    closing.run_until_cancelled(work(&server)).await;
}

async fn work(server: &Server) {
    // What happened before the server began, and was not told.
    for run in &server.webhooks().left {
        note(server, run).await;
        forget(server, run).await;
    }
    let mut sending: FuturesUnordered<Sending> = FuturesUnordered::new();
    let mut under_way = UnderWay::new();
    loop {
        for run in server.runs().news().take() {
            note(server, &run).await;
        }
        let wait = match begin(server, &mut sending, &mut under_way) {
            Ok(wait) => wait,
            Err(error) => {
                tracing::error!(target: "hotcell::serve", %error, "what is to be told cannot be read");
                Some(AGAIN)
            }
        };
        let due = async {
            match wait {
                Some(wait) => server.clock().sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = server.runs().news().more() => {}
            () = due => {}
            Some((post, result)) = sending.next(), if !sending.is_empty() => {
                under_way.remove(&post.id);
                if let Err(error) = done(server, &post, result) {
                    tracing::error!(target: "hotcell::serve", %error, "that something was told cannot be kept");
                }
            }
        }
    }
}

async fn note(server: &Server, run: &RunId) {
    if let Err(problem) = tell(server, run).await {
        tracing::error!(target: "hotcell::serve", %run, problem = problem.detail, "what happened in a run cannot be told");
    }
}

/// Forgets a run that was to begin when a server ended, and did not.
async fn forget(server: &Server, run: &RunId) {
    let is_there = match server.runs().store().find(run.as_str()).await {
        Ok(record) => record.id == *run,
        Err(error) => !matches!(error, hotcell_runtime::JournalError::NoSuchRun(_)),
    };
    if !is_there {
        server.webhooks().forget(run);
    }
}

/// Sends what is due, and says how long it is until more is.
fn begin(
    server: &Server,
    sending: &mut FuturesUnordered<Sending>,
    under_way: &mut UnderWay,
) -> Result<Option<Duration>, StoreError> {
    let now = server.clock().now();
    for post in server.store().due_posts(now, LOOKED_AT)? {
        let to_server = under_way.values().filter(|(server, _)| *server == post.server).count();
        let to_address = under_way.values().filter(|(_, url)| *url == post.url).count();
        let has_room = under_way.len() < AT_ONCE.all
            && to_server < AT_ONCE.to_server
            && to_address < AT_ONCE.to_address
            && !under_way.contains_key(&post.id);
        if has_room {
            under_way.insert(post.id.clone(), (post.server.clone(), post.url.clone()));
            let server = server.clone();
            sending.push(Box::pin(async move {
                let result = send(&server, &post).await;
                (post, result)
            }));
        }
    }
    let next = server.store().next_post(now)?;
    Ok(next.map(|next| next.duration_since(now).unwrap_or_default()))
}

async fn send(server: &Server, post: &Post) -> Result<(), Failed> {
    let Webhooks { all, own, named, secret, .. } = server.webhooks();
    let (Some(secret), Ok(url)) = (secret, Url::parse(&post.url)) else {
        return Err(Failed::for_good("it cannot be signed"));
    };
    let servers = if all.as_ref() == Some(&url) { own } else { named };
    let mut headers = secret.headers(&post.id, server.clock().now(), &post.body);
    // With the set of characters beside it, the body goes out as it is: it is what was signed.
    headers.push(("content-type".to_owned(), "application/json; charset=utf-8".to_owned()));
    let call = WebCall {
        method: "POST".to_owned(),
        url: post.url.clone(),
        query: Vec::new(),
        headers,
        body: Some(GraphValue::text(post.body.as_str())),
        time: Some(WITHIN),
    };
    posted(url.host_str().unwrap_or_default(), WITHIN, |status| status == GONE, servers.send(call)).await
}

fn done(server: &Server, post: &Post, result: Result<(), Failed>) -> Result<(), StoreError> {
    let Err(Failed { reason, is_final, .. }) = result else { return server.store().posted(&post.id) };
    let pause = PAUSES.get(post.attempts as usize).filter(|_| !is_final);
    let Some(at) = pause.and_then(|pause| server.clock().now().checked_add(*pause)) else {
        tracing::error!(target: "hotcell::serve", id = post.id, reason, "a webhook is given up");
        return server.store().posted(&post.id);
    };
    tracing::warn!(target: "hotcell::serve", id = post.id, reason, "a webhook was not taken; it is sent again later");
    server.store().postpone(&post.id, at)
}
