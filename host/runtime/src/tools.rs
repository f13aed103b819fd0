//! Tools of plugins as the engine sees them, and the run as a plugin sees it.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use hotcell_budget::{BudgetScope, Usage};
use hotcell_cells::{Cell, CellError, Grants, ServiceError, ServiceReply, Services, Terms};
use hotcell_engine::{
    CallReport, CallSite, HookPoint, HookVerdict, Hooks, Outward, PortError, ToolCall, Tools, read_arguments,
};
use hotcell_graph::json_schema::JsonSchema;
use hotcell_graph::value::{parse_json, read_json};
use hotcell_graph::{List, Object, Value as GraphValue};
use hotcell_models::{Message, Model, ModelName, Request, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::components::AgentComponents;
use crate::denials;
use crate::offered::AgentFunctions;
use crate::plugin_registry::{FoundTool, NoTool, NotPrepared, PluginRegistry, RegisteredPlugin};
use crate::python::PythonTools;
use crate::recordings;
use crate::servers::AgentServers;
use crate::settle::into_report;
use crate::withholding;

/// Who is told of what a plugin calls itself, and where it was called.
pub(crate) type Told<'a> = (&'a Arc<dyn Hooks>, &'a CallSite);

/// The tools within reach of an agent, and the model that its plugins may ask.
#[derive(Clone)]
pub(crate) struct AgentTools {
    functions: AgentFunctions,
    registry: Arc<PluginRegistry>,
    servers: AgentServers,
    python: PythonTools,
    components: AgentComponents,
    model: Arc<dyn Model>,
    default_model: Option<ModelName>,
}

impl AgentTools {
    pub(crate) fn new(
        functions: AgentFunctions,
        registry: Arc<PluginRegistry>,
        servers: AgentServers,
        model: Arc<dyn Model>,
        default_model: Option<ModelName>,
    ) -> Self {
        let python = PythonTools::new(registry.cells().clone(), registry.permissions().clone());
        let components = AgentComponents::new(registry.cells().clone(), registry.permissions().clone());
        AgentTools { functions, registry, servers, python, components, model, default_model }
    }

    /// The functions of the program that embeds hotcell.
    pub(crate) fn functions(&self) -> &AgentFunctions {
        &self.functions
    }

    /// The components that the agent's file sets up itself.
    pub(crate) fn components(&self) -> &AgentComponents {
        &self.components
    }

    /// The functions of Python files.
    pub(crate) fn python(&self) -> &PythonTools {
        &self.python
    }

    /// One call of a tool, `depth` calls of plugins deep.
    async fn call_found(
        &self,
        found: FoundTool<'_>,
        arguments: &str,
        answers: &[String],
        depth: u32,
        called: (&Arc<BudgetScope>, Told<'_>),
    ) -> Result<hotcell_cells::Report<String>, NotPrepared> {
        let (budget_scope, told) = called;
        let site = told.1;
        let (cell, terms) = self.prepare(found.registered, depth, budget_scope, told)?;
        let granted = terms.grants.clone();
        let call = hotcell_cells::ToolCall {
            tool: found.tool.name.clone(),
            arguments: arguments.to_owned(),
            answers: answers.to_vec(),
            terms,
        };
        let report = self.registry.cells().call_tool(&cell, call).await;
        self.registry.permissions().tell_denials(found.registered.caller(), &granted, &report, site);
        Ok(report)
    }

    /// The compiled plugin and the terms of one call of it, `depth` calls of plugins deep. The hooks are told of what it calls
    /// itself: of every call in a run, whoever makes it.
    pub(crate) fn prepare(
        &self,
        registered: &RegisteredPlugin,
        depth: u32,
        budget_scope: &Arc<BudgetScope>,
        (hooks, site): Told<'_>,
    ) -> Result<(Cell, Terms), NotPrepared> {
        let cell = self.registry.cell(registered)?;
        let mut terms = recordings::terms_at(&registered.terms, site);
        self.registry.permissions().narrow(&mut terms, registered.pinned)?;
        self.registry.permissions().permit(&mut terms, registered.caller(), site);
        withholding::withhold(&mut terms, site);
        terms.budget = budget_scope.clamp(&terms.budget)?;
        terms.depth = depth;
        if terms.grants.llm || !terms.grants.tool.is_empty() {
            terms.services = Some(Arc::new(RunServices {
                tools: self.clone(),
                budget_scope: budget_scope.clone(),
                hooks: hooks.clone(),
                site: site.clone().nested(depth.saturating_add(1)),
                caller: registered.plugin.description.name.clone(),
            }));
        }
        Ok((cell, terms))
    }

    /// The name under which a tool is known here: one that comes with hotcell itself is meant where no plugin has one of that
    /// name.
    fn resolve<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match self.python.carried(name) {
            Some(carried) if self.is_carried(name) => carried.into(),
            _ => name.into(),
        }
    }

    /// Whether a name is that of a tool that comes with hotcell itself, and of no plugin's.
    pub(crate) fn is_carried(&self, name: &str) -> bool {
        self.python.carried(name).is_some() && matches!(self.registry.tool(name), Err(NoTool::Missing))
    }

    pub(crate) fn registry(&self) -> &PluginRegistry {
        &self.registry
    }
}

/// Why a tool cannot be called, for whoever wanted to call it.
pub(crate) fn explain(name: &str, problem: &NoTool) -> String {
    match problem {
        NoTool::Missing => format!("there is no tool `{name}`"),
        NoTool::Ambiguous(full) => {
            format!("several plugins have a tool `{name}`; write which one is meant: `{}`", full.join("` or `"))
        }
        NoTool::Held(reason) => format!("the tool `{name}` cannot be used: {reason}"),
    }
}

#[async_trait]
impl Tools for AgentTools {
    fn describe(&self, name: &str) -> Option<ToolSpec> {
        if let Some(described) = self.functions.describe(name) {
            return Some(described);
        }
        let name = &*self.resolve(name);
        if AgentServers::is_function(name) {
            return self.servers.describe(name);
        }
        if PythonTools::is_function(name) {
            return self.python.describe(name);
        }
        let found = self.registry.tool(name).ok()?;
        // Models take names without the marks that separate a plugin from its tool.
        let spoken = name.replace([':', '/', '.'], "_");
        Some(ToolSpec {
            name: spoken,
            description: found.tool.description.clone(),
            parameters: found.tool.parameters.clone(),
        })
    }

    fn parameters(&self, name: &str) -> Option<Cow<'_, Value>> {
        let own = self.resolve(name);
        if self.functions.has(name) || AgentServers::is_function(&own) || PythonTools::is_function(&own) {
            return self.describe(name).map(|spec| Cow::Owned(spec.parameters));
        }
        Some(Cow::Borrowed(&self.registry.tool(&own).ok()?.tool.parameters))
    }

    fn is_unsealed(&self, name: &str) -> bool {
        self.functions.has(name)
    }

    fn is_closed(&self, name: &str) -> bool {
        if self.functions.has(name) {
            return false;
        }
        let name = &*self.resolve(name);
        if AgentComponents::is_tool(name) || AgentServers::is_function(name) || PythonTools::is_function(name) {
            return false;
        }
        // What is taken away from these grants before the call cannot add anything.
        self.registry.tool(name).is_ok_and(|found| *found.registered.terms.grants == Grants::default())
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        let is_function = self.functions.has(call.name);
        let name: Cow<'_, str> = if is_function { call.name.into() } else { self.resolve(call.name) };
        let is_unsealed = is_function || AgentServers::is_function(&name);
        if is_unsealed && !call.site.may(Outward::Tools) {
            let what = format!("a call of the tool `{}`, which runs outside of cells", call.name);
            call.site.withhold(&what);
            return CallReport::failed(what);
        }
        if is_function {
            return self.functions.call(&call).await;
        }
        let call = ToolCall { name: &name, ..call };
        if AgentComponents::is_tool(call.name) {
            return self.components.call(&call).await;
        }
        if AgentServers::is_function(call.name) {
            return self.servers.call(call.name, call.arguments, call.answers, &call.budget_scope).await;
        }
        if PythonTools::is_function(call.name) {
            return self.python.call(&call).await;
        }
        let found = match self.registry.tool(call.name) {
            Ok(found) => found,
            Err(problem) => return CallReport::failed(explain(call.name, &problem)),
        };
        let plugin = found.registered.plugin.description.name.clone();
        let called = (&call.budget_scope, (&call.hooks, &call.site));
        match self.call_found(found, call.arguments, call.answers, 0, called).await {
            Ok(report) => into_report(&plugin, report, &call.budget_scope, &call.site),
            Err(error) => CallReport::failed(error.to_string()),
        }
    }

    fn asks_denials(&self) -> bool {
        self.registry.permissions().asks_denials().is_some()
    }

    async fn keep_grant(&self, denial: &hotcell_graph::Value) -> Result<(), PortError> {
        let (registry, denial) = (self.registry.clone(), denial.clone());
        let keep = move || {
            denials::keep(registry.permissions(), &denial, |name| {
                registry.plugin(name).map(|found| (&found.plugin, found.file.as_path()))
            })
        };
        let advised = |error: denials::NotKept| {
            PortError::new(format!("{error}; grant it with `hotcell plugin grant`, or write it into `hotcell.toml`"))
        };
        tokio::task::spawn_blocking(keep).await.map_err(PortError::new)?.map_err(advised)
    }
}

