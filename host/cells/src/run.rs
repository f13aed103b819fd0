//! Calling: one fresh instance under one budget, from its first instruction to the report of what it used.
//!
//! Whatever a guest does, a call ends with a typed result: it runs out of fuel or time, is refused memory, traps,
//! exits or answers. Nothing of a call is left behind, also when its future is dropped half-way.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use hotcell_budget::{Budget, Bytes, Fuel, Limit, Usage};
use wasmtime::component::{ComponentExportIndex, InstancePre, ResourceTableError};
use wasmtime::{Store, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::call::{
    CellError, ConnectorCall, ConnectorReply, GuestErrorKind, HookCall, NodeCall, NodeOutcome, Report, ScriptCall,
    StateView, Terms, ToolCall, Verdict,
};
use crate::cells::{Cell, Cells};
use crate::contract::{
    GuestCallback, GuestReply, GuestRequest, GuestVerdict, Outcome as GuestOutcome, PluginError, PluginResult,
};
use crate::disk::Room;
use crate::entries::ScriptEntry;
use crate::guest::{GuestSetup, GuestState, Tape, Taping, Unanswered};
use crate::output::OutputOverflow;
use crate::policy::Denial;
use crate::recording::{Begun, Called, Ended, Gap, Gave, NotRecorded, Player};
use crate::room::Place;
use crate::secrets::Vault;
use crate::watch::{DeadlineOver, Watcher};

/// Fuel after which a guest lets others run and its deadline is looked at: some hundred microseconds. What costs no fuel
/// is watched by [`Watcher`].
const YIELD_INTERVAL: u64 = 2_000_000;
/// Bytes of state that are handed over in the environment; more goes into a file.
const MAX_STATE_VARIABLE: usize = 32_768;
/// Where the guest finds the directory of the state file.
const STATE_DIRECTORY: &str = "/graph-state";
/// The name of the state file.
const STATE_FILE: &str = "state.json";
/// Functions shown of a trap's backtrace.
const BACKTRACE_FUNCTIONS: usize = 16;
/// How the engine words the end of what a guest may hand over at once.
const TRANSFER_EXHAUSTED: &str = "fuel allocated for hostcalls has been exhausted";
/// Facts that are kept beside an answer or an error.
const MAX_METADATA: usize = 32;
/// Bytes of the reason a hook gives for refusing.
const MAX_REASON: usize = 4_096;
/// Bytes of the name of a branch.
const MAX_BRANCH: usize = 200;
/// How the engine words the end of handles.
const HANDLES_EXHAUSTED: &str = "store handle limit exceeded";

impl Cells {
    /// Runs a script node: gives the text that the script put out, or the JSON that its `run` returned.
    ///
    /// The call waits for its turn when too many run at once; that is not part of its wall-clock time.
    pub async fn run_script(&self, cell: &Cell, call: ScriptCall) -> Report<String> {
        self.script(cell, call, None).await
    }

    /// The same; with a player, from a recording.
    pub(crate) async fn script(&self, cell: &Cell, call: ScriptCall, player: Option<Arc<Player>>) -> Report<String> {
        let budget = call.terms.budget.clamp(&self.shared.ceiling);
        let Some(entry) = cell.loaded.entries.script else {
            return Report::refused(CellError::WrongKind {
                message: format!("`{}` is not a script: it only has tools", cell.name()),
            });
        };
        if let Err(error) = check_depth(&call.terms, &budget) {
            return Report::refused(error);
        }
        let begun =
            Begun::new(cell.digest(), &call.terms, || Called::Script { file: call.file_name.clone(), state: None });
        let taping = Taping::new(player, begun.map(|begun| begun.with_source(call.source.as_deref())));
        let setup = match entry {
            ScriptEntry::Plugin(_) => {
                Ok((None, plugin_setup(call.file_name.clone(), Some(call.state.clone()), None, taping)))
            }
            ScriptEntry::Command(_) | ScriptEntry::Interpreter(_) => command_setup(&call, taping),
        };
        let (state_file, setup) = match setup {
            Ok(setup) => setup,
            Err(error) => return Report::refused(error),
        };
        let instance = &cell.loaded.instance;
        let report = match entry {
            ScriptEntry::Plugin(run) => {
                let enter = Enter::Plugin(run);
                self.call(instance, setup, &call.terms, &budget, enter).await
            }
            ScriptEntry::Command(run) => self.call(instance, setup, &call.terms, &budget, Enter::Command(run)).await,
            ScriptEntry::Interpreter(run) => {
                let Some(source) = call.source.clone() else {
                    return Report::refused(CellError::WrongKind {
                        message: format!("the interpreter `{}` was called without a script", cell.name()),
                    });
                };
                let enter = Enter::Interpreter(run, call.file_name.clone(), source);
                self.call(instance, setup, &call.terms, &budget, enter).await
            }
        };
        drop(state_file);
        report.map(Answer::into_text)
    }

    /// Calls a tool: gives the JSON that it returned.
    ///
    /// Where the tool puts a question for which [`ToolCall::answers`] holds no answer, the result is
    /// [`CellError::Suspended`]; call again with the answer added.
    pub async fn call_tool(&self, cell: &Cell, call: ToolCall) -> Report<String> {
        self.tool(cell, call, None).await
    }

    /// The same; with a player, from a recording.
    pub(crate) async fn tool(&self, cell: &Cell, call: ToolCall, player: Option<Arc<Player>>) -> Report<String> {
        let budget = call.terms.budget.clamp(&self.shared.ceiling);
        let (Some(entry), Some(description)) = (cell.loaded.entries.tool, cell.description()) else {
            return Report::refused(CellError::WrongKind { message: format!("`{}` has no tools", cell.name()) });
        };
        if !description.tools.iter().any(|tool| tool.name == call.tool) {
            return Report::refused(CellError::WrongKind {
                message: format!("`{}` has no tool `{}`", cell.name(), crate::text::one_line(&call.tool, 100)),
            });
        }
        if let Err(error) = check_depth(&call.terms, &budget) {
            return Report::refused(error);
        }
        let begun = Begun::new(cell.digest(), &call.terms, || {
            let (tool, arguments, answers) = (call.tool.clone(), call.arguments.clone(), call.answers.clone());
            Called::Tool { tool, arguments, answers }
        });
        let setup = plugin_setup(cell.name().to_owned(), None, Some(call.answers), Taping::new(player, begun));
        let enter = Enter::Tool(entry, call.tool, call.arguments);
        self.call(&cell.loaded.instance, setup, &call.terms, &budget, enter).await.map(Answer::into_text)
    }

    /// Runs a node of a plugin's own type. A question without answer ends it as with [`Cells::call_tool`].
    pub async fn run_node(&self, cell: &Cell, call: NodeCall) -> Report<NodeOutcome> {
        self.node(cell, call, None).await
    }

    /// The same; with a player, from a recording.
    pub(crate) async fn node(&self, cell: &Cell, call: NodeCall, player: Option<Arc<Player>>) -> Report<NodeOutcome> {
        let budget = call.terms.budget.clamp(&self.shared.ceiling);
        let described =
            cell.description().is_some_and(|all| all.nodes.iter().any(|node| node.node_type == call.node_type));
        let (Some(entry), true) = (cell.loaded.entries.node, described) else {
            return Report::refused(CellError::WrongKind {
                message: format!(
                    "`{}` has no node type `{}`",
                    cell.name(),
                    crate::text::one_line(&call.node_type, 100)
                ),
            });
        };
        if let Err(error) = check_depth(&call.terms, &budget) {
            return Report::refused(error);
        }
        let begun = Begun::new(cell.digest(), &call.terms, || {
            let (node_type, fields) = (call.node_type.clone(), call.fields.clone());
            Called::Node { node_type, fields, inputs: call.inputs.clone(), answers: call.answers.clone() }
        });
        let setup =
            plugin_setup(cell.name().to_owned(), Some(call.state), Some(call.answers), Taping::new(player, begun));
        let enter = Enter::Node(entry, call.node_type, call.fields, call.inputs);
        self.call(&cell.loaded.instance, setup, &call.terms, &budget, enter).await.map(|answer| match answer {
            Answer::Outcome(outcome) => outcome,
            other => NodeOutcome { outputs: other.into_text(), branch: None, metadata: Vec::new() },
        })
    }

    /// Makes a fresh instance and drops it again without calling it, and gives how long that took.
    ///
    /// # Errors
    /// When the instance cannot be made within the budget of the terms.
    pub async fn instantiate(&self, cell: &Cell, terms: &Terms) -> Result<Duration, CellError> {
        let budget = terms.budget.clamp(&self.shared.ceiling);
        let started = Instant::now();
        let setup = plugin_setup(cell.name().to_owned(), None, None, Taping::Off);
        let report = self.call(&cell.loaded.instance, setup, terms, &budget, Enter::Nothing).await;
        report.result.map(|_| started.elapsed())
    }

    /// Tells a hook of an event.
    pub async fn call_hook(&self, cell: &Cell, call: HookCall) -> Report<Verdict> {
        self.hook(cell, call, None).await
    }

    /// The same; with a player, from a recording.
    pub(crate) async fn hook(&self, cell: &Cell, call: HookCall, player: Option<Arc<Player>>) -> Report<Verdict> {
        let budget = call.terms.budget.clamp(&self.shared.ceiling);
        let Some(entry) = cell.loaded.entries.hook else {
            return Report::refused(CellError::WrongKind { message: format!("`{}` has no hooks", cell.name()) });
        };
        if let Err(error) = check_depth(&call.terms, &budget) {
            return Report::refused(error);
        }
        let begun = Begun::new(cell.digest(), &call.terms, || Called::Hook {
            point: call.point.clone(),
            event: call.event.clone(),
        });
        let setup = plugin_setup(cell.name().to_owned(), None, None, Taping::new(player, begun));
        let enter = Enter::Hook(entry, call.point, call.event);
        self.call(&cell.loaded.instance, setup, &call.terms, &budget, enter).await.map(|answer| match answer {
            Answer::Verdict(verdict) => verdict,
            other => Verdict::Change(other.into_text()),
        })
    }

    /// Hands a request to a connector or, with a body, what came by its callback.
    pub async fn call_connector(&self, cell: &Cell, call: ConnectorCall) -> Report<ConnectorReply> {
        self.connector(cell, call, None).await
    }

    /// The same; with a player, from a recording.
    pub(crate) async fn connector(
        &self,
        cell: &Cell,
        call: ConnectorCall,
        player: Option<Arc<Player>>,
    ) -> Report<ConnectorReply> {
        let budget = call.terms.budget.clamp(&self.shared.ceiling);
        let Some((send, receive)) = cell.loaded.entries.connector else {
            return Report::refused(CellError::WrongKind { message: format!("`{}` is no connector", cell.name()) });
        };
        if let Err(error) = check_depth(&call.terms, &budget) {
            return Report::refused(error);
        }
        let begun = Begun::new(cell.digest(), &call.terms, || {
            let ConnectorCall { input, config, callback, body, .. } = call.clone();
            Called::Connector { input, config, callback, body }
        });
        let setup = plugin_setup(cell.name().to_owned(), None, None, Taping::new(player, begun));
        let request = GuestRequest {
            input: call.input,
            config: call.config,
            callback: call.callback.map(|(url, session)| GuestCallback { url, session }),
            metadata: Vec::new(),
        };
        let enter = match call.body {
            None => Enter::Send(send, request),
            Some(body) => Enter::Receive(receive, request, body),
        };
        self.call(&cell.loaded.instance, setup, &call.terms, &budget, enter).await.map(|answer| match answer {
            Answer::Reply(reply) => reply,
            other => ConnectorReply::Done(other.into_text()),
        })
    }

    async fn call(
        &self,
        instance: &InstancePre<GuestState>,
        setup: GuestSetup,
        terms: &Terms,
        budget: &Budget,
        enter: Enter,
    ) -> Report<Answer> {
        // A call that is executed again works for nobody that waits.
        let depth = if matches!(setup.taping, Taping::Play(_)) { 0 } else { terms.depth };
        let _permit = match self.permit(depth, budget.memory).await {
            Ok(permit) => permit,
            Err(error) => return Report::refused(error),
        };
        let started = Instant::now();
        let guest = match GuestState::new(setup, terms, budget, self.shared.repeatable.as_ref()) {
            Ok(guest) => guest,
            Err(error) => return Report::refused(error),
        };
        let deadline = guest.watch.deadline();
        let mut store = match self.store(guest, budget) {
            Ok(store) => store,
            Err(error) => return Report::refused(CellError::Host { message: format!("{error:#}") }),
        };
        let outcome = {
            let work = pin!(async {
                let instance = instance.instantiate_async(&mut store).await?;
                enter.run(&mut store, &instance).await
            });
            guarded(deadline, work).await
        };
        report(store, outcome, budget, started)
    }

    /// A place among the calls that run at once. A call that other calls wait for does not wait itself: where
    /// everything is taken by its own callers, waiting would never end.
    async fn permit(&self, depth: u32, memory: Bytes) -> Result<Place, CellError> {
        if depth == 0 {
            return Ok(self.share.calls.take(memory).await);
        }
        self.share.nested.try_take(memory).ok_or_else(|| CellError::Guest {
            kind: GuestErrorKind::Unavailable,
            message: "too many plugins call each other at the moment".to_owned(),
            metadata: Vec::new(),
        })
    }

    fn store(&self, guest: GuestState, budget: &Budget) -> wasmtime::Result<Store<GuestState>> {
        let mut store = Store::new(&self.shared.engine, guest);
        store.limiter(|guest| &mut guest.limiter);
        store.call_hook_async(Watcher);
        store.set_fuel(budget.fuel.0)?;
        store.fuel_async_yield_interval(Some(YIELD_INTERVAL))?;
        store.set_hostcall_fuel(budget.transfer.as_usize());
        store.set_max_component_handles(budget.handles as usize);
        Ok(store)
    }
}

impl<T> Report<T> {
    /// The same report with another form of its result.
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Report<U> {
        let Self { result, usage, nested, logs, dropped_log_lines, stderr, denials, recording } = self;
        Report { result: result.map(form), usage, nested, logs, dropped_log_lines, stderr, denials, recording }
    }

    /// The report of a call that never reached its guest.
    fn refused(error: CellError) -> Self {
        Self {
            result: Err(error),
            usage: Usage { calls: 1, ..Usage::default() },
            nested: Vec::new(),
            logs: Vec::new(),
            dropped_log_lines: 0,
            stderr: String::new(),
            denials: Vec::new(),
            recording: None,
        }
    }
}

fn check_depth(terms: &Terms, budget: &Budget) -> Result<(), CellError> {
    if terms.depth < budget.depth {
        return Ok(());
    }
    let detail =
        format!("`{}` is called from {} plugins above it, and {} may nest", terms.plugin, terms.depth, budget.depth);
    Err(CellError::Limit { limit: Limit::TooDeep, detail })
}

fn plugin_setup(
    program: String,
    state: Option<Arc<dyn StateView>>,
    answers: Option<Vec<String>>,
    taping: Taping,
) -> GuestSetup {
    GuestSetup {
        program,
        env: Vec::new(),
        scratch: None,
        state,
        answers,
        stdout_is_result: false,
        secrets_in_env: false,
        taping,
    }
}

/// What a script finds that reads its state from the environment: `GRAPH_STATE` or, if the state is large,
/// `GRAPH_STATE_FILE`; and placeholders of secrets under their names. The directory of the file lasts as long as what is returned.
fn command_setup(call: &ScriptCall, taping: Taping) -> Result<(Option<tempfile::TempDir>, GuestSetup), CellError> {
    let state = call.state.all();
    let mut setup = GuestSetup {
        program: call.file_name.clone(),
        env: Vec::new(),
        scratch: None,
        state: None,
        answers: None,
        stdout_is_result: true,
        secrets_in_env: true,
        taping: match taping {
            Taping::Record(begun) => Taping::Record(Box::new(begun.with_state(&state))),
            other => other,
        },
    };
    if state.len() <= MAX_STATE_VARIABLE {
        setup.env.push(("GRAPH_STATE".to_owned(), state.as_ref().to_owned()));
        return Ok((None, setup));
    }
    let failed = |error: std::io::Error| CellError::Host { message: format!("cannot write the state file: {error}") };
    let directory = tempfile::Builder::new().prefix("hotcell-state-").tempdir().map_err(failed)?;
    std::fs::write(directory.path().join(STATE_FILE), state.as_bytes()).map_err(failed)?;
    setup.scratch = Some((directory.path().to_owned(), STATE_DIRECTORY));
    setup.env.push(("GRAPH_STATE_FILE".to_owned(), format!("{STATE_DIRECTORY}/{STATE_FILE}")));
    Ok((Some(directory), setup))
}

/// The function of a guest that a call enters, with its arguments.
enum Enter {
    Nothing,
    Plugin(ComponentExportIndex),
    Command(ComponentExportIndex),
    Interpreter(ComponentExportIndex, String, Arc<str>),
    Tool(ComponentExportIndex, String, String),
    Node(ComponentExportIndex, String, String, String),
    Hook(ComponentExportIndex, String, String),
    Send(ComponentExportIndex, GuestRequest),
    Receive(ComponentExportIndex, GuestRequest, String),
}

/// What a call gave, whatever was called.
#[derive(Clone)]
enum Answer {
    Text(String),
    Outcome(NodeOutcome),
    Verdict(Verdict),
    Reply(ConnectorReply),
}

impl Answer {
    /// The JSON of an answer that has no other part.
    fn into_text(self) -> String {
        match self {
            Self::Text(text) | Self::Reply(ConnectorReply::Done(text)) | Self::Verdict(Verdict::Change(text)) => text,
            Self::Outcome(outcome) => outcome.outputs,
            Self::Verdict(_) | Self::Reply(ConnectorReply::Accepted) => String::new(),
        }
    }

    /// Bytes of what it says.
    fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reply(ConnectorReply::Done(text)) | Self::Verdict(Verdict::Change(text)) => {
                text.len()
            }
            Self::Outcome(outcome) => outcome.outputs.len(),
            Self::Verdict(_) | Self::Reply(ConnectorReply::Accepted) => 0,
        }
    }

    /// The same with `change` made to every text.
    fn map_text(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::Text(text) => Self::Text(change(text)),
            Self::Outcome(outcome) => Self::Outcome(NodeOutcome {
                outputs: change(outcome.outputs),
                branch: outcome.branch,
                metadata: outcome.metadata.into_iter().map(|(name, value)| (name, change(value))).collect(),
            }),
            Self::Verdict(Verdict::Change(text)) => Self::Verdict(Verdict::Change(change(text))),
            Self::Verdict(Verdict::Refuse(text)) => Self::Verdict(Verdict::Refuse(change(text))),
            Self::Reply(ConnectorReply::Done(text)) => Self::Reply(ConnectorReply::Done(change(text))),
            other @ (Self::Verdict(Verdict::Proceed) | Self::Reply(ConnectorReply::Accepted)) => other,
        }
    }
}

