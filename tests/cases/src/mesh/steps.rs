//! Does what the steps of a case say, one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::future::join_all;
use hotcell_runtime::{Clock as _, ManualClock};
use indexmap::IndexMap;
use tempfile::TempDir;

use super::SECRET;
use super::client::{Answered, Post, send, stream};
use super::expect::{check_reply, check_stream};
use super::saved::Saved;
use super::server::{Running, Said, Setup, as_of_now};
use super::sign::{newer, older};
use super::step::{ExpectReply, Request, Settle, Signed, Step};
use crate::mismatch::{Mismatch, shown_list};
use crate::pairing::pair;

/// How long something is waited for that takes no time on the mesh's clock.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether a session has come to a status.
const LOOK: Duration = Duration::from_millis(10);
/// The header that says whose a request is.
const TENANT: &str = "x-tenant-id";

/// The conversation with a server.
pub(super) struct Conversation {
    pub(super) setup: Setup,
    /// Where the files of servers are that were killed
    killed: Vec<TempDir>,
    pub(super) clock: ManualClock,
    pub(super) saved: Arc<Saved>,
    pub(super) said: Said,
    /// What the keys of the case are at the server
    pub(super) keys: IndexMap<String, String>,
    /// The server; none while it is down
    running: Option<Running>,
    port: u16,
    /// How many nonces were made
    nonces: u32,
    tenant: Option<String>,
    mismatches: Vec<Mismatch>,
}

impl Conversation {
    /// Starts the server.
    pub(super) async fn begin(
        setup: &Setup,
        (clock, saved, said): (ManualClock, Arc<Saved>, Said),
        keys: IndexMap<String, String>,
    ) -> Result<Self, String> {
        let running = Running::start(setup, None, &said).await?;
        let port = running.port;
        let (running, mismatches) = (Some(running), Vec::new());
        let (setup, killed) = (setup.clone(), Vec::new());
        Ok(Conversation { setup, killed, clock, saved, said, keys, running, port, nonces: 0, tenant: None, mismatches })
    }

    /// Does what the steps say. After a step that went otherwise, the next ones say nothing any more.
    pub(super) async fn play(mut self, steps: &[Step]) -> Result<Vec<Mismatch>, String> {
        for (index, step) in steps.iter().enumerate() {
            self.step(&format!("steps[{index}]"), step).await?;
            if !self.mismatches.is_empty() {
                break;
            }
        }
        if self.mismatches.is_empty() {
            self.settle("the end of the steps").await;
        }
        if let Some(running) = self.running.take() {
            running.kill().await;
        }
        Ok(self.mismatches)
    }

    async fn step(&mut self, place: &str, step: &Step) -> Result<(), String> {
        match step {
            Step::Note => {}
            Step::Request { request, expect, save } => {
                let answered = match self.post(request) {
                    Ok(post) => send(self.port, &post).await,
                    Err(problem) => Err(problem),
                };
                self.take(place, answered, expect, save);
            }
            Step::Parallel { steps, expect_any_order } => self.parallel(place, steps, expect_any_order).await,
            Step::Stream { stream: wanted, expect, until, disconnect_after } => {
                let json = Some(wanted.json.clone());
                let request = Request {
                    method: None,
                    path: wanted.path.clone(),
                    headers: IndexMap::new(),
                    json,
                    text: None,
                    signed: None,
                    key: None,
                };
                let post = self.post(&request)?;
                match stream(self.port, &post, until.as_deref().or(disconnect_after.as_deref())).await {
                    Ok(events) => {
                        for event in &events {
                            self.saved.note_session(&serde_json::from_str(&event.data).unwrap_or_default());
                        }
                        self.mismatches.extend(check_stream(place, expect, &events, &self.saved));
                    }
                    Err(error) => self.differ(place, "a stream of events", error),
                }
            }
            Step::Settle(Settle::All) => self.settle(place).await,
            Step::Settle(Settle::Session(session, status)) => self.until_session(place, session, status).await,
            Step::Advance(seconds) => self.advance(place, Duration::from_secs_f64(*seconds)).await,
            Step::Restart { is_kill, down_s } => {
                // Functions count when they are called, so none is in the middle of a call; and what goes on without the clock has
                // an end before the server stops waiting for it.
                self.settle(place).await;
                if let Some(running) = self.running.take() {
                    match is_kill {
                        true => {
                            let place = TempDir::new().map_err(|error| error.to_string())?;
                            as_of_now(&mut self.setup, place.path())?;
                            self.killed.push(place);
                            running.kill().await;
                        }
                        false => running.stop().await?,
                    }
                }
                self.clock.advance(Duration::from_secs_f64(*down_s));
                self.running = Some(Running::start(&self.setup, Some(self.port), &self.said).await?);
            }
        }
        Ok(())
    }

