//! Driving a run at a server on behalf of a person: it is followed, and its questions are answered here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_runtime::{
    Entry, Fact, Outcome, Question, RunStatus, Session as RunSession, failures, open_questions, outcome_of,
};
use serde_json::{Value, json};

use super::Context;
use super::conclude::{Concluded, Conclusion};
use super::drive::attended;
use crate::arguments::Session;
use crate::events;
use crate::exit::{Exit, Failure};
use crate::far::{self, Answered, Client, EntryPage, Events, Refused, Run, RunEntry, Teller};
use crate::narration::Narrator;

/// How long to wait before a stream that broke off is taken up again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often in a row that is tried without anything new.
const ATTEMPTS: u32 = 30;

/// What is asked of a server on behalf of a person.
pub(super) struct FarSession<'a> {
    context: &'a Context,
    client: &'a Client,
    arguments: Session,
    narrator: Arc<Narrator>,
    conclusion: Conclusion<'a>,
}

/// What a server is to do.
pub(super) enum Order {
    /// Begin a run; the prompt is the answer if the last run of its thread waits for one
    Begin { body: Value, prompt: Option<String> },
    /// Go on with a run, at this address below it, if it does not go on by itself
    GoOn { run: String, at: Option<&'static str> },
}

/// How following a run ended.
enum Ended {
    /// It came to this
    Rests(Outcome),
    /// Whoever followed it had enough of it
    Left,
}

/// A run that is followed.
struct Following<'a> {
    client: &'a Client,
    session: RunSession,
    /// Its name; empty until the server has said it
    run: String,
    /// Whether it had begun before
    resumed: bool,
    teller: Option<Teller>,
    entries: Vec<Entry>,
    /// The number of the last entry
    seen: u64,
    begun: Instant,
}

impl<'a> FarSession<'a> {
    /// For a command with these options.
    ///
    /// # Errors
    /// For those that only count where a run is carried out.
    pub(super) fn new(context: &'a Context, client: &'a Client, arguments: Session) -> Result<Self, Failure> {
        refuse(&[
            ("--model", arguments.with.model.is_some()),
            ("--plugins", !arguments.with.more.plugins.is_empty()),
            ("--record", arguments.record.is_some()),
            ("--replay", arguments.replay.is_some()),
            ("--trust", arguments.with.trust),
        ])?;
        let narrator = Arc::new(Narrator::new(context.screen.clone(), None));
        let (json, quiet) = (arguments.json, arguments.quiet);
        let conclusion = Conclusion { context, json, quiet, narrator: narrator.clone() };
        Ok(FarSession { context, client, arguments, narrator, conclusion })
    }

    /// Has a run done or go on, follows it to where it ends or waits, and tells the outcome.
    pub(super) fn go(&self, order: Order) -> Result<Exit, Failure> {
        let client = self.client;
        let work = |session| async move {
            let mut following = Following::new(client, session);
            let events = following.start(order).await?;
            let ended = following.follow_to_its_end(events).await?;
            Ok((following, ended))
        };
        let followed: Result<_, Refused> = attended(self.context, &self.arguments, &self.narrator, work)?;
        let (following, ended) = match followed {
            Ok(followed) => followed,
            Err(refused) => return Err(self.conclusion.refuse(refused.into())?),
        };
        let run = &following.run;
        let Ended::Rests(outcome) = ended else {
            if self.arguments.json {
                events::line(&events::result(json!({ "run": run, "status": "running" }), Exit::Interrupted))?;
            }
            let command = self.context.runs_command("watch", run, "");
            self.context.screen.line(&format!("run {run} continues on the server; follow it with"));
            self.context.screen.line(&format!("  {command}"));
            return Ok(Exit::Interrupted);
        };
        let (failures, account) = (failures(&following.entries), far::account(&following.entries));
        let run = run.clone().into();
        let concluded = Concluded { run: &run, outcome: &outcome, failures: &failures, account: &account };
        self.conclusion.conclude(&concluded, self.arguments.strict)
    }
}