/// What a guest returned without trapping.
enum Returned {
    /// A result of the contract.
    Plugin(Result<Answer, PluginError>),
    /// An exit code; the result is on standard output.
    Code(i32),
}

impl Enter {
    async fn run(
        self,
        store: &mut Store<GuestState>,
        instance: &wasmtime::component::Instance,
    ) -> wasmtime::Result<Returned> {
        match self {
            Self::Nothing => Ok(Returned::Plugin(Ok(Answer::Text(String::new())))),
            Self::Plugin(index) => {
                let run = instance.get_typed_func::<(), (PluginResult,)>(&mut *store, index)?;
                let (result,) = run.call_async(&mut *store, ()).await?;
                Ok(Returned::Plugin(result.map(Answer::Text)))
            }
            Self::Tool(index, tool, arguments) => {
                let call = instance.get_typed_func::<(&str, &str), (PluginResult,)>(&mut *store, index)?;
                let (result,) = call.call_async(&mut *store, (&tool, &arguments)).await?;
                Ok(Returned::Plugin(result.map(Answer::Text)))
            }
            Self::Node(index, node_type, fields, inputs) => {
                type Result3 = (Result<GuestOutcome, PluginError>,);
                let run = instance.get_typed_func::<(&str, &str, &str), Result3>(&mut *store, index)?;
                let (result,) = run.call_async(&mut *store, (&node_type, &fields, &inputs)).await?;
                Ok(Returned::Plugin(result.map(|outcome| {
                    let GuestOutcome { outputs, branch, metadata } = outcome;
                    let branch = branch.map(|branch| crate::text::one_line(&branch, MAX_BRANCH));
                    Answer::Outcome(NodeOutcome { outputs, branch, metadata: shown_metadata(&metadata) })
                })))
            }
            Self::Hook(index, point, event) => {
                type Result2 = (Result<GuestVerdict, PluginError>,);
                let on = instance.get_typed_func::<(&str, &str), Result2>(&mut *store, index)?;
                let (result,) = on.call_async(&mut *store, (&point, &event)).await?;
                Ok(Returned::Plugin(result.map(|verdict| {
                    Answer::Verdict(match verdict {
                        GuestVerdict::Proceed => Verdict::Proceed,
                        GuestVerdict::Change(event) => Verdict::Change(event),
                        GuestVerdict::Refuse(failure) => {
                            Verdict::Refuse(crate::text::lines(&failure.message, MAX_REASON))
                        }
                    })
                })))
            }
            Self::Send(index, request) => {
                type Result1 = (Result<GuestReply, PluginError>,);
                let send = instance.get_typed_func::<(GuestRequest,), Result1>(&mut *store, index)?;
                let (result,) = send.call_async(&mut *store, (request,)).await?;
                Ok(Returned::Plugin(result.map(|reply| {
                    Answer::Reply(match reply {
                        GuestReply::Done(json) => ConnectorReply::Done(json),
                        GuestReply::Accepted => ConnectorReply::Accepted,
                    })
                })))
            }
            Self::Receive(index, request, body) => {
                let receive = instance.get_typed_func::<(GuestRequest, &str), (PluginResult,)>(&mut *store, index)?;
                let (result,) = receive.call_async(&mut *store, (request, &body)).await?;
                Ok(Returned::Plugin(result.map(|json| Answer::Reply(ConnectorReply::Done(json)))))
            }
            Self::Command(index) => {
                let run = instance.get_typed_func::<(), (Result<(), ()>,)>(&mut *store, index)?;
                let (result,) = run.call_async(&mut *store, ()).await?;
                Ok(Returned::Code(if result.is_ok() { 0 } else { 1 }))
            }
            Self::Interpreter(index, file_name, source) => {
                let run = instance.get_typed_func::<(&str, &str), (u8,)>(&mut *store, index)?;
                let (code,) = run.call_async(&mut *store, (&file_name, &source)).await?;
                Ok(Returned::Code(i32::from(code)))
            }
        }
    }
}

