//! Having work done outside that takes its time.
//!
//! Each call of a tool is an effect: a turn that is repeated after a crash finds what was begun and goes on asking for it. The time
//! at which it began is an effect, too, so that its deadline outlives the process.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hotcell_budget::Account;
use hotcell_graph::ir::JobAction;
use hotcell_graph::value::parse_json;
use hotcell_graph::{Key, Object, State, Value};
use hotcell_journal::{CALLBACK, Question};

use super::Performed;
use super::given::given;
use super::tool::{self, ToolFailure, ToolRequest};
use crate::context::{Idle, Interruption, RunContext};
use crate::memory::Deed;
use crate::ports::SharedState;
use crate::turn::NodeTurn;

/// The kind of the effect that holds when a job was begun.
pub const BEGUN: &str = "begun";
/// The tool that calls it off.
const CANCEL: &str = "cancel";
/// How many calls in a row may be given up that only ask how far it is.
const MOST_SLOW: u32 = 2;
/// How soon it is asked again at the soonest.
const SHORTEST: Duration = Duration::from_millis(100);

pub(super) async fn perform(turn: &mut NodeTurn, action: &JobAction, state: &State) -> Result<Performed, Interruption> {
    let value = |expression: &hotcell_graph::ir::Expression| given(expression, state).map_err(Interruption::Failed);
    let (settings, arguments) = (value(&action.settings)?, value(&action.arguments)?);
    let address = action.callback.as_ref().map(value).transpose()?;
    let seen = turn.context.seen_by_tools(state);
    let job = format!("{}/{}", turn.context.run, turn.place);
    let callback = match address {
        Some(address) => Some(callback(turn, action, &address).await?),
        None => None,
    };
    let due = begun(turn, action).await?.checked_add(action.deadline);
    let mut job = Job { turn, action, settings, seen, job, due, guard: None };
    let value = job.go(arguments, callback).await?;
    Ok(Performed { answer: Some((action.bind, value)), ..Performed::default() })
}

/// The address for the answer. What makes it hard to guess is committed before anybody hears of it.
async fn callback(turn: &mut NodeTurn, action: &JobAction, address: &Value) -> Result<Value, Interruption> {
    if *address == Value::Null {
        let reason = "its result is to come by a callback, and only a server that serves the agent takes callbacks";
        return Err(Interruption::Failed(reason.to_owned()));
    }
    let session = turn
        .effect(Deed::new(CALLBACK, &action.tools, &[]), |context| async move {
            let token: [u8; 16] = rand::random();
            let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
            (Account::default(), Ok(Value::text(format!("{}.{token}", context.run))))
        })
        .await?;
    let url = format!("{}/{}/{}", address.to_display(), action.name, session.to_display());
    Ok(object([("url", url.into())]))
}

/// When it was begun.
async fn begun(turn: &mut NodeTurn, action: &JobAction) -> Result<SystemTime, Interruption> {
    let now = |context: Arc<RunContext>| async move {
        let since = context.ports.clock.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Account::default(), Ok(Value::from(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))))
    };
    let at = turn.effect(Deed::new(BEGUN, &action.tools, &[]), now).await?;
    let milliseconds = at.to_display().parse().unwrap_or(0);
    Ok(UNIX_EPOCH + Duration::from_millis(milliseconds))
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Object(entries.into_iter().map(|(name, value)| (Key::from(name), value)).collect())
}

/// A job that is under way.
struct Job<'t, 'a> {
    turn: &'t mut NodeTurn,
    action: &'a JobAction,
    settings: Value,
    /// What its tools see of the state
    seen: SharedState,
    job: String,
    due: Option<SystemTime>,
    guard: Option<CallOff>,
}

/// What a call of a tool came to.
enum Step {
    Done(Value),
    Again {
        state: Value,
        after: Duration,
    },
    Accepted {
        state: Value,
    },
    Failed {
        kind: Option<String>,
        message: String,
    },
    /// It took longer than it may
    Slow,
}