impl<'a> Following<'a> {
    fn new(client: &'a Client, session: RunSession) -> Self {
        let begun = Instant::now();
        let (run, entries) = (String::new(), Vec::new());
        Following { client, session, run, resumed: false, teller: None, entries, seen: 0, begun }
    }

    /// Has the server do it.
    async fn start(&mut self, order: Order) -> Result<Option<Events>, Refused> {
        let (run, at) = match order {
            Order::Begin { body, prompt } => {
                let problem = match self.client.post_and_follow(&["runs", "stream"], &body).await {
                    Err(Refused::Problem(problem)) if problem.is("thread-interrupted") => problem,
                    Err(refused) => return Err(refused),
                    Ok(events) => {
                        // It can be followed again if the stream breaks off before its first entry.
                        self.run = events.run.clone().unwrap_or_default();
                        return Ok(Some(events));
                    }
                };
                // What the thread waits for is its answer.
                let (Some(run), Some(prompt)) = (problem.run_id.clone(), prompt) else {
                    return Err(Refused::Problem(problem));
                };
                self.go_on_after(run).await?;
                let answer = json!({ "answer": prompt });
                let _: Answered = self.client.post(&["runs", &self.run, "answers"], &answer).await?;
                return self.client.follow(&self.run, self.seen).await;
            }
            Order::GoOn { run, at } => (run, at),
        };
        self.go_on_after(run).await?;
        if let Some(at) = at {
            let _: Run = self.client.post(&["runs", &self.run, at], &json!({})).await?;
        }
        self.client.follow(&self.run, self.seen).await
    }

    /// Reads what a run came to before.
    async fn go_on_after(&mut self, run: String) -> Result<(), Refused> {
        let before = all_entries(self.client, &run).await?;
        self.seen = before.last().map_or(0, |entry| entry.seq);
        self.entries = before.iter().filter_map(far::entry).collect();
        (self.run, self.resumed) = (run, true);
        Ok(())
    }

    async fn follow_to_its_end(&mut self, mut events: Option<Events>) -> Result<Ended, Refused> {
        let (cancel, mut attempts) = (self.session.cancel.clone(), 0);
        loop {
            let Some(told) = cancel.run_until_cancelled(next(&mut events)).await else { return Ok(Ended::Left) };
            let stands = match told? {
                Some((name, data)) => {
                    attempts = 0;
                    self.told(&name, data)?
                }
                None => {
                    attempts += 1;
                    // It was cut off, or the server starts again; the run is in its journal.
                    if attempts > 1 && cancel.run_until_cancelled(tokio::time::sleep(AGAIN)).await.is_none() {
                        return Ok(Ended::Left);
                    }
                    match self.client.follow(&self.run, self.seen).await {
                        Err(Refused::Broken(_)) if attempts < ATTEMPTS => None,
                        Ok(None) => Some(self.client.get(&["runs", &self.run], &[]).await?),
                        followed => {
                            events = followed?;
                            None
                        }
                    }
                }
            };
            let Some(stands) = stands else { continue };
            let questions: Vec<Question> = match stands.standing {
                RunStatus::Waiting => open_questions(&self.entries).into_iter().map(|open| open.question).collect(),
                _ => Vec::new(),
            };
            match self.answer(&questions).await? {
                None => return Ok(Ended::Left),
                Some(true) => {
                    self.teller().goes_on();
                    events = match self.client.follow(&self.run, self.seen).await {
                        // It is taken up again as a stream that breaks off.
                        Err(Refused::Broken(_)) => None,
                        followed => followed?,
                    };
                }
                Some(false) => {
                    let outcome = self.outcome(&stands, questions);
                    let took = self.begun.elapsed();
                    let entries = std::mem::take(&mut self.entries);
                    self.teller().rests(&outcome, &entries, took);
                    self.entries = entries;
                    return Ok(Ended::Rests(outcome));
                }
            }
        }
    }