/// How the guarded part of a call ended.
enum Outcome {
    Returned(wasmtime::Result<Returned>),
    DeadlineOver,
    Panicked(String),
}

/// Runs a call until it ends, its time is over, or the host panics. The timer is only set up for a call that waits.
async fn guarded<C>(deadline: Option<Instant>, mut call: Pin<&mut C>) -> Outcome
where
    C: Future<Output = wasmtime::Result<Returned>>,
{
    let mut timer: Option<Pin<Box<tokio::time::Sleep>>> = None;
    poll_fn(|cx| {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Poll::Ready(Outcome::DeadlineOver);
        }
        match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
            Ok(Poll::Ready(result)) => return Poll::Ready(Outcome::Returned(result)),
            Ok(Poll::Pending) => {}
            Err(panic) => return Poll::Ready(Outcome::Panicked(panic_message(panic.as_ref()))),
        }
        let Some(deadline) = deadline else { return Poll::Pending };
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.into())));
        timer.as_mut().poll(cx).map(|()| Outcome::DeadlineOver)
    })
    .await
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    crate::text::one_line(&text, 500)
}

fn report(store: Store<GuestState>, outcome: Outcome, budget: &Budget, started: Instant) -> Report<Answer> {
    let fuel_left = store.get_fuel().unwrap_or(0);
    let guest = store.into_data();
    let egress = guest.egress.report();
    let exhausted = guest.tape.player().map_or(egress.exhausted, |player| player.exhausted.clone());
    let error_bytes = budget.error_bytes.as_usize();
    let vault = guest.vault.clone();
    // A guest that knows a value may have asked for something by that name.
    let scrub = |denial: Denial| denial.map_texts(|text| vault.scrub(text));
    let denials: Vec<Denial> = guest.denials.take().into_iter().map(scrub).collect();
    let stderr = vault.scrub(guest.stderr.shown(error_bytes));
    let result = match outcome {
        Outcome::DeadlineOver => Err(deadline_over(budget)),
        Outcome::Panicked(message) => Err(CellError::Host { message }),
        Outcome::Returned(Ok(Returned::Code(0))) => printed(&guest),
        Outcome::Returned(Ok(Returned::Code(code))) => Err(CellError::Exit { code, stderr: stderr.clone() }),
        Outcome::Returned(Ok(Returned::Plugin(Ok(answer)))) if answer.len() as u64 > budget.output.0 => Err(limit(
            Limit::OutputTooLarge,
            format!("the result has {} bytes, more than {}", answer.len(), budget.output),
        )),
        Outcome::Returned(Ok(Returned::Plugin(Ok(answer)))) => Ok(answer),
        Outcome::Returned(Ok(Returned::Plugin(Err(error)))) => Err(guest_error(error, error_bytes)),
        Outcome::Returned(Err(error)) => failure(&error, &guest, budget, &stderr),
    };
    let result = result
        .map(|answer| answer.map_text(|text| vault.scrub(text)))
        .map_err(|error| scrubbed(behind(error, &guest, exhausted.as_deref(), budget), &vault));
    let result = match guest.tape.player().and_then(|player| player.missing(&named(&denials))) {
        Some(wanted) => Err(CellError::NotRecorded { wanted }),
        None => result,
    };
    let fuel = budget.fuel - Fuel(fuel_left);
    let recording = match &guest.tape {
        Tape::Recording(recorder) => {
            let gap = match &result {
                Err(CellError::Limit { limit: Limit::Deadline, .. }) => Some(Gap::Deadline),
                Err(CellError::Host { .. }) => Some(Gap::Host),
                _ => None,
            };
            let (gave, denied) = (Gave::of(&result), named(&denials));
            recorder.finish(Ended { gave, fuel, gap, denied, exhausted, vault: &vault })
        }
        Tape::Off | Tape::Playing(_) => None,
    };
    let Room { bytes, files } = guest.disk.used();
    let usage = Usage {
        calls: 1,
        fuel,
        wall_clock: started.elapsed(),
        peak_memory: Bytes::from(guest.limiter.peak()),
        output: result.as_ref().map_or(Bytes(guest.stdout.written()), |answer| Bytes::from(answer.len())),
        stderr: Bytes(guest.stderr.written()),
        log_lines: guest.notes.logged,
        http_requests: egress.requests,
        http_sent: egress.sent,
        http_received: egress.received,
        file_bytes: Bytes(bytes),
        files,
        ..Usage::default()
    };
    let dropped_log_lines = guest.notes.logged - guest.notes.lines.len() as u64;
    Report {
        result,
        usage,
        nested: guest.nested,
        logs: guest.notes.lines,
        dropped_log_lines,
        stderr,
        denials,
        recording,
    }
}