    fn differ(&mut self, place: &str, expected: impl Into<String>, got: impl Into<String>) {
        self.mismatches.push(Mismatch::new(place, expected, got));
    }

    async fn settle(&mut self, place: &str) {
        if !self.clock.settled(PATIENCE).await {
            let got = format!("{:?}", self.clock);
            self.differ(place, format!("nothing is in flight within {} s", PATIENCE.as_secs()), got);
        }
    }

    /// Moves the clock on through everything that becomes due.
    async fn advance(&mut self, place: &str, by: Duration) {
        self.settle(place).await;
        let until = self.clock.now() + by;
        while let Some(due) = self.clock.next_due().filter(|due| *due <= until) {
            self.clock.advance_to(due);
            self.settle(place).await;
            if !self.mismatches.is_empty() {
                return;
            }
        }
        self.clock.advance_to(until);
        self.settle(place).await;
    }

    async fn parallel(&mut self, place: &str, steps: &[Step], any_order: &[ExpectReply]) {
        let mut posts = Vec::new();
        for step in steps {
            let Step::Request { request, .. } = step else { continue };
            match self.post(request) {
                Ok(post) => posts.push(post),
                Err(problem) => return self.differ(place, "a request that can be made", problem),
            }
        }
        let port = self.port;
        let answers = join_all(posts.iter().map(|post| send(port, post))).await;
        if !any_order.is_empty() {
            let replies: Vec<&Answered> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
            let fits = |wanted: usize, reply: usize| {
                check_reply("", &any_order[wanted], replies[reply], &self.saved).is_empty()
            };
            let pairs = pair(any_order.len(), replies.len(), fits);
            let all: Vec<String> = replies.iter().map(|reply| reply.shown()).collect();
            for (index, _) in pairs.iter().enumerate().filter(|(_, found)| found.is_none()) {
                let expected = any_order[index].to_string();
                self.differ(&format!("{place}.expect_any_order[{index}]"), expected, all.join("\n"));
            }
        }
        let requests = steps.iter().filter_map(|step| match step {
            Step::Request { expect, save, .. } => Some((expect, save)),
            _ => None,
        });
        for (index, (answered, (expect, save))) in answers.into_iter().zip(requests).enumerate() {
            self.take(&format!("{place}.parallel[{index}]"), answered, expect, save);
        }
    }

    /// Holds a reply against what is expected of it, and keeps what is wanted of it.
    fn take(
        &mut self,
        place: &str,
        answered: Result<Answered, String>,
        expect: &ExpectReply,
        save: &IndexMap<String, String>,
    ) {
        let answered = match answered {
            Ok(answered) => answered,
            Err(error) => return self.differ(place, "a reply", error),
        };
        let json = answered.json().unwrap_or_default();
        self.saved.note_session(&json);
        self.mismatches.extend(check_reply(&format!("{place}.expect"), expect, &answered, &self.saved));
        for path in self.saved.keep(save, &json) {
            self.differ(&format!("{place}.save"), format!("something at `{path}`"), answered.shown());
        }
    }