    /// Takes what the server tells. Gives how the run stands if it rests.
    fn told(&mut self, name: &str, data: Value) -> Result<Option<Run>, Refused> {
        let unread = |error: serde_json::Error| {
            Refused::Broken(format!("what the server says of the run cannot be read: {error}"))
        };
        match name {
            "entry" => {
                let told: RunEntry = serde_json::from_value(data).map_err(unread)?;
                self.seen = told.seq;
                if self.run.is_empty() {
                    self.run.clone_from(&told.run_id);
                }
                if let Some(entry) = far::entry(&told) {
                    self.teller().committed(&entry);
                    self.entries.push(entry);
                }
            }
            "live" => self.teller().live(&data),
            "end" => return serde_json::from_value(data).map(Some).map_err(unread),
            "error" => return Err(Refused::Problem(serde_json::from_value(data).map_err(unread)?)),
            // Of a newer server.
            _ => {}
        }
        Ok(None)
    }

    fn teller(&mut self) -> &mut Teller {
        let graph = self.entries.iter().find_map(|entry| match &entry.fact {
            Fact::Started(header) => Some(header.graph.clone()),
            _ => None,
        });
        let (observer, run, resumed) = (&self.session.observer, &self.run, self.resumed);
        self.teller.get_or_insert_with(|| {
            Teller::new(observer.clone(), run.clone().into(), graph.unwrap_or_default(), resumed)
        })
    }

    /// Has the person answer questions, and sends the answers. Says whether there was one; none if the person had enough.
    async fn answer(&mut self, questions: &[Question]) -> Result<Option<bool>, Refused> {
        let mut any = false;
        // Who sits here is not known, so a question for certain people is not for them.
        for question in questions.iter().filter(|question| question.operator_ids.is_empty()) {
            let asked = self.session.cancel.run_until_cancelled(self.session.people.ask(question)).await;
            let Some(answer) = asked else { return Ok(None) };
            let Some(answer) = answer else { continue };
            let body = json!({ "question_id": question.id, "answer": answer });
            match self.client.post::<Answered>(&["runs", &self.run, "answers"], &body).await {
                Ok(_) => self.teller().answered(&question.node),
                // Somebody else was faster, and the run goes on with that.
                Err(Refused::Problem(problem)) if problem.status == 409 => {}
                // Whoever may grant it answers, and the run waits for them.
                Err(Refused::Problem(problem)) if problem.status == 403 && question.denial.is_some() => continue,
                Err(refused) => return Err(refused),
            }
            any = true;
        }
        Ok(Some(any))
    }

    /// What the run came to.
    fn outcome(&self, stands: &Run, questions: Vec<Question>) -> Outcome {
        let ended = self.entries.iter().rev().find_map(|entry| match &entry.fact {
            Fact::Ended { result, node } => Some((result.clone(), node.clone())),
            _ => None,
        });
        match (stands.standing, ended) {
            (RunStatus::Failed, Some((Err(error), node))) => Outcome::Failed { node, error },
            (RunStatus::Completed, Some((Ok(output), _))) => Outcome::Completed { output },
            _ => outcome_of(&far::record(stands, &self.entries), questions),
        }
    }
}

/// The next event of a stream; none where there is no stream.
async fn next(events: &mut Option<Events>) -> Result<Option<(String, Value)>, Refused> {
    match events {
        Some(events) => events.next().await,
        None => Ok(None),
    }
}

/// All entries of a run.
pub(super) async fn all_entries(client: &Client, run: &str) -> Result<Vec<RunEntry>, Refused> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let text = after.to_string();
        let page: EntryPage = client.get(&["runs", run, "entries"], &[("after", &text), ("limit", "1000")]).await?;
        all.extend(page.entries);
        match page.next {
            Some(next) if next > after => after = next,
            _ => return Ok(all),
        }
    }
}

/// Refuses the first of these options that was given: what they are about is at the server.
pub(super) fn refuse(options: &[(&str, bool)]) -> Result<(), Failure> {
    match options.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::refused(format!("`{option}` cannot be used with `--server`"))
            .help("the agent is configured on the server")),
    }
}