/// What was denied, by the names of capabilities.
fn named(denials: &[Denial]) -> Vec<String> {
    denials.iter().map(|denial| denial.capability.to_string()).collect()
}

impl From<Answer> for Gave {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Text(text) => text.into(),
            Answer::Outcome(outcome) => outcome.into(),
            Answer::Verdict(verdict) => verdict.into(),
            Answer::Reply(reply) => reply.into(),
        }
    }
}

/// What a program printed, as its result.
fn printed(guest: &GuestState) -> Result<Answer, CellError> {
    String::from_utf8(guest.stdout.take())
        .map(Answer::Text)
        .map_err(|error| CellError::NotText { at: error.utf8_error().valid_up_to() })
}

/// The error with no value of a secret in it.
fn scrubbed(error: CellError, vault: &Vault) -> CellError {
    let scrub = |text: String| vault.scrub(text);
    match error {
        CellError::Limit { limit, detail } => CellError::Limit { limit, detail: scrub(detail) },
        CellError::Exit { code, stderr } => CellError::Exit { code, stderr: scrub(stderr) },
        CellError::Trap { message, backtrace, stderr } => {
            CellError::Trap { message: scrub(message), backtrace, stderr: scrub(stderr) }
        }
        CellError::Guest { kind, message, metadata } => {
            let metadata = metadata.into_iter().map(|(name, value)| (name, scrub(value))).collect();
            CellError::Guest { kind, message: scrub(message), metadata }
        }
        CellError::Suspended { question } => CellError::Suspended { question: scrub(question) },
        other @ (CellError::NotText { .. }
        | CellError::NotRecorded { .. }
        | CellError::Directory { .. }
        | CellError::WrongKind { .. }
        | CellError::Host { .. }) => other,
    }
}