/// What a plugin may ask a model, as the contract describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginRequest {
    messages: Vec<PluginMessage>,
    model: Option<String>,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    schema: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginMessage {
    role: PluginRole,
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum PluginRole {
    System,
    User,
    Assistant,
}

/// The run that a plugin works for.
struct RunServices {
    tools: AgentTools,
    budget_scope: Arc<BudgetScope>,
    /// Who is told
    hooks: Arc<dyn Hooks>,
    /// Where the plugin was called
    site: CallSite,
    /// The plugin
    caller: String,
}

impl RunServices {
    /// Tells the hooks what the plugin is about to do, or what came of it: what they made of the entry `what`, if they changed it.
    async fn tell<const N: usize>(
        &self,
        point: HookPoint,
        entries: [(&str, GraphValue); N],
        what: &str,
        account: &mut Vec<(String, Usage)>,
    ) -> Result<Option<GraphValue>, ServiceError> {
        if !self.hooks.listens(point) {
            return Ok(None);
        }
        let caller = || GraphValue::from(self.caller.as_str());
        let own = [("node", caller()), ("caller", caller())];
        let event: Object = own.into_iter().chain(entries).map(|(key, value)| (key.into(), value)).collect();
        let (verdict, used) = self.hooks.tell(point, event, &self.budget_scope, &self.site).await;
        account.extend(used.iter().map(|(who, usage)| (who.to_owned(), usage.clone())));
        match verdict {
            HookVerdict::Proceed => Ok(None),
            HookVerdict::Change(event) => Ok(event.get(what).cloned()),
            HookVerdict::Refuse(reason) => {
                Err(ServiceError::Denied(format!("refused at `{}`: {reason}", point.name())))
            }
        }
    }

    async fn ask_model(&self, request: &str, account: &mut Vec<(String, Usage)>) -> Result<Value, ServiceError> {
        let wrong = |message: String| ServiceError::InvalidInput(message);
        let request: PluginRequest =
            serde_json::from_str(request).map_err(|error| wrong(format!("the request to the model: {error}")))?;
        let name = match self.site.model().or(request.model.as_deref()) {
            Some(name) => name.parse::<ModelName>().map_err(|error| wrong(error.to_string()))?,
            None => self
                .tools
                .default_model
                .clone()
                .ok_or_else(|| ServiceError::Unavailable("this run has no model".to_owned()))?,
        };
        let schema = match &request.schema {
            Some(schema) => {
                let validator = JsonSchema::compiled(schema)
                    .map_err(|error| wrong(format!("`schema` is not a JSON schema that can be used: {error}")))?;
                Some((schema, validator))
            }
            None => None,
        };
        let mut messages: Vec<Message> = request
            .messages
            .iter()
            .map(|message| match message.role {
                PluginRole::System => Message::system(message.content.as_str()),
                PluginRole::User => Message::user(message.content.as_str()),
                PluginRole::Assistant => Message::assistant(message.content.as_str()),
            })
            .collect();
        if let Some((schema, _)) = &schema {
            messages.push(Message::user(format!(
                "Answer with one JSON value that fits this schema, and nothing else:\n{schema}"
            )));
        }
        let told: Vec<Value> =
            messages.iter().map(|message| json!({ "role": message.role, "content": message.content })).collect();
        let told = [
            ("model", name.to_string().into()),
            ("messages", GraphValue::from(&Value::from(told))),
            ("tools", GraphValue::List(List::default())),
        ];
        if let Some(changed) = self.tell(HookPoint::BeforeModelCall, told, "messages", account).await? {
            let changed = Value::from(&changed);
            let contents: Vec<&str> =
                changed.as_array().into_iter().flatten().filter_map(|message| message["content"].as_str()).collect();
            if contents.len() != messages.len() {
                let wrong = "a hook at `before-model-call` may change the contents of messages, not which there are";
                return Err(ServiceError::Denied(wrong.to_owned()));
            }
            for (message, content) in messages.iter_mut().zip(contents) {
                content.clone_into(&mut message.content);
            }
        }
        let called = Request {
            temperature: request.temperature,
            max_tokens: request.max_tokens,
            ..Request::new(name.clone(), messages)
        };
        self.budget_scope.may_ask_model().map_err(|overdrawn| ServiceError::Unavailable(overdrawn.to_string()))?;
        self.site.acted();
        let mut reply = self.tools.model.complete(called, None).await.map_err(|error| match error.is_transient() {
            true => ServiceError::Unavailable(error.to_string()),
            false => ServiceError::Other(error.to_string()),
        })?;
        let used = Usage {
            model_requests: 1,
            input_tokens: reply.usage.input,
            output_tokens: reply.usage.output,
            ..Usage::default()
        };
        self.budget_scope.spend(&used);
        account.push((name.to_string(), used));
        let told = [("reply", GraphValue::from(&json!({ "text": reply.content, "tool_calls": [] })))];
        if let Some(changed) = self.tell(HookPoint::AfterModelCall, told, "reply", account).await?
            && let Some(text) = changed.as_object().and_then(|reply| reply.get("text")).and_then(GraphValue::as_text)
        {
            text.clone_into(&mut reply.content);
        }
        let mut answer = json!({
            "text": reply.content,
            "model": name.to_string(),
            "usage": { "input_tokens": reply.usage.input, "output_tokens": reply.usage.output },
        });
        if let Some((_, validator)) = schema {
            let text = reply.content.trim().trim_start_matches("```json").trim_matches('`').trim();
            let value = read_json(text)
                .map_err(|error| ServiceError::Other(format!("the model did not answer JSON: {error}")))?;
            if let Some(problem) = validator.problems(&value, 1).first() {
                return Err(ServiceError::Other(format!("the model's answer does not fit the schema: {problem}")));
            }
            answer["value"] = value;
        }
        Ok(answer)
    }
}

#[async_trait]
impl Services for RunServices {
    async fn complete(&self, request: &str) -> ServiceReply {
        let mut usage = Vec::new();
        let result = self.ask_model(request, &mut usage).await.map(|answer| answer.to_string());
        ServiceReply { result, usage }
    }

    async fn call_tool(&self, name: &str, arguments: &str, depth: u32) -> ServiceReply {
        let refused = |error: ServiceError| ServiceReply { result: Err(error), usage: Vec::new() };
        let found = match self.tools.registry.tool(name) {
            Ok(found) => found,
            Err(problem) => return refused(ServiceError::Denied(explain(name, &problem))),
        };
        let plugin = found.registered.plugin.description.name.clone();
        let mut usage = Vec::new();
        let arguments = match read_arguments(&found.tool.parameters, arguments) {
            Ok(arguments) => GraphValue::Object(arguments),
            Err(problem) => {
                let problem = format!("the arguments of `{name}` cannot be used: {problem}");
                return refused(ServiceError::InvalidInput(problem));
            }
        };
        let told = [("tool", name.into()), ("arguments", arguments.clone())];
        let arguments = match self.tell(HookPoint::BeforeToolCall, told, "arguments", &mut usage).await {
            Ok(changed) => changed.unwrap_or(arguments).to_json(),
            Err(error) => return ServiceReply { result: Err(error), usage },
        };
        // Boxed, because a tool may call tools.
        let called = (&self.budget_scope, (&self.hooks, &self.site));
        let called = self.tools.call_found(found, &arguments, &[], depth, called);
        let mut report = match Box::pin(called).await {
            Ok(report) => report,
            Err(NotPrepared::Overdrawn(overdrawn)) => {
                let problem = ServiceError::Unavailable(overdrawn.to_string());
                return ServiceReply { result: Err(problem), usage };
            }
            Err(error @ (NotPrepared::Component(_) | NotPrepared::Revoked(_))) => {
                // What is said of folders and files is for the operator.
                tracing::warn!(target: "hotcell::plugin", plugin = self.caller, "cannot call the tool `{name}`: {error}");
                let problem = ServiceError::Unavailable(format!("the tool `{name}` cannot be called now"));
                return ServiceReply { result: Err(problem), usage };
            }
        };
        self.budget_scope.spend(&report.usage);
        withholding::tell(&report.denials, &self.site);
        recordings::keep(&plugin, report.recording.take(), &self.site);
        usage.extend(report.nested);
        usage.push((plugin, report.usage));
        let mut result = report.result.map_err(|error| match error {
            CellError::Suspended { question } => ServiceError::Denied(format!(
                "a tool that a plugin calls cannot ask questions, and it asked: {question}"
            )),
            other @ (CellError::Directory { .. } | CellError::Host { .. }) => {
                tracing::warn!(target: "hotcell::plugin", plugin = self.caller, "the tool `{name}` failed: {other}");
                ServiceError::Other(other.for_guests())
            }
            other => ServiceError::Other(other.for_guests()),
        });
        if self.hooks.listens(HookPoint::AfterToolCall)
            && let Ok(text) = &result
        {
            let answered = parse_json(text).unwrap_or_else(|_| GraphValue::text(text.as_str()));
            let told = [("tool", name.into()), ("result", answered.clone())];
            let told = self.tell(HookPoint::AfterToolCall, told, "result", &mut usage).await;
            // What they saw is what the plugin gets.
            result = told.map(|changed| changed.unwrap_or(answered).to_json());
        }
        ServiceReply { result, usage }
    }
}