impl Job<'_, '_> {
    async fn go(&mut self, arguments: Value, callback: Option<Value>) -> Result<Value, Interruption> {
        let mut given = vec![("arguments", arguments)];
        given.extend(callback.map(|callback| ("callback", callback)));
        let mut step = self.call("begin", given).await?;
        let (mut state, mut slow) = (Value::Null, 0);
        loop {
            let after = match step {
                Step::Done(value) => return Ok(value),
                Step::Failed { kind, message } => return Err(self.fail(kind, message)),
                Step::Accepted { state } => {
                    self.guard(&state);
                    return self.wait_for_callback(state).await;
                }
                Step::Again { state: next, after } => {
                    slow = 0;
                    state = next;
                    after.max(SHORTEST)
                }
                // Whether it was begun is not known then.
                Step::Slow if state == Value::Null || slow == MOST_SLOW => {
                    return Err(self
                        .give_up(state, format!("no answer came within {}", seconds(self.action.step)))
                        .await);
                }
                Step::Slow => {
                    slow += 1;
                    SHORTEST
                }
            };
            self.guard(&state);
            if self.turn.context.remembered().is_cancelled {
                return Err(Interruption::Waiting);
            }
            let is_late = match self.turn.known_next() {
                // What an earlier process did then had been waited for, whatever the time is now.
                Some(known) => known.starts_with(&format!("{}{CANCEL} ", self.action.tools)),
                None => {
                    self.pause(after).await;
                    self.left().is_some_and(|left| left.is_zero())
                }
            };
            if is_late {
                let reason = format!("it was not done within {}", seconds(self.action.deadline));
                return Err(self.give_up(state, reason).await);
            }
            step = self.call("poll", vec![("state", state.clone())]).await?;
        }
    }

    /// How long it may still take.
    fn left(&self) -> Option<Duration> {
        let now = self.turn.context.ports.clock.now();
        Some(self.due?.duration_since(now).unwrap_or_default())
    }

    /// Waits, but no longer than it may take.
    async fn pause(&self, length: Duration) {
        let length = self.left().map_or(length, |left| left.min(length));
        let _waiting = self.turn.idle.clone().map(Idle::enter);
        self.turn.context.ports.clock.pause(length).await;
    }

    async fn wait_for_callback(&mut self, state: Value) -> Result<Value, Interruption> {
        let question = Question {
            node: self.turn.node.to_string(),
            text: format!("the callback of `{}`", self.action.name),
            context: Some(object([(CALLBACK, Value::Text(self.action.name.clone()))])),
            ..Question::default()
        };
        let Some(body) = self.turn.callback_until(question, self.left()).await? else {
            let reason = format!("its callback did not come within {}", seconds(self.action.deadline));
            return Err(self.give_up(state, reason).await);
        };
        let body = parse_json(&body).unwrap_or_else(|_| Value::text(body));
        match self.call("receive", vec![("body", body)]).await? {
            Step::Done(value) => Ok(value),
            Step::Failed { kind, message } => Err(self.fail(kind, message)),
            _ => Err(self.fail(None, "what came by the callback is not an answer".to_owned())),
        }
    }

    fn fail(&mut self, kind: Option<String>, message: String) -> Interruption {
        self.guard = None;
        self.turn.failure_kind = kind;
        Interruption::Failed(message)
    }

    /// Calls it off, because it takes too long.
    async fn give_up(&mut self, state: Value, reason: String) -> Interruption {
        self.guard = None;
        if let Err(stop) = self.call(CANCEL, vec![("state", state), ("reason", "timeout".into())]).await
            && stop.reason().is_none()
        {
            return stop;
        }
        self.fail(Some(self.action.late.to_owned()), reason)
    }

    /// Has it called off if the run is cancelled from now on.
    fn guard(&mut self, state: &Value) {
        let given = [("state", state.clone()), ("reason", "cancelled".into())];
        let arguments = self.arguments(given.into()).to_json();
        self.guard = Some(CallOff {
            context: self.turn.context.clone(),
            node: self.turn.node.clone(),
            tool: format!("{}{CANCEL}", self.action.tools),
            arguments,
            state: self.seen.clone(),
            site: self.turn.site(),
        });
    }