fn limit(limit: Limit, detail: String) -> CellError {
    CellError::Limit { limit, detail }
}

fn deadline_over(budget: &Budget) -> CellError {
    limit(Limit::Deadline, format!("still running after {:?}", budget.wall_clock))
}

/// Sorts an error of the engine, or takes a program's exit with code 0 as the success it is.
fn failure(error: &wasmtime::Error, guest: &GuestState, budget: &Budget, stderr: &str) -> Result<Answer, CellError> {
    if let Some(I32Exit(code)) = error.downcast_ref::<I32Exit>() {
        return match code {
            0 => printed(guest),
            code => Err(CellError::Exit { code: *code, stderr: stderr.to_owned() }),
        };
    }
    if let Some(NotRecorded(wanted)) = error.downcast_ref::<NotRecorded>() {
        return Err(CellError::NotRecorded { wanted: wanted.clone() });
    }
    if let Some(Unanswered { question }) = error.downcast_ref::<Unanswered>() {
        return Err(CellError::Suspended { question: crate::text::lines(question, budget.error_bytes.as_usize()) });
    }
    if let Some(overflow) = error.downcast_ref::<OutputOverflow>() {
        return Err(limit(Limit::OutputTooLarge, overflow.to_string()));
    }
    if error.is::<DeadlineOver>() {
        return Err(deadline_over(budget));
    }
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return Err(handles(budget));
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => {
            return Err(limit(Limit::OutOfFuel, format!("all of {} is used up", budget.fuel)));
        }
        Some(Trap::StackOverflow) => {
            return Err(limit(Limit::TooDeep, "the guest's stack is used up: a recursion does not end".to_owned()));
        }
        _ => {}
    }
    let text = format!("{error:#}");
    if text.contains(HANDLES_EXHAUSTED) {
        return Err(handles(budget));
    }
    if text.contains(TRANSFER_EXHAUSTED) {
        let detail = format!("the guest handed over more than {} at once", budget.transfer);
        return Err(limit(Limit::OutputTooLarge, detail));
    }
    Err(trap(error, budget, stderr))
}