    /// A request as it goes over the wire.
    fn post(&mut self, request: &Request) -> Result<Post, String> {
        let path = self.path(&self.saved.fill_text(&request.path))?;
        let mut headers: Vec<(String, String)> = Vec::new();
        for (name, value) in &request.headers {
            headers.push((name.clone(), self.saved.fill_text(value)));
        }
        let has = |headers: &[(String, String)], name: &str| {
            headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        let mut body = match (&request.json, &request.text) {
            (Some(json), _) => {
                if !has(&headers, "content-type") {
                    headers.push(("content-type".to_owned(), "application/json".to_owned()));
                }
                self.saved.fill(json).to_string().into_bytes()
            }
            (None, Some(text)) => self.saved.fill_text(text).into_bytes(),
            (None, None) => Vec::new(),
        };
        if let Some(key) = &request.key {
            let key = self.keys.get(key).unwrap_or(key).clone();
            headers.push(("X-API-Key".to_owned(), key));
        }
        if let Some(signed) = &request.signed {
            headers.extend(self.signature(signed, &body)?);
            if signed.tamper {
                // Still the same JSON, and other bytes.
                body.push(b' ');
            }
        }
        let tenant = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(TENANT));
        self.tenant = tenant.map(|(_, value)| value.clone()).or(self.tenant.take());
        let method = request.method.clone().unwrap_or_else(|| "POST".to_owned());
        Ok(Post { method, path, headers, body })
    }

    /// The path of a whole address of this server.
    fn path(&self, path: &str) -> Result<String, String> {
        if path.starts_with('/') {
            return Ok(path.to_owned());
        }
        let url =
            url::Url::parse(path).map_err(|error| format!("`{path}` is neither a path nor an address: {error}"))?;
        if url.port_or_known_default() != Some(self.port) {
            return Err(format!(
                "`{path}` is not a valid address of the mesh's server, which listens at port {}",
                self.port
            ));
        }
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        Ok(format!("{}{query}", url.path()))
    }

    fn signature(&mut self, signed: &Signed, body: &[u8]) -> Result<Vec<(String, String)>, String> {
        let secret = signed.secret.as_deref().unwrap_or(SECRET);
        let owned = |(name, value): (&str, String)| (name.to_owned(), value);
        if signed.is_legacy {
            return Ok(older(secret, body).map(owned).into());
        }
        self.nonces += 1;
        let fresh = format!("nonce-{}-{}", self.nonces, fastrand::u64(..));
        let nonce = signed.nonce.as_ref().map(|nonce| self.saved.fill_text(nonce)).unwrap_or(fresh);
        let timestamp = seconds(self.clock.now())? + signed.timestamp_offset_s;
        Ok(newer(secret, timestamp, &nonce, body).map(owned).into())
    }

    /// Waits until a session has one of these statuses.
    async fn until_session(&mut self, place: &str, session: &str, wanted: &[String]) {
        let session = self.saved.fill_text(session);
        let mut headers: Vec<(String, String)> = Vec::new();
        headers.extend(self.keys.values().next().map(|key| ("X-API-Key".to_owned(), key.clone())));
        headers.extend(self.tenant.clone().map(|tenant| (TENANT.to_owned(), tenant)));
        let path = format!("/api/sessions/{session}/history");
        let post = Post { method: "GET".to_owned(), path, headers, body: Vec::new() };
        let begun = Instant::now();
        loop {
            let answered = send(self.port, &post).await;
            let status = answered.as_ref().ok().and_then(Answered::json);
            let status = status.and_then(|json| json["status"].as_str().map(str::to_owned));
            if status.is_some_and(|status| wanted.contains(&status)) {
                return;
            }
            if begun.elapsed() > PATIENCE {
                let got = answered.map_or_else(|error| error, |answered| answered.shown());
                self.differ(place, format!("session `{session}` comes to {}", shown_list(wanted)), got);
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn seconds(time: SystemTime) -> Result<i64, String> {
    let since = time.duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    i64::try_from(since.as_secs()).map_err(|error| error.to_string())
}