    fn arguments(&self, given: Vec<(&str, Value)>) -> Value {
        let own = [("job", Value::from(self.job.as_str())), ("settings", self.settings.clone())];
        let all: Object = own.into_iter().chain(given).map(|(name, value)| (Key::from(name), value)).collect();
        Value::Object(all)
    }

    /// Calls one of its tools, as an effect.
    async fn call(&mut self, tool: &str, given: Vec<(&str, Value)>) -> Result<Step, Interruption> {
        let subject: Vec<String> = given.iter().map(|(_, value)| value.to_json()).collect();
        let subject: Vec<&str> = subject.iter().map(String::as_str).collect();
        let name = format!("{}{tool}", self.action.tools);
        // How it is set up may change while it is under way: keys are replaced.
        let deed = Deed::new("tool", &name, &subject);
        let arguments = self.arguments(given).to_json();
        let (node, site, seen) = (self.turn.node.clone(), self.turn.site(), self.seen.clone());
        let limit = self.left().map_or(self.action.step, |left| left.min(self.action.step));
        // What is called off, and what has come, may take as long as any call.
        let limit = if matches!(tool, CANCEL | "receive") || limit.is_zero() { self.action.step } else { limit };
        let outcome = self
            .turn
            .effect(deed, |context| async move {
                let mut used = Account::default();
                let wanted =
                    ToolRequest { tool: &name, spoken: &name, arguments: &arguments, answers: &[], state: seen, site };
                let called = tool::call_within(&context, &mut used, &node, wanted, limit).await;
                (used, Ok(called.map_or_else(|| object([(SLOW, true.into())]), tool::Called::into_value)))
            })
            .await?;
        let of = |value: &Value, name: &str| value.as_object()?.get(name).cloned();
        if of(&outcome, SLOW).is_some() {
            return Ok(Step::Slow);
        }
        if let Some(failure) = ToolFailure::of(&outcome) {
            self.guard = None;
            return Err(failure.stop(str::to_owned));
        }
        let given = of(&outcome, "value").unwrap_or_default();
        let text = |value: &Value, name: &str| of(value, name).map(|text| text.to_display().into_owned());
        Ok(if let Some(value) = of(&given, "done") {
            Step::Done(value)
        } else if let Some(failed) = of(&given, "failed") {
            let message = text(&failed, "message").unwrap_or_else(|| failed.to_json());
            Step::Failed { kind: text(&failed, "error_type"), message }
        } else if let Some(again) = of(&given, "again") {
            let after = text(&again, "after_ms").and_then(|text| text.parse().ok()).unwrap_or(0);
            Step::Again { state: of(&again, "state").unwrap_or_default(), after: Duration::from_millis(after) }
        } else if let Some(accepted) = of(&given, "accepted") {
            Step::Accepted { state: of(&accepted, "state").unwrap_or_default() }
        } else {
            Step::Failed { kind: None, message: format!("`{}{tool}` did not say what came of it", self.action.tools) }
        })
    }
}

/// The entry of a call that took longer than it may.
const SLOW: &str = "slow";

fn seconds(length: Duration) -> String {
    format!("{} s", length.as_secs_f64())
}

/// Has a job called off when its run is cancelled while it waits. A run that is only interrupted goes on with it.
struct CallOff {
    context: Arc<RunContext>,
    node: Key,
    tool: String,
    arguments: String,
    state: SharedState,
    site: crate::call_site::CallSite,
}

impl Drop for CallOff {
    fn drop(&mut self) {
        if !self.context.remembered().is_cancelled {
            return;
        }
        // Without a runtime nobody could be told.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (context, node) = (self.context.clone(), self.node.clone());
        let (tool, arguments) = (std::mem::take(&mut self.tool), std::mem::take(&mut self.arguments));
        let (state, site) = (self.state.clone(), self.site.clone());
        runtime.spawn(async move {
            let _working = context.ports.clock.working();
            let wanted = ToolRequest { tool: &tool, spoken: &tool, arguments: &arguments, answers: &[], state, site };
            drop(tool::call(&context, &mut Account::default(), &node, wanted).await);
        });
    }
}