fn handles(budget: &Budget) -> CellError {
    limit(Limit::TooManyHandles, format!("more than {} handles are open", budget.handles))
}

/// A trap in readable form: what happened and in which of the guest's functions.
fn trap(error: &wasmtime::Error, budget: &Budget, stderr: &str) -> CellError {
    let shown = |text: &str| crate::text::one_line(text, budget.error_bytes.as_usize());
    let message = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string().replacen("wasm trap: ", "", 1),
        None => format!("{:#}", error.root_cause()),
    };
    let frames = error.downcast_ref::<WasmBacktrace>().map(WasmBacktrace::frames).unwrap_or_default();
    let backtrace = frames
        .iter()
        .take(BACKTRACE_FUNCTIONS)
        .map(|frame| match frame.func_name() {
            Some(name) => shown(&format!("{:#}", rustc_demangle::demangle(name))),
            None => format!("function {}", frame.func_index()),
        })
        .collect();
    CellError::Trap { message: shown(&message), backtrace, stderr: stderr.to_owned() }
}

fn guest_error(error: PluginError, limit: usize) -> CellError {
    let (kind, failure) = match error {
        PluginError::InvalidInput(failure) => (GuestErrorKind::InvalidInput, failure),
        PluginError::Denied(failure) => (GuestErrorKind::Denied, failure),
        PluginError::Unavailable(failure) => (GuestErrorKind::Unavailable, failure),
        PluginError::Other(failure) => (GuestErrorKind::Other, failure),
    };
    let metadata = shown_metadata(&failure.metadata);
    CellError::Guest { kind, message: crate::text::lines(&failure.message, limit), metadata }
}

fn shown_metadata(metadata: &[(String, String)]) -> Vec<(String, String)> {
    let shown =
        |(name, value): &(String, String)| (crate::text::one_line(name, 100), crate::text::one_line(value, 500));
    metadata.iter().take(MAX_METADATA).map(shown).collect()
}

/// A guest that was refused memory or egress usually fails in its own way afterwards; this puts the cause first.
fn behind(error: CellError, guest: &GuestState, egress: Option<&str>, budget: &Budget) -> CellError {
    if !matches!(error, CellError::Exit { .. } | CellError::Trap { .. } | CellError::Guest { .. }) {
        return error;
    }
    if let Some(wanted) = guest.limiter.refused() {
        let detail = format!("{} wanted, {} allowed; {error}", Bytes::from(wanted), budget.memory);
        return limit(Limit::OutOfMemory, detail);
    }
    if let Some(most) = guest.open_files_exhausted {
        let detail = format!("all guests together may have {most} files open; {error}");
        return limit(Limit::TooManyHandles, detail);
    }
    if let Some(full) = guest.disk.refused() {
        return limit(Limit::Files, format!("{full}; {error}"));
    }
    match egress {
        Some(exhausted) => limit(Limit::Egress, format!("{exhausted}; {error}")),
        None => error,
    }
}
